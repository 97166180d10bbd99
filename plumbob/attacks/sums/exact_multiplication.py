"""Exact multiplication (ours): the integers in the ciphertexts, solved exactly, however badly conditioned.

The residuals are whole numbers and the weights T are known to the last bit, so T X' = Z holds exactly, and X is a matrix of
whole numbers from 0 to 2^f. Three ways, the first that applies, for every batch:
    rank d    X' = T^-1 Z modulo one prime above 2^f: entries smaller than the prime are the entries themselves
    grid      fewer equations, all columns on a grid: the nearest lattice point (`lattice_points.py`), kept where it meets all
              equations to the last bit of X
    box       fewer equations: solutions differ by whole vectors of T's kernel; if its reduced basis has only vectors that
              leave the box, there is one solution in it, and rounding plane by plane finds it (about d / 2 equations)
What doubles see as a direction without weight, because training moved there by less than 2^-53 of the rest, is here a
direction like any other: weights are rounded in every round, and the last bits of T point everywhere.

Where batches are drawn anew, a batch is a single row, and the gradients of all rounds are solved for the rows that are left
(`_gradient_equations.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.lattice_points import Problem
from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.sums._gradient_equations import completed
from plumbob.attacks.sums._product_equations import (
    OPENED,
    Analysis,
    DeterminedBatch,
    ProductEquations,
    opened_rounds,
    read,
    recurring,
)
from plumbob.attacks.sums.reverse_multiplication import bounds
from plumbob.attacks.sums.reverse_multiplication import solved as in_doubles
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import flint
from plumbob.protocols.shared.taylor_regression import BigIntegers
from plumbob.threats import Schema, View

GRID_PRIME = 2**63 - 25  # far above twice 2^f
PLANE_PASSES = 60  # of rounding plane by plane; each takes off some 50 bits
# Bits by which the equations must outnumber what is open before a point on the grid is believed
SURPLUS_BITS_TO_BELIEVE = 30
DOUBLES = 46  # bits that sums of products in double precision are good for
SPREAD = 12**-0.5  # deviation of a value that may be anywhere in 0..1

VALUES_OF_EQUAL_WEIGHTS = 3


class ExactMultiplication(Attack):
    """Integer linear algebra where reverse multiplication uses doubles; the latter's answer for what stays undetermined."""

    name = "exact_multiplication"
    identity = "ExactMultiplication()"
    summary = "ours: solves the integers in the training ciphertexts exactly, with fewer epochs and any conditioning"
    paper = "plumbob"
    protocols = ("encrypted_logistic_regression",)
    requires = (Schema,)
    corrupted = True

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        guess = np.empty((len(view.own), len(view.unknown)))
        low, high = bounds(view)
        every = read(view)
        whole, certain = solved_rows(view, every)
        for equations in every:
            found, sure = whole[equations.rows], certain[equations.rows]
            values = np.clip(equations.rule.decode(found), low, high)
            values = _at_grid(values, view.steps, equations.rule.fraction_bits)
            open_ones = np.zeros_like(values) if sure.all() else in_doubles(view, equations)
            guess[equations.rows] = np.where(sure[:, None], values, open_ones)
        return Guess(view.unknown_names, guess)

    def analyse(self, view: View) -> Analysis:
        """The exact rank of every batch, and the rows that were solved."""
        every = read(view)
        return self._analysed(every, solved_rows(view, every)[1])

    def analyse_equations(self, every: list[ProductEquations], steps: FloatArray | None) -> Analysis:
        """The same, of equations that were read before, without the gradients."""
        return self._analysed(every, _each_row(every, steps)[1])

    def _analysed(self, every: list[ProductEquations], certain: NDArray[np.bool_]) -> Analysis:
        batches = []
        for equations in every:
            left, _ = equations.stacked()
            determined = np.repeat(certain[equations.rows][:, None], left.shape[1], axis=1)
            batches.append(DeterminedBatch(equations.rows, len(left), len(independent(left)), float("nan"), determined))
        return Analysis(tuple(batches), every[0].coefficients.shape[2])


def solved_rows(view: View, every: list[ProductEquations]) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """X of all rows (rows x columns, times 2^f), and which rows are certain."""
    found, certain = _each_row(every, view.steps)
    if certain.all() or OPENED not in view.notes or recurring(view):
        return found, certain
    return completed(opened_rounds(view), every, found, certain, GRID_PRIME)


def _each_row(every: list[ProductEquations], steps: FloatArray | None) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """By the rows' own equations."""
    rows = sum(len(equations.rows) for equations in every)
    found = np.zeros((rows, every[0].coefficients.shape[2]), dtype=object)
    certain = np.zeros(rows, dtype=np.bool_)
    for equations in every:
        found[equations.rows], certain[equations.rows] = solve(equations, steps)
    return found, certain


