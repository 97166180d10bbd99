"""Masks that cancel in a sum (bonawitz2017): fixed-point numbers modulo 2^64, one mask for every pair of parties.

The earlier party of a pair adds the mask, the later one takes it away. One message alone is uniform; the sum over all parties is
that of their numbers, whatever the masks were.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray

LARGEST_MASKED = 2.0**60  # so that sums over a few parties stay within 64 bits
MaskShape = tuple[int, ...]


def from_system(shape: MaskShape) -> IntArray:
    """Uniform 64-bit numbers from the system's secure randomness."""
    return np.frombuffer(secrets.token_bytes(8 * math.prod(shape)), dtype=np.int64).reshape(shape)


def from_generator(rng: np.random.Generator) -> Callable[[MaskShape], IntArray]:
    """The same from a generator, for simulations that must be reproducible bit by bit."""
    return lambda shape: rng.integers(-(2**63), 2**63 - 1, shape, dtype=np.int64, endpoint=True)


def pairwise_masks(
    parties: Sequence[str], shape: MaskShape, draw: Callable[[MaskShape], IntArray]
) -> dict[str, IntArray]:
    """For every party the sum of its pairs' masks: added by the earlier of the two, taken away by the later.

    >>> masks = pairwise_masks(["a", "b", "c"], (2,), from_system)
    >>> sum(masks.values()).tolist()
    [0, 0]
    """
    masks = {name: np.zeros(shape, dtype=np.int64) for name in parties}
    for place, one in enumerate(parties):
        for two in parties[place + 1 :]:
            mask = draw(shape)
            masks[one] = masks[one] + mask
            masks[two] = masks[two] - mask
    return masks


def fixed_point(values: NDArray[Any], bits: int, refusal: str) -> IntArray:
    """Integer multiples of 2^-bits as 64-bit numbers; BadInput with the given sentence if they do not fit.

    >>> fixed_point(np.array([1.5, -0.25]), 2, "too large").tolist()
    [6, -1]
    """
    fixed = np.rint(np.ldexp(values.astype(np.float64), bits))
    if not np.abs(fixed).max(initial=0.0) < LARGEST_MASKED:
        raise BadInput(refusal)
    return fixed.astype(np.int64)


def opened_sum(parts: Sequence[NDArray[Any]], bits: int) -> FloatArray:
    """The sum of all parties' masked numbers, as ordinary numbers again."""
    return np.asarray(np.ldexp(np.sum(parts, axis=0).astype(np.float64), -bits))
