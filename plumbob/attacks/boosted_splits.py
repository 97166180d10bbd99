"""Boosted splits (ours): labels and columns from what xgboost's federated training by columns sends to every party.

    label      g = p - y is broadcast in the clear with 0 < p < 1, so y = 1 exactly where g < 0; of several classes y has the only g < 0
    columns    of every node all parties tell their best split, and the best of them is taken: column j at threshold t. For every row
               one bit says x_j < t or not. Over all trees a cell keeps an interval, low <= x < high, and its middle is the guess;
               where the column lies on a known grid, the middle of the grid's values in it, which often is a single one

A joint prediction tells the side of every row at every node, also of those that the row never comes by.
Nothing is opened and nobody cheats: each party needs these messages to train.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.federated import ubjson
from plumbob.threats import View
from plumbob.transcript import COORDINATOR, Message

_LEAST_GAIN = 1e-6  # below it xgboost does not split
_DEFAULT_LEFT = 0x7FFFFFFF  # the bit above says where missing values go
_SINGLE = 1e-6  # thresholds are single precision
_COARSE = 1e-4  # grids finer than that are not told apart from none


class BoostedSplits(Attack):
    """Intervals of all cells by the sides of all splits, and the labels by the gradients' signs."""

    name = "boosted_splits"
    summary = "ours: labels from xgboost's gradients, and intervals of every cell from the sides of its splits"
    paper = "plumbob"
    protocols = ("xgboost_columns",)
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
        said = f"classes of all rows from the signs of the gradients; {trees.count:,} splits on the others' columns"
        return Guess(view.unknown_names, intervals.middles(view.steps), labels=labels(first), certificate=said)


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
    """What is known of each unknown cell: low <= x < high, at the upper end of the range also x = high."""

    low: FloatArray
    high: FloatArray
    place: dict[int, int]  # of xgboost's columns, those that are unknown: position among them

    @classmethod
    def of(cls, view: View) -> _Intervals:
        count = len(view.unknown)
        ranges = np.tile([0.0, 1.0], (count, 1)) if view.ranges is None else view.ranges
        place = {int(column): k for k, column in enumerate(view.unknown)}
        numbered = view.notes["columns"].tolist()
        low, high = (np.tile(ends, (len(view.own), 1)) for ends in ranges.T)
        return cls(low, high, {i: place[column] for i, column in enumerate(numbered) if column in place})

    def learn(self, rows: IntArray, left: Array, feature: int, threshold: float) -> bool:
        """Rows and their sides at a split; False where it is on a column that is known anyway."""
        if feature not in self.place:
            return False
        j = self.place[feature]
        below, above = rows[left], rows[~left]
        self.high[below, j] = np.minimum(self.high[below, j], threshold)
        self.low[above, j] = np.maximum(self.low[above, j], threshold)
        return True

    def middles(self, steps: FloatArray | None) -> FloatArray:
        """The middle of each interval, or of the values of the column's grid in it."""
        middle = (self.low + self.high) / 2
        for j, step in enumerate([] if steps is None else steps.tolist()):
            if step < _COARSE:
                continue
            least = np.ceil((self.low[:, j] - _SINGLE) / step)
            ended = self.high[:, j] < self.high[:, j].max() + _SINGLE  # by a threshold, which itself lies right
            open_end = self.high[:, j] < 1.0 - _SINGLE
            most = np.where(
                ended & open_end, np.ceil((self.high[:, j] - _SINGLE) / step) - 1, np.floor((self.high[:, j] + _SINGLE) / step)
            )
            middle[:, j] = np.where(least <= most, (least + most) / 2 * step, middle[:, j])
        return np.asarray(middle)


@dataclass
class _Trees:
    """The trees as the messages tell them, and where every row is in the present one."""

    rows: int
    intervals: _Intervals
    count: int = 0  # splits on unknown columns
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
            self.count += self.intervals.learn(here, left[here], column, threshold)
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
