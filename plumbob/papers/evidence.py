"""Three-valued answers about figures: yes, no, or undecided by these trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plumbob.lazy_imports import stats
from plumbob.scoring.intervals import mean_and_margin

YesNoOpen = bool | None


def every(answers: Iterable[YesNoOpen]) -> YesNoOpen:
    """True if all hold, False if one does not, None if none fails but some are undecided.

    >>> every([True, None]), every([None, False]), every([True, True])
    (None, False, True)
    """
    known = list(answers)
    return False if False in known else None if None in known else True


def rises(x: Sequence[float], y: Sequence[float], level: float = 0.95) -> YesNoOpen:
    """Whether y grows with x: the interval of the least-squares slope over all trials lies above (or below) zero.

    >>> rises([0, 1, 2, 3], [0.0, 1.1, 1.9, 3.0]), rises([0, 1, 2, 3], [3.0, 1.9, 1.1, 0.0])
    (True, False)
    """
    fit = stats.linregress(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    margin = float(stats.t.ppf(0.5 + level / 2, max(1, len(x) - 2))) * float(fit.stderr)
    return _sign(float(fit.slope), margin)


def falls(x: Sequence[float], y: Sequence[float]) -> YesNoOpen:
    """Whether y shrinks as x grows."""
    return rises(x, [-value for value in y])


def below(a: Sequence[float], b: Sequence[float]) -> YesNoOpen:
    """Whether a is below b, trial by trial: the interval of the mean difference lies on one side of zero."""
    return _sign(*mean_and_margin([other - one for one, other in zip(a, b, strict=True)]))


def times_below(a: Sequence[float], b: Sequence[float]) -> YesNoOpen:
    """Whether a is below b as a ratio: for numbers that differ by powers of ten, where the largest dominates a mean."""
    return below([float(np.log(value)) for value in a], [float(np.log(value)) for value in b])


def _sign(value: float, margin: float) -> YesNoOpen:
    return True if value - margin > 0 else False if value + margin < 0 else None
