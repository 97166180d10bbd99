"""Metrics of a guess: pure functions of estimate and truth, column by column.

Errors are in units of a column's range, because features are scaled to [0, 1].
"""

from __future__ import annotations

import numpy as np

from plumbob.correlation import correlations, standardised
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.lazy_imports import sklearn

EXACT_CELL = 1e-6  # a cell this close, in units of its range, counts as recovered


def within(guess: FloatArray, truth: FloatArray, tolerance: float) -> FloatArray:
    """Share of each column's cells guessed to within the given fraction of the range."""
    return np.asarray(np.mean(np.abs(guess - truth) <= tolerance, axis=0))


def mean_of(cells: FloatArray, seen: BoolArray | None) -> float:
    """The mean of all cells, or of those that were seen; 0 where there are none."""
    if seen is None:
        return float(cells.mean())
    return float(cells[seen].mean()) if seen.any() else 0.0


def row_means(cells: FloatArray, seen: BoolArray | None) -> FloatArray:
    """The mean of each row, or of its cells that were seen; rows without one are left out."""
    if seen is None:
        return np.asarray(cells.mean(axis=1))
    counts = seen.sum(axis=1)
    sums = np.where(seen, cells, 0.0).sum(axis=1)
    return np.asarray(sums[counts > 0] / counts[counts > 0]) if counts.any() else np.zeros(1)


def rank_correlation(guess: FloatArray, truth: FloatArray) -> FloatArray:
    """Spearman's correlation of each column; 0 where either side is constant."""
    ranked = (standardised(ranks(side)) for side in (guess, truth))
    return np.asarray(np.mean(np.multiply(*ranked), axis=0))


def ranks(values: FloatArray) -> FloatArray:
    """Places of each column's cells from 1 upwards; equal cells share the mean of theirs, NaN makes a column NaN.

    >>> ranks(np.array([[3.0], [1.0], [3.0]])).ravel()
    array([2.5, 1. , 2.5])
    """
    order = np.argsort(values, axis=0, kind="stable")
    inside = np.take_along_axis(values, order, axis=0)
    new = np.ones((len(values) + 1, values.shape[1]), dtype=np.bool_)  # where a value begins, and the end
    new[1:-1] = inside[1:] != inside[:-1]
    place = np.arange(len(values))[:, None]
    first = np.maximum.accumulate(np.where(new[:-1], place, 0), axis=0)
    last = np.minimum.accumulate(np.where(new[1:], place, len(values))[::-1], axis=0)[::-1]
    found = np.empty(values.shape)
    np.put_along_axis(found, order, (first + last) / 2 + 1, axis=0)
    return np.where(np.isnan(values).any(axis=0), np.nan, found)


def mean_correlation(others: FloatArray, truth: FloatArray, seen: BoolArray | None = None) -> FloatArray:
    """Mean absolute Pearson correlation of each true column with the other columns (luo2021, Eq 16 and 17)."""
    if others.shape[1] == 0 or len(truth) < 2:
        return np.zeros(truth.shape[1])
    if seen is not None:
        each = [mean_correlation(others[rows], truth[rows, j, None]) for j, rows in enumerate(seen.T)]
        return np.concatenate(each)
    return np.asarray(np.abs(correlations(others, truth)).mean(axis=0))


def norm_bound(truth: FloatArray) -> float:
    """luo2021's Eq 15: an upper bound of the pseudo-inverse attack's MSE, 2 mean(x^2)."""
    return 2 * float(np.mean(truth**2))


def sharp_bound(truth: FloatArray) -> float:
    """Half of Eq 15, and enough: pinv(A) A x projects x, so the error x - Px is never longer than x."""
    return float(np.mean(truth**2))


def attack_accuracy(
    guess: FloatArray, truth: FloatArray, held_out: FloatArray, labels: IntArray, rng: np.random.Generator
) -> float:
    """Share of rows to which a classifier of the target's columns gives the same class for guess and truth (jiang2022).

    The classifier (linear, SGD, as in the paper) is trained on other rows of the same columns.
    """

    judge = sklearn.linear_model.SGDClassifier(random_state=int(rng.integers(2**31))).fit(held_out, labels)
    return float(np.mean(judge.predict(guess) == judge.predict(truth)))
