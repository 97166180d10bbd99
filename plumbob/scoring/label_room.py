"""How much better a label can be guessed by whoever knows some labels: in the share that attacks are judged by.

    room = max over (known labels, learner) of 1 - (wrong with messages) / (wrong without), at the upper end of its interval

The ceiling trains on everybody else's labels, and its gain is a share of the most frequent class's errors. Where own columns
and so many labels leave few errors, it is small whatever messages say. Attackers with fewer labels have a weaker baseline, and
are judged by the errors that this one leaves. So the same is asked of learners with 8 or 100 labels of each class, and with half
of them. A ridge with messages is compared with a ridge without, one with a kernel with the better of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.attacks.row_messages import WIDE, reduced
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring._leave_one_out import NEAR, PENALTIES, kernel
from plumbob.scoring.metrics import ranks

LANDMARKS = 100
FEW = (8, 100)  # labels of each class that are known where few are
DRAWS = 3  # of few known labels
WIDTHS = (4, NEAR, WIDE)  # principal components of messages: few labels teach few weights
Z = 1.645  # one-sided, 95 %


def label_room(own: FloatArray, told: FloatArray, label: IntArray, rng: np.random.Generator) -> float:
    """The largest gain, as attacks on the label are judged, that learners with some of the labels leave possible."""
    classes = np.eye(int(label.max(initial=0)) + 1)[label]
    landmarks = np.sort(rng.permutation(len(label))[: min(LANDMARKS, len(label) // 2)])
    line, widths = reduced(own, WIDE), [reduced(told, width) for width in WIDTHS]
    curve = np.hstack([line, _kernel([own], landmarks)])
    both = np.hstack([line, widths[-1], _kernel([own, told], landmarks)])
    straight = [*widths, *(np.hstack([line, part]) for part in widths)]
    curved = [both, *(np.hstack([curve, part]) for part in widths)]
    half = rng.permutation(len(label)) % 2 == 0
    room = 0.0
    for draws in ([half, ~half], *([_few(label, many, rng) for _ in range(DRAWS)] for many in FEW)):
        asked = _Asked(classes, draws)
        flat = asked.best([classes[:, :0], line])
        room = max(room, asked.room(flat, straight), asked.room(asked.better(flat, curve), curved))
    return room


def _kernel(parts: Sequence[FloatArray], landmarks: IntArray) -> FloatArray:
    """A smooth kernel on ranks, as wide as all columns beside it."""
    near = np.hstack([reduced(part, NEAR) for part in parts])
    if not near.shape[1]:
        return near
    made = kernel(ranks(near) / len(near), landmarks, edged=False)
    return np.asarray(made * np.sqrt(near.shape[1]))


def _few(label: IntArray, many: int, rng: np.random.Generator) -> BoolArray:
    """Rows of every class, at most half of them."""
    known = np.zeros(len(label), dtype=np.bool_)
    for one in np.unique(label):
        rows = rng.permutation(np.flatnonzero(label == one))
        known[rows[: min(many, len(rows) // 2)]] = True
    return known


class _Asked:
    """Rows whose label is not known, over some draws of those whose label is."""

    def __init__(self, classes: FloatArray, draws: Sequence[BoolArray]) -> None:
        self.classes, self.draws = classes, draws
        self.times = np.sum([~known for known in draws], axis=0)

    def wrong(self, table: FloatArray) -> FloatArray:
        """The share of draws in which a row's class is guessed wrongly; a row that is always known is left out."""
        missed = np.zeros(len(self.classes))
        for known in self.draws:
            said = _answers(table[known], self.classes[known], table[~known])
            missed[~known] += said != self.classes[~known].argmax(axis=1)
        there = self.times > 0
        return np.asarray(missed[there] / self.times[there])

    def best(self, tables: Sequence[FloatArray]) -> FloatArray:
        return min((self.wrong(table) for table in tables), key=np.mean)

    def better(self, before: FloatArray, table: FloatArray) -> FloatArray:
        return min((before, self.wrong(table)), key=np.mean)

    def room(self, alone: FloatArray, tables: Sequence[FloatArray]) -> float:
        """The upper end of the largest share of errors that messages spare."""
        base = float(alone.mean())
        if base <= 0:
            return 0.0
        spared = [alone - self.wrong(table) for table in tables]
        upper = max(float(one.mean() + Z * one.std(ddof=1) / np.sqrt(len(one))) / base for one in spared)
        return float(np.clip(upper, 0.0, 1.0))


def _answers(taught: FloatArray, classes: FloatArray, asked: FloatArray) -> IntArray:
    """Ridge regression on classes, at the penalty that errs least on rows left out; without columns the most frequent class."""
    usual = classes.mean(axis=0)
    if not taught.shape[1]:
        return np.full(len(asked), usual.argmax())
    taught, asked = taught / np.sqrt(taught.shape[1]), asked / np.sqrt(taught.shape[1])
    middle = taught.mean(axis=0)
    left, sizes, right = np.linalg.svd(taught - middle, full_matrices=False)
    squares = sizes**2 / (sizes**2 + len(taught) * PENALTIES[:, None] + 1e-12)  # penalties x directions
    inner = left.T @ (classes - usual)
    best, chosen = np.inf, 0
    for place, shrunk in enumerate(squares):
        leverage = (left**2) @ shrunk + 1 / len(taught)
        errors = (classes - usual - left @ (shrunk[:, None] * inner)) / np.maximum(1e-3, 1 - leverage)[:, None]
        if (total := float((errors**2).sum())) < best:
            best, chosen = total, place
    weights = right.T @ (
        np.divide(squares[chosen], sizes, out=np.zeros_like(sizes), where=sizes > 1e-9)[:, None] * inner
    )
    return np.asarray((usual + (asked - middle) @ weights).argmax(axis=1), dtype=np.int64)
