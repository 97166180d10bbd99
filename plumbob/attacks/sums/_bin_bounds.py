"""From bins to values: the bounds of a column's bins from a few rows of known values, and a value for each bin."""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Orders
from plumbob.federation import FloatArray, IntArray


def bin_bounds(places: IntArray, values: FloatArray, counts: IntArray) -> list[FloatArray]:
    """For each column the least and largest known value in every bin (bins x 2), NaN where no known row lies in it.

    `places` are the bins of the known rows (rows x columns, -1 where that is open), `counts` the bins of the columns.

    >>> bin_bounds(np.array([[1], [1]]), np.array([[0.4], [0.6]]), np.array([3]))[0].tolist()
    [[nan, nan], [0.4, 0.6], [nan, nan]]
    """
    found = []
    for j, count in enumerate(counts.tolist()):
        bounds = np.full((count, 2), np.nan)
        for place in np.unique(places[places[:, j] >= 0, j]).tolist():
            known = values[places[:, j] == place, j]
            bounds[place] = known.min(), known.max()
        found.append(bounds)
    return found


def bin_medians(places: IntArray, values: FloatArray, counts: IntArray) -> list[FloatArray]:
    """The same with the median of the known values in place of both bounds: far values in a wide bin do not move it.

    >>> bin_medians(np.array([[0], [0], [0]]), np.array([[0.1], [0.2], [0.9]]), np.array([1]))[0].tolist()
    [[0.2, 0.2]]
    """
    found = bin_bounds(places, values, counts)
    for j, bounds in enumerate(found):
        for place in np.flatnonzero(~np.isnan(bounds[:, 0])).tolist():
            bounds[place] = np.median(values[places[:, j] == place, j])
    return found


def bin_values(bounds: FloatArray) -> FloatArray:
    """One value for each bin: the middle of its bounds, or by its neighbours where it has none."""
    middles = bounds.mean(axis=1)
    known = np.flatnonzero(~np.isnan(middles))
    if not len(known):
        return np.linspace(0, 1, len(bounds))
    steps = np.arange(len(bounds))
    return np.asarray(np.interp(steps, known, middles[known]) + 1e-9 * steps)  # different bins, different values


def values_in_place_of_bins(
    orders: Orders, bounds: list[FloatArray], otherwise: FloatArray | None = None
) -> FloatArray:
    """The guessed columns: each claimed cell as its bin's value; the others as `otherwise`, or as the middle bin's."""
    columns = []
    for j, one in enumerate(bounds):
        values, claimed = bin_values(one), orders.bins[:, j] >= 0
        rest = values[len(one) // 2] if otherwise is None else otherwise[j]
        columns.append(np.where(claimed, values[np.maximum(orders.bins[:, j], 0)], rest))
    return np.stack(columns, axis=1)


def placed_by_rank(orders: Orders, values: FloatArray) -> IntArray:
    """In which bins rows of other people would lie (rows x columns): those of the same rank among people alike.

    The claimed rows say which share of all people each bin holds. Equal values lie in one bin, that of their middle rank.

    >>> orders = Orders(np.array([[0], [0], [0], [1]]), np.array([2]))
    >>> placed_by_rank(orders, np.array([[0.1], [0.2], [0.2], [0.9]])).ravel().tolist()
    [0, 0, 0, 1]
    """
    places = np.full(values.shape, -1, dtype=np.int64)
    for j, count in enumerate(orders.counts.tolist()):
        claimed = orders.bins[orders.bins[:, j] >= 0, j]
        if not len(claimed):
            continue
        shares = np.cumsum(np.bincount(claimed, minlength=count)) / len(claimed)
        column, order = values[:, j], np.sort(values[:, j])
        ranks = np.searchsorted(order, column, side="left") + np.searchsorted(order, column, side="right")
        places[:, j] = np.minimum(np.searchsorted(shares, ranks / (2 * len(column)), side="left"), count - 1)
    return places
