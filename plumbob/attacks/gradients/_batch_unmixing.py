"""One batch's rows from one gradient (ours): what a layer was given, row by row, with no other round to compare with.

A fully connected layer's weight gradient is G = sum of v_n h_n' over the batch, so its row space is spanned by the rows' inputs
h_n, as far as their v_n are independent. Behind a ReLU every h_n is nonnegative and zero at many cells. So
    cone      {a : W a >= 0}, W a basis of the row space, has the h_n among its extreme rays, and linear programmes find rays;
    zeros     a ray is zero at rank - 1 cells at least, a row's own one at hundreds. Each of those may be left out and the others
              still determine it: that is the evidence. Cells without which they do not are the programme's own doing;
    faces     where the others leave m directions open, the ray lies among m rows: the same is done in that small space.
The bias's gradient is the sum of the v_n, which gives the lengths once all rows are found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.federation import BoolArray, FloatArray
from plumbob.lazy_imports import optimize

UNMIXING_RANK_SHARE = 1e-6  # singular values below this share of the largest are rounding
UNMIXING_ROUNDING = 1e-12  # rounding of the arithmetic here
USED = 1e-4  # cells that no row of a batch fills are below this share of the longest
ZERO_ROUNDING_TIMES = 16.0  # times its rounding that a zero may be off
SOLE = 0.02  # how near 1 the leverage of a cell comes that alone determines a direction
FLAT = 1e-4  # singular values of a ray's zeros below this share of the largest leave a direction open
SPARE_CELLS = 4  # cells more than are needed
FRUITLESS_PROGRAMMES = 30  # linear programmes in a row that may find nothing new
BUDGET = 10  # linear programmes for each direction of the row space
DEPTH = 6  # faces of faces
SAME_DIRECTION_GAP = 1e-9  # 1 - cosine of directions that are the same
INSIDE = 1e-3  # share of a direction that may lie outside a row space which holds it


@dataclass(frozen=True)
class Unmixed:
    """Rows of a batch in no order: `directions` are their inputs as unit vectors, `lengths` how long these are, NaN if open;
    `errors` how far rounding takes a direction from the true one.
    """

    directions: FloatArray
    lengths: FloatArray
    errors: FloatArray


def within(gradient: FloatArray, directions: FloatArray) -> tuple[BoolArray, int]:
    """Which unit vectors lie in a gradient's row space, and how many dimensions that has."""
    space = _Space.of(gradient)
    if space is None:
        return np.zeros(len(directions), dtype=bool), 0
    outside = np.linalg.norm(directions - (directions @ space.whole) @ space.whole.T, axis=1)
    return outside < INSIDE, space.rank


def unmixed(
    gradient: FloatArray, bias: FloatArray | None, rng: np.random.Generator, known: FloatArray | None = None
) -> Unmixed:
    """The nonnegative inputs behind a gradient (units x cells), as far as zeros show them, and their lengths if all are there.

    Rows whose v_n depend on one another are in it as sums only, and one that is claimed may be such a sum. Directions that are
    `known` to be in it come first.
    """
    size = float(np.abs(gradient).max(initial=0.0)) or 1.0
    gradient, bias = gradient / gradient.dtype.type(size), None if bias is None else bias / bias.dtype.type(size)
    space = _Space.of(gradient)
    if space is None:
        return Unmixed(np.zeros((0, gradient.shape[1])), np.zeros(0), np.zeros(0))
    found = space.rows(rng, known)
    directions = np.clip(found @ space.whole.T, 0.0, None)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.full(len(found), np.nan)
    if bias is not None and len(found) == space.rank:
        # The v_n times their lengths, then one over the lengths.
        above = np.linalg.lstsq(directions.T, gradient.T.astype(np.float64), rcond=None)[0]
        shares = np.linalg.lstsq(above.T, bias.astype(np.float64), rcond=None)[0]
        lengths = np.where(shares > 0, 1 / np.where(shares > 0, shares, 1.0), np.nan)
    errors = np.linalg.norm(space.noise) * np.linalg.norm(found / space.sizes, axis=1)
    return Unmixed(directions, lengths, errors)


