"""Products of powers of shared bases, prod_i b_i^(x_ij) for every column j, by Pippenger's buckets.

Cut |x| into digits of w bits. For one digit, multiply the bases that have the same value k there into bucket B_k (one
multiplication a row, whatever w is); then prod_k B_k^k = prod_k (B_k B_{k+1} ...) takes two multiplications a bucket.
Negative exponents have buckets of their own, so that a column needs a single inversion, at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from plumbob.federation import IntArray

_WIDEST = 14


def bucket_products(bases: Sequence[mpz], buckets: Sequence[int], count: int, modulus: mpz) -> list[mpz]:
    """The product of the bases in each of `count` buckets; 1 where there is none."""
    products = [mpz(1)] * count
    for base, bucket in zip(bases, buckets, strict=True):
        products[bucket] = products[bucket] * base % modulus
    return products


def products_of_powers(exponents: NDArray[np.generic], bases: Sequence[mpz], modulus: mpz) -> list[mpz]:
    """prod_i bases[i]^exponents[i, j] for every column j; exponents are int64 or Python integers of any sign and size.

    >>> bases, exponents = [mpz(2), mpz(5)], np.array([[3, -1], [1, 2]])
    >>> products_of_powers(exponents, bases, mpz(1_000_003)) == [40, 25 * pow(2, -1, 1_000_003) % 1_000_003]
    True
    """
    return [_column(exponents[:, j], bases, modulus) for j in range(exponents.shape[1])]


def window(rows: int, bits: int) -> int:
    """The digit size that costs the fewest multiplications: a row each, two each for the buckets of both signs."""
    return min(range(1, _WIDEST + 1), key=lambda width: -(-bits // width) * (rows + 4 * 2**width))


def _column(exponents: NDArray[np.generic], bases: Sequence[mpz], modulus: mpz) -> mpz:
    sizes = np.abs(exponents)
    bits = int(sizes.max(initial=0)).bit_length()
    width = window(len(bases), bits)
    negative = (exponents < 0).astype(np.int64) << width
    above = below = mpz(1)  # of the positive and of the negative exponents
    for position in reversed(range(0, bits, width)):
        digits: IntArray = ((sizes >> position) & (2**width - 1)).astype(np.int64)
        rows = np.flatnonzero(digits)
        buckets = bucket_products(
            [bases[i] for i in rows.tolist()], (digits + negative)[rows].tolist(), 2 * 2**width, modulus
        )
        shift = mpz(2**width)
        above = gmpy2.powmod(above, shift, modulus) * _weighted(buckets[1 : 2**width], modulus) % modulus
        below = gmpy2.powmod(below, shift, modulus) * _weighted(buckets[2**width + 1 :], modulus) % modulus
    return above if below == 1 else above * gmpy2.invert(below, modulus) % modulus


def _weighted(buckets: Sequence[mpz], modulus: mpz) -> mpz:
    """prod_k B_k^k, k = 1, 2, ..., as the product of all suffix products."""
    suffix = total = mpz(1)
    for bucket in reversed(buckets):
        if bucket != 1:
            suffix = suffix * bucket % modulus
        if suffix != 1:
            total = total * suffix % modulus
    return total
