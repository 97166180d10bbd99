"""What leaked orders are worth (weng2022, Section 5.4): the bins' bounds from a few known rows, and values in place of bins."""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Orders
from plumbob.federation import FloatArray, IntArray


def bin_bounds(orders: Orders, rows: IntArray, auxiliary: FloatArray) -> list[FloatArray]:
    """For each column the least and largest known value in every bin (bins x 2), NaN where no known row lies in it.

    `auxiliary` are the unknown columns of training rows `rows` that the curious party happens to know.

    >>> orders = Orders(np.array([[0], [1], [1]]), np.array([3]))
    >>> bin_bounds(orders, np.array([1, 2]), np.array([[0.4], [0.6]]))[0].tolist()
    [[nan, nan], [0.4, 0.6], [nan, nan]]
    """
    found = []
    for j, count in enumerate(orders.counts.tolist()):
        bounds = np.full((count, 2), np.nan)
        for place in range(count):
            known = auxiliary[orders.bins[rows, j] == place, j]
            if len(known):
                bounds[place] = known.min(), known.max()
        found.append(bounds)
    return found


def bin_values(bounds: FloatArray) -> FloatArray:
    """One value for each bin: the middle of its bounds, or by its neighbours where it has none."""
    middles = bounds.mean(axis=1)
    known = np.flatnonzero(~np.isnan(middles))
    if not len(known):
        return np.linspace(0, 1, len(bounds))
    steps = np.arange(len(bounds))
    return np.asarray(np.interp(steps, known, middles[known]) + 1e-9 * steps)  # different bins, different values


def values_in_place_of_bins(orders: Orders, bounds: list[FloatArray]) -> FloatArray:
    """The guessed columns: each claimed cell as its bin's value; the others as the middle bin's."""
    columns = []
    for j, one in enumerate(bounds):
        places = np.where(orders.bins[:, j] >= 0, orders.bins[:, j], len(one) // 2)
        columns.append(bin_values(one)[places])
    return np.stack(columns, axis=1)


def nearest_values(columns: FloatArray, bounds: list[FloatArray]) -> FloatArray:
    """Other rows' values as those of their bins, cut half way between one bin's upper and the next one's lower bound."""
    mapped = []
    for column, one in zip(columns.T, bounds, strict=True):
        values = bin_values(one)
        low, high = (np.where(np.isnan(one[:, side]), values, one[:, side]) for side in (0, 1))
        cuts = np.maximum.accumulate((high[:-1] + low[1:]) / 2)
        mapped.append(values[np.searchsorted(cuts, column, side="left")])
    return np.stack(mapped, axis=1)
