"""Many powers of one base: b^e by table, a multiplication for each byte of the exponent.

Write the exponent in bytes, e = sum_i e_i 256^i; then b^e = prod_i b^(e_i 256^i), and all factors that may occur are
computed once: 256 for each position. A 1,024-bit exponent takes 127 multiplications instead of about 1,250.
"""

from __future__ import annotations

from collections.abc import Iterator

from gmpy2 import mpz

_DIGITS = 256


class FixedBase:
    """Powers of `base` modulo `modulus`, exponents given as little-endian bytes, `size` of them.

    >>> FixedBase(mpz(3), mpz(1_000_003), 2).power((300).to_bytes(2, "little")) == pow(3, 300, 1_000_003)
    True
    """

    def __init__(self, base: mpz, modulus: mpz, size: int) -> None:
        self.size = size
        self._modulus = modulus
        self._rows = list(_rows(base, modulus, size))

    def power(self, exponent: bytes) -> mpz:
        modulus, product = self._modulus, mpz(1)
        for row, digit in zip(self._rows, exponent, strict=True):
            product = product * row[digit] % modulus
        return product


def _rows(base: mpz, modulus: mpz, size: int) -> Iterator[list[mpz]]:
    """For every position i the powers b^(d 256^i), d = 0 .. 255."""
    for _ in range(size):
        row = [mpz(1)]
        for _ in range(_DIGITS - 1):
            row.append(row[-1] * base % modulus)
        yield row
        base = row[-1] * base % modulus
