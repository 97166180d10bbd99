"""Many powers of one base modulo n^2: a table entry for each byte of the exponent, taken apart into half and slope.

Write the exponent in bytes, e = sum_i e_i 256^i; then b^e = prod_i b^(e_i 256^i), and the 256 factors a (1 + s n) that may
occur at each position are computed once. The product is (prod a_i) (1 + (sum s_i) n): the halves are multiplied two by two
before each reduction, the slopes added. A 1,024-bit exponent takes 64 reductions instead of some 1,250.
"""

from __future__ import annotations

from collections.abc import Iterator

import gmpy2
from gmpy2 import mpz

from plumbob.crypto.residues import apart

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
        square, factors, slope = self._square, [], mpz(0)
        for (halves, slopes), digit in zip(self._rows, exponent, strict=True):
            factors.append(halves[digit])
            slope += slopes[digit]
        product = factors.pop() if len(factors) % 2 else mpz(1)
        for one, other in zip(factors[::2], factors[1::2], strict=True):
            product = product * (one * other) % square
        return product * (1 + slope % self._n * self._n) % square


def _rows(base: mpz, n: mpz, size: int) -> Iterator[tuple[list[mpz], list[mpz]]]:
    """For every position i the a and the s of b^(d 256^i), d = 0 .. 255.

    With a_d = a^d mod n and q_d the quotient of a_{d-1} a by n, s_d = s_{d-1} + s + q_d / a_d.
    """
    for _ in range(size):
        (half,), (slope,) = apart([base], n)
        halves, slopes, inverse, inverted = [mpz(1)], [mpz(0)], gmpy2.invert(half, n), mpz(1)
        for _ in range(_DIGITS):
            quotient, remainder = gmpy2.f_divmod(halves[-1] * half, n)
            inverted = inverted * inverse % n
            halves.append(remainder)
            slopes.append((slopes[-1] + slope + quotient * inverted) % n)
        base = halves.pop() * (1 + slopes.pop() * n) % (n * n)
        yield halves, slopes
