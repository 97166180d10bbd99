"""Reverse multiplication (weng2022 Section 4): the training products, decrypted by the coordinator, solved for the rows.

For one batch and two successive epochs, theta_t X' - theta_(t-1) X' = (theta_t - theta_(t-1)) X' (Eq 9): the left side is opened,
the difference of weights is known from the gradients, and X' is the same in all epochs. With d unknown columns, d
independent differences give every row of the batch; all rows share one pseudo-inverse. What is not determined is the
answer nearest to the middle of the ranges.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.sums._product_equations import Analysis, DeterminedBatch, ProductEquations, read
from plumbob.errors import positive, whole
from plumbob.federation import FloatArray
from plumbob.setting_sources import ours
from plumbob.threats import View

PRECISION = float(np.finfo(np.float64).eps)
ALONE = 1e-8  # a column is determined if it takes part in no undetermined direction by more than this


class ReverseMultiplication(Attack):
    """As published, in double precision. `singular` values below this share of the largest count as zero; None: as
    usual for a rank in double precision (their number times the machine's precision). With more than two classes the
    equations of all models are used, or of the first `models` only."""

    name = "reverse_multiplication"
    identity = "ReverseMultiplication(singular, models)"
    summary = (
        "solves the training products that the coordinator decrypts as linear equations for the rows of each batch"
    )
    paper = "weng2022"
    protocols = ("encrypted_logistic_regression",)
    corrupted = True
    sources = {
        "singular": ours("the paper solves in exact numbers; here a rank in double precision"),
        "models": ours("the paper has two classes, so one model; here all of them"),
    }

    def __init__(self, *, singular: float | None = None, models: int | None = None) -> None:
        self.singular = None if singular is None else positive("reverse multiplication: singular", singular)
        self.models = None if models is None else whole("reverse multiplication: models", models, 1)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        values = np.empty((len(view.own), len(view.unknown)))
        for equations in read(view):
            values[equations.rows] = solved(view, equations.first(self.models), self.singular)
        return Guess(view.unknown_names, values)

    def analyse(self, view: View) -> Analysis:
        """Rank and condition of every batch, and the columns it determines."""
        return self.analyse_equations(read(view))

    def analyse_equations(self, every: list[ProductEquations]) -> Analysis:
        """The same, of equations that were read before."""
        return Analysis(tuple(self._analysed(one.first(self.models)) for one in every), every[0].coefficients.shape[2])

    def _analysed(self, equations: ProductEquations) -> DeterminedBatch:
        left = equations.differences()[0]
        directions, sizes, _ = decomposed(left, self.singular)
        alone = np.abs(1.0 - (directions**2).sum(axis=0)) < ALONE
        condition = float(sizes[0] / sizes[-1]) if len(sizes) else float("inf")
        return DeterminedBatch(
            equations.rows, len(left), len(sizes), condition, np.tile(alone, (len(equations.rows), 1))
        )


def solved(view: View, equations: ProductEquations, singular: float | None = None) -> FloatArray:
    """The rows of one batch: the least-squares answer that is nearest to the middle of the box, cut to the box."""
    low, high = bounds(view)
    left, right = equations.differences()
    directions, sizes, weights = decomposed(left, singular)
    middle = (low + high) / 2.0
    gap = right - (left @ middle)[:, None]
    return np.clip(middle + ((gap.T @ weights) / sizes) @ directions, low, high)


def bounds(view: View) -> tuple[FloatArray, FloatArray]:
    """The granted ranges; columns are scaled to 0..1 where nothing is granted."""
    low, high = view.ranges.T if view.ranges is not None else np.tile([[0.0], [1.0]], len(view.unknown))
    return low, high


def decomposed(left: FloatArray, singular: float | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Right singular vectors (one a row), singular values and left singular vectors of all values that count."""
    if not left.size:
        return np.zeros((0, left.shape[1])), np.zeros(0), np.zeros((len(left), 0))
    weights, sizes, directions = np.linalg.svd(left, full_matrices=False)
    share = max(left.shape) * PRECISION if singular is None else singular
    count = int((sizes > share * sizes[0]).sum()) if sizes[0] > 0.0 else 0
    return directions[:count], sizes[:count], weights[:, :count]
