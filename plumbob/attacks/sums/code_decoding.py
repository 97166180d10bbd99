"""Code decoding (ours): bins of all rows from the sums of a code that the active party hid below its gradients.

Three things that reverse sum leaves lying. Each row lies in exactly one bin of a column, so a group is a partition problem
over all bins at once, not a guess bin by bin. Each tree can carry codes of other rows. And the nodes below the root have
histograms too: the active party knows which rows are in them, so groups fall apart into small ones that are read exactly.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack, Guess, Orders
from plumbob.attacks.sums._exact_cover import Group
from plumbob.attacks.sums._opened_sums import NodeSums, SummedColumn, columns_of, sums_of, trees_with
from plumbob.errors import boolean
from plumbob.federation import IntArray
from plumbob.protocols.shared.hidden_codes import LabelledGroups
from plumbob.threats import LowBits, View

_REMEMBERED = 16  # groups; their lists of sets take megabytes


class CodeDecoding(Attack):
    """Sends and reads groups of `size` rows in digits of `width` bits; one row in one bit is exact. With `nodes` the histograms
    of all nodes are used, else those of the roots only."""

    name = "code_decoding"
    identity = "CodeDecoding(nodes)"
    summary = "ours: decodes sums of hidden codes jointly over bins, nodes and trees into the bins of all rows"
    paper = "plumbob"
    protocols = ("secure_boost",)
    requires = (LowBits,)
    workload = "loops"

    def __init__(self, *, nodes: bool = True, size: int = 1, width: int = 1) -> None:
        self.nodes = boolean("code decoding: nodes", nodes)
        code = LabelledGroups(size=size, width=width)
        self.size, self.width = code.size, code.width

    def sends(self) -> LabelledGroups:
        return LabelledGroups(size=self.size, width=self.width)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        columns = columns_of(view)
        bins = np.full((len(view.own), len(columns)), -1, dtype=np.int64)
        for tree in trees_with(view, "groups"):
            table = view.notes[f"code/{tree}/groups"]
            width = int(view.notes[f"code/{tree}/group settings"][0])
            for sums in sums_of(view, tree, nodes=self.nodes):
                here = table[sums.rows[table[:, 0]]]
                digits = [_digits(sums, column, width, here) for column in columns]
                found = _read(here, digits)
                fresh = (bins[here[:, 0]] < 0) & (found >= 0)
                bins[here[:, 0]] = np.where(fresh, found, bins[here[:, 0]])
        counts = np.array([column.bins for column in columns], dtype=np.int64)
        return Guess(view.unknown_names, orders=Orders(bins, counts))


def _digits(sums: NodeSums, column: SummedColumn, width: int, table: IntArray) -> IntArray:
    """channels x groups x bins: the sum of labels in each."""
    groups = int(table[:, 2].max(initial=0)) + 1
    size, powers = -(-groups * width // 8), 1 << np.arange(width, dtype=np.int64)
    made = []
    for channel in sums.hidden[column.party]:
        numbers = (number & ((1 << 8 * size) - 1) for number in channel[column.start : column.start + column.bins])
        kept = np.frombuffer(b"".join(number.to_bytes(size, "little") for number in numbers), dtype=np.uint8)
        bits = np.unpackbits(kept.reshape(-1, size), axis=1, bitorder="little")[:, : groups * width]
        made.append(bits.reshape(len(bits), groups, width).astype(np.int64) @ powers)
    return np.stack(made).transpose(0, 2, 1)


def _read(table: IntArray, columns: list[IntArray]) -> IntArray:
    """The bin of every row of the table in every column, -1 where it was not found."""
    found = np.full((len(table), len(columns)), -1, dtype=np.int64)
    key = table[:, 1] * (1 + table[:, 2].max(initial=0)) + table[:, 2]
    order = np.argsort(key, kind="stable")
    known: dict[tuple[int, ...], Group] = {}  # groups of whole trees have the same labels
    for members in np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(table) else []:
        channel, group = table[members[0], 1:3].tolist()
        labels = tuple(table[members, 3].tolist())
        if labels not in known:
            if len(known) == _REMEMBERED:
                known.clear()
            known[labels] = Group(labels)
        for j, digits in enumerate(columns):
            found[members, j] = known[labels].parted(digits[channel, group])
    return found
