"""Whole numbers behind real equations: the lattice point nearest to what is known of a row, for many rows at once.

Values on a grid are x = D k with k whole, and B k = a with B = A D holds up to a small error e. Among all k the one with
    |W (D k - m_i)|^2 + |(B k - a_i) / e|^2          least, W'W the inverse covariance around the expectation m_i,
is a closest vector: the vectors (W D_j, B_j / e) span one lattice for all rows. It is reduced once (LLL); then each row is
rounded plane by plane (Babai), all rows in one product per plane. Then the best of its
neighbours in the box is taken, until none is better. No truth is needed to know when k is the answer: a point as near as
that is rare by chance (the volume of the ball over that of the lattice), and its neighbours are less likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import flint

EMBEDDING_SCALE = 2.0**40  # embeddings are rounded to whole numbers at this scale before the reduction
ROUNDING_PASSES = 8  # of rounding: the first moves by more than doubles can hold, the last ones by nothing
NEIGHBOURS = 8  # neighbours of a point that are looked at, of all sums and differences of two basis vectors
MOVES = 20  # steps to a better neighbour at most
SHORT = 1.0  # a basis vector of fewer deviations and errors changes nothing that could be noticed
ERRORS_THAT_FIT = 10.0  # equations must be met within so many errors
ROWS_COMPARED_TOGETHER = 2048  # rows whose neighbours are compared at once


@dataclass(frozen=True)
class Lattice:
    """A reduced basis of all (W D k, B k / e)."""

    steps: IntArray  # the reduced basis in coordinates of k, one vector a row
    rotation: FloatArray  # orthonormal directions of the reduced basis, shortest first
    triangle: FloatArray  # its coordinates along them

    @classmethod
    def of(cls, scale: FloatArray, equations: FloatArray) -> Lattice:
        """The lattice of (scale k, equations k); `scale` is W D, `equations` is B / e."""

        embedding = np.vstack([scale, equations]).T
        rows = [[round(float(value) * EMBEDDING_SCALE) for value in row] for row in embedding]
        for j, row in enumerate(rows):  # what is too small to be seen must still be counted
            row[j] = row[j] or 1
        reduced, transform = flint.fmpz_mat(rows).lll(True)
        vectors = (
            np.array([[int(value) for value in row] for row in reduced.tolist()], dtype=np.float64) / EMBEDDING_SCALE
        )
        steps = np.array([[int(value) for value in row] for row in transform.tolist()], dtype=np.int64)
        rotation, triangle = np.linalg.qr(vectors.T)
        return cls(steps, rotation, triangle)

    def rounded(self, gap: FloatArray) -> IntArray:
        """The whole k whose image is near each row of `gap`, plane by plane from the farthest."""
        rest = gap @ self.rotation
        taken = np.zeros((len(gap), len(self.steps)))
        for i in range(len(self.steps) - 1, -1, -1):
            taken[:, i] = np.rint(rest[:, i] / self.triangle[i, i])
            rest -= taken[:, i : i + 1] * self.triangle[:, i]
        return np.rint(taken @ self.steps).astype(np.int64)

    @property
    def blind(self) -> int:
        """How many leading basis vectors are so short that nothing tells whether they were added."""
        short = np.flatnonzero(np.abs(np.diag(self.triangle)) < SHORT)
        return int(short[-1]) + 1 if len(short) else 0

    @property
    def untouched(self) -> NDArray[np.bool_]:
        """Coordinates of k that those vectors leave alone."""
        return np.asarray(~self.steps[: self.blind].any(axis=0))

    def neighbours(self) -> tuple[IntArray, FloatArray]:
        """Short vectors: the basis, its sums and its differences, with both signs; in coordinates of k and as images."""
        first, second = np.triu_indices(len(self.steps), 1)
        alone = np.eye(len(self.steps), dtype=np.int64)
        half = np.vstack([alone, alone[first] + alone[second], alone[first] - alone[second]])
        both = np.vstack([half, -half])
        return both @ self.steps, both @ (self.rotation @ self.triangle).T

    def chance(self, gap: FloatArray) -> FloatArray:
        """Expected number of points as near to a place anywhere as each row's gap is long, beyond the blind vectors."""
        left, lengths = len(self.steps) - self.blind, np.abs(np.diag(self.triangle))[self.blind :]
        radius = np.linalg.norm(gap @ self.rotation[:, self.blind :], axis=1)
        log = _log_ball(left) + left * np.log(np.maximum(radius, 1e-9)) - np.log(lengths).sum()
        return np.asarray(np.exp(np.minimum(log, 50.0)))


def _log_ball(size: int) -> float:
    """Logarithm of the volume of a ball of radius 1."""
    return float(0.5 * size * np.log(np.pi) - gammaln(0.5 * size + 1.0))


