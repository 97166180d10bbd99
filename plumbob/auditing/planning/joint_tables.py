"""What two parties count together before training: sums over rows of a column of one times a column of the other.

In the clear, or on Shamir shares (mpyc), where only the sums are opened. The arithmetic of the second is the real one and every
share is made; its three servers live in this process, so `bytes_sent` counts what would cross a network between them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from plumbob.crypto.sharing import SERVERS, SHARED_FRACTION_BITS, SHARING_PRIME, dealt, integer_product_of, shares_of
from plumbob.federation import FloatArray, IntArray

ELEMENT = (SHARING_PRIME.bit_length() + 7) // 8  # bytes of a share
BLOCK = 500_000  # cells that are dealt at a time: as Python integers they need a hundred bytes each
SUMS_OF_ROWS = 4**SHARED_FRACTION_BITS


class JointSums(Protocol):
    """A way to add up."""

    bytes_sent: int
    opened: int  # sums that both parties know afterwards

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """left' right of numbers, for small ones such as standardised columns."""
        ...

    def counts(self, left: IntArray, right: IntArray) -> IntArray:
        """left' right of whole numbers, exactly."""
        ...


class InTheClear:
    """One party shows the other its columns."""

    bytes_sent = 0
    opened = 0

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray(left.T @ right)

    def counts(self, left: IntArray, right: IntArray) -> IntArray:
        return np.asarray(left.T @ right)


class OnShares:
    """Each party deals its columns to three servers; what they open are the sums."""

    def __init__(self) -> None:
        self.bytes_sent = self.opened = 0

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        parts = self._sums(self._sent(shares_of(left)), right, shares_of)
        return np.asarray(parts / SUMS_OF_ROWS, dtype=np.float64)

    def counts(self, left: IntArray, right: IntArray) -> IntArray:
        def whole(numbers: IntArray) -> list[Any]:
            return dealt(numbers.astype(object))

        return np.asarray(self._sums(self._sent(whole(left)), right, whole), dtype=np.int64)

    def _sums(self, left: list[Any], right: Any, deal: Any) -> Any:
        """Block by block of the right side's columns."""
        width = max(1, BLOCK // max(1, len(right)))
        blocks = [right[:, start : start + width] for start in range(0, right.shape[1], width)]
        return np.concatenate([self._opened(left, self._sent(deal(block))) for block in blocks], axis=1)

    def _sent(self, shares: list[Any]) -> list[Any]:
        self.bytes_sent += ELEMENT * sum(part.size for part in shares)
        return shares

    def _opened(self, left: list[Any], right: list[Any]) -> Any:
        found = integer_product_of(left, right)
        self.opened += found.size
        shown = SERVERS * (SERVERS + 1)  # every server's mask to each, then what each shows
        self.bytes_sent += ELEMENT * found.size * shown
        return found
