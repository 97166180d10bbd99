"""What hidden columns add to a number of each row, made into a guess of them when nobody's row is known.

One hidden column is the share's order, in one of two directions; whole numbers are exact where it lies on an even grid.
Of several columns the share is a sum, so the same guess stands for each: whichever moved the share most is ordered best by it.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.federation import FloatArray
from plumbob.threats import View

SUMMED = (
    "several hidden columns share these numbers: without a row that is known, nobody can tell which of them moved one"
)
EMPTY_SHARE = 1e-9  # of a message's variance: what is less is rounding
ROUNDS, ON_GRID = 60, 1e-6
MOST_LEVELS = 2_000


def first_direction(table: FloatArray) -> FloatArray:
    """The largest principal component, with the longer tail on the upper side; zeros where nothing varies."""
    centred = table - table.mean(axis=0)
    if not len(centred) or not np.abs(centred).max(initial=0.0) > 0:
        return np.zeros(len(table))
    _, _, right = np.linalg.svd(centred, full_matrices=False)
    share = centred @ right[0]
    return np.asarray(share * (1.0 if (share**3).mean() >= 0 else -1.0))


def guess_of(view: View, share: FloatArray, told: np.ndarray, certificate: str = "") -> Guess:
    """The share, scaled to the box, for every unknown column; the middle for rows that nothing was told of."""
    values = np.full((len(view.own), len(view.unknown)), 0.5)
    span = float(np.ptp(share)) if len(share) else 0.0
    if span > 0:
        values[told] = ((share - share.min()) / span)[:, None]
    return Guess(view.unknown_names, values, certificate=certificate, untried=SUMMED if len(view.unknown) > 1 else "")


def on_grid(own: FloatArray, answers: FloatArray, step: float) -> FloatArray | None:
    """The cells of one hidden column of this step, where answers = own b + c + w x exactly; None where none were found.

    Least squares and rounding to levels in turn: with the levels right, nothing is left. Their direction is not determined.
    """
    levels = round(1 / step) if step > 0 else 0
    design = np.hstack([own, np.ones((len(own), 1))])
    scale = float(np.std(answers))
    if not 1 <= levels <= MOST_LEVELS or len(own) < design.shape[1] + 3 or scale <= 0:
        return None
    left = answers - design @ np.linalg.lstsq(design, answers, rcond=None)[0]
    if np.std(left) <= EMPTY_SHARE * scale:
        return None
    cells = _levels(left, levels)
    for _ in range(ROUNDS):
        both = np.hstack([design, cells[:, None]])
        solved = np.linalg.lstsq(both, answers, rcond=None)[0]
        if np.abs(answers - both @ solved).max() <= ON_GRID * scale and abs(solved[-1]) > ON_GRID * scale:
            return cells / levels
        again = _levels(answers - design @ solved[:-1], levels)
        if np.array_equal(again, cells):
            return None
        cells = again
    return None


def _levels(share: FloatArray, levels: int) -> FloatArray:
    """The nearest of evenly spaced levels from the smallest to the largest."""
    low, high = float(share.min()), float(share.max())
    return np.rint((share - low) / max(high - low, 1e-300) * levels)
