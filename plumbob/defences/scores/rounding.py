"""Rounding (luo2021, Section VII): scores keep only their first digits.

    how: down       v becomes floor(v 10^b) / 10^b, so a released r says that v lies in [r, r + 10^-b)     (luo2021)
    how: nearest    v becomes the nearest multiple of 10^-b, so v lies within half of that of r            (jiang2022, 6.1.3.1)
ESA takes the logarithm of r as if it were exact; an attacker who knows of the rounding takes the interval. Rounding to whole
numbers is `label_only`.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from plumbob.defences.base import Defence
from plumbob.errors import BadInput, suggest
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownDefences
from plumbob.protocols.base import Model, PredictionProtocol, Release
from plumbob.setting_sources import printed

Direction = Literal["down", "nearest"]
MOST = 12  # beyond it a double has no digits left to cut


def round_down(scores: FloatArray, digits: int) -> FloatArray:
    """Truncate after that many digits.

    >>> round_down(np.array([[0.867, 0.084, 0.049]]), 1).tolist()
    [[0.8, 0.0, 0.0]]
    """
    scale = 10.0**digits
    # 0.7 is stored as a little less than 0.7, and times 10 as a little less than 7: the slack keeps a printed digit.
    return np.asarray(np.floor(scores * scale + 1e-15 * scale) / scale)


def round_to_nearest(scores: FloatArray, digits: int) -> FloatArray:
    """To the nearest number with that many digits.

    >>> round_to_nearest(np.array([[0.867, 0.084, 0.049]]), 1).tolist()
    [[0.9, 0.1, 0.0]]
    """
    return np.asarray(np.rint(scores * 10.0**digits) / 10.0**digits)


class Rounding(Defence):
    """Scores rounded to `digits` digits after the point, `how`: down or to the nearest; they need not add up to 1 any more."""

    name = "rounding"
    identity = "Rounding(digits)"
    summary = "scores are rounded to a few digits, down or to the nearest"
    point = "scores"
    paper = "luo2021"
    sweep_settings = ({"digits": 3}, {"digits": 2}, {"digits": 1})

    sources = {
        "digits": printed("Section VII, Fig 11: b = 1 and 3"),
        "how": printed("Section VII: rounded down; jiang2022, Section 6.1.3.1, approximates to the nearest"),
    }

    def __init__(self, *, digits: int = 1, how: Direction = "down") -> None:
        if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= MOST:
            raise BadInput(f"rounding: expected 1 to {MOST} digits, got {digits}")
        if how not in get_args(Direction):
            raise BadInput(
                f"rounding: how: expected 'down' or 'nearest', got {how!r}{suggest(str(how), get_args(Direction))}"
            )
        self.digits = digits
        self.how: Direction = how

    def known(self) -> KnownDefences:
        nearest = {"nearest": np.asarray(True)} if self.how == "nearest" else {}
        return KnownDefences.named(self.name, {"digits": np.asarray(self.digits)} | nearest)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        rounded = round_down if self.how == "down" else round_to_nearest
        return lambda scores, _: rounded(scores, self.digits)
