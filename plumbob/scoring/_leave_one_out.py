"""Learners that predict every row from all the others, in closed form: what somebody with everybody else's complete rows finds.

    ridge            on the columns                                     Z = [X]
    kernel ridge     with a Gaussian kernel on ranks                    Z = [X, k(X, landmarks) K^-1/2]
    kernel ridge     with a kernel of absolute differences, for steps   the same
    trees            extremely randomised, each row by the trees that were grown without it

For a ridge of penalty l with singular values s and left vectors U of centred Z (rows u_i), leaving row i out gives the residual
    (y_i - z_i b) / (1 - h_i),   h_i = 1/n + sum_k u_ik^2 s_k^2 / (s_k^2 + n l)
so one decomposition serves all rows, columns and penalties.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from plumbob.attacks.row_messages import WIDE, RowMessages, reduced
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.scoring.metrics import ranks

PENALTIES = np.logspace(-10, 2, 10)
NEAR = 20  # numbers a row that kernels look at: own columns, and messages
TREES = 24
CELLS = 24  # distinct releases up to which each has a mean of its own


class Learner(Protocol):
    """Predicts every row from all the others."""

    @property
    def name(self) -> str: ...

    def predictions(self, targets: FloatArray) -> FloatArray:
        """Settings x rows x columns; `targets` are rows x columns."""


@dataclass(frozen=True)
class Constant:
    """The mean of all other rows."""

    name: str = "constant"

    def predictions(self, targets: FloatArray) -> FloatArray:
        return np.asarray((targets.sum(axis=0) - targets) / max(1, len(targets) - 1))[None]


class Ridge:
    """Ridge regression on a table, at every penalty."""

    def __init__(self, name: str, table: FloatArray) -> None:
        self.name = name
        centred = table - table.mean(axis=0)
        squares, directions = np.linalg.eigh(centred.T @ centred)
        self.shrunk = 1 / (np.maximum(squares, 0.0) + len(table) * PENALTIES[:, None])  # penalties x directions
        self.turned = centred @ directions
        leverages = self.turned**2 @ self.shrunk.T + 1 / len(table)
        self.room = np.maximum(1e-3, 1 - leverages).T  # penalties x rows

    def predictions(self, targets: FloatArray) -> FloatArray:
        middle = targets - targets.mean(axis=0)
        inner = self.turned.T @ middle
        left = middle - self.turned @ (self.shrunk[:, :, None] * inner)
        # A row far from all others would be guessed far outside of the range.
        return np.asarray(np.clip(targets - left / self.room[:, :, None], targets.min(axis=0), targets.max(axis=0)))


@dataclass(frozen=True)
class Forest:
    """Extremely randomised trees for all columns together; a row is predicted by the trees that were grown without it."""

    table: FloatArray
    seed: int
    name: str = "trees"

    def predictions(self, targets: FloatArray) -> FloatArray:
        grown = sklearn.ensemble.ExtraTreesRegressor(
            TREES, min_samples_leaf=3, bootstrap=True, oob_score=True, random_state=self.seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a row that no tree was grown without is guessed to be the mean
            grown.fit(self.table, targets if targets.shape[1] > 1 else targets[:, 0])
        return np.asarray(grown.oob_prediction_, dtype=np.float64).reshape(1, *targets.shape)


def learners(own: FloatArray, messages: RowMessages | None, landmarks: IntArray, seed: int) -> list[Learner]:
    """All of them, on own columns or on these and messages; where no column varies the constant alone."""
    parts = [own] if messages is None else [own, messages.final]
    linear = np.hstack([reduced(part, WIDE) for part in parts])
    if not linear.shape[1]:
        return [Constant()]
    near = ranks(np.hstack([reduced(part, NEAR) for part in parts])) / len(own)
    flat = linear / np.sqrt(linear.shape[1])
    smooth, steps = (np.hstack([flat, kernel(near, landmarks, edged)]) for edged in (False, True))
    made: list[Learner] = [Constant(), Ridge("ridge", linear), Ridge("kernel ridge", smooth)]
    made += [Ridge("kernel ridge of steps", steps), Forest(linear, seed)]
    more = _more(messages)
    return made if more is None else [*made, Ridge("ridge", np.hstack([linear, more]))]


def _more(messages: RowMessages | None) -> FloatArray | None:
    """What else messages hold for a ridge: earlier rounds, and each of few releases as a column of its own."""
    if messages is None:
        return None
    tables = []
    if messages.features.shape[1] > messages.final.shape[1]:
        tables.append(messages.features[:, messages.final.shape[1] :])
    if messages.cells is not None and messages.cells.max(initial=0) < CELLS:
        tables.append(reduced(np.eye(int(messages.cells.max()) + 1)[messages.cells], CELLS))
    return np.hstack(tables) if tables else None


def kernel(near: FloatArray, landmarks: IntArray, edged: bool) -> FloatArray:
    """Nystrom's features: kernels between all rows and the landmarks, whitened by those among landmarks."""
    marks = near[landmarks]
    if edged:
        distance = np.zeros((len(near), len(marks)))
        for one, other in zip(near.T, marks.T, strict=True):
            distance += np.abs(one[:, None] - other)
    else:
        distance = (near**2).sum(axis=1)[:, None] + (marks**2).sum(axis=1) - 2 * near @ marks.T
    made = np.exp(-distance / max(1e-12, float(np.median(distance))))
    squares, directions = np.linalg.eigh(made[landmarks])
    kept = squares > 1e-6 * squares[-1]
    return np.asarray(made @ (directions[:, kept] / np.sqrt(squares[kept])))
