"""Split sides (ours): what SecureBoost's own answers reveal, without hidden codes.

For every split of a passive party's column the active party names a bin b and gets one bit a row: bin <= b or not. All
answers about a column leave each of its rows an interval of bins, low < bin <= high, over all trees and nodes. Bins have
about equally many rows, so the middle of the interval, in units of all bins, is a place in the column's order.

Under shared indicators no bit is sent. Who knows that reads the sides off the leaves that rows were told to lie in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.sums._opened_sums import columns_of, under
from plumbob.errors import BadInput, boolean
from plumbob.federation import BoolArray, IntArray
from plumbob.known_defences import KnownSharedIndicators
from plumbob.threats import View

Rows = IntArray | BoolArray
Side = tuple[int, int, Rows, Rows]  # a column, a bin, and the rows at most and above it


class SplitSides(Attack):
    """Rows ordered by the sides they take at all splits."""

    name = "split_sides"
    identity = "SplitSides()"
    summary = "ours: orders rows by SecureBoost's answers about which rows go left; needs no hidden code"
    paper = "plumbob"
    protocols = ("secure_boost",)
    knows = (KnownSharedIndicators,)

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = boolean("split sides: adaptive", adaptive)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        rows, columns = len(view.own), columns_of(view)
        if not columns:
            raise BadInput("this view holds no message 'bin counts'")
        owners, bins = [column.party for column in columns], np.array([column.bins for column in columns])
        first = {party: owners.index(party) for party in owners}
        low, high = np.full((rows, len(bins)), -1), np.tile(bins - 1, (rows, 1))
        told = _by_leaves if KnownSharedIndicators in view.defence else _answered
        for column, place, left, right in told(view, first):
            high[left, column] = np.minimum(high[left, column], place)
            low[right, column] = np.maximum(low[right, column], place)
        middle = (low + 1 + high + 1) / 2.0 / bins
        lower, upper = (np.zeros(len(bins)), np.ones(len(bins))) if view.ranges is None else view.ranges.T
        return Guess(view.unknown_names, np.asarray(lower + (upper - lower) * middle))


def _answered(view: View, first: Mapping[str, int]) -> Iterator[Side]:
    """By the answers of the owners."""
    split, asked = np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for message in view.messages:  # question, rows and answer follow each other
        if message.name == "split" and message.receiver in first:
            split = message.payload
        elif message.name == "rows to split" and message.receiver in first:
            asked = message.payload.astype(np.int64)
        elif message.name == "left" and message.sender in first:
            left = np.unpackbits(message.payload, count=len(asked)).astype(np.bool_)
            yield first[message.sender] + int(split[1]), int(split[2]), asked[left], asked[~left]


def _by_leaves(view: View, first: Mapping[str, int]) -> Iterator[Side]:
    """By the leaves of the trees whose weights were told."""
    for message in view.messages:
        if message.name == "split" and message.receiver in first:
            node, column, place = (int(value) for value in message.payload)
            leaves = view.notes[f"leaves/{message.round}"]
            yield first[message.receiver] + column, place, under(leaves, 2 * node + 1), under(leaves, 2 * node + 2)
