"""Open a recorded run from any source and check what an audit relies on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plumbob.attacks import attacks
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FILLED, Federation, Party
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.recorded.folder import is_recording, read_recording
from plumbob.recorded.seals import dropped_of
from plumbob.transcript import COORDINATOR, Transcript


def open_recorded(path: Path) -> Transcript:
    """Open a saved transcript or a folder of plain files."""
    log = read_recording(path) if is_recording(path) else Transcript.load(path)
    known = sorted({protocol for attack in attacks().values() for protocol in attack.protocols})
    if log.protocol not in known:
        raise BadInput(f"{path}: no attack addresses '{log.protocol}'; known: {', '.join(known)}")
    try:
        federation_in(log)
        if log.protocol == SplitNetwork.name:
            _check_cut(log)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    return log


def federation_in(log: Transcript) -> Federation:
    """The parties with their sealed columns, checked."""
    if log.active not in log.parties:
        raise BadInput(f"the active party '{log.active}' is not among the parties: {', '.join(log.parties)}")
    columns = {name: log.sealed(name).get("columns") for name in log.parties}
    rows = next((len(part) for part in columns.values() if part is not None and part.ndim == 2), 0)
    parties = []
    for name, part in columns.items():
        features = tuple(feature.column for feature in log.features if feature.party == name)
        shape = None if part is None else part.shape
        if part is None or shape != (rows, len(features)):
            raise BadInput(f"columns of '{name}': expected shape {(rows, len(features))}, got {shape or 'none'}")
        if part.dtype.kind != "f" or not ((part >= 0) & (part <= 1)).all():
            raise BadInput(f"columns of '{name}': expected numbers from 0 to 1 in every cell")
        filled = log.sealed(name).get(FILLED)
        if filled is not None and (filled.shape != part.shape or filled.dtype != np.bool_):
            raise BadInput(f"filled cells of '{name}': expected yes or no for every cell, got {filled.dtype}")
        parties.append(Party(name, features, part, filled))
    if [feature.party for feature in log.features] != [p.name for p in parties for _ in p.columns]:
        raise BadInput("features: expected them in the order of the parties")
    label = log.sealed(log.active).get("label", np.zeros(rows, dtype=np.int64))
    if label.ndim != 1 or label.dtype.kind not in "iu" or label.min(initial=0) < 0:
        raise BadInput(f"label: expected a class number for every row, got {label.dtype} of shape {label.shape}")
    others = log.sealed(COORDINATOR).get("other rows", np.zeros((0, len(log.features))))
    if others.ndim != 2 or others.shape[1] != len(log.features):
        raise BadInput(f"other rows: expected {len(log.features)} columns, got shape {others.shape}")
    return Federation(tuple(parties), log.active, label.astype(np.int64), log.classes, dropped=dropped_of(log))


def _check_cut(log: Transcript) -> None:
    """Check that there are embeddings of all rows, in the order of the rows, or at least outputs of training."""
    rows = len(log.sealed(log.active)["columns"])
    opened_sum = log.sealed(log.active).get("notes/embeddings")
    if opened_sum is not None:
        _check_embeddings("the opened sum", opened_sum, rows)
        return
    sent = {name: [m for m in log.messages if m.name == "embeddings" and m.sender == name] for name in log.parties}
    sent = {name: messages for name, messages in sent.items() if messages}
    trained = any(m.name in ("outputs", "masked outputs") and m.phase == "train" for m in log.messages)
    if not sent and not trained:
        raise BadInput("no message 'embeddings' or 'outputs': neither prediction nor training was recorded")
    for name, messages in sent.items():
        if any(m.payload.ndim != 2 or m.payload.shape[1:] != messages[0].payload.shape[1:] for m in messages):
            raise BadInput(f"embeddings of '{name}': expected tables of equal width with one row per person")
        _check_embeddings(f"'{name}'", np.concatenate([m.payload for m in messages]), rows)
        rounds = {m.round for m in messages}
        asked = [
            m.payload.reshape(-1)
            for m in log.messages
            if m.name == "rows" and m.phase == "predict" and m.receiver == name and m.round in rounds
        ]
        if asked and not np.array_equal(np.concatenate(asked), np.arange(rows)):
            raise BadInput(f"embeddings of '{name}': expected all rows once, in the order of the columns")


def _check_embeddings(whose: str, cells: Array, rows: int) -> None:
    if cells.ndim != 2 or len(cells) != rows:
        raise BadInput(f"embeddings of {whose}: expected {rows:,} rows, got shape {cells.shape}")
    if cells.dtype.kind != "f" or not np.isfinite(cells).all():
        raise BadInput(f"embeddings of {whose}: expected floating-point numbers, got {cells.dtype}")
