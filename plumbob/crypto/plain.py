"""The same sums without encryption: what a protocol computes when its key has no bits.

A protocol written for ciphertexts runs unchanged on these, integer for integer, so that what encryption costs and what it
hides can be measured, and long studies of plaintexts need no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plumbob.crypto import paillier
from plumbob.errors import BadInput
from plumbob.federation import BoolArray, ByteArray, IntArray


class NoKey:
    """Replaces a key pair: it is its own public key, and decryption changes nothing."""

    bits: ClassVar[int] = 0
    weak: ClassVar[bool] = True
    largest: ClassVar[int] = 2**2047

    @property
    def public(self) -> NoKey:
        return self

    def encrypt(self, plain: Sequence[int] | NDArray[np.generic]) -> Plaintexts:
        return Plaintexts([int(value) for value in plain])

    def decrypt(self, batch: Plaintexts) -> list[int]:
        return list(batch.values)

    def ciphertexts(self, array: ByteArray) -> Plaintexts:
        return Plaintexts(integers(array))


class Plaintexts:
    """A batch of integers with the operations of `paillier.Ciphertexts`."""

    __array_ufunc__: ClassVar[None] = None  # numpy leaves the operators to this class

    def __init__(self, values: Sequence[int]) -> None:
        self.values = tuple(values)
        self.key = NoKey()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Plaintexts]:
        return (Plaintexts([value]) for value in self.values)

    def __getitem__(self, place: int | slice | IntArray | BoolArray) -> Plaintexts:
        if isinstance(place, slice):
            return Plaintexts(self.values[place])
        index = np.atleast_1d(np.asarray(place))
        chosen = np.flatnonzero(index) if index.dtype == np.bool_ else index
        return Plaintexts([self.values[int(i)] for i in chosen])

    def __add__(self, other: Plaintexts | paillier.PlainNumbers) -> Plaintexts:
        return Plaintexts([a + b for a, b in zip(self.values, self._each(other), strict=True)])

    __radd__ = __add__

    def __neg__(self) -> Plaintexts:
        return Plaintexts([-value for value in self.values])

    def __sub__(self, other: Plaintexts | paillier.PlainNumbers) -> Plaintexts:
        return Plaintexts([a - b for a, b in zip(self.values, self._each(other), strict=True)])

    def __rsub__(self, other: paillier.PlainNumbers) -> Plaintexts:
        return -self + other

    def __mul__(self, scalars: paillier.PlainNumbers) -> Plaintexts:
        return Plaintexts([a * b for a, b in zip(self.values, self._each(scalars), strict=True)])

    __rmul__ = __mul__

    def sum(self) -> Plaintexts:
        return Plaintexts([sum(self.values)])

    def bin_sums(self, bins: IntArray, count: int) -> Plaintexts:
        sums = [0] * count
        for value, place in zip(self.values, bins.tolist(), strict=True):
            sums[place] += value
        return Plaintexts(sums)

    def products(self, matrix: Sequence[Sequence[int]] | NDArray[np.generic]) -> Plaintexts:
        """X' v for a matrix of integers, one row per value."""
        rows = np.asarray(matrix, dtype=object)
        return Plaintexts([int(value) for value in np.array(self.values, dtype=object) @ rows])

    def rerandomised(self) -> Plaintexts:
        return self

    def to_array(self) -> ByteArray:
        return as_bytes(self.values)

    def _each(self, other: Plaintexts | paillier.PlainNumbers) -> Sequence[int]:
        if isinstance(other, Plaintexts):
            return other.values
        if isinstance(other, int):
            return [other] * len(self)
        return [int(value) for value in other]


Batch = paillier.Ciphertexts | Plaintexts
KeyPair = paillier.PrivateKey | NoKey
AnyPublicKey = paillier.PublicKey | NoKey


def key_pair(bits: int) -> KeyPair:
    """A Paillier key of that size, or none for 0 bits."""
    return NoKey() if bits == 0 else paillier.generate(bits)


def room(bits: int) -> int:
    """Bits that a plaintext under a key of that size surely has, without its sign."""
    return bits - 3 if bits else NoKey.largest.bit_length() - 1


def joined(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches of one key."""
    values = [value for batch in batches for value in batch.values]
    key = batches[0].key
    return paillier.Ciphertexts(key, values) if isinstance(key, paillier.PublicKey) else Plaintexts(values)


def as_bytes(values: Sequence[int]) -> ByteArray:
    """Signed integers of any size as rows of big-endian bytes, for a transcript.

    >>> integers(as_bytes([1, -300, 2**70]))
    [1, -300, 1180591620717411303424]
    """
    width = max((value.bit_length() // 8 + 1 for value in values), default=1)
    joined = b"".join(int(value).to_bytes(width, "big", signed=True) for value in values)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(values), width).copy()


def integers(array: NDArray[Any]) -> list[int]:
    """The integers that `as_bytes` wrote."""
    if array.dtype != np.uint8 or array.ndim != 2:
        raise BadInput(f"integers: expected rows of bytes, got {array.dtype} of shape {array.shape}")
    data, width = array.tobytes(), array.shape[1]
    return [int.from_bytes(data[i * width : (i + 1) * width], "big", signed=True) for i in range(len(array))]
