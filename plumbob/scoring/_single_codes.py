"""Hidden columns that one own column x determines.

    code       every value of x meets one value of y, and nearly every row shares its value of x with another
    bands      sorted by x, y changes hardly more often than it has values
    function   sorted by x, y turns at most twice (never: monotone), and lies where its neighbours along x say

A column that turns often, such as a temperature over time, is no function that anybody knows. One that only happens to rank the
rows as x does has gaps that its neighbours do not tell.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring._chance import LIMIT, SAME, Coded, binomial, constant_within, evenly, fillings, is_fine, orders

UNCONFIRMED = 0.05  # share of rows that may be alone with their value of x
MOST_BANDS, EDGES = 50, 0.02  # bands, and the share of rows that may lie at an edge of one
TURNS, APART = 2, 0.05  # that a function may take, and the share of x's values between them
SMOOTH, MOSTLY = 0.02, 0.75  # error of what neighbours say, as a share of the gap between them; at so many values of x
SCREEN = 200  # rows that are looked at first


def single_codes(own: Coded, hidden: Coded, counts: list[IntArray], grids: FloatArray) -> dict[int, tuple[str, int]]:
    """For every hidden column that one own column determines: how, and which."""
    tries = float(np.log(3 * len(own.codes) * len(hidden.codes)))
    values = hidden.levels
    chances = [tries - orders(count) for count in counts]
    slack = np.where(is_fine(hidden.values, grids), 1.05 * grids, SAME)
    found: dict[int, tuple[str, int]] = {}
    for i in range(len(own.codes)):
        x = _Own(own.order[i], own.codes[i], own.values[i])
        open_ = np.array([j for j in range(len(values)) if j not in found], dtype=np.int64)
        for j in x.screened(hidden.codes, values, open_):
            kind = x.kind(hidden.codes[j], hidden.values[j], counts[j], chances[j], float(slack[j]))
            if kind:
                found[int(j)] = (kind, i)
    return found


class _Own:
    """One own column."""

    def __init__(self, order: IntArray, codes: IntArray, values: FloatArray) -> None:
        self.order, self.codes, self.values = order, codes, values
        self.levels = int(codes[order[-1]]) + 1
        sizes = np.bincount(codes)
        self.repeats = bool((sizes == 1).sum() <= UNCONFIRMED * len(codes))  # nearly every row shares its value

    @cached_property
    def same(self) -> BoolArray:
        """Whether a row, in order, has the same value as the one before."""
        inside = self.codes[self.order]
        return np.asarray(inside[1:] == inside[:-1])

    def screened(self, cells: IntArray, values: IntArray, among: IntArray) -> IntArray:
        """Hidden columns that a few rows do not rule out."""
        if self.levels < len(self.codes):
            ties = evenly(np.flatnonzero(self.same), SCREEN)
            first, second = self.order[ties], self.order[ties + 1]
            among = among[(cells[np.ix_(among, first)] == cells[np.ix_(among, second)]).all(axis=1)]
        if self.repeats or not len(among):
            return np.asarray(among)
        some = cells[np.ix_(among, evenly(self.order, SCREEN))]
        runs = (some[:, 1:] != some[:, :-1]).sum(axis=1) + 1
        bands = (values[among] <= MOST_BANDS) & (runs <= values[among] + 1)
        return np.asarray(among[bands | (_turns(some) <= TURNS)])

    def kind(self, y: IntArray, values: FloatArray, counts: IntArray, chance: float, slack: float) -> str:
        """How this column determines y, given the log probability of its order; empty if it does not."""
        if not constant_within(self.codes, y[None])[0]:
            return ""
        if self.repeats and chance + fillings(self.levels, counts) < LIMIT:
            return "a code"
        y = y[self.order]
        runs = int((y[1:] != y[:-1]).sum()) + 1
        narrow = runs <= min(len(counts), MOST_BANDS) + 1 and 2 * (runs - 1) <= EDGES * len(y)
        if narrow and chance + binomial(self.levels - 1, runs - 1) + fillings(runs, counts) < LIMIT:
            return "bands"
        turns = int(_turns(y[None])[0])
        if turns and not self._apart(y):
            return ""
        ways = np.log(2) + len(y) * np.log(turns + 1)  # at most: the way up or down to which each cell belongs
        if turns <= TURNS and chance + ways < LIMIT and self._tells(values[self.order], slack):
            return "a function" if turns else "a monotone function"
        return ""

    def _apart(self, y: IntArray) -> bool:
        """Whether y rises and falls over many values of x at a time: two cells that changed places make turns, too."""
        steps = np.diff(y[np.concatenate([[True], ~self.same])])
        places = np.flatnonzero(steps)
        turned = np.flatnonzero(np.diff(np.sign(steps[places]))) + 1
        lengths = np.diff(np.concatenate([[0], places[turned], [len(steps)]]))
        return bool(lengths.min() >= max(3, APART * len(steps)))

    def _tells(self, values: FloatArray, slack: float) -> bool:
        """Whether values lie where those beside them along x say: on a line through two, or on a curve through four."""
        firsts = np.flatnonzero(np.concatenate([[True], ~self.same]))
        x, y = self.values[self.order[firsts]], values[firsts]
        if len(x) < 8:
            return False
        near = [slice(k, len(x) - 4 + k) for k in range(5)]
        gap = np.abs(y[near[3]] - y[near[1]])
        line, curve = (
            np.abs(_through([x[near[k]] for k in at], [y[near[k]] for k in at], x[near[2]]) - y[near[2]])
            for at in ((1, 3), (0, 1, 3, 4))
        )
        steps = len(np.unique(y)) < len(y) / 2
        told = np.minimum(line, curve) <= np.maximum(SMOOTH * gap, slack)
        return bool(told.mean() >= (1 - EDGES if steps else MOSTLY))


def _turns(columns: IntArray) -> IntArray:
    """How often each column goes from rising to falling or back."""
    steps = np.diff(columns, axis=1)
    if (steps != 0).all():
        ways = steps > 0
        return np.asarray((ways[:, 1:] != ways[:, :-1]).sum(axis=1))
    moved = [column[column != 0] > 0 for column in steps]
    return np.array([(ways[1:] != ways[:-1]).sum() for ways in moved])


def _through(x: list[FloatArray], y: list[FloatArray], at: FloatArray) -> FloatArray:
    """Lagrange's polynomial through points, evaluated elsewhere; many of them at a time."""
    total = np.zeros_like(at)
    for i, value in enumerate(y):
        others = [k for k in range(len(x)) if k != i]
        total += value * np.prod([(at - x[k]) / (x[i] - x[k]) for k in others], axis=0)
    return total