def solve(equations: ProductEquations, steps: FloatArray | None) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """X (rows x columns, times 2^f), and which rows are certain.

    Columns that hold the same numbers get the same weights, bit for bit, and stand in all equations as their sum; a column
    of zeros never gets a weight. Other columns may share a weight by accident, though hardly time and again: where equal
    weights took fewer than `VALUES_OF_EQUAL_WEIGHTS` values, a sum is only certain if there is one way to make it up,
    nothing or all.
    """
    left, right = equations.stacked()
    columns, group = _distinct(left)
    sizes = np.bincount(group[group >= 0], minlength=columns.shape[1])
    single = steps[group.argsort()] if steps is not None and (sizes == 1).all() and (group >= 0).all() else None
    sums, certain = _solve_distinct(equations, columns, right, single, int(sizes.max(initial=1)))
    found = np.zeros((len(sums), len(group)), dtype=object)
    for place, one in enumerate(group.tolist()):
        if one >= 0:
            found[:, place] = sums[:, one] // int(sizes[one])
    whole = sums % sizes.astype(object) == 0
    for one in np.flatnonzero(sizes > 1):
        if len(set(columns[:, one])) < VALUES_OF_EQUAL_WEIGHTS:
            whole[:, one] &= (sums[:, one] == 0) | (sums[:, one] == int(sizes[one]) << equations.rule.fraction_bits)
    return found, certain & whole.all(axis=1).astype(np.bool_)


def _distinct(left: BigIntegers) -> tuple[BigIntegers, IntArray]:
    """The different columns of T that are not zero, and the place of each column among them (-1: zero)."""
    seen: dict[tuple[int, ...], int] = {}
    places = [seen.setdefault(tuple(column), len(seen)) if column.any() else -1 for column in left.T]
    first = [places.index(one) for one in range(len(seen))]
    return left[:, first], np.array(places, dtype=np.int64)


def _solve_distinct(
    equations: ProductEquations, left: BigIntegers, right: BigIntegers, steps: FloatArray | None, most: int
) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """The same for columns that differ; a sum of up to `most` columns lies in 0 .. most 2^f."""
    chosen, bits = independent(left), equations.rule.fraction_bits
    nothing = np.zeros((len(equations.rows), left.shape[1]), dtype=object)
    unsolved = nothing, np.zeros(len(nothing), dtype=np.bool_)
    if not len(chosen):
        return unsolved
    if len(chosen) == left.shape[1]:
        return _checked(left, right, modular(left[chosen], right[chosen]), most << bits)
    left, right = left[chosen], right[chosen]
    found, certain = unsolved
    if steps is not None and (steps > 0.0).all():
        found = on_grid(equations, left, right, steps)
        certain = _told_apart(left, right, found, steps, bits)
    if most == 1 and not certain.all():
        others, only = in_box(left, right, bits)
        inside = only & ~certain & _checked(left, right, others, 1 << bits)[1]
        found, certain = np.where(inside[:, None], others, found), certain | inside
    return found, certain


def independent(left: BigIntegers) -> IntArray:
    """Equations that span all of them: the pivots modulo the prime. Modulo a prime a rank can only be too low, and is so
    about once in 2^63 times."""

    if not left.size:
        return np.zeros(0, dtype=np.int64)
    reduced, rank = flint.nmod_mat(_residues(left.T), GRID_PRIME).rref()
    table = np.array([[int(value) for value in row] for row in reduced.tolist()[:rank]], dtype=object)
    return np.array([int(np.flatnonzero(row)[0]) for row in table], dtype=np.int64)


