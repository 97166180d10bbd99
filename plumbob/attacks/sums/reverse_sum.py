"""Reverse sum (weng2022, Section 5): magic numbers below the gradients reveal which rows a bin's sum contains.

Needs an active party that sets the low bits of its gradients: it writes a row's group and random bits there (Algorithm 1).

A bin's sum of identifiers has, digit by digit, the number of its rows in each group. Where a group has none or all of its
rows in the bin, that is the answer. Elsewhere the sum of the random bits decides among the choices: the bin with the fewest
of them comes first, and rows that were given to a bin are gone for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, log2, prod

import numpy as np
from scipy.special import gammaln

from plumbob.attacks.base import Attack, Guess, Orders
from plumbob.attacks.sums._opened_sums import columns_of, sums_of, trees_with
from plumbob.bundle import Array
from plumbob.errors import whole
from plumbob.federation import IntArray
from plumbob.protocols.shared.hidden_codes import Choice, MagicNumbers
from plumbob.setting_sources import ours, printed
from plumbob.threats import LowBits, View

RowsOfAGroup = tuple[int, ...]  # rows of a group, by their places in the list of magic numbers


class ReverseSum(Attack):
    """The paper's attack on the sums at the root of each tree. It tries up to about 2^`effort` combinations for each bin.

    Of the 960 bits below a gradient each supergroup has `random_bits`, and the identifiers have the rest.
    """

    name = "reverse_sum"
    identity = "ReverseSum(effort)"
    summary = "magic numbers hidden in the gradients reveal which rows lie in which bin"
    paper = "weng2022"
    protocols = ("secure_boost",)
    requires = (LowBits,)
    workload = "loops"
    presets = {"small": {"effort": 20}, "table_6": {"random_bits": 15}}
    sources = {
        "effort": ours("Section 5.1.3 searches for the combination that fits, and names no bound"),
        "base": printed("Table 6 from 2 to 32: 2 finds every row that has a number"),
        "supergroups": printed("Table 6: 2 and 4"),
        "random_bits": printed("Algorithm 1, lines 5 and 11; the capacities of Table 6 are those of 15"),
        "rows": printed("Section 5.1.2: sequentially; by distribution is the alternative that it names"),
    }

    def __init__(
        self,
        *,
        effort: int = 34,
        base: int = 2,
        supergroups: int = 2,
        random_bits: int = 30,
        rows: Choice = "in_order",
    ) -> None:
        self.effort = whole("reverse sum: effort", effort, 0, 40)
        code = MagicNumbers.printed(base=base, supergroups=supergroups, random_bits=random_bits, rows=rows)
        self.base, self.supergroups, self.random_bits, self.rows = base, supergroups, code.random_bits, rows

    def sends(self) -> MagicNumbers:
        return MagicNumbers.printed(
            base=self.base, supergroups=self.supergroups, random_bits=self.random_bits, rows=self.rows
        )

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        columns = columns_of(view)
        bins = np.full((len(view.own), len(columns)), -1, dtype=np.int64)
        for tree in trees_with(view, "magic"):
            magic = Magic.noted(view, tree)
            (root,) = sums_of(view, tree, nodes=False)
            for j, column in enumerate(columns):
                channels = [c[column.start : column.start + column.bins] for c in root.hidden[column.party]]
                for row, place in magic.reversed(channels, self.effort).items():
                    if bins[row, j] < 0:
                        bins[row, j] = place
        counts = np.array([column.bins for column in columns], dtype=np.int64)
        return Guess(view.unknown_names, orders=Orders(bins, counts))


@dataclass(frozen=True)
class Magic:
    """Who has which magic number."""

    table: IntArray  # row, channel, section, group, random
    base: int
    sections: int
    groups: int
    identifier_bits: int
    random_bits: int

    @classmethod
    def noted(cls, view: View, tree: int) -> Magic:
        settings: Array = view.notes[f"code/{tree}/magic settings"]
        return cls(view.notes[f"code/{tree}/magic"], *(int(value) for value in settings))

    def reversed(self, channels: list[list[int]], effort: int) -> dict[int, int]:
        """The bin of every row that has a magic number, from the sums of one column's bins."""
        found: dict[int, int] = {}
        for channel, sums in enumerate(channels):
            digits = np.array([self._digits(number) for number in sums])
            above = [number >> self.identifier_bits for number in sums]
            for section in range(self.sections):
                members = np.flatnonzero((self.table[:, 1] == channel) & (self.table[:, 2] == section))
                counts = digits[:, section * self.groups : (section + 1) * self.groups]
                given = self._section(members, counts, above, effort)
                found |= {int(self.table[member, 0]): place for member, place in given.items()}
                for member, place in given.items():  # what is left are the random bits of the sections above
                    above[place] -= int(self.table[member, 4])
                above = [number >> self.random_bits for number in above]
        return found

    def _digits(self, number: int) -> list[int]:
        """The rows of each group in a sum."""
        number &= (1 << self.identifier_bits) - 1
        digits = []
        for _ in range(self.sections * self.groups):
            number, digit = divmod(number, self.base)
            digits.append(digit)
        return digits

    def _section(self, members: IntArray, counts: IntArray, sums: list[int], effort: int) -> dict[int, int]:
        """Rows of one section to bins, bin after bin."""
        left: list[list[int]] = [[] for _ in range(self.groups)]
        for member in members.tolist():
            left[int(self.table[member, 3])].append(member)
        found: dict[int, int] = {}
        todo = list(range(len(counts)))
        while todo:
            sizes = np.array([len(group) for group in left])
            place = min(todo, key=lambda one: float(_choices(sizes, counts[one])))
            todo.remove(place)
            for member in self._chosen(left, counts[place], sums[place], effort):
                found[member] = place
                left[int(self.table[member, 3])].remove(member)
        return found

    def _chosen(self, left: list[list[int]], counts: IntArray, total: int, effort: int) -> list[int]:
        """The rows of one bin: what is certain, and of what is open the combination whose random bits add up."""
        wanted = [(group, int(c)) for group, c in zip(left, counts, strict=True) if 0 < c <= len(group)]
        certain = [member for group, c in wanted if c == len(group) for member in group]
        free = [(group, c) for group, c in wanted if c < len(group)]
        if not free:
            return certain
        sizes = [comb(len(group), c) for group, c in free]
        middle = _middle(sizes)
        if not self.random_bits or max(prod(sizes[:middle]), prod(sizes[middle:])) > 2 ** (effort // 2 + 1):
            return certain + [member for group, c in free for member in group[:c]]
        options = [list(combinations(group, c)) for group, c in free]
        rest = total - sum(int(self.table[member, 4]) for member in certain)
        return certain + [member for choice in self._meeting(options, middle, rest) for member in choice]

    def _meeting(self, options: list[list[RowsOfAGroup]], middle: int, total: int) -> list[RowsOfAGroup]:
        """One choice for each group so that the random bits add up to the total; the first of each where none does."""
        numbers = [np.array([sum(int(self.table[m, 4]) for m in choice) for choice in group]) for group in options]
        modulus = 1 << self.random_bits
        front, back = (_sums(part, modulus) for part in (numbers[:middle], numbers[middle:]))
        order = np.argsort(back, kind="stable")
        asked = (total % modulus - front) % modulus
        places = np.minimum(np.searchsorted(back[order], asked), len(back) - 1)
        hits = np.flatnonzero(back[order][places] == asked)
        if not len(hits):
            return [group[0] for group in options]
        ends = int(hits[0]), int(order[places[hits[0]]])
        chosen: list[RowsOfAGroup] = []
        for part, end in zip((options[:middle], options[middle:]), ends, strict=True):
            shape = tuple(len(group) for group in part)
            chosen += [
                group[int(i)] for group, i in zip(part, np.unravel_index(end, shape) if shape else (), strict=True)
            ]
        return chosen


def _choices(sizes: IntArray, counts: IntArray) -> float:
    """How many bits a bin leaves open."""
    possible = np.minimum(counts, sizes)
    return float(np.sum(gammaln(sizes + 1) - gammaln(possible + 1) - gammaln(sizes - possible + 1)))


def _middle(sizes: list[int]) -> int:
    """Where to cut so that both parts have about as many combinations."""
    logs = np.array([log2(size) for size in sizes])
    return int(np.searchsorted(np.cumsum(logs), logs.sum() / 2)) if len(sizes) else 0


def _sums(groups: list[IntArray], modulus: int) -> IntArray:
    """All sums of one number of each group, the last group running fastest."""
    total = np.zeros(1, dtype=np.int64)
    for group in groups:
        total = ((total[:, None] + group) % modulus).ravel()
    return total
