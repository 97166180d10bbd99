"""Labels from sums over rows and rounds: one linear regression of all rounds together.

A round says X_t' (y - z_t / 2) of its rows. How y and z follow own columns is the same for all rows, the rest is each row's:
    y   = x g + r,        z_t / 2 = sum over k of phi_k(t) (x b_k + a_k),        phi_k(t) = 1 - exp(-t / tau_k)
with x own columns beside a constant. Weights start at zero, so that z_0 = 0 and phi_k(0) = 0. All of g, b, r, a are found at
once, the most likely ones for normal r and a. As the gradients of all rows together are X' y, g is the regression of the label
on own columns that has all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from plumbob.attacks.labels._opened_gradients import OpenedGradient
from plumbob.federation import BoolArray, FloatArray, IntArray

CURVES = 4
SPREADS = {"shared": 3.0, "label": 0.8, "score": 0.03}  # standard deviations of g and b, of r, of a
NOISE = 0.01  # of a sum over rows, in units of its spread: steps that differ from batch to batch
STEPS = 400
THIN = 1e-9  # singular values below this share of the largest count as zero


@dataclass(frozen=True)
class Directions:
    """What a round's sums tell: `rows_by` (directions x rows, orthonormal) times what is summed. `of` takes sums there."""

    rows_by: FloatArray
    of: FloatArray

    @classmethod
    def among(cls, columns: FloatArray) -> Directions:
        left, values, right = np.linalg.svd(columns, full_matrices=False)
        kept = values > THIN * max(float(values.max(initial=0.0)), 1e-300)
        return cls(left[:, kept].T, right[kept] / values[kept, None])


@dataclass(frozen=True)
class Regression:
    """All rounds of one training, ready to be solved for any model of it."""

    own: FloatArray  # rows x (constant, centred own columns)
    rounds: Sequence[OpenedGradient]
    directions: Sequence[Directions]
    curves: FloatArray  # rounds x (1, phi_1, ...)

    @classmethod
    def of(cls, own: FloatArray, rounds: Sequence[OpenedGradient]) -> Regression:
        known: dict[bytes, Directions] = {}
        for one in rounds:
            key = one.rows.tobytes()
            if key not in known:
                known[key] = Directions.among(own[one.rows])
        turns = np.arange(len(rounds))[:, None]
        times = np.geomspace(2, 2 * max(2, len(rounds)), CURVES)
        curves = np.hstack([np.ones((len(rounds), 1)), 1 - np.exp(-turns / times)])
        centred = np.hstack([np.ones((len(own), 1)), own - own.mean(axis=0)])
        return cls(centred, rounds, [known[one.rows.tobytes()] for one in rounds], curves)

    def solve(self, model: int, settled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """y of every row, and x g, its part that own columns tell. `settled`: rows whose y is known, else NaN."""
        told = [d.of @ one.sums[model] for d, one in zip(self.directions, self.rounds, strict=True)]
        open_rows = np.isnan(settled)
        fixed = np.where(open_rows, 0.0, settled)
        right = [
            (q - d.rows_by @ fixed[one.rows]) / NOISE
            for q, d, one in zip(told, self.directions, self.rounds, strict=True)
        ]
        size = (self.own.shape[1] + len(self.own)) * (CURVES + 1)
        ends = np.cumsum([0, *(len(q) for q in right)])
        operator = LinearOperator(
            (int(ends[-1]), size),
            matvec=lambda x: self._forward(x, ends, open_rows),
            rmatvec=lambda x: self._backward(x, ends, open_rows),
            dtype=np.float64,
        )
        found = lsmr(operator, np.concatenate([*right, np.zeros(0)]), damp=1.0, maxiter=STEPS, atol=1e-10, btol=1e-10)[
            0
        ]
        shared, rows = self._parts(found)
        by_columns = self.own @ shared[:, 0]
        return np.where(open_rows, by_columns + rows[:, 0], fixed), by_columns

    def _parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """g and b (own columns x curves), r and a (rows x curves)."""
        width, cut = CURVES + 1, self.own.shape[1] * (CURVES + 1)
        spread = np.array([SPREADS["label"]] + [SPREADS["score"]] * CURVES)
        return x[:cut].reshape(-1, width) * SPREADS["shared"], x[cut:].reshape(-1, width) * spread

    def _forward(self, x: FloatArray, ends: IntArray, open_rows: BoolArray) -> FloatArray:
        shared, rows = self._parts(x)
        per_row = self.own @ shared + rows
        per_row[~open_rows, 0] = 0.0
        made = np.empty(int(ends[-1]))
        for turn, one in enumerate(self.rounds):
            part = self.directions[turn].rows_by @ (per_row[one.rows] @ self.curves[turn])
            made[ends[turn] : ends[turn + 1]] = part / NOISE
        return made

    def _backward(self, told: FloatArray, ends: IntArray, open_rows: BoolArray) -> FloatArray:
        per_row = np.zeros((len(self.own), CURVES + 1))
        for turn, one in enumerate(self.rounds):
            part = self.directions[turn].rows_by.T @ told[ends[turn] : ends[turn + 1]] / NOISE
            per_row[one.rows] += np.outer(part, self.curves[turn])
        per_row[~open_rows, 0] = 0.0
        spread = np.array([SPREADS["label"]] + [SPREADS["score"]] * CURVES)
        return np.concatenate([(self.own.T @ per_row * SPREADS["shared"]).ravel(), (per_row * spread).ravel()])
