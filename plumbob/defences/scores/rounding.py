"""Rounding (luo2021, Section VII): scores keep only their first digits.

v becomes floor(v 10^b) / 10^b, so a released r says that v lies in [r, r + 10^-b). ESA takes the logarithm of r as if it
were exact; an attacker who knows of the rounding takes the interval.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.base import Defence
from plumbob.errors import BadInput
from plumbob.federation import Federation, FloatArray
from plumbob.protocols.base import Model, PredictionProtocol, Release

MOST = 12  # beyond it a double has no digits left to cut


def round_down(scores: FloatArray, digits: int) -> FloatArray:
    """Truncate after that many digits.

    >>> round_down(np.array([[0.867, 0.084, 0.049]]), 1).tolist()
    [[0.8, 0.0, 0.0]]
    """
    scale = 10.0**digits
    # 0.7 is stored as a little less than 0.7, and times 10 as a little less than 7: the slack keeps a printed digit.
    return np.asarray(np.floor(scores * scale + 1e-15 * scale) / scale)


class Rounding(Defence):
    """Scores rounded down to `digits` digits after the point; they need not add up to 1 any more."""

    name = "rounding"
    identity = "Rounding(digits)"
    summary = "scores are rounded down to a few digits"
    point = "scores"
    paper = "luo2021"
    sweep_settings = ({"digits": 3}, {"digits": 2}, {"digits": 1})

    def __init__(self, *, digits: int = 1) -> None:
        if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= MOST:
            raise BadInput(f"rounding: expected 1 to {MOST} digits, got {digits}")
        self.digits = digits

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        return lambda scores, _: round_down(scores, self.digits)
