"""What jin2021 runs CAFE with on each of its data sets: the rates and xi of its Table 9, and the iterations of its Table 5.

A server knows the shapes of the workers' inputs and not the data set's name, so the row that fits is that of the pictures with as
many channels and the nearest number of pixels (CIFAR-10's, where Linnaeus 5 fits as well); tables, which the paper does not
have, take the row of its smallest pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.setting_types import Positive

Rates = tuple[Positive, Positive, Positive]


@dataclass(frozen=True)
class TableNineRow:
    """A row of jin2021's Table 9, for four workers and batches of 40. The weights are the same in all rows."""

    rates: Rates
    xi: float
    channels: int
    side: int  # of a whole picture, in pixels
    iterations: (
        int  # of each step (Table 5); of Yale's faces the paper says no number, and its authors' code has 20,000
    )

    @property
    def xi_per_pair(self) -> float:
        """Xi for each pair of neighbouring pixels of a worker's quarter."""
        half = self.side // 2
        return self.xi / (self.channels * 2 * half * (half - 1))


TABLE_9 = {
    "cifar10": TableNineRow((5e-3, 8e-3, 2e-2), 90, 3, 32, 8_000),
    "mnist": TableNineRow((1e-2, 1e-2, 1e-2), 25, 1, 28, 8_000),
    "linnaeus5": TableNineRow((5e-3, 5e-3, 1e-2), 110, 3, 32, 20_000),
    "yale": TableNineRow((1e-2, 1e-2, 1e-2), 32, 1, 32, 20_000),
}


def row_that_fits(tiles: Sequence[tuple[int, ...]]) -> TableNineRow:
    """The row for workers' inputs of these shapes.

    >>> row_that_fits([(3, 16, 16)] * 4) is TABLE_9["cifar10"], row_that_fits([(5,), (6,)]) is TABLE_9["mnist"]
    (True, True)
    """
    pictures = [tile for tile in tiles if len(tile) == 3]
    if not pictures:
        return TABLE_9["mnist"]
    channels, pixels = pictures[0][0], sum(height * width for _, height, width in pictures)
    rows = [row for row in TABLE_9.values() if row.channels == channels] or list(TABLE_9.values())
    return min(rows, key=lambda row: abs(math.log(pixels / row.side**2)))
