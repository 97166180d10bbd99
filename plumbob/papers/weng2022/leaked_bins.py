"""What leaked orders are worth (weng2022, Section 5.4): a classifier on values in place of bins is asked about others, too."""

from __future__ import annotations

import numpy as np

from plumbob.attacks.sums._bin_bounds import bin_values
from plumbob.federation import FloatArray


def nearest_values(columns: FloatArray, bounds: list[FloatArray]) -> FloatArray:
    """Other rows' values as those of their bins, cut half way between one bin's upper and the next one's lower bound."""
    mapped = []
    for column, one in zip(columns.T, bounds, strict=True):
        values = bin_values(one)
        low, high = (np.where(np.isnan(one[:, side]), values, one[:, side]) for side in (0, 1))
        cuts = np.maximum.accumulate((high[:-1] + low[1:]) / 2)
        mapped.append(values[np.searchsorted(cuts, column, side="left")])
    return np.stack(mapped, axis=1)