@dataclass(frozen=True)
class Decoded:
    """Values on the grid, each cell's odds to be another, and each row's chance to be found where no row is."""

    values: FloatArray
    odds: FloatArray  # infinite where the equations say nothing
    chance: FloatArray  # expected number of such finds where no row is; infinite for rows that do not fit


@dataclass(frozen=True)
class Problem:
    """Rows with matrix @ x = answers up to `error` for each equation, x on a grid in [0, 1], expected near `mean`."""

    matrix: FloatArray
    answers: FloatArray
    error: FloatArray
    steps: FloatArray
    mean: FloatArray
    inverse: FloatArray  # W: its square is the inverse covariance around the mean

    def gap(self, k: IntArray) -> FloatArray:
        """What is left of each row's target, in units of deviations and errors."""
        left = self.answers
        for part in _split(self.matrix * self.steps):  # the first products are exact: near the answer no digit is lost
            left = left - k @ part.T
        return np.hstack([(self.mean - k * self.steps) @ self.inverse.T, left / self.error])

    def inside(self, k: IntArray) -> NDArray[np.bool_]:
        values = k * self.steps
        return np.asarray(((values > -0.5 * self.steps) & (values < 1.0 + 0.5 * self.steps)).all(axis=-1))

    def solve(self) -> Decoded:
        """The likeliest point of every row, with its certificate."""
        lattice = Lattice.of(self.inverse * self.steps, self.matrix * self.steps / self.error[:, None])
        k = np.rint(self.mean / self.steps).astype(np.int64)
        for _ in range(ROUNDING_PASSES):
            move = lattice.rounded(self.gap(k))
            k = k + move
            if not move.any():
                break
        vectors, images = lattice.neighbours()
        gap, odds, near = self.gap(k), np.zeros(k.shape), np.zeros(2)
        for begin in range(0, len(k), ROWS_COMPARED_TOGETHER):
            rows = slice(begin, begin + ROWS_COMPARED_TOGETHER)
            k[rows], gap[rows], odds[rows] = self._descend(k[rows], gap[rows], vectors, images, near)
        fits = (np.abs(gap[:, len(self.steps) :]) < ERRORS_THAT_FIT).all(axis=1) & self.inside(k)
        chance = lattice.chance(gap) * (near[0] + 1.0) / (near[1] + 1.0)
        odds[:, ~lattice.untouched] = np.inf
        return Decoded(np.clip(k * self.steps, 0.0, 1.0), odds, np.where(fits, chance, np.inf))

    def _descend(
        self, k: IntArray, gap: FloatArray, vectors: IntArray, images: FloatArray, near: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """From neighbour to better neighbour; then, for each cell, the odds of all neighbours in which it differs.

        `near` counts the neighbours that were looked at: those in the box, and all.
        """
        lengths, todo = (images**2).sum(axis=1), np.arange(len(k))
        for _ in range(MOVES):
            best, costs = self._nearest(k[todo], gap[todo], vectors, images, lengths)
            first = np.argmin(costs, axis=1)
            lowest = np.take_along_axis(costs, first[:, None], axis=1)[:, 0]
            better = (lowest < -1e-9) | (~self.inside(k[todo]) & np.isfinite(lowest))
            if not better.any():
                break
            todo, taken = todo[better], best[better][np.arange(int(better.sum())), first[better]]
            k[todo] += vectors[taken]
            gap[todo] -= images[taken]
        best, costs = self._nearest(k, gap, vectors, images, lengths)
        near += np.isfinite(costs).sum(), costs.size
        odds = np.exp(np.clip(-0.5 * costs, -700.0, 50.0))
        return k, gap, np.einsum("nb,nbj->nj", odds, vectors[best] != 0)

    def _nearest(
        self, k: IntArray, gap: FloatArray, vectors: IntArray, images: FloatArray, lengths: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """The nearest neighbours of every point, and how much they cost more than it; infinite outside of the box."""
        costs = lengths - 2.0 * gap @ images.T
        best = np.argpartition(costs, min(NEIGHBOURS, len(vectors) - 1), axis=1)[:, :NEIGHBOURS]
        allowed = self.inside(k[:, None] + vectors[best])
        return best, np.where(allowed, np.take_along_axis(costs, best, axis=1), np.inf)


def _split(matrix: FloatArray, bits: int = 22) -> list[FloatArray]:
    """The matrix as a sum of parts of few digits each: products with whole numbers of up to 24 bits are then exact.

    Columns without a grid have larger ones; their last digits are as good as those of any product.
    """
    parts, unit = [], 2.0 ** (np.ceil(np.log2(np.abs(matrix).max(initial=1e-300))) - bits)
    for _ in range(2):
        part = np.rint(matrix / unit) * unit
        parts.append(part)
        matrix, unit = matrix - part, unit * 2.0**-bits
    return [*parts, matrix]
