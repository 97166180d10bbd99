"""How likely a relation between columns is by chance, as logarithms of counts.

The cells of a hidden column can stand in N = n! / prod(counts!) orders. A relation that leaves r cells free and fixes the others
produces at most W of these, so a column in random order shows it with a probability of at most W / N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring.metrics import EXACT_CELL

LIMIT = float(np.log(1e-6))  # of the probability that any relation of those tried is found by chance
FINE = 8  # steps of a grid between the quartiles from which it is a matter of rounding
SAME = 1e-9  # cells this close, in units of the range, are of one value: what is computed twice may differ in its last bits


@dataclass(frozen=True)
class Coded:
    """Columns one below the other: the order that sorts each, and the place of every cell's value among the column's values."""

    values: FloatArray
    order: IntArray
    codes: IntArray

    @classmethod
    def of(cls, table: FloatArray) -> Coded:
        """
        >>> Coded.of(np.array([[0.5], [0.0], [0.5]])).codes
        array([[1, 0, 1]])
        """
        values = np.ascontiguousarray(table.T)
        order = np.argsort(values, axis=1)
        rises = np.diff(np.take_along_axis(values, order, axis=1), axis=1) > SAME
        codes = np.zeros(values.shape, dtype=np.int64)
        np.put_along_axis(codes, order[:, 1:], np.cumsum(rises, axis=1), axis=1)
        return cls(values, order, codes)

    @property
    def levels(self) -> IntArray:
        """How many values each column has."""
        return np.asarray(self.codes.max(axis=1) + 1)

    def only(self, columns: IntArray) -> Coded:
        return Coded(self.values[columns], self.order[columns], self.codes[columns])


def constant_within(groups: IntArray, codes: IntArray) -> BoolArray:
    """Which columns of codes, one below the other, have a single value in each group."""
    last = np.empty((len(codes), groups.max(initial=0) + 1), dtype=codes.dtype)
    last[:, groups] = codes
    return np.asarray((last[:, groups] == codes).all(axis=1))


def counted(column: FloatArray) -> IntArray:
    """How often each value occurs, as finely as recovery is judged."""
    return np.unique(np.floor(column / EXACT_CELL), return_counts=True)[1]


def binomial(n: int, k: int) -> float:
    """log C(n, k)."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) if 0 <= k <= n else -np.inf


def orders(counts: IntArray) -> float:
    """log N, from how often each value occurs.

    >>> round(float(np.exp(orders(np.array([2, 2])))))
    6
    """
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())


def fillings(places: int, counts: IntArray) -> float:
    """A bound of log W: in how many ways so many places can be filled with such cells.

    >>> round(float(np.exp(fillings(3, np.array([50, 1])))))
    4
    """
    cells, values, rare = int(counts.sum()), len(counts), int(counts.sum() - counts.max())
    places = min(places, cells)
    few = np.arange(min(places, rare) + 1)  # places that hold another value than the most frequent one
    chosen = gammaln(places + 1) - gammaln(few + 1) - gammaln(places - few + 1)
    return min(
        places * float(np.log(values)),
        float(gammaln(cells + 1) - gammaln(cells - places + 1)),
        float(logsumexp(chosen + few * np.log(max(1, values - 1)))),
    )


def is_fine(columns: FloatArray, grids: FloatArray) -> BoolArray:
    """Whether the grid of each column, one below the other, is a matter of rounding: the middle half spans many steps."""
    low, high = np.quantile(columns, [0.25, 0.75], axis=1)
    return np.asarray((grids > 0) & (high - low >= FINE * grids))


def evenly(places: IntArray, most: int) -> IntArray:
    """Some of the places, at even distances, or all if there are no more."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]
