"""Many powers of one base modulo n^2: a table entry for each byte of the exponent, half as wide as the modulus.

Write the exponent in bytes, e = sum_i e_i 256^i; then b^e = prod_i b^(e_i 256^i), and the 256 factors that may occur at
each position are computed once. Every unit modulo n^2 is a (1 + s n) with a, s < n, and such factors multiply as
(prod a_i) (1 + (sum s_i) n): only the halves a_i are multiplied, two by two before each reduction, while the slopes s_i
are added. A 1,024-bit exponent takes 64 reductions instead of some 1,250.
"""

from __future__ import annotations

from collections.abc import Iterator

import gmpy2
from gmpy2 import mpz

_DIGITS = 256


class FixedBase:
    """Powers of `base` modulo n^2; an exponent is `size` little-endian bytes.

    >>> FixedBase(mpz(3), mpz(1_009), 2).power((300).to_bytes(2, "little")) == pow(3, 300, 1_009**2)
    True
    """

    def __init__(self, base: mpz, n: mpz, size: int) -> None:
        self.size = size
        self._n, self._square = n, n * n
        self._rows = list(_rows(base, n, size))

    def power(self, exponent: bytes) -> mpz:
        square, halves, slope = self._square, [], mpz(0)
        for (units, slopes), digit in zip(self._rows, exponent, strict=True):
            halves.append(units[digit])
            slope += slopes[digit]
        product = halves.pop() if len(halves) % 2 else mpz(1)
        for one, other in zip(halves[::2], halves[1::2], strict=True):
            product = product * (one * other) % square
        return product * (1 + slope % self._n * self._n) % square


def _rows(base: mpz, n: mpz, size: int) -> Iterator[tuple[list[mpz], list[mpz]]]:
    """For every position i the a and the s of b^(d 256^i), d = 0 .. 255.

    With a_d = a^d mod n and q_d the quotient of a_{d-1} a by n, s_d = s_{d-1} + s + q_d / a_d.
    """
    for _ in range(size):
        rest, unit = gmpy2.f_divmod(base, n)
        inverse = gmpy2.invert(unit, n)
        slope = rest * inverse % n
        units, slopes, inverted = [mpz(1)], [mpz(0)], mpz(1)
        for _ in range(_DIGITS):
            quotient, remainder = gmpy2.f_divmod(units[-1] * unit, n)
            inverted = inverted * inverse % n
            units.append(remainder)
            slopes.append((slopes[-1] + slope + quotient * inverted) % n)
        base = units.pop() * (1 + slopes.pop() * n) % (n * n)
        yield units, slopes