@dataclass(frozen=True)
class _Space:
    """A gradient's row space: an orthonormal basis (cells x rank), the part of it at cells in use, and how far rounding reaches
    there.
    """

    whole: FloatArray
    basis: FloatArray
    noise: FloatArray  # of a cell, for a direction in which the gradient has length 1
    sizes: FloatArray  # singular values
    left: list[int]  # one number: linear programmes that may still be solved

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, gradient: FloatArray) -> _Space | None:
        rounding = max(float(np.finfo(gradient.dtype).eps) / 2, UNMIXING_ROUNDING)
        whole = gradient.astype(np.float64)
        length = np.linalg.norm(whole, axis=0)
        if not length.max(initial=0.0) > 0:
            return None
        _, sizes, right = np.linalg.svd(whole, full_matrices=False)
        rank = int((sizes > UNMIXING_RANK_SHARE * sizes[0]).sum())
        used = np.flatnonzero(length > USED * length.max())
        return cls(right[:rank].T, right[:rank].T[used], rounding * length[used], sizes[:rank], [BUDGET * rank])

    def rows(self, rng: np.random.Generator, known: FloatArray | None = None) -> FloatArray:
        """Directions of rows, as combinations of the basis. One direction alone needs no evidence."""
        found = [] if known is None else [row / np.linalg.norm(row) for row in known @ self.whole]
        if self.rank == 1 and not found:
            ray = np.sign(self.basis.sum(axis=0))
            loud = ZERO_ROUNDING_TIMES * self.noise / self.sizes[0]
            return ray[None] if (self.basis @ ray >= -loud).all() else np.zeros((0, 1))
        self._search(np.eye(self.rank), found, rng, 0)
        return np.array(found).reshape(len(found), self.rank)

    def _search(self, inside: FloatArray, found: list[FloatArray], rng: np.random.Generator, depth: int) -> None:
        """Add the rows that lie in the span of `inside` (rank x m, orthonormal)."""
        cells = self.basis @ inside
        sizes = np.linalg.norm(cells, axis=1)
        cells = cells[sizes > ZERO_ROUNDING_TIMES * self.noise / self.sizes[-1]]
        if len(cells) < cells.shape[1]:
            return
        scaled = cells / np.linalg.norm(cells, axis=1, keepdims=True)
        missed = 0
        while missed < FRUITLESS_PROGRAMMES and self.left[0] > 0 and self._open(inside, found) > 0:
            self.left[0] -= 1
            before = len(found)
            ray = _ray(scaled, cells.sum(axis=0), self._aim(inside, found, rng, missed))
            if ray is not None:
                self._judge(inside @ ray, inside.shape[1], found, rng, depth)
            missed = 0 if len(found) > before else missed + 1

    def _open(self, inside: FloatArray, found: list[FloatArray]) -> int:
        """Dimensions of a span that the rows found in it leave."""
        held = [a for a in found if np.linalg.norm(inside @ (inside.T @ a)) > 1 - 1e-6]
        return int(inside.shape[1]) - len(held)

    def _aim(self, inside: FloatArray, found: list[FloatArray], rng: np.random.Generator, missed: int) -> FloatArray:
        """A direction to go in: away from what is found, less so with every miss."""
        aim = np.asarray(rng.standard_normal(inside.shape[1]))
        held = np.linalg.qr((np.array(found).reshape(-1, self.rank) @ inside).T)[0]
        return np.asarray(aim - (1 - missed / FRUITLESS_PROGRAMMES) * (held @ (held.T @ aim)))

    def _judge(
        self, ray: FloatArray, among: int, found: list[FloatArray], rng: np.random.Generator, depth: int
    ) -> None:
        """A ray that its zeros determine is a row; one that they determine up to m directions leads to a face."""
        zero = self._zeros(ray, 10 * ZERO_ROUNDING_TIMES)
        face = self._left_open(zero)
        if face.shape[1] > 1:
            if face.shape[1] < among and depth < DEPTH:
                self._search(face, found, rng, depth + 1)
            return
        for _ in range(2):  # the direction that all its zeros agree on, rounding weighed
            weighed = self.basis[zero] * (self.sizes / self.noise[zero][:, None])
            ray = np.linalg.svd(weighed, full_matrices=len(weighed) < self.rank)[2][-1] * self.sizes
            ray *= np.sign(ray @ self.basis.sum(axis=0)) / np.linalg.norm(ray)
            zero = self._zeros(ray, ZERO_ROUNDING_TIMES)
            if zero.sum() < self.rank - 1 + SPARE_CELLS or self._left_open(zero).shape[1] != 1:
                return
        negative = self.basis @ ray < -ZERO_ROUNDING_TIMES * self.noise * np.linalg.norm(ray / self.sizes)
        if not negative.any() and all(abs(ray @ other) < 1 - SAME_DIRECTION_GAP for other in found):
            found.append(ray)

    def _zeros(self, ray: FloatArray, loud: float) -> BoolArray:
        zero: BoolArray = np.abs(self.basis @ ray) < loud * self.noise * np.linalg.norm(ray / self.sizes)
        return zero

    def _left_open(self, zero: BoolArray) -> FloatArray:
        """The directions that zeros leave open, without those that stand alone for theirs (rank x m, orthonormal)."""
        scaled = self.basis[zero]
        scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        while len(scaled):
            left, sizes, right = np.linalg.svd(scaled, full_matrices=len(scaled) < self.rank)
            rank = int((sizes > FLAT * sizes[0]).sum())
            alone = (left[:, :rank] ** 2).sum(axis=1) > 1 - SOLE
            if not alone.any():
                return np.asarray(right[rank:].T)
            scaled = scaled[~alone]
        return np.eye(self.rank)


def _ray(scaled: FloatArray, total: FloatArray, aim: FloatArray) -> FloatArray | None:
    """The extreme ray of {a : W a >= 0} that goes farthest in a direction, for a sum of 1 over all cells."""
    solved = optimize.linprog(
        -aim,
        A_ub=-scaled,
        b_ub=np.zeros(len(scaled)),
        A_eq=total[None],
        b_eq=[1.0],
        bounds=(None, None),
        method="highs",
    )
    if solved.status != 0:
        return None
    return np.asarray(solved.x / np.linalg.norm(solved.x))
