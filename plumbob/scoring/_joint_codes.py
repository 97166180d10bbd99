"""Hidden columns that two or three discrete own columns determine together: every combination of values meets one value.

A combination of many values explains anything, as each row is alone with its own. So nearly every row has to share its
combination with another, and each of the columns has to explain what the others leave open, beyond chance: what varies among the
rows that are alike in the others varies with the column in question.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from plumbob.federation import IntArray
from plumbob.scoring._chance import LIMIT, Coded, constant_within, evenly, fillings, orders

LEVELS = 50  # values of a column up to which it is discrete
MOST = {2: 1_500, 3: 500}  # combinations that are tried; of wider tables those of the columns with the fewest values
UNCONFIRMED = 0.05  # share of rows that may be alone with their combination
SCREEN = 150  # rows that are looked at first, and as many with rare values
RAREST = 3  # rows with a hidden column's rarest values, each


def joint_codes(own: Coded, hidden: Coded) -> dict[int, tuple[int, ...]]:
    """For every hidden column that a few discrete own columns determine together: which these are."""
    levels = own.levels
    discrete = [int(i) for i in np.argsort(levels, kind="stable") if 1 < levels[i] <= LEVELS]
    if len(discrete) < 2 or not len(hidden.codes):
        return {}
    search = _Search(own.codes, levels, hidden.codes)
    open_ = np.arange(len(hidden.codes))
    found: dict[int, tuple[int, ...]] = {}
    for together, most in MOST.items():
        width = max(n for n in range(together, together + most) if comb(n, together) <= most)
        tries = float(np.log(comb(width, together) * len(hidden.codes)))
        for columns in combinations(discrete[:width], together):
            for j in search.candidates(columns, open_):
                if search.needs_all(columns, int(j), tries):
                    found[int(j)] = tuple(sorted(columns))
            open_ = np.array([j for j in open_ if j not in found], dtype=np.int64) if found else open_
            if not len(open_):
                return found
    return found


class _Search:
    """Own and hidden codes, and which rows of them tell soonest that nothing fits."""

    def __init__(self, codes: IntArray, levels: IntArray, cells: IntArray) -> None:
        self.codes, self.levels, self.cells = codes, levels, cells
        frequency = np.stack([np.bincount(column)[column] for column in cells])  # of each cell's value in its column
        self.rarest = np.argpartition(frequency, RAREST, axis=1)[:, :RAREST]
        self.frequency = np.take_along_axis(frequency, self.rarest, axis=1)
        self.unusual = (frequency < frequency.max(axis=1, keepdims=True)).sum(axis=0)
        self._screens: dict[int, tuple[IntArray, IntArray]] = {}

    def candidates(self, columns: tuple[int, ...], among: IntArray) -> IntArray:
        """Hidden columns with one value in every combination, if nearly every row shares its combination."""
        codes, cells = self.screen(columns[-1])
        among = among[constant_within(self.together(columns[:-1], codes), cells[among])]
        if not len(among):
            return among
        groups = self.together(columns, self.codes)
        sizes = np.bincount(groups)
        if (sizes == 1).sum() > UNCONFIRMED * len(groups):
            return among[:0]
        among = among[(sizes[groups[self.rarest[among]]] <= self.frequency[among]).all(axis=1)]
        return among[constant_within(groups, self.cells[among])]

    def screen(self, column: int) -> tuple[IntArray, IntArray]:
        """Own and hidden codes of rows that are alike in a column, so that many are in others: evenly, and with rare values."""
        if column not in self._screens:
            alike = np.flatnonzero(self.codes[column] == np.bincount(self.codes[column]).argmax())
            rare = alike[np.argsort(-self.unusual[alike], kind="stable")[:SCREEN]]
            rows = np.concatenate([rare, evenly(alike, SCREEN)])
            self._screens[column] = self.codes[:, rows], self.cells[:, rows]
        return self._screens[column]

    def together(self, columns: tuple[int, ...], codes: IntArray) -> IntArray:
        """One code for the combination of several columns' values."""
        total = codes[columns[0]]
        for i in columns[1:]:
            total = total * self.levels[i] + codes[i]
        return np.asarray(total)

    def needs_all(self, columns: tuple[int, ...], hidden: int, tries: float) -> bool:
        """Whether each column explains, beyond chance, what the others leave open."""
        whole = self.together(columns, self.codes)
        rest = [tuple(other for other in columns if other != i) for i in columns]
        return all(
            tries + _by_chance(self.together(others, self.codes), whole, self.cells[hidden]) < LIMIT for others in rest
        )


def _by_chance(groups: IntArray, finer: IntArray, y: IntArray) -> float:
    """A bound of the log probability that a finer grouping explains what varies in the groups, were it in random order there."""
    total = 0.0
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        counts = np.unique(y[rows], return_counts=True)[1]
        if len(counts) > 1:
            total += min(0.0, fillings(len(np.unique(finer[rows])), counts) - orders(counts))
    return total
