"""Split sides (ours): what SecureBoost's own answers reveal, without hidden codes.

For every split of a passive party's column the active party names a bin b and gets one bit a row: bin <= b or not. All
answers about a column leave each of its rows an interval of bins, low < bin <= high, over all trees and nodes. Bins have
about equally many rows, so the middle of the interval, in units of all bins, is a place in the column's order.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.sums._opened_sums import columns_of
from plumbob.errors import BadInput
from plumbob.threats import View


class SplitSides(Attack):
    """Rows ordered by the sides they take at all splits."""

    name = "split_sides"
    identity = "SplitSides()"
    summary = "ours: orders rows by SecureBoost's answers about which rows go left; needs no hidden code"
    paper = "plumbob"
    protocols = ("secure_boost",)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        rows = len(view.own)
        columns = columns_of(view)
        if not columns:
            raise BadInput("this view holds no message 'bin counts'")
        owners, bins = [column.party for column in columns], np.array([column.bins for column in columns])
        first = {party: owners.index(party) for party in owners}
        low, high = np.full((rows, len(bins)), -1), np.tile(bins - 1, (rows, 1))
        split, asked = np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for message in view.messages:  # question, rows and answer follow each other
            if message.name == "split" and message.receiver in first:
                split = message.payload
            elif message.name == "rows to split" and message.receiver in first:
                asked = message.payload.astype(np.int64)
            elif message.name == "left" and message.sender in first:
                left = np.unpackbits(message.payload, count=len(asked)).astype(np.bool_)
                column = first[message.sender] + int(split[1])
                high[asked[left], column] = np.minimum(high[asked[left], column], split[2])
                low[asked[~left], column] = np.maximum(low[asked[~left], column], split[2])
        middle = (low + 1 + high + 1) / 2.0 / bins
        lower, upper = (np.zeros(len(bins)), np.ones(len(bins))) if view.ranges is None else view.ranges.T
        return Guess(view.unknown_names, np.asarray(lower + (upper - lower) * middle))