def modular(left: BigIntegers, right: BigIntegers) -> BigIntegers:
    """T^-1 Z modulo the prime, as signed integers, one row of X a row."""

    solved = flint.nmod_mat(_residues(left), GRID_PRIME).solve(flint.nmod_mat(_residues(right), GRID_PRIME))
    values = np.array([[int(value) for value in row] for row in solved.tolist()], dtype=object).T
    return np.where(values > GRID_PRIME // 2, values - GRID_PRIME, values)


def on_grid(equations: ProductEquations, left: BigIntegers, right: BigIntegers, steps: FloatArray) -> BigIntegers:
    """The likeliest grid point of each row: X = round(2^f k step) makes up to sum |T| / 2 of error in each equation."""
    rule = equations.rule
    matrix, answers = rule.decode(left), rule.decode(right, 2).T
    size = np.sqrt((matrix**2).sum(axis=1))
    error = np.maximum(0.3 * size * 2.0 ** -min(rule.fraction_bits, DOUBLES), 1e-300)
    mean = np.full((answers.shape[0], len(steps)), 0.5)
    decoded = Problem(matrix, answers, error, steps, mean, np.eye(len(steps)) / SPREAD).solve()
    return rule.encode(decoded.values)


def in_box(left: BigIntegers, right: BigIntegers, bits: int) -> tuple[BigIntegers, bool]:
    """The solution nearest to the middle of the box, and whether no other can lie in the box.

    Rows of [N T | 1], N large, reduced: first the kernel with zeros before it, then U with U T' = H of full rank.
    """

    count, columns = left.shape
    large = 1 << (count * int(np.abs(left).max()).bit_length() + columns + 16)  # above any vector of a reduced kernel
    rows = [
        [int(value) * large for value in left[:, j]] + [int(i == j) for i in range(columns)] for j in range(columns)
    ]
    reduced = np.array([[int(value) for value in row] for row in flint.fmpz_mat(rows).lll().tolist()], dtype=object)
    kernel, rest = reduced[: columns - count], reduced[columns - count :]
    if reduced[: columns - count, :count].any():
        return np.zeros((right.shape[1], columns), dtype=object), False
    heads = _whole_solution(rest[:, :count] // large, right)
    start = heads @ rest[:, count:]  # one solution of each row, far outside of the box
    basis = kernel[:, count:]
    rotation, triangle = np.linalg.qr(basis.astype(np.float64).T)
    lengths = np.abs(np.diag(triangle))
    certain = bool(lengths.min() > np.sqrt(columns) * 2.0**bits)
    middle = 1 << (bits - 1)
    for _ in range(PLANE_PASSES):
        gap = (start - middle).astype(np.float64) @ rotation
        taken = np.zeros((len(start), len(basis)))
        for i in range(len(basis) - 1, -1, -1):
            taken[:, i] = np.rint(gap[:, i] / triangle[i, i])
            gap -= taken[:, i : i + 1] * triangle[:, i]
        if not taken.any():
            break
        moves = np.array([[int(value) for value in row] for row in taken], dtype=object)
        start = start - moves @ basis
    return start, certain


def _whole_solution(square: BigIntegers, right: BigIntegers) -> BigIntegers:
    """y with y H = Z' in whole numbers, for every row of Z'."""

    rows = [[int(value) for value in row] for row in square.T]
    answers = [[int(value) for value in row] for row in right]
    solved = flint.fmpz_mat(rows).solve(flint.fmpz_mat(answers)).tolist()
    return np.array([[int(value.p) // int(value.q) for value in row] for row in solved], dtype=object).T


def _checked(
    left: BigIntegers, right: BigIntegers, found: BigIntegers, largest: int
) -> tuple[BigIntegers, NDArray[np.bool_]]:
    """The rows that lie in the box and meet all equations exactly."""
    inside = ((found >= 0) & (found <= largest)).all(axis=1)
    return found, np.asarray(inside & (left @ found.T == right).all(axis=0), dtype=np.bool_)


def _told_apart(
    left: BigIntegers, right: BigIntegers, found: BigIntegers, steps: FloatArray, bits: int
) -> NDArray[np.bool_]:
    """The rows whose grid point meets all equations, where by chance none of all grid points would.

    Over the box T X takes about prod(singular values of T) 2^(f r) values. A point may meet them exactly, or be off by the
    last bit of each number: x was not computed as a whole number times the step.
    """
    sizes = np.abs(left).sum(axis=1)
    values = float(np.log2(np.linalg.svd(left.astype(np.float64), compute_uv=False)).sum()) + bits * len(left)
    points = float(-np.log2(steps).sum()) + SURPLUS_BITS_TO_BELIEVE
    off = np.abs(left @ found.T - right).T
    told = np.zeros(len(found), dtype=np.bool_)
    for slack, worth in ((0 * sizes, values), (sizes, values - float(np.log2(2.0 * sizes.astype(np.float64)).sum()))):
        if points < worth:
            told |= (off <= slack).all(axis=1).astype(np.bool_)
    return told


def _at_grid(values: FloatArray, steps: FloatArray | None, bits: int) -> FloatArray:
    """Values of columns with a grid at their exact place, where fixed point tells which one it is."""
    if steps is None:
        return values
    fine = steps > 2.0 ** (1 - bits)
    safe = np.where(fine, steps, 1.0)
    return np.where(fine, np.minimum(np.rint(values / safe) * safe, 1.0), values)


def _residues(matrix: BigIntegers) -> list[list[int]]:
    return [[int(value) % GRID_PRIME for value in row] for row in matrix]
