"""Boosted splits (ours): labels and columns from what xgboost's column-wise federated training sends to every party.

    label      g = p - y is broadcast in the clear with 0 < p < 1, so y = 1 exactly where g < 0; of several classes, likewise
    columns    of every node all parties tell their best split, and the best is taken: column j at threshold t. For every row
               one bit says x_j < t or not. Over all trees a cell keeps an interval, low <= x < high, and the guess is the mean in
               it by the distribution that all rows' intervals make most likely; on a known grid it often holds a single value

A joint prediction tells the side of every row at every node, also of those that the row never comes by.
Nothing is opened and nobody cheats: each party needs these messages to train.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.formats import ubjson
from plumbob.kinds import COLUMNS, Kind
from plumbob.threats import View
from plumbob.transcript import COORDINATOR, Message

_LEAST_GAIN = 1e-6  # below it xgboost does not split
_DEFAULT_LEFT = 0x7FFFFFFF  # the bit above says where missing values go
_SINGLE = 1e-6  # thresholds are single precision
_COARSE = 1e-4  # grids finer than that are not told apart from none
_ROUNDS = 200
_TINY = 1e-12
_POINT = 1e-9  # width of the range's upper end, which a threshold may cut off by itself


class BoostedSplits(Attack):
    """Intervals of all cells by the sides of all splits, and the labels by the gradients' signs."""

    name = "boosted_splits"
    identity = "BoostedSplits()"
    summary = "ours: label inference from xgboost's gradients, and intervals of every cell from the sides of its splits"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("xgboost_columns",)
    addresses = (*COLUMNS, Kind.LABEL)
    needs_active = False

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        told = _told(view)
        first = next(message.payload for message in told if message.name == "gradients")
        intervals = _Intervals.of(view)
        trees = _Trees(len(view.own), intervals)
        for message in told:
            if message.name == "split candidates":
                trees.look_at(message.payload)
            elif message.name == "sides":
                sides = np.unpackbits(message.payload, bitorder="little").astype(np.bool_)
                (trees.send if message.phase == "train" else trees.send_everywhere)(sides)
        return Guess(view.unknown_names, intervals.guess(view.steps), labels=labels(first))


def labels(gradients: Array) -> IntArray:
    """The class of every row from the first round's gradients (rows x trees x 2)."""
    slopes = gradients[:, :, 0]
    return np.asarray(slopes[:, 0] < 0 if slopes.shape[1] == 1 else slopes.argmin(axis=1), dtype=np.int64)


def _told(view: View) -> list[Message]:
    """What the server told one curious party, or, where the server itself is curious, any party: they all get the same."""
    told = [message for message in view.messages if message.sender == COORDINATOR]
    if not any(message.name == "gradients" for message in told):
        raise BadInput("this view holds no message 'gradients'")
    return [message for message in told if message.receiver == told[0].receiver]


@dataclass
class _Intervals:
    """What is known of each unknown cell: low <= x < high."""

    low: FloatArray
    high: FloatArray
    place: dict[int, int]  # of xgboost's columns, those that are unknown: position among them

    @classmethod
    def of(cls, view: View) -> _Intervals:
        count = len(view.unknown)
        ranges = np.tile([0.0, 1.0], (count, 1)) if view.ranges is None else view.ranges
        place = {int(column): k for k, column in enumerate(view.unknown)}
        numbered = view.notes["columns"].tolist()
        low, high = (np.tile(ends, (len(view.own), 1)) for ends in (ranges[:, 0], ranges[:, 1] + _POINT))
        return cls(low, high, {i: place[column] for i, column in enumerate(numbered) if column in place})

    def learn(self, rows: IntArray, left: Array, feature: int, threshold: float) -> None:
        """Rows and their sides at a split; nothing new where it is on a column that is known anyway."""
        if feature not in self.place:
            return
        j = self.place[feature]
        below, above = rows[left], rows[~left]
        self.high[below, j] = np.minimum(self.high[below, j], threshold)
        self.low[above, j] = np.maximum(self.low[above, j], threshold)

    def guess(self, steps: FloatArray | None) -> FloatArray:
        """One value for every cell."""
        grids = np.zeros(self.low.shape[1]) if steps is None else steps
        made = [expected(self.low[:, j], self.high[:, j], step) for j, step in enumerate(grids.tolist())]
        return np.array(made).reshape(self.low.T.shape).T  # where only the label is hidden, there is no column


