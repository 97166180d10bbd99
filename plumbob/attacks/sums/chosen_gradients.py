"""Chosen gradients (ours): powers of two in place of gradients name the rows of every sum.

Needs an active party that sends any gradient. In a tree each of 2 (slot - 1) rows has a bit of g's or h's slot to itself, so
    sum over a bin = sum of 2^(bit of row i) over its rows,    and row i is in the bin if that bit is set
The next tree has the next rows, and once all had their turn gradients are sent again. Blinding leaves the slots as they are,
since gradients are read there. The trees that carry rows get splits of the active party's own columns only, as it has nothing to
find others by: that can cost accuracy, and a partner may notice it.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack, Guess, Orders
from plumbob.attacks.sums._opened_sums import columns_of, slots_of, trees_with
from plumbob.protocols.shared.hidden_codes import RowBits
from plumbob.threats import AnyGradient, View


class ChosenGradients(Attack):
    """Sends and reads `RowBits`. A row that no bin or several bins name, as after noise, is not claimed."""

    name = "chosen_gradients"
    identity = "ChosenGradients()"
    summary = "ours: sends powers of two in place of gradients, so that sums name their rows; blinding does not help"
    paper = "plumbob"
    protocols = ("secure_boost",)
    requires = (AnyGradient,)
    cost_terms = ("1", "n u")
    workload = "loops"

    def sends(self) -> RowBits:
        return RowBits()

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        columns = columns_of(view)
        bins = np.full((len(view.own), len(columns)), -1, dtype=np.int64)
        for tree in trees_with(view, RowBits.noted_as):
            rows, slot, bit = view.notes[f"code/{tree}/{RowBits.noted_as}"].T
            sums = slots_of(view, tree)
            for j, column in enumerate(columns):
                part = slice(column.start, column.start + column.bins)
                slots = [slot_sums[part] for slot_sums in sums[column.party]]
                named = np.array(
                    [[number >> b & 1 for number in slots[s]] for s, b in zip(slot.tolist(), bit.tolist(), strict=True)]
                )
                bins[rows, j] = np.where(named.sum(axis=1) == 1, named.argmax(axis=1), -1)
        counts = np.array([column.bins for column in columns], dtype=np.int64)
        return Guess(view.unknown_names, orders=Orders(bins, counts))
