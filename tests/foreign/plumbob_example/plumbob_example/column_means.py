"""Column means: every unknown cell is guessed as the mean of its column among other people's rows."""

from __future__ import annotations

import numpy as np

from plumbob.attacks import Attack, Guess
from plumbob.threats import AuxiliaryRows, View


class ColumnMeans(Attack):
    """The weakest attack that uses auxiliary rows at all."""

    name = "column_means"
    summary = "the mean of each column among the auxiliary rows"
    paper = "example2026"
    protocols = ("logistic_regression", "ridge_regression")
    requires = (AuxiliaryRows,)
    cost_terms = ("1", "n u")
    workload = "matrices"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        assert view.auxiliary is not None  # `requires` says so
        means = view.auxiliary[:, view.unknown].mean(axis=0)
        return Guess(view.unknown_names, values=np.tile(means, (len(view.own), 1)))
