"""What a passive party gets at the cut in training: round by round the rows and the loss's gradient at its outputs for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View
from plumbob.transcript import Message

SILENT = "this view holds no gradients at the cut that differ from row to row"


@dataclass(frozen=True)
class Batch:
    """One round: rows that are known by number, and finite gradients, not all of them alike."""

    rows: IntArray
    gradients: FloatArray  # of the mean loss, times the number of rows
    outputs: FloatArray | None = None  # what the party sent for these rows, where that was kept

    @property
    def units(self) -> FloatArray:
        """Gradients without their length; zero stays zero."""
        return directions(self.gradients)


def batches(view: View, sent: bool = False) -> list[Batch]:
    """All rounds of all curious parties, early ones first; `sent`: with their outputs."""
    rows: dict[tuple[str, int], Message] = {}
    outputs: dict[tuple[str, int], Message] = {}
    found = []
    for message in view.messages:
        if message.phase != "train":
            continue
        if message.name == "rows" and message.receiver in view.curious:
            rows[message.receiver, message.round] = message
        elif sent and message.name in ("outputs", "masked outputs") and message.sender in view.curious:
            outputs[message.sender, message.round] = message
        elif message.name == "output gradients" and (place := (message.receiver, message.round)) in rows:
            batch = _batch(rows[place], message, outputs.get(place), len(view.own))
            found += [] if batch is None else [batch]
    return found


def _batch(asked: Message, told: Message, sent: Message | None, count: int) -> Batch | None:
    rows = np.asarray(asked.payload).ravel().astype(np.int64)
    if told.payload.ndim < 1 or len(told.payload) != len(rows) or not len(rows):
        return None  # beyond what is archived
    gradients = np.asarray(told.payload, dtype=np.float64).reshape(len(rows), -1) * len(rows)
    kept = np.isfinite(gradients).all(axis=1) & (rows >= 0) & (rows < count)
    if not gradients[kept].any() or (kept.sum() > 1 and not np.ptp(gradients[kept], axis=0).any()):
        return None  # nothing, or the same of all rows
    there = sent is not None and len(sent.payload) == len(rows) and sent.name == "outputs"
    outputs = np.asarray(sent.payload, dtype=np.float64).reshape(len(rows), -1)[kept] if sent and there else None
    return Batch(rows[kept], gradients[kept], outputs)


def directions(gradients: FloatArray) -> FloatArray:
    """Rows of length 1; a row that is zero stays so.

    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    sizes = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(np.divide(gradients, sizes, out=np.zeros_like(gradients), where=sizes > 0))


def joined(found: list[Batch], fewest: int) -> list[Batch]:
    """Neighbouring rounds together until each holds so many rows: of few rows nothing can be told."""
    some: list[list[Batch]] = [[]]
    for batch in found:
        if some[-1] and (
            sum(len(b.rows) for b in some[-1]) >= fewest or some[-1][0].gradients.shape[1] != batch.gradients.shape[1]
        ):
            some.append([])
        some[-1].append(batch)
    return [part[0] if len(part) == 1 else _together(part) for part in some if part]


def _together(part: list[Batch]) -> Batch:
    return Batch(np.concatenate([b.rows for b in part]), np.concatenate([b.gradients for b in part]))


def named_by_known(groups: IntArray, view: View) -> tuple[IntArray, bool]:
    """Groups of rows as classes, by the labels that are known, and whether they have no names: where none is known.

    Every group gets the class that most of its known rows have. Groups without one share the classes that are left over.
    """
    known = view.known_labels
    count = len(view.classes)
    if not ((known >= 0) & (groups >= 0)).any():
        return np.minimum(groups, count - 1), True
    votes = np.zeros((int(groups.max()) + 1, count))
    both = (known >= 0) & (groups >= 0)
    np.add.at(votes, (groups[both], known[both]), 1.0)
    names = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    left = [c for c in range(count) if c not in names]
    for place, group in enumerate(np.flatnonzero(names < 0)):
        names[group] = left[place % len(left)] if left else 0
    labels = np.where(groups >= 0, names[np.maximum(groups, 0)], -1)
    return np.asarray(np.where(known >= 0, known, labels), dtype=np.int64), False


def labels_only(view: View, groups: IntArray, certificate: str = "") -> Guess:
    """A guess of the label and of no column; classes have names where some label is known."""
    labels, unnamed = named_by_known(groups, view)
    return replace(nothing(view), labels=labels, unnamed=unnamed, certificate=certificate)
