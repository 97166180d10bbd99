"""Rows that their own equations leave open, from the gradients that the coordinator opened: X' D = G over ever other rows.

With batches drawn anew, D (models x rows of the round) stands on other rows in every round, so the unknowns of G are all rows
together, column by column. Rows that are solved are taken off; of each open row its own equations leave some cells free:
    X_i = a_i + N_i c_i modulo the prime,      sum over open i of D_i (a_i + N_i c_i) = G - sum over solved i of D_i X_i
which is linear in all c together: models x columns equations a round. With recurring batches it adds nothing, as D then is T X
plus what is known, and takes no more directions than the model has columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.sums._product_equations import OpenedRound, ProductEquations
from plumbob.lazy_imports import flint
from plumbob.protocols.shared.taylor_regression import BigIntegers

MOST_FREE_CELLS = 2_000  # of all open rows: the elimination takes their cube


@dataclass(frozen=True)
class _OpenRow:
    """X_i modulo the prime: `start` plus the free cells times `directions` (free cells x columns)."""

    start: list[int]
    directions: list[list[int]]
    first: int  # place of its first free cell among those of all open rows

    @property
    def free(self) -> int:
        return len(self.directions)


def completed(
    rounds: list[OpenedRound],
    every: list[ProductEquations],
    found: BigIntegers,
    certain: NDArray[np.bool_],
    prime: int,
) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """All rows (times 2^f), and which are certain, given those that are so already. Cells lie in 0 .. 2^f."""
    rows = _open_rows(every, certain, prime)
    free = sum(row.free for row in rows.values())
    if not rows or free > MOST_FREE_CELLS or any(one.gradient is None for one in rounds):
        return found, certain
    cells = _solved(_system(rounds, rows, free, found, prime), free, prime)
    largest = 1 << every[0].rule.fraction_bits
    found, certain = found.copy(), certain.copy()
    for i, row in rows.items():
        told = [cells[row.first + k] for k in range(row.free)]
        mine = [cell for cell in told if cell is not None]
        if len(mine) < len(told):
            continue
        values = [
            (start + sum(c * n[j] for c, n in zip(mine, row.directions, strict=True))) % prime
            for j, start in enumerate(row.start)
        ]
        if max(values) <= largest:  # a wrong one would pass with the chance 2^f / prime, cell by cell
            found[i], certain[i] = values, True
    return found, certain


def _open_rows(every: list[ProductEquations], certain: NDArray[np.bool_], prime: int) -> dict[int, _OpenRow]:
    rows: dict[int, _OpenRow] = {}
    place = 0
    for equations in every:
        left, right = equations.stacked()
        for k, i in enumerate(equations.rows.tolist()):
            if not certain[i]:
                rows[i] = _reduced(left, right[:, k], prime, place)
                place += rows[i].free
    return rows


def _reduced(left: BigIntegers, right: BigIntegers, prime: int, place: int) -> _OpenRow:
    """What one row's own equations say of it."""
    count, columns = left.shape
    start, pivots, table = [0] * columns, list[int](), list[list[int]]()
    if count:
        joint = [[int(v) % prime for v in (*row, z)] for row, z in zip(left, right, strict=True)]
        reduced, rank = flint.nmod_mat(joint, prime).rref()
        table = [[int(v) for v in row] for row in reduced.tolist()[:rank]]
        pivots = [next(j for j, v in enumerate(row) if v) for row in table]
    for pivot, row in zip(pivots, table, strict=True):
        start[pivot] = row[columns]
    directions = []
    for free in (j for j in range(columns) if j not in pivots):
        one = [int(j == free) for j in range(columns)]
        for pivot, row in zip(pivots, table, strict=True):
            one[pivot] = -row[free] % prime
        directions.append(one)
    return _OpenRow(start, directions, place)


def _system(
    rounds: list[OpenedRound], rows: dict[int, _OpenRow], free: int, found: BigIntegers, prime: int
) -> list[list[int]]:
    """The gradients as equations of the free cells, right sides last: those with the fewest open rows first."""
    inside = [(one, [k for k, i in enumerate(one.rows.tolist()) if i in rows]) for one in rounds]
    made: list[list[int]] = []
    for one, places in sorted((pair for pair in inside if pair[1]), key=lambda pair: len(pair[1])):
        made += _of_round(one, places, rows, free, found, prime)
    return made


def _of_round(
    one: OpenedRound, places: list[int], rows: dict[int, _OpenRow], free: int, found: BigIntegers, prime: int
) -> list[list[int]]:
    assert one.gradient is not None
    solved = np.setdiff1d(np.arange(len(one.rows)), places)
    rest = one.gradient - one.residual[:, solved] @ found[one.rows[solved]]
    made = []
    for model, slopes in enumerate(one.residual):
        for column in range(rest.shape[1]):
            line, right = [0] * (free + 1), int(rest[model, column])
            for k in places:
                row, slope = rows[int(one.rows[k])], int(slopes[k])
                right -= slope * row.start[column]
                for c, direction in enumerate(row.directions):
                    line[row.first + c] = slope * direction[column] % prime
            line[free] = right % prime
            made.append(line)
    return made


def _solved(system: list[list[int]], free: int, prime: int) -> list[int | None]:
    """The free cells that have one value only."""
    cells: list[int | None] = [None] * free
    if not system:
        return cells
    reduced, rank = flint.nmod_mat(system, prime).rref()
    for row in reduced.tolist()[:rank]:
        taken = np.flatnonzero([int(v) != 0 for v in row[:free]])
        if len(taken) == 1:
            cells[int(taken[0])] = int(row[free])
    return cells
