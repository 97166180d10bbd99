"""Which rows of a group lie in which bin, from the sum of their labels in every bin: a partition with given sums.

Every row lies in exactly one bin, so the bins decode each other. For each bin list the sets of rows that have its sum, take
the bin with the fewest, try each of its sets and go on with the rows left. The fullest bin needs no list: it gets what
the others leave. Of all solutions found, each row gets the bin that most of them give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np

from plumbob.federation import IntArray

_WHOLE_GROUP = 18  # groups up to this size have all their sets listed; of larger ones those of few rows are
_LISTED = 150_000  # sets of one size
_FULL = 6  # so many of the fullest bins may hold more rows than the sets that are listed
_MANY = 2_000  # sets of one bin; more are as good as unknown
_STEPS, _SOLUTIONS = 2_000, 40


class Group:
    """Rows that share a digit, each with its label.

    >>> Group([1, 2, 4, 9]).parted(np.array([10, 0, 6])).tolist()
    [0, 2, 2, 0]
    """

    def __init__(self, labels: Sequence[int]) -> None:
        self.labels = tuple(labels)
        self._sums: IntArray
        self._members: list[int] | None  # None: a set's place is the set
        self._sums, self._members = _all_sets(labels) if len(labels) <= _WHOLE_GROUP else _small_sets(labels)

    def parted(self, sums: IntArray) -> IntArray:
        """The bin of every row, -1 where no partition was found."""
        filled = [place for place in np.argsort(-sums, kind="stable").tolist() if sums[place]]
        if not filled or int(sums.sum()) != sum(self.labels):
            return np.full(len(self.labels), -1, dtype=np.int64)
        listed = {place: self._sets(int(sums[place])) for place in filled[1:]}
        for full in range(1, 1 + min(len(filled), 1 if len(self.labels) <= _WHOLE_GROUP else _FULL)):
            search = _Search(self.labels, {place: int(sums[place]) for place in filled[:full]})
            rest = {place: sets for place, sets in listed.items() if place not in filled[:full]}
            if all(0 < len(sets) <= _MANY for sets in rest.values()):
                search.run(rest, (1 << len(self.labels)) - 1, {})
            if search.solutions:
                return search.answer(len(sums))
        return np.full(len(self.labels), -1, dtype=np.int64)

    def _sets(self, total: int) -> list[int]:
        """Sets of rows with that sum, as bits of an integer."""
        places = np.flatnonzero(self._sums == total)[: _MANY + 1].tolist()
        return places if self._members is None else [self._members[place] for place in places]


@dataclass
class _Search:
    labels: tuple[int, ...]
    full: dict[int, int]  # bins that get what the others leave, and their sums
    steps: int = 0
    solutions: list[dict[int, int]] = field(default_factory=list)

    def run(self, listed: dict[int, list[int]], left: int, given: dict[int, int]) -> None:
        """Depth first, the bin with the fewest sets first."""
        self.steps += 1
        if self.steps > _STEPS or len(self.solutions) >= _SOLUTIONS:
            return
        if not listed:
            self._close(left, given)
            return
        possible = {place: [s for s in sets if s & left == s] for place, sets in listed.items()}
        place = min(possible, key=lambda one: len(possible[one]))
        rest = {other: sets for other, sets in possible.items() if other != place}
        for chosen in possible[place]:
            self.run(rest, left & ~chosen, given | {place: chosen})

    def _close(self, left: int, given: dict[int, int]) -> None:
        """The rows left go to the full bins; if these are several, by a partition of their own."""
        if len(self.full) == 1:
            (place,) = self.full
            self.solutions.append(given | {place: left})
            return
        rows = [row for row in range(len(self.labels)) if left >> row & 1]
        if len(rows) > _WHOLE_GROUP:
            return
        places = list(self.full)
        parts = Group([self.labels[row] for row in rows]).parted(np.array([self.full[place] for place in places]))
        if (parts >= 0).all():
            sets = {
                place: sum(1 << r for r, p in zip(rows, parts, strict=True) if p == i) for i, place in enumerate(places)
            }
            self.solutions.append(given | sets)

    def answer(self, bins: int) -> IntArray:
        votes = np.zeros((len(self.labels), bins), dtype=np.int64)
        for solution in self.solutions:
            for place, members in solution.items():
                for row in range(len(self.labels)):
                    votes[row, place] += members >> row & 1
        return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)


def _all_sets(labels: Sequence[int]) -> tuple[IntArray, None]:
    """The sum of every set; its place is the set."""
    sums = np.zeros(1, dtype=np.int64)
    for label in labels:
        sums = np.concatenate([sums, sums + label])
    return sums, None


def _small_sets(labels: Sequence[int]) -> tuple[IntArray, list[int]]:
    sizes = [size for size in range(1, 6) if comb(len(labels), size) <= _LISTED]
    chosen = [rows for size in sizes for rows in combinations(range(len(labels)), size)]
    members = [sum(1 << row for row in rows) for rows in chosen]
    return np.array([sum(labels[row] for row in rows) for rows in chosen], dtype=np.int64), members
