"""Logistic regression over any number of parties: each adds its share of the linear scores, softmax makes them scores.

Two classes are two linear scores with opposite weights, so sigma(z) and 1 - sigma(z) are both exact to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from scipy.special import softmax

from plumbob.bundle import Array
from plumbob.errors import positive, whole
from plumbob.federation import FloatArray, IntArray, Party
from plumbob.lazy_imports import sklearn
from plumbob.protocols.base import Model, PredictionProtocol, all_classes
from plumbob.protocols.shared.gathering import GATHERINGS, SUM_MESSAGES, Gathering, gathering_named


@dataclass(frozen=True)
class LinearModel(Model):
    """z = x W + b, scores = softmax(z)."""

    weights: FloatArray  # columns x classes
    bias: FloatArray  # classes

    def arrays(self) -> dict[str, Array]:
        return {"weights": self.weights, "bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(np.asarray(arrays["weights"]), np.asarray(arrays["bias"]))

    def scores(self, values: FloatArray) -> FloatArray:
        return np.asarray(softmax(values @ self.weights + self.bias, axis=1))

    def reordered(self, order: IntArray) -> Self:
        return type(self)(self.weights[order], self.bias)

    def part(self, columns: IntArray) -> dict[str, Array]:
        return {"weights": self.weights[columns]}


class LogisticRegression(PredictionProtocol):
    """Binary and multinomial logistic regression."""

    name = "logistic_regression"
    identity = "LogisticRegression(strength, iterations)"
    summary = "logistic regression, two or more classes"
    cost_terms = ("1", "newton N (d c)^2", "newton N d c", "lbfgs N d c")  # a Hessian of (d c)^2 over N rows a step
    workload = "matrices"
    glossary = MappingProxyType({**PredictionProtocol.glossary, **SUM_MESSAGES})
    unseeded = ("sums",)  # whoever adds up, the model and the attacks draw the same numbers
    key_messages = ("public key",)
    masked_messages = ("masked answer",)
    sums: str = "clear"  # of models that are linear too and have no such setting

    def __init__(self, *, strength: float = 1.0, iterations: int = 500, sums: str = "clear") -> None:
        self.strength = positive("logistic regression: strength", strength)  # inverse of the L2 penalty
        self.iterations = whole("logistic regression: iterations", iterations, 1)
        self.sums = gathering_named("logistic regression", sums)

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> LinearModel:
        all_classes("logistic regression", label, classes)
        import warnings

        # The Newton solver needs a Hessian of (columns x classes)^2 per step; beyond that size L-BFGS is the faster one.
        small = (values.shape[1] + 1) * classes <= 400
        trainer = sklearn.linear_model.LogisticRegression(
            C=self.strength, max_iter=self.iterations, solver="newton-cholesky" if small else "lbfgs", tol=1e-6
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", sklearn.exceptions.ConvergenceWarning
            )  # an early stop is still a model; its scores are exact
            trainer.fit(values, label)
        weights, bias = np.ascontiguousarray(trainer.coef_.T), trainer.intercept_
        if classes == 2:
            weights, bias = np.hstack([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
        return LinearModel(weights, bias)

    def gathering(self) -> Gathering:
        return GATHERINGS[self.sums]()

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        return np.asarray(party.values[rows] @ part["weights"])

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        assert isinstance(model, LinearModel)
        linear = model.bias + sum(answers.values())
        return np.asarray(softmax(linear, axis=1))
