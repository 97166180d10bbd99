"""How a row's gradients stand in a plaintext, and what may be hidden below them.

From high to low: g (a slot wide enough for the sum over all rows, with its sign), h beside it if both are packed into one
plaintext, and `low` bits below the gradients' precision. Honest parties leave those empty. An active party that does not
can write a code there: the sums of its gradients stay what they were, and carry the sums of its codes along. One that sends no
gradients at all has the slots as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.protocols.shared.conduct import Conduct

FLOAT_FRACTION_BITS = 53  # bits after the binary point of a gradient: a float's own


class HiddenCode(Conduct):
    """What an active party adds to its gradients, below their precision."""

    noted_as: ClassVar[str]  # how the active party's notes of a tree call it

    def absent(self, sent: str) -> str:
        return f"reads {self.kind}, and {f'what is hidden here are {sent}' if sent else 'nothing is hidden here'}"

    @property
    @abstractmethod
    def bits(self) -> int:
        """Bits that the sum of the codes of any rows may take."""

    @abstractmethod
    def codes(
        self, tree: int, rows: IntArray, channels: int, rng: np.random.Generator, gradients: IntArray | None = None
    ) -> tuple[list[dict[int, int]], dict[str, Array]]:
        """For each plaintext of a row ({place among the rows: code}), and what the active party has to remember to read the
        sums. `gradients` are those of the rows, for codes that choose rows by them."""

    def instead(self, tree: int, rows: IntArray, layout: Layout) -> tuple[Array, Array, dict[str, Array]] | None:
        """What is sent in place of the rows' g and h, and what to remember of it; None where their gradients are sent."""
        return None


@dataclass(frozen=True)
class Layout:
    """Where the parts of a plaintext lie. Public: parties agree on it before they start."""

    low: int
    guard: int  # the highest of the low bits, kept free so that sums of codes and of noise never reach the gradients
    precision: int
    slot: int
    packed: bool

    @property
    def channels(self) -> int:
        """Plaintexts of a row."""
        return 1 if self.packed else 2

    @property
    def top(self) -> int:
        """The bit above all that is used."""
        return self.low + self.slot * (2 if self.packed else 1)

    @classmethod
    def fitting(
        cls, *, room: int, precision: int | None, low: int, guard: int, largest: float, rows: int, packed: bool
    ) -> Layout:
        """The layout for a number of rows with |g|, |h| <= largest in plaintexts of `room` bits; a precision of None is the
        finest that fits."""
        above = max(1, int(np.ceil(largest))).bit_length() + rows.bit_length() + 1
        lowest = low + guard if low else 0
        spare = (room - lowest) // (2 if packed else 1) - above
        fine = min(FLOAT_FRACTION_BITS, spare) if precision is None else precision
        if fine > spare or fine < 8:
            raise BadInput(
                f"secure boost: gradients of {max(fine, 8)} bits, {above} bits for sums and {lowest:,} bits below do not fit "
                f"into a plaintext of {room:,} bits; use a larger key, a lower precision, or packed=False"
            )
        return cls(lowest, guard if low else 0, fine, fine + above, packed)

    def plaintexts(self, first: Array, second: Array, codes: Sequence[dict[int, int]]) -> list[list[int]]:
        """One list for each channel."""
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        if self.packed:
            made = [[((g << self.slot) + h) << self.low for g, h in pairs]]
        else:
            made = [[g << self.low for g in first.tolist()], [h << self.low for h in second.tolist()]]
        for channel, code in zip(made, codes, strict=False):
            for row, number in code.items():
                channel[row] += number
        return made

    def sums(self, channels: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        """The sums of g and of h, whatever was added below (up to the guard) or above."""
        raised = [[self._raised(number) for number in channel] for channel in channels]
        if not self.packed:
            return [self._signed(number) for number in raised[0]], [self._signed(number) for number in raised[1]]
        second = [self._signed(number) for number in raised[0]]
        first = [self._signed((number - h) >> self.slot) for number, h in zip(raised[0], second, strict=True)]
        return first, second

    def hidden(self, number: int) -> int:
        """What stands below the gradients."""
        return number & ((1 << self.low) - 1)

    def noise(self, largest: int, draw: Callable[[int], bytes]) -> int:
        """Uniform bits everywhere but in the gradients: below them up to the guard, and above them to the plaintexts' end."""
        below = _uniform(1 << (self.low - self.guard), draw) if self.low else 0
        above = _uniform(max(1, (largest >> self.top) - 1), draw)
        return below + (above << self.top)

    def array(self) -> IntArray:
        return np.array([self.low, self.guard, self.precision, self.slot, self.packed], dtype=np.int64)

    @classmethod
    def from_array(cls, array: Array) -> Layout:
        low, guard, precision, slot, packed = (int(value) for value in array)
        return cls(low, guard, precision, slot, bool(packed))

    def _raised(self, number: int) -> int:
        """Without the low bits; what was subtracted there may have borrowed, by less than a quarter."""
        return (number + ((1 << self.low) >> 2)) >> self.low

    def _signed(self, number: int) -> int:
        half = 1 << (self.slot - 1)
        return (number + half) % (2 * half) - half


def _uniform(bound: int, draw: Callable[[int], bytes]) -> int:
    """A number from 0 to bound - 1; 8 more bytes than needed make its bias smaller than 2^-64."""
    return int.from_bytes(draw(bound.bit_length() // 8 + 9), "big") % bound
