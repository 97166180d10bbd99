"""Find which rows of a table a batch contains, exactly, by their cells alone.

Every row has a hash of 64 bits: each cell's bits and its column's number are mixed (splitmix64) and added up. Hashes are looked
up in sorted order, and what is found is compared cell by cell. Rows with the same cells are twins: they are given out in turn, so
that a pass over all rows names each of them once, and a batch of them is said to be unsure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.bundle import Array
from plumbob.federation import IntArray

UNKNOWN = -1  # a row that is not in the table
_CHUNK = 65_536
_STEP, _FIRST, _SECOND = (np.uint64(f) for f in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Found:
    """Row numbers of a batch, `UNKNOWN` for a row not in the table; not `sure` if it has duplicates or is unknown."""

    rows: IntArray
    sure: NDArray[np.bool_]


class RowIndex:
    """The rows of one table.

    >>> index = RowIndex(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> index.find(np.array([[3.0, 4.0], [1.0, 2.0], [1.0, 2.0], [9.0, 9.0]])).rows
    array([ 1,  0,  2, -1])
    """

    def __init__(self, table: Array) -> None:
        self._table = _bits(table)
        keys = np.concatenate([_hashes(self._table[i : i + _CHUNK]) for i in range(0, max(1, len(table)), _CHUNK)])
        self._order = np.argsort(keys, kind="stable")
        self._keys, self._first, self._count = np.unique(keys[self._order], return_index=True, return_counts=True)
        self._given = np.zeros(len(self._keys), dtype=np.int64)  # how often twins were named

    def find(self, batch: Array) -> Found:
        """The row numbers of a batch of the same type."""
        wanted = _bits(batch)
        if wanted.shape[1] != self._table.shape[1] or not len(self._keys):
            return nothing(len(batch))
        keys = _hashes(wanted)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        first, count = self._first[place], self._count[place]
        there = (self._table[self._order[first]] == wanted).all(axis=1)
        if count.max(initial=1) > 1:
            first = first + (self._given[place] + _earlier(place)) % count
            np.add.at(self._given, place[there], 1)
        return Found(np.where(there, self._order[first], UNKNOWN).astype(np.int64), there & (count == 1))


def nothing(count: int) -> Found:
    """That many unknown rows."""
    return Found(np.full(count, UNKNOWN, dtype=np.int64), np.zeros(count, dtype=np.bool_))


def _bits(table: Array) -> Array:
    """The bits of cells as integers; 0 and -0 are the same."""
    flat = np.ascontiguousarray(table.reshape(len(table), -1))
    if flat.dtype.kind == "f":
        flat = flat + flat.dtype.type(0)
    return flat.view(np.dtype(f"u{flat.dtype.itemsize}"))


def _hashes(bits: Array) -> Bits:
    columns = _mixed(np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * _STEP)
    return np.asarray(_mixed(bits.astype(np.uint64) + columns).sum(axis=1, dtype=np.uint64))


def _mixed(bits: Bits) -> Bits:
    bits = (bits ^ bits >> np.uint64(30)) * _FIRST
    bits = (bits ^ bits >> np.uint64(27)) * _SECOND
    return bits ^ bits >> np.uint64(31)


def _earlier(places: IntArray) -> IntArray:
    """How often each entry occurred before."""
    order = np.argsort(places, kind="stable")
    ranked = places[order]
    starts = np.searchsorted(ranked, ranked, side="left")
    counts = np.empty(len(places), dtype=np.int64)
    counts[order] = np.arange(len(places)) - starts
    return counts


def agreed(found: Mapping[str, Found]) -> dict[str, IntArray]:
    """The rows of every party's batch; an ambiguous one is resolved by a party that is sure."""
    rows = {}
    for name, own in found.items():
        numbers, unsure = own.rows.copy(), ~own.sure
        for other in found.values():
            if len(other.rows) == len(numbers):
                numbers = np.where(unsure & other.sure, other.rows, numbers)
                unsure = unsure & ~other.sure
        rows[name] = numbers
    return rows
