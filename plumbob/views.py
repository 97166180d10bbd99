"""The view: exactly what a threat gives to the curious parties, cut from a transcript. The only input of an attack."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from plumbob import bundle, memory
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.grants import AuxiliaryRows, Grant, KnownLabels, KnownPeople, Schema, Threat, WhiteBox
from plumbob.known_defences import KnownDefences
from plumbob.transcript import COORDINATOR, Message, Transcript, check_message, check_words
from plumbob.trust import NO_CODE, Trust

_OPTIONAL = (
    *("ranges", "steps", "auxiliary", "auxiliary_scores"),
    *("people", "people_rows", "people_labels", "labelled", "labelled_classes"),
)
AUXILIARY_ANSWERS, COLUMNS_OF = "auxiliary answers/", "columns of/"  # notes, by party
AUXILIARY_LABELS = "auxiliary labels"  # note: classes of the auxiliary rows, where the active party trains by its label


@dataclass(frozen=True)
class View:
    """Exactly what a threat may use. The only input of an attack.

    Columns are numbered as in the joint model: `known` and `unknown` are positions there, `own` holds the known ones.
    """

    protocol: str
    active: str
    curious: tuple[str, ...]
    classes: tuple[str, ...]
    known: IntArray
    unknown: IntArray
    unknown_names: tuple[str, ...]
    own: FloatArray
    messages: tuple[Message, ...] = field(repr=False)
    model: dict[str, Array] | None = None
    ranges: FloatArray | None = None  # (unknown columns) x (low, high)
    steps: FloatArray | None = None  # of the unknown columns' grids (whole numbers, cents); 0 where there is none
    auxiliary: FloatArray | None = None  # complete rows, all columns of the joint model
    defence: KnownDefences = field(default_factory=KnownDefences)  # what is known of the defences in place
    auxiliary_scores: FloatArray | None = None  # what the federation answers on the auxiliary rows; NaN where withheld
    people: IntArray | None = None  # numbers of the rows of which the curious know everything, in rising order
    people_rows: FloatArray | None = None  # these rows, all columns of the joint model
    people_labels: IntArray | None = None  # and their classes
    labelled: IntArray | None = None  # numbers of the rows of which the curious know the label, in rising order
    labelled_classes: IntArray | None = None  # and what it is
    notes: dict[str, Array] = field(default_factory=dict)  # what the curious parties know by their own work
    trust: Trust = NO_CODE  # of whoever runs the attack; never saved

    @classmethod
    def from_arrays(
        cls,
        *,
        own: FloatArray,
        scores: FloatArray,
        model: Mapping[str, Array] | None = None,
        unknown: int | Sequence[str] | None = None,
        protocol: str = "logistic_regression",
        auxiliary: FloatArray | None = None,
    ) -> View:
        """What the active party sees of a joint prediction, from arrays in the range 0 to 1: to use an attack by itself.

        `own` are the known columns, which come first in the joint model; `scores` has a column for each class. `model` holds the
        joint model's arrays (of logistic regression `weights`, columns x classes, and `bias`). `unknown` holds the names or the
        number of the other columns; the weights tell it by themselves.

        >>> model = {"weights": np.ones((5, 2)), "bias": np.zeros(2)}
        >>> View.from_arrays(own=np.zeros((2, 3)), scores=np.full((2, 2), 0.5), model=model).unknown_names
        ('unknown 1', 'unknown 2')
        """
        own, scores = _table("own", own), _table("scores", scores)
        if unknown is None:
            if model is None or "weights" not in model:
                raise BadInput("View.from_arrays: say how many columns are unknown (unknown=3), or name them")
            unknown = len(model["weights"]) - own.shape[1]
        count = isinstance(unknown, int | np.integer)
        if isinstance(unknown, str) or not (count or isinstance(unknown, Sequence)):
            raise BadInput(f"View.from_arrays: expected the number or a list of the unknown columns, got {unknown!r}")
        names = tuple(f"unknown {i + 1}" for i in range(unknown)) if count else tuple(map(str, unknown))  # type: ignore[arg-type]
        if len(own) != len(scores) or not names:
            raise BadInput(
                f"View.from_arrays: expected own columns and scores of the same rows and at least one unknown column, "
                f"got {own.shape}, {scores.shape} and {len(names)}"
            )
        _check_linear(model, own.shape[1] + len(names), scores.shape[1], protocol)
        if auxiliary is not None and np.shape(auxiliary)[1:] != (own.shape[1] + len(names),):
            raise BadInput(f"View.from_arrays: auxiliary rows have all {own.shape[1] + len(names)} columns")
        known = np.arange(own.shape[1])
        message = Message(COORDINATOR, "active", "predict", 0, "scores", scores, "")
        return cls(
            protocol=protocol,
            active="active",
            curious=("active",),
            classes=tuple(str(i) for i in range(scores.shape[1])),
            known=known,
            unknown=np.arange(len(known), len(known) + len(names)),
            unknown_names=names,
            own=own,
            messages=(message,),
            model=None if model is None else dict(model),
            ranges=np.tile([0.0, 1.0], (len(names), 1)),
            auxiliary=auxiliary,
        )

    def received(self, name: str) -> Array:
        """All payloads of that name which reached a curious party, concatenated."""
        payloads = [m.payload for m in self.messages if m.name == name and m.receiver in self.curious]
        if not payloads:
            raise BadInput(f"this view holds no message '{name}'")
        return np.concatenate(payloads)

    @property
    def known_labels(self) -> IntArray:
        """The class of every row that the curious know by their threat, -1 of the others."""
        known = np.full(len(self.own), -1, dtype=np.int64)
        for rows, classes in ((self.people, self.people_labels), (self.labelled, self.labelled_classes)):
            if rows is not None and classes is not None:
                known[rows] = classes
        return known

    def save(self, path: Path) -> None:
        """Write to a folder, or to one file if the path ends in `.zip`."""
        bundle.save(path, *self.parts())

    def parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """All of it but the trust, as plain data and named arrays."""
        arrays: dict[str, Array] = {"known": self.known, "unknown": self.unknown, "own": self.own}
        arrays |= {f"message/{i}": message.payload for i, message in enumerate(self.messages)}
        arrays |= {f"model/{name}": array for name, array in (self.model or {}).items()}
        arrays |= self.defence.prefixed()
        arrays |= {f"notes/{name}": array for name, array in self.notes.items()}
        arrays |= {name: array for name in _OPTIONAL if (array := getattr(self, name)) is not None}
        meta = {
            "kind": "view",
            "protocol": self.protocol,
            "active": self.active,
            "curious": list(self.curious),
            "classes": list(self.classes),
            "unknown_names": list(self.unknown_names),
            "messages": [
                message.header | {"link": message.link, "whole": message.whole, "size": message.size}
                for message in self.messages
            ],
            "white_box": self.model is not None,
        }
        return meta, arrays

    @property
    def digest(self) -> str:
        """A hash of all of it but the trust: the same for the view and for what `save` wrote of it."""
        meta, arrays = self.parts()
        named = [[name, bundle.digest(array)] for name, array in arrays.items()]
        return hashlib.sha256(bundle.canonical([meta, named]).encode()).hexdigest()[:32]

    @classmethod
    def load(cls, path: Path, limit: int = memory.LIMIT, trust: Trust = NO_CODE) -> View:
        """Read a view back. `trust` says whether networks of other packages that it names may be loaded."""
        return cls.of_parts(path, *bundle.load(path, limit), trust)

    @classmethod
    def of_parts(cls, path: Path, meta: dict[str, Any], arrays: dict[str, Array], trust: Trust = NO_CODE) -> View:
        """A view from its parts, which were read at `path` and are not trusted."""
        if meta.get("kind") != "view":
            raise BadInput(f"{path}: expected a view, got '{meta.get('kind')}'")
        try:
            check_words(path, meta, ("protocol", "active"), ("curious", "classes", "unknown_names"))
            for i, header in enumerate(meta["messages"]):
                check_message(path, i, header)
            _check_own(path, arrays, len(meta["unknown_names"]))
            _check_people(path, arrays)
            _check_labelled(path, arrays, len(meta["classes"]))
            messages = tuple(
                Message(**header, payload=arrays[f"message/{i}"]) for i, header in enumerate(meta["messages"])
            )
            model = _under("model/", arrays)
            return cls(
                protocol=meta["protocol"],
                active=meta["active"],
                curious=tuple(meta["curious"]),
                classes=tuple(meta["classes"]),
                known=arrays["known"],
                unknown=arrays["unknown"],
                unknown_names=tuple(meta["unknown_names"]),
                own=arrays["own"],
                messages=messages,
                model=model if meta["white_box"] else None,
                ranges=arrays.get("ranges"),
                steps=arrays.get("steps"),
                auxiliary=arrays.get("auxiliary"),
                defence=KnownDefences.within(arrays),
                auxiliary_scores=arrays.get("auxiliary_scores"),
                people=arrays.get("people"),
                people_rows=arrays.get("people_rows"),
                people_labels=arrays.get("people_labels"),
                labelled=arrays.get("labelled"),
                labelled_classes=arrays.get("labelled_classes"),
                notes=_under("notes/", arrays),
                trust=trust,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{path}: its manifest has no {error}") from error


def _table(what: str, given: object) -> FloatArray:
    """A table of finite numbers from what a caller gave for one."""
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"View.from_arrays: {what}: expected a table of numbers") from error
    if table.ndim != 2 or not np.isfinite(table).all() or table.min(initial=0.0) < 0 or table.max(initial=0.0) > 1:
        raise BadInput(f"View.from_arrays: {what}: expected rows and columns of numbers from 0 to 1, got {table.shape}")
    return table


def _check_linear(model: Mapping[str, Array] | None, columns: int, classes: int, protocol: str) -> None:
    """The arrays of a logistic regression fit the columns and classes; of other models only attacks can tell."""
    if model is None or protocol != "logistic_regression":
        return
    shapes = {name: np.shape(model[name]) if name in model else None for name in ("weights", "bias")}
    if shapes != {"weights": (columns, classes), "bias": (classes,)}:
        raise BadInput(
            f"View.from_arrays: model: expected weights of {columns} columns x {classes} classes and a bias of {classes}, "
            f"got {shapes['weights']} and {shapes['bias']}"
        )


def cut(transcript: Transcript, threat: Threat, trust: Trust = NO_CODE) -> View:
    """The part of a transcript that a threat gives to the curious parties."""
    curious = threat.curious(transcript.active, transcript.parties)
    owners = [feature.party for feature in transcript.features]
    known = np.array([i for i, owner in enumerate(owners) if owner in curious], dtype=np.int64)
    unknown = np.array([i for i, owner in enumerate(owners) if owner not in curious], dtype=np.int64)
    columns = {party: transcript.sealed(party)["columns"] for party in transcript.parties if party in curious}
    rows = len(transcript.sealed(transcript.active)["columns"])
    own = np.hstack([np.zeros((rows, 0)), *columns.values()])
    schema = threat.grant(Schema) is not None
    names = tuple(transcript.features[i].name if schema else f"unknown {k + 1}" for k, i in enumerate(unknown))
    coordinator = transcript.sealed(COORDINATOR)
    model = _under("model/", coordinator)
    return View(
        protocol=transcript.protocol,
        active=transcript.active,
        curious=curious,
        classes=transcript.classes,
        known=known,
        unknown=unknown,
        unknown_names=names,
        own=own,
        # Without their links, which are hashes of messages that the curious parties never saw.
        messages=tuple(
            replace(m, link="") for m in transcript.messages if m.sender in curious or m.receiver in curious
        ),
        model=model if threat.grant(WhiteBox) else None,
        ranges=np.tile([0.0, 1.0], (len(unknown), 1)) if schema else None,
        steps=np.array([transcript.features[i].column.grid for i in unknown]) if schema else None,
        auxiliary=_auxiliary(coordinator, threat.grant(AuxiliaryRows)),
        defence=KnownDefences.within(coordinator),
        auxiliary_scores=_auxiliary_scores(coordinator, threat.grant(AuxiliaryRows)),
        **_people(transcript, threat.grant(KnownPeople)),
        **_labelled(transcript, threat.grant(KnownLabels)),
        notes={k: v for party in curious for k, v in _under("notes/", transcript.sealed(party)).items()}
        | _auxiliary_answers(transcript, curious, unknown, threat.grant(AuxiliaryRows)),
        trust=trust,
    )


def _check_own(path: Path, arrays: dict[str, Array], names: int) -> None:
    """Check the positions of columns, a name for every unknown one, and the cells of the known ones."""
    known, unknown, own = arrays["known"], arrays["unknown"], arrays["own"]
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (known, unknown)):
        raise BadInput(f"{path}: 'known' and 'unknown': expected positions of columns")
    every = np.sort(np.concatenate([known, unknown]))
    if len(unknown) != names or not np.array_equal(every, np.arange(len(every))):
        raise BadInput(f"{path}: 'known' and 'unknown': expected every column once, and a name for each unknown one")
    if own.ndim != 2 or own.shape[1] != len(known) or own.dtype.kind != "f":
        raise BadInput(f"{path}: 'own': expected a table of {len(known)} columns, got {own.dtype} of {own.shape}")


def _check_people(path: Path, arrays: dict[str, Array]) -> None:
    """Check the rows that are known in full: their numbers, cells and classes."""
    if not {"people", "people_rows", "people_labels"} & set(arrays):
        return
    shape = len(arrays["own"]), len(arrays["known"]) + len(arrays["unknown"])
    people, rows = arrays.get("people", np.zeros(0)), arrays.get("people_rows", np.zeros(0))
    labels = arrays.get("people_labels", np.zeros(people.shape, dtype=np.int64))
    if not (
        people.ndim == 1
        and people.dtype.kind == labels.dtype.kind == "i"
        and 0 < len(np.unique(people)) == len(people) < shape[0]
        and people.min() >= 0
        and people.max() < shape[0]
        and rows.dtype.kind == "f"
        and rows.shape == (len(people), shape[1])
        and np.isfinite(rows).all()
        and labels.shape == people.shape
    ):
        raise BadInput(f"{path}: 'people': expected different rows of the view, their {shape[1]} columns and classes")


def _check_labelled(path: Path, arrays: dict[str, Array], classes: int) -> None:
    """Check the rows whose labels are known: their numbers and classes."""
    if not {"labelled", "labelled_classes"} & set(arrays):
        return
    rows, known = arrays.get("labelled", np.zeros(0)), arrays.get("labelled_classes", np.zeros(0))
    if not (
        rows.ndim == known.ndim == 1
        and rows.dtype.kind == known.dtype.kind == "i"
        and 0 < len(np.unique(rows)) == len(rows) == len(known) < len(arrays["own"])
        and rows.min() >= 0
        and rows.max() < len(arrays["own"])
        and known.min() >= 0
        and known.max() < classes
    ):
        raise BadInput(f"{path}: 'labelled': expected different rows of the view and the class of each")


def _under(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _pool(grant: Grant | None) -> str:
    """What the rows are called that a grant takes its auxiliary rows from, where they are sealed."""
    return "predicted" if isinstance(grant, AuxiliaryRows) and grant.predicted else "other"


def _auxiliary(coordinator: dict[str, Array], grant: Grant | None) -> FloatArray | None:
    if not isinstance(grant, AuxiliaryRows):
        return None
    rows = coordinator.get(f"{_pool(grant)} rows")
    available = 0 if rows is None else len(rows)
    if rows is None or available < grant.count:
        raise BadInput(f"the threat grants {grant.count:,} auxiliary rows, but only {available:,} are available")
    return np.asarray(rows[: grant.count])


def _auxiliary_scores(coordinator: dict[str, Array], grant: Grant | None) -> FloatArray | None:
    """Scores of the auxiliary rows that the curious party queried; NaN for the others.

    The people in these rows are clients too (or invented), so querying them is normal use and needs no model.
    """
    asked = coordinator.get(f"{_pool(grant)} scores")  # transcripts recorded elsewhere need not hold them
    if not isinstance(grant, AuxiliaryRows) or asked is None:
        return None
    scores = np.full((grant.count, asked.shape[1]), np.nan)
    scores[: len(asked)] = asked[: grant.count]
    return scores


def _auxiliary_answers(
    transcript: Transcript, curious: Sequence[str], unknown: IntArray, grant: Grant | None
) -> dict[str, Array]:
    """Where the active party collects the answers: those about the auxiliary rows, and whose columns are which.

    A sum of all parties' answers has no party's name. Who has a label of its own knows that of the auxiliary rows too.
    """
    coordinator = transcript.sealed(COORDINATOR)
    sealed = _under(f"{_pool(grant)} answers/", coordinator)
    if not isinstance(grant, AuxiliaryRows) or transcript.active not in curious:
        return {}
    owners = [transcript.features[i].party for i in unknown]
    found: dict[str, Array] = {}
    for party in dict.fromkeys(owners):
        if party in sealed:
            found[f"{AUXILIARY_ANSWERS}{party}"] = np.asarray(sealed[party][: grant.count])
            found[f"{COLUMNS_OF}{party}"] = np.flatnonzero([owner == party for owner in owners])
    if "" in sealed:
        found[AUXILIARY_ANSWERS] = np.asarray(sealed[""][: grant.count])
    if "notes/label" in transcript.sealed(transcript.active) and f"{_pool(grant)} labels" in coordinator:
        found[AUXILIARY_LABELS] = np.asarray(coordinator[f"{_pool(grant)} labels"][: grant.count])
    return found


def _people(transcript: Transcript, grant: Grant | None) -> dict[str, Any]:
    """The complete rows of some of the federation's people, spread evenly over its rows."""
    if not isinstance(grant, KnownPeople):
        return {}
    rows = np.hstack([transcript.sealed(party)["columns"] for party in transcript.parties])
    if 2 * grant.count > len(rows):
        raise BadInput(
            f"the threat knows {grant.count:,} of the people, which is more than half of the {len(rows):,} rows"
        )
    people = _spread(len(rows), grant.count)
    label = transcript.sealed(transcript.active).get("label")
    return {
        "people": people,
        "people_rows": rows[people],
        "people_labels": None if label is None else np.asarray(label)[people],
    }


def _labelled(transcript: Transcript, grant: Grant | None) -> dict[str, Array]:
    """The labels of some people of every class, spread evenly over its rows; of a rare class at most of half of them."""
    if not isinstance(grant, KnownLabels):
        return {}
    told = transcript.sealed(transcript.active).get("label")
    told = transcript.sealed(COORDINATOR).get("row labels") if told is None else told
    label = np.zeros(0, dtype=np.int64) if told is None else np.asarray(told)
    found = []
    for one in np.unique(label):
        rows = np.flatnonzero(label == one)
        found.append(rows[_spread(len(rows), min(grant.count, len(rows) // 2))])
    rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))
    if not len(rows) or 2 * len(rows) > len(label):
        raise BadInput(
            f"the threat knows the labels of {len(rows):,} of the people, and there are {len(label):,} rows with a label; "
            "expected at least one and at most half of them"
        )
    return {"labelled": rows, "labelled_classes": label[rows].astype(np.int64)}


def _spread(rows: int, count: int) -> IntArray:
    return np.linspace(0, rows - 1, count).round().astype(np.int64)
