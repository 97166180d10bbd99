"""Intervals over trials and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit


def mean_and_margin(values: Sequence[float], row_error: float = 0.0, level: float = 0.95) -> tuple[float, float]:
    """Mean over trials and the half-width of its two-sided interval.

    Trials share rows, so the error of sampling rows (`row_error`, one standard error) does not shrink with their number:
    margin^2 = (t s / sqrt(T))^2 + (z row_error)^2.

    >>> mean_and_margin([1.0, 1.0, 1.0])
    (1.0, 0.0)
    """
    sample = np.asarray(values, dtype=float)
    tail = 0.5 + level / 2
    margin = float(ndtri(tail)) * row_error
    if len(sample) > 1:
        margin = math.hypot(
            margin, float(stdtrit(len(sample) - 1, tail)) * float(sample.std(ddof=1)) / math.sqrt(len(sample))
        )
    return float(sample.mean()), margin
