"""What a recorded run contains besides its messages: remarks, the model's accuracy, known defences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from plumbob.defences import DEFENCES, defence_named
from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import BadInput, suggest
from plumbob.federation import Dropped
from plumbob.files import parse_json
from plumbob.known_defences import KnownDefences
from plumbob.protocols.shared.conduct import KIND
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode
from plumbob.protocols.shared.hidden_codes import CODES, RowBits
from plumbob.transcript import COORDINATOR, Transcript

REMARKS = "remarks"
DROPPED = "dropped columns"
ACCURACY = "test accuracy"


def seal_remarks(log: Transcript, remarks: Iterable[str]) -> None:
    """Sentences for the report; they contain no values."""
    text = "\n".join(" ".join(remark.split()) for remark in remarks)
    log.seal(COORDINATOR, REMARKS, np.frombuffer(text.encode(), dtype=np.uint8))


def remarks_of(log: Transcript) -> tuple[str, ...]:
    """The sentences that were sealed."""
    text = log.sealed(COORDINATOR).get(REMARKS, np.zeros(0, dtype=np.uint8)).astype(np.uint8).tobytes()
    return tuple(line for line in text.decode(errors="replace").split("\n") if line)


def seal_dropped(log: Transcript, dropped: Iterable[Dropped]) -> None:
    """Columns that take no part, and why."""
    text = json.dumps([[one.party, one.column, one.why] for one in dropped])
    log.seal(COORDINATOR, DROPPED, np.frombuffer(text.encode(), dtype=np.uint8))


def dropped_of(log: Transcript) -> tuple[Dropped, ...]:
    """The columns that were sealed as taking no part."""
    text = log.sealed(COORDINATOR).get(DROPPED, np.frombuffer(b"[]", dtype=np.uint8)).astype(np.uint8).tobytes()
    try:
        listed = parse_json(text.decode())
        if not all(isinstance(word, str) for one in listed for word in one):
            raise TypeError
        return tuple(Dropped(party, column, why) for party, column, why in listed)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput("columns that take no part: expected party, column and reason of each") from error


def seal_accuracy(log: Transcript, share: object) -> None:
    """Record the model's accuracy."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise BadInput(f"accuracy: expected a share from 0 to 1, got {share!r}")
    log.seal(COORDINATOR, ACCURACY, np.array([float(share)]))


def accuracy_of(log: Transcript) -> float | None:
    """The model's accuracy, if it was recorded."""
    sealed = log.sealed(COORDINATOR).get(ACCURACY)
    return None if sealed is None or sealed.size != 1 else float(sealed.reshape(-1)[0])


def seal_defence(log: Transcript, defence: Mapping[str, Mapping[str, object]]) -> None:
    """Record what is publicly known of the run's defences, by name with their settings."""
    cut = [name for name, kind in DEFENCES.items() if isinstance(kind, type) and issubclass(kind, EmbeddingDefence)]
    for name, settings in defence.items():
        if name not in cut:
            raise BadInput(f"defence: '{name}' is not a defence of the cut layer{suggest(name, cut)}")
        if not isinstance(settings, Mapping):
            raise BadInput(f"defence '{name}': expected a mapping of settings, got {type(settings).__name__}")
        defence_named(name, **settings).known().seal(log)


def defence_of(log: Transcript) -> str:
    """The names of the defences that the run is known to have had, as a plan writes them."""
    return "+".join(KnownDefences.sealed_in(log).names) or "none"


def sent_in(log: Transcript) -> str:
    """The kind of what one of the run's parties did that the protocol does not ask for, by its own notes; empty for none."""
    for party in log.parties:
        said = log.sealed(party).get(f"notes/{KIND}")
        if said is not None and said.size:
            return said.astype(np.uint8).tobytes().decode(errors="replace")
    noted = {name.rpartition("/")[2] for name in log.sealed(log.active) if name.startswith("notes/code/")}
    every: tuple[type[HiddenCode], ...] = (*CODES.values(), RowBits)
    return next((code.kind for code in every if code.noted_as in noted), "")
