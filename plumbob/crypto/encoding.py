"""Several small integers packed into a large one, for encryption.

Packing puts v_i at bit o_i: sum_i v_i 2^(o_i), negative v_i borrowing from above. Slots are wider than their values by the
bits that `additions` sums can grow, so that packed numbers may be added before they are taken apart, and no slot carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.errors import BadInput, whole


@dataclass(frozen=True)
class Packing:
    """Signed integers, |v_i| < 2^(widths[i] - 1), side by side in one; up to `additions` of the results may be summed.

    Multiplying a packed number by k counts as |k| additions.

    >>> packing = Packing([8, 8, 4], additions=3)
    >>> one, two = packing.pack([[1, -2, 3], [100, -100, 7]])
    >>> packing.unpack([one + two + one])
    [[102, -104, 13]]
    """

    widths: Sequence[int]
    additions: int = 1

    def __post_init__(self) -> None:
        whole("additions of packed numbers", self.additions, 1, 2**62)
        if not len(self.widths):
            raise BadInput("packing needs at least one width")
        for width in self.widths:
            whole("width of a packed number in bits", width, 2, 4_096)

    @property
    def bits(self) -> int:
        """Bits of the largest packed number after all additions; a key fits if its `largest` has at least one bit more."""
        return sum(self._slots)

    def pack(self, rows: Sequence[Sequence[int]] | NDArray[np.integer]) -> list[int]:
        """One integer for each row of as many values as there are widths."""
        listed = rows.tolist() if isinstance(rows, np.ndarray) else rows
        return [self._packed(row) for row in listed]

    def unpack(self, integers: Sequence[int]) -> list[list[int]]:
        """The values, or their sums, of every packed integer."""
        return [self._unpacked(int(integer)) for integer in integers]

    @property
    def _slots(self) -> list[int]:
        """Bits of each slot: additions * (2^(w-1) - 1) stays below half of the slot."""
        return [width + (self.additions - 1).bit_length() for width in self.widths]

    def _packed(self, row: Sequence[int]) -> int:
        if len(row) != len(self.widths):
            raise BadInput(f"packing: expected {len(self.widths)} values in a row, got {len(row)}")
        packed = offset = 0
        for value, width, slot in zip(row, self.widths, self._slots, strict=True):
            if not isinstance(value, int | np.integer):
                raise BadInput(f"packing: expected whole numbers, got {value!r}")
            if abs(int(value)) >= 1 << (width - 1):
                raise BadInput(f"packing: {value} needs more than {width} bits with its sign and would carry over")
            packed += int(value) << offset
            offset += slot
        return packed

    def _unpacked(self, packed: int) -> list[int]:
        values = []
        for slot in self._slots:
            half = 1 << (slot - 1)
            value = (packed + half) % (2 * half) - half
            values.append(value)
            packed = (packed - value) >> slot
        if packed:
            raise BadInput(f"packing: more than {self.additions:,} additions, or a number packed differently")
        return values
