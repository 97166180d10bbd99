"""Relaxed Chebyshev centre of {x in [0, 1]^d : A x = b}, for many rows at once with one shared A of orthonormal rows.

The centre is the point with the least largest distance to the others. With x_i^2 <= x_i for the box, W an orthonormal basis
of what A leaves open, and x x' relaxed to any D >= x x', with D - x x' = W S W' the largest distance from the best point is
    max tr S   over A x = b, S >= 0, (W S W')_ii <= x_i (1 - x_i):      the most variance that a row can have round its mean x.
Its dual has one multiplier per column, and the centre is a weighted projection of 1/2:
    min over a >= 0, W'diag(a)W >= I   of   sum a_i / 4 - min over A x = b of sum a_i (x_i - 1/2)^2
a = 1 is allowed. It is best, and the centre is the projection of 1/2, where S with the diagonal x_i (1 - x_i) exists:
with P what diag(x (1 - x))^1/2 leaves open, (P o P) y = 1 has a solution y >= 0. Other rows are solved by Newton steps on
    t * dual - log det(W'diag(a)W - I) - sum log a_i,    t growing until the gap (2 d - rank A) / t is below 1e-8.
A step costs d^3, so beyond 100 columns such rows keep a = 1: their answer is the point of the set nearest to 1/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.scores._box_equations import nearest_in_box
from plumbob.federation import FloatArray

FIRST_WEIGHT, GROWTH, GAP = 10.0, 20.0, 1e-8
NEWTON_STEPS = 60  # at most, for one t
ROOM = 1e-7  # by which x_i^2 may exceed x_i, so that cells which the equations fix at a border bound their multipliers
NEAR = 0.3  # Newton decrement below which t grows
MOST_COLUMNS = 100  # for which the multipliers are solved for
CELLS_TOGETHER = 2_000_000  # rows times columns squared: few enough to stay in memory


def relaxed_centre(matrix: FloatArray, targets: FloatArray) -> FloatArray:
    """The relaxed centre of every row's points; of points nearest to fitting, where none fits."""
    columns = matrix.shape[1]
    half = np.full((len(targets), columns), 0.5)
    inside = np.empty_like(half)
    together = max(1, CELLS_TOGETHER // max(columns, 1) ** 2)
    for begin in range(0, len(half), together):
        rows = slice(begin, begin + together)
        inside[rows] = _centres(matrix, nearest_in_box(matrix, targets[rows], half[rows]))
    return inside


def _centres(matrix: FloatArray, inside: FloatArray) -> FloatArray:
    """Centres of the sets to which these points belong."""
    basis = np.linalg.svd(matrix, full_matrices=True)[2][len(matrix) :].T
    if not basis.shape[1]:
        return inside
    if basis.shape[1] == 1:
        return _middles(basis[:, 0], inside)
    centres = inside + (0.5 - inside) @ basis @ basis.T
    hard = ~_projection_is_best(matrix, centres)
    if matrix.shape[1] > MOST_COLUMNS:
        centres[hard] = inside[hard]
    elif hard.any():
        centres[hard] = _by_barrier(basis, inside[hard])
        centres[hard] = nearest_in_box(matrix, inside[hard] @ matrix.T, centres[hard])
    return np.asarray(np.clip(centres, 0.0, 1.0))


def _middles(line: FloatArray, inside: FloatArray) -> FloatArray:
    """Where one direction is left, the points are a segment, and no relaxation is needed: its middle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([-inside / line, (1.0 - inside) / line])
    ends = np.where(np.abs(line) > 1e-12, ends, np.array([-np.inf, np.inf])[:, None, None])
    shortest, longest = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
    return np.asarray(np.clip(inside + 0.5 * (shortest + longest)[:, None] * line, 0.0, 1.0))


def _projection_is_best(matrix: FloatArray, centres: FloatArray) -> NDArray[np.bool_]:
    """Whether some covariance has the variances x (1 - x) and none along the equations: the certificate above."""
    variance = centres * (1.0 - centres)
    within = np.asarray(variance.min(axis=1) > 1e-9)
    root = np.sqrt(np.where(within[:, None], variance, 0.25))
    scaled = matrix * root[:, None, :]
    tied = scaled.transpose(0, 2, 1) @ np.linalg.solve(scaled @ scaled.transpose(0, 2, 1), scaled)
    squares = (np.eye(matrix.shape[1]) - tied) ** 2
    squares += 1e-12 * np.eye(matrix.shape[1])
    ones = np.ones((*root.shape, 1))
    weights = np.linalg.solve(squares, ones)
    met = np.abs(squares @ weights - ones).max(axis=(1, 2)) < 1e-8
    return np.asarray(within & met & (weights >= 0.0).all(axis=(1, 2)), dtype=np.bool_)


def _by_barrier(basis: FloatArray, inside: FloatArray) -> FloatArray:
    columns, free = basis.shape
    weights = np.full_like(inside, 2.0)
    gap, weight = (columns + free), FIRST_WEIGHT
    while True:
        todo = np.arange(len(inside))
        for _ in range(NEWTON_STEPS):
            move, decrement = _newton(basis, inside[todo], weights[todo], weight)
            weights[todo] *= 1.0 + move / np.where(decrement > NEAR, 1.0 + decrement, 1.0)[:, None]
            todo = todo[decrement > NEAR]
            if not len(todo):
                break
        if gap / weight <= GAP:
            return _weighted_projection(basis, inside, weights)[0]
        weight *= GROWTH


def _weighted_projection(
    basis: FloatArray, inside: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """x with the least sum of a (x - 1/2)^2, then W'diag(a)W and its inverse between W and W'."""
    stretched = basis.T @ (weights[:, :, None] * basis)
    between = basis @ np.linalg.solve(stretched, np.broadcast_to(basis.T, (len(weights), *basis.T.shape)))
    pull = (weights * (0.5 - inside))[:, :, None]
    return inside + (between @ pull)[:, :, 0], stretched, between


def _newton(basis: FloatArray, inside: FloatArray, weights: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
    """The Newton step of the multipliers, relative to each, and its decrement."""
    point, stretched, between = _weighted_projection(basis, inside, weights)
    off = point - 0.5
    slack = stretched - np.eye(basis.shape[1])
    spread = basis @ np.linalg.solve(slack, np.broadcast_to(basis.T, (len(weights), *basis.T.shape)))
    slope = weights * (weight * (0.25 + ROOM - off**2) - np.einsum("nii->ni", spread)) - 1.0
    bend = 2.0 * weight * off[:, :, None] * off[:, None, :] * between + spread**2
    bend = bend * weights[:, :, None] * weights[:, None, :] + np.eye(len(basis))
    move = -np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
    return move, np.sqrt(np.maximum(-(move * slope).sum(axis=1), 0.0))