def expected(low: FloatArray, high: FloatArray, step: float) -> FloatArray:
    """The mean of one column's cells given their intervals, by the distribution that all intervals together make most likely.

    The ends cut the range into pieces; their shares are found by counting each row in the pieces of its interval, in
    proportion to their shares, until nothing changes (Turnbull 1976).

    >>> expected(np.array([0.0, 0.5, 0.0]), np.array([0.5, 1.0, 1.0]), 0.0).round(3).tolist()
    [0.25, 0.75, 0.5]
    """
    ends = np.unique(np.concatenate([low, high]))
    spans, which, counts = np.unique(
        np.stack([np.searchsorted(ends, low), np.searchsorted(ends, high)]),
        axis=1,
        return_inverse=True,
        return_counts=True,
    )
    pieces = np.arange(len(ends) - 1)
    inside = ((pieces >= spans[0][:, None]) & (pieces < spans[1][:, None])).astype(np.float64)
    shares = np.diff(ends) / np.ptp(ends)
    for _ in range(_ROUNDS):
        shares = shares * (inside.T @ (counts / (inside @ shares + _TINY))) / len(low)
    weights = inside * (shares + _TINY)
    means = (weights @ _centres(ends, shares, step)) / weights.sum(axis=1)
    return np.asarray(means[which.reshape(-1)])


def _centres(ends: FloatArray, shares: FloatArray, step: float) -> FloatArray:
    """The mean of each piece: the middle, or that of the grid's values in it; the outermost thin out like their neighbours."""
    left, right = ends[:-1], ends[1:]
    middle = (left + right) / 2
    if step >= _COARSE:
        least, most = np.ceil((left - _SINGLE) / step), np.ceil((right - _SINGLE) / step) - 1
        most[-1] = np.floor((right[-1] + _SINGLE) / step)  # the range's end is in it, a threshold is not
        return np.asarray(np.where(least <= most, (least + most) / 2 * step, middle))
    if (
        len(middle) > 1
    ):  # beyond the last threshold an exponential with the density before it has the mean share / density
        density = shares / (right - left) + _TINY
        half = (right - left) / 2
        middle[0] = right[0] - min(half[0], shares[0] / density[1])
        middle[-1] = left[-1] + min(half[-1], shares[-1] / density[-2])
    return np.asarray(middle)


@dataclass
class _Trees:
    """The trees as the messages tell them, and where every row is in the present one."""

    rows: int
    intervals: _Intervals
    grown: list[tuple[int, dict[int, tuple[int, float]]]] = field(default_factory=list)  # nodes; column, threshold
    _at: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _waiting: dict[int, tuple[int, float]] = field(default_factory=dict)

    def look_at(self, payload: Array) -> None:
        """All parties' candidates for the nodes of a level: the highest gain wins, of equal ones the first column."""
        best: dict[int, tuple[float, int, float]] = {}
        for entry in ubjson.values(payload.tobytes()):
            split, node = entry["split"], int(entry["nid"])
            column = int(split["sindex"]) & _DEFAULT_LEFT
            offer = (float(split["loss_chg"]), -column, float(split["split_value"]))
            if offer[0] > _LEAST_GAIN and offer > best.get(node, (0.0, 0, 0.0)):
                best[node] = offer
            if node == 0 and (not self.grown or self.grown[-1][0] > 1 or self._waiting):
                self._start()
        self._waiting = {node: (-best[node][1], best[node][2]) for node in sorted(best)}

    def _start(self) -> None:
        self.grown.append((1, {}))
        self._at, self._waiting = np.zeros(self.rows, dtype=np.int64), {}

    def send(self, left: Array) -> None:
        """The sides of a level: each row at the node where it is."""
        size, nodes = self.grown[-1]
        for node, (column, threshold) in self._waiting.items():
            here = np.flatnonzero(self._at == node)
            self.intervals.learn(here, left[here], column, threshold)
            self._at[here] = np.where(left[here], size, size + 1)
            nodes[node] = column, threshold
            size += 2
        self.grown[-1] = size, nodes
        self._waiting = {}

    def send_everywhere(self, left: Array) -> None:
        """The sides of a prediction: tree by tree, row by row, at every node."""
        everyone, start = np.arange(self.rows), 0
        for size, nodes in self.grown:
            block = left[start : start + self.rows * size].reshape(self.rows, size)
            for node, (column, threshold) in nodes.items():
                self.intervals.learn(everyone, block[:, node], column, threshold)
            start += self.rows * size
