"""Columns that the curious parties hold already, because they are a function of their own columns.

    y = x                                 a copy
    y = a + b1 x1 + ... + bk xk           a linear map, exact or up to the digit that y is rounded to
    y = f(x)                              a code, bands, or a monotone function of one column
    y = f(x1, x2) or f(x1, x2, x3)        a joint code of discrete columns

A relation counts if it holds in every row, if nearly every row is confirmed by other rows, and if cells in random order would
show it with a probability below 1e-6, all relations that are tried taken together. It is a statement about these rows: a column
that agrees with others in all of them may differ in one that nobody looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np

from plumbob.correlation import correlations
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring._chance import LIMIT, Coded, counted, orders
from plumbob.scoring._joint_codes import joint_codes
from plumbob.scoring._linear_maps import linear_maps
from plumbob.scoring._repeated_rows import first_of_each
from plumbob.scoring._single_codes import single_codes
from plumbob.scoring.metrics import EXACT_CELL

FEWEST_ROWS = 10  # of fewer nothing is said
NAMED = 2  # own columns that are named; of more, the number is told


def held_columns(
    own: FloatArray,
    names: Sequence[str],
    hidden: FloatArray,
    *,
    grids: FloatArray | None = None,
    filled: BoolArray | None = None,
) -> tuple[str, ...]:
    """For every hidden column what it is of the curious parties' own columns, in words; empty where it is nothing.

    `names` are those of the own columns. `grids` are the steps of the hidden columns' values, 0 where there are none. `filled`
    cells of hidden columns are nobody's data and are not looked at.

    >>> own = np.random.default_rng(0).random((60, 2))
    >>> held_columns(own, ("income", "age"), np.column_stack([own[:, 0], own[::-1, 0]]))
    ("a copy of 'income'", '')
    """
    grids = np.zeros(hidden.shape[1]) if grids is None else grids
    if not own.shape[1] or not hidden.shape[1] or len(own) < FEWEST_ROWS:
        return tuple("" for _ in hidden.T)
    if filled is None or not filled.any():
        return _remembered(_Tables(own, hidden, grids), tuple(names))
    found = [""] * hidden.shape[1]
    patterns, which = np.unique(filled, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        columns = np.flatnonzero(which.ravel() == number)
        if (~pattern).sum() < FEWEST_ROWS:
            continue
        tables = _Tables(own[~pattern], hidden[~pattern][:, columns], grids[columns])
        for column, words in zip(columns, _remembered(tables, tuple(names)), strict=True):
            found[column] = words
    return tuple(found)


class _Tables:
    """Own and hidden columns; alike if their bytes are, so that what was found once is not searched for again."""

    def __init__(self, *tables: FloatArray) -> None:
        digest = hashlib.sha256(str([table.shape for table in tables]).encode())
        for table in tables:
            digest.update(np.ascontiguousarray(table).data)
        self._tables: tuple[FloatArray, ...] = tables
        self._digest = digest.digest()

    def taken(self) -> tuple[FloatArray, ...]:
        """The tables, once: what remembers the answer need not keep them."""
        tables, self._tables = self._tables, ()
        return tables

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and other._digest == self._digest


@lru_cache(maxsize=256)
def _remembered(tables: _Tables, names: tuple[str, ...]) -> tuple[str, ...]:
    own, hidden, grids = tables.taken()
    found = [""] * hidden.shape[1]
    people = first_of_each(own, hidden)
    if people is not None:
        own, hidden = own[people], hidden[people]
        if len(own) < FEWEST_ROWS:
            return tuple(found)
    counts = [counted(column) for column in hidden.T]

    def left() -> IntArray:
        return np.array(
            [j for j, count in enumerate(counts) if not found[j] and orders(count) > -LIMIT], dtype=np.int64
        )

    for j, i in _copies(own, hidden, left(), counts):
        found[j] = f"a copy of '{names[i]}'"
    open_ = left()
    for at, part in linear_maps(own, hidden[:, open_], grids[open_]).items():
        rounded = ", rounded" if part.rounded else ""
        found[open_[at]] = f"a linear map of {_named(names, part.columns)}{rounded}"
    open_ = left()
    if not len(open_):
        return tuple(found)
    own_codes, codes = Coded.of(own), Coded.of(hidden[:, open_])
    for at, (kind, i) in single_codes(own_codes, codes, [counts[j] for j in open_], grids[open_]).items():
        found[open_[at]] = f"{kind} of '{names[i]}'"
    rest = np.array([at for at, j in enumerate(open_) if not found[j]], dtype=np.int64)
    for at, columns in joint_codes(own_codes, codes.only(rest)).items():
        found[open_[rest[at]]] = f"a code of {_named(names, columns)}"
    return tuple(found)


def _copies(own: FloatArray, hidden: FloatArray, among: IntArray, counts: list[IntArray]) -> Iterator[tuple[int, int]]:
    """Hidden columns with the cells of an own one, and the first that it is."""
    tries = np.log(own.shape[1] * hidden.shape[1])
    alike = np.argwhere(correlations(hidden[:, among], own) > 1 - 1e-4)
    for j, pairs in groupby(alike.tolist(), key=lambda pair: pair[0]):
        first = next((i for _, i in pairs if np.abs(own[:, i] - hidden[:, among[j]]).max() <= EXACT_CELL), None)
        if first is not None and tries - orders(counts[among[j]]) < LIMIT:
            yield int(among[j]), first


def _named(names: Sequence[str], columns: Sequence[int]) -> str:
    """One or two columns by name, more by number.

    >>> _named(("a", "b", "c"), (0, 2)), _named(("a", "b", "c"), (0, 1, 2))
    ("'a' and 'c'", '3 own columns')
    """
    if len(columns) > NAMED:
        return f"{len(columns)} own columns"
    return " and ".join(f"'{names[i]}'" for i in columns)
