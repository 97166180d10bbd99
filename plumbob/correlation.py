"""Correlations between the columns of two matrices, with constant columns counted as uncorrelated."""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray


def standardised(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and variance 1; constant ones become 0."""
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 1e-15, spread, np.inf))


def correlations(a: FloatArray, b: FloatArray) -> FloatArray:
    """Pearson's correlation of every column of a with every column of b.

    >>> x = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> correlations(x, x).round(6).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return np.asarray(standardised(a).T @ standardised(b) / max(1, len(a)))
