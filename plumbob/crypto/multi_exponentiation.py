"""Products of powers of shared bases modulo n^2, prod_i b_i^(x_ij) for every column j, by Pippenger's buckets.

With b_i = a_i (1 + s_i n) the product is (prod_i a_i^(x_ij)) (1 + n sum_i x_ij s_i): the slopes are an inner product.
For the halves a_i, cut |x| into digits of w bits. For one digit, multiply the bases that have the same value k there into
bucket B_k (one multiplication a row, whatever w is); then prod_k B_k^k = prod_k (B_k B_{k+1} ...) takes two a bucket.
Negative exponents have buckets of their own, so that a column needs a single inversion, at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from plumbob.crypto.residues import apart

Integers = NDArray[Any]  # int64, or Python integers of any size

_WIDEST = 14
_BUCKET = 7  # a bucket's cost, two signs and two multiplications of full width, in multiplications of halves


def bucket_products(bases: Sequence[mpz], buckets: Sequence[int], count: int, modulus: mpz) -> list[mpz]:
    """The product of the bases in each of `count` buckets; 1 where there is none."""
    products = [mpz(1)] * count
    for base, bucket in zip(bases, buckets, strict=True):
        products[bucket] = products[bucket] * base % modulus
    return products


def products_of_powers(exponents: Integers, bases: Sequence[mpz], n: mpz) -> list[mpz]:
    """prod_i bases[i]^exponents[i, j] modulo n^2 for every column j; exponents of any sign and size.

    >>> exponents = np.array([[3, -1], [1, 2]])
    >>> products_of_powers(exponents, [mpz(2), mpz(5)], mpz(1_009)) == [40, 25 * pow(2, -1, 1_009**2) % 1_009**2]
    True
    """
    halves, slopes = apart(bases, n)
    return [_column(exponents[:, j], halves, slopes, n) for j in range(exponents.shape[1])]


def window(rows: int, bits: int) -> int:
    """The digit size that costs the fewest multiplications."""
    return min(range(1, _WIDEST + 1), key=lambda width: -(-bits // width) * (rows + _BUCKET * 2**width))


def _column(exponents: Integers, halves: Sequence[mpz], slopes: Sequence[mpz], n: mpz) -> mpz:
    sizes, square = np.abs(exponents), n * n
    bits = int(sizes.max(initial=0)).bit_length()
    width = window(len(halves), bits)
    buckets = 2**width
    negative = (exponents < 0).astype(np.int64) * buckets
    above = below = mpz(1)  # of the positive and of the negative exponents
    for position in reversed(range(0, bits, width)):
        digits = ((sizes >> position) & (buckets - 1)).astype(np.int64)
        rows = np.flatnonzero(digits)
        chosen = [halves[i] for i in rows.tolist()]
        filled = _bucket_products_of_halves(chosen, (digits + negative)[rows].tolist(), 2 * buckets, square)
        above = gmpy2.powmod(above, buckets, square) * _weighted(filled[1:buckets], square) % square
        below = gmpy2.powmod(below, buckets, square) * _weighted(filled[buckets + 1 :], square) % square
    slope = sum((x * s for x, s in zip(exponents.tolist(), slopes, strict=True)), mpz(0)) % n
    return above * gmpy2.invert(below, square) % square * (1 + slope * n) % square


def _bucket_products_of_halves(halves: Sequence[mpz], buckets: Sequence[int], count: int, square: mpz) -> list[mpz]:
    """As `bucket_products`, for factors half as wide as the modulus: two of them wait for one reduction."""
    products: list[mpz] = [mpz(1)] * count
    waiting: list[mpz | None] = [None] * count
    for half, bucket in zip(halves, buckets, strict=True):
        other = waiting[bucket]
        if other is None:
            waiting[bucket] = half
        else:
            products[bucket] = products[bucket] * (other * half) % square
            waiting[bucket] = None
    return [
        product if half is None else product * half % square for product, half in zip(products, waiting, strict=True)
    ]


def _weighted(buckets: Sequence[mpz], modulus: mpz) -> mpz:
    """prod_k B_k^k, k = 1, 2, ..., as the product of all suffix products."""
    suffix = total = mpz(1)
    for bucket in reversed(buckets):
        if bucket != 1:
            suffix = suffix * bucket % modulus
        if suffix != 1:
            total = total * suffix % modulus
    return total
