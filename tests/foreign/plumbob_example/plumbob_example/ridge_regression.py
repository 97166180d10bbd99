"""Ridge regression: Plumbob's logistic regression with a stronger penalty by default."""

from __future__ import annotations

from plumbob.protocols.scores.logistic_regression import LogisticRegression


class RidgeRegression(LogisticRegression):
    """The same exchange between the parties, under a name of its own."""

    name = "ridge_regression"
    summary = "logistic regression with a strong penalty"

    def __init__(self, *, strength: float = 0.1) -> None:
        super().__init__(strength=strength)
