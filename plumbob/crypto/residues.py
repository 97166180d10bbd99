"""Arithmetic modulo n and n^2 that the rest shares: inverses in bulk, and units taken apart.

Every unit modulo n^2 is a (1 + s n) for one a and one s below n. Since (1 + s n) (1 + t n) = 1 + (s + t) n modulo n^2,
the slopes s only add up; what remains to be multiplied are the halves a, half as wide as the modulus.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz


def inverses(values: Sequence[mpz], modulus: mpz) -> list[mpz]:
    """All inverses for the price of one: invert the product of all, then divide the others out again (Montgomery).

    >>> inverses([mpz(2), mpz(3)], mpz(7))
    [mpz(4), mpz(5)]
    """
    prefixes = [mpz(1)]
    for value in values:
        prefixes.append(prefixes[-1] * value % modulus)
    inverse = gmpy2.invert(prefixes.pop(), modulus)
    found = []
    for value, prefix in zip(reversed(values), reversed(prefixes), strict=True):
        found.append(inverse * prefix % modulus)
        inverse = inverse * value % modulus
    return found[::-1]


def apart(values: Sequence[mpz], n: mpz) -> tuple[list[mpz], list[mpz]]:
    """The halves a and the slopes s of units modulo n^2.

    >>> halves, slopes = apart([mpz(38)], mpz(7))
    >>> halves[0] * (1 + slopes[0] * 7) % 49
    mpz(38)
    """
    split = [gmpy2.f_divmod(value, n) for value in values]
    halves = [half for _, half in split]
    slopes = [rest * inverse % n for (rest, _), inverse in zip(split, inverses(halves, n), strict=True)]
    return halves, slopes
