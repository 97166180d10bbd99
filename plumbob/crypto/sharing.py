"""Correlations between two parties' columns without revealing them: Shamir's secret sharing, by mpyc.

Each party standardises its own columns and deals every cell to three servers as points of a random line (degree 1). A
server multiplies and adds the points it holds: products of lines are parabolas, and three points of a parabola give its
value at 0, the sum of products. Before that a fresh random parabola through 0 is added, so that the points that are opened
tell the sum and nothing else. One server alone sees uniform numbers; two together could read the columns.

All three servers live in this process, as parties and coordinator do elsewhere in Plumbob: the arithmetic is the real one,
the network is not.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.lazy_imports import mpyc

SERVERS = 3
SHARED_FRACTION_BITS = 20  # after the binary point
SHARING_PRIME = 2**127 - 1  # far above any sum of products
_AT_ZERO = (3, -3, 1)  # a parabola at 0 from its values at 1, 2 and 3
_LIMB = 64


@cache
def _library() -> tuple[Any, Any]:
    """mpyc's secret sharing and the field. On import it reads the command line and sets up logging; neither is its to."""
    root = logging.getLogger()
    arguments, handlers, level = sys.argv, root.handlers[:], root.level
    try:
        sys.argv = [*arguments[:1], "--no-log"]
        sharing, fields = mpyc.thresha, mpyc.finfields  # asked for here, as they are loaded when they are asked for
    finally:
        sys.argv, root.handlers[:] = arguments, handlers
        root.setLevel(level)
    return sharing, fields.GF(SHARING_PRIME)


def shares_of(numbers: FloatArray) -> list[Any]:
    """One matrix of field elements (Python integers) for each server; each alone is uniformly random."""
    return dealt(np.rint(numbers * 2**SHARED_FRACTION_BITS).astype(np.int64).astype(object))


def dealt(integers: Any) -> list[Any]:
    """Shares of a matrix of Python integers."""
    sharing, field = _library()
    parts = sharing.np_random_split(field, (integers % SHARING_PRIME).ravel(), 1, SERVERS)
    return [np.asarray(part, dtype=object).reshape(integers.shape) for part in parts]


def multiplied(left: list[Any], right: list[Any]) -> list[Any]:
    """Shares of left * right, entry by entry: each server deals its product anew, and adds up what it was dealt.

    A product of lines is a parabola q, and q(0) = 3 q(1) - 3 q(2) + q(3).

    >>> rows = np.array([[1], [0], [1]], dtype=object)
    >>> revealed(multiplied(dealt(rows), dealt(np.array([[5], [7], [-9]], dtype=object)))).ravel().tolist()
    [5, 0, -9]
    """
    again = [dealt((a * b) % SHARING_PRIME) for a, b in zip(left, right, strict=True)]
    return [sum(w * parts[k] for w, parts in zip(_AT_ZERO, again, strict=True)) % SHARING_PRIME for k in range(SERVERS)]


def revealed(shares: list[Any]) -> Any:
    """The signed integers behind shares that are points of lines: two servers' are enough."""
    values = (2 * shares[0] - shares[1]) % SHARING_PRIME
    return np.where(values > SHARING_PRIME // 2, values - SHARING_PRIME, values)


def product_of(left: list[Any], right: list[Any]) -> FloatArray:
    """left' right, opened."""
    return np.array(integer_product_of(left, right) / 4**SHARED_FRACTION_BITS, dtype=np.float64)


def integer_product_of(left: list[Any], right: list[Any]) -> Any:
    """left' right as integers: each server works on its own shares, then masks, then shows."""
    sharing, field = _library()
    shape = left[0].shape[1], right[0].shape[1]
    local = [(a.T @ b) % SHARING_PRIME for a, b in zip(left, right, strict=True)]
    zeros = np.zeros(shape[0] * shape[1], dtype=object)
    for _ in range(SERVERS):  # every server deals one parabola through 0; one honest server is enough to hide
        mask = sharing.np_random_split(field, zeros, SERVERS - 1, SERVERS)
        local = [
            (part + np.asarray(one, dtype=object).reshape(shape)) % SHARING_PRIME
            for part, one in zip(local, mask, strict=True)
        ]
    points = [(i + 1, [int(value) for value in part.ravel()]) for i, part in enumerate(local)]
    opened = [int(value) % SHARING_PRIME for value in sharing.recombine(field, points)]
    signed = [value - SHARING_PRIME if value > SHARING_PRIME // 2 else value for value in opened]
    return np.array(signed, dtype=object).reshape(shape)


def sums_by_indicators(indicators: Any, numbers: list[int]) -> list[int]:
    """The sum of the numbers in every column of an indicator matrix (rows x sums, 0 and 1), revealing neither side.

    Numbers of any size are shared in limbs of 64 bits; the highest one keeps the sign.

    >>> sums_by_indicators(np.array([[1, 0], [0, 1], [1, 0]]), [2**90, -5, 7])
    [1237940039285380274899124231, -5]
    """
    return joined_limbs(integer_product_of(dealt(np.asarray(indicators).astype(object)), dealt(limbs_of(numbers))))


def limbs_of(numbers: list[int]) -> Any:
    """Integers of any size as rows of limbs of 64 bits, lowest first; the highest one keeps the sign."""
    size = max((number.bit_length() for number in numbers), default=1) // _LIMB + 1
    limbs = [[number >> _LIMB * i & ((1 << _LIMB) - 1) for i in range(size - 1)] for number in numbers]
    rows = [[*limb, number >> _LIMB * (size - 1)] for limb, number in zip(limbs, numbers, strict=True)]
    return np.array(rows, dtype=object)


def joined_limbs(rows: Any) -> list[int]:
    """The integers of such rows, or sums of them.

    >>> joined_limbs(limbs_of([2**70 + 3, -1]))
    [1180591620717411303427, -1]
    """
    return [sum(int(value) << _LIMB * i for i, value in enumerate(row)) for row in rows]


def mean_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Mean over the rows of every column of a times every column of b; only these means are opened.

    >>> mean_products(np.array([[1.0], [-3.0]]), np.array([[2.0, 0.5], [1.0, 0.0]])).round(3).tolist()
    [[-0.5, 0.25]]
    """
    if len(a) != len(b):
        raise BadInput(
            f"secure products: expected the same number of rows on both sides, got {len(a):,} and {len(b):,}"
        )
    return product_of(shares_of(a), shares_of(b)) / max(1, len(a))
