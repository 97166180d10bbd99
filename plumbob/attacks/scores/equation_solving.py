"""Equation solving (ESA, luo2021 Section IV-A): every row of scores is c - 1 exact linear equations.

ln v_k - ln v_{k+1} = x (theta_k - theta_{k+1}) + b_k - b_{k+1}; what the curious party knows goes to the other side and
x_target = pinv(Theta) a. Exact when the unknown columns are at most c - 1 and Theta has full rank; else the shortest answer.
Linear models per party (jiang2022, Section 4.2.1) are the same equations.
With `adaptive` the right-hand sides a are what they are on average given the release of a known defence
(`_defended_equations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.errors import BadInput, Unfit
from plumbob.federation import FloatArray
from plumbob.protocols.base import Protocol
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.protocols.scores.split_models import SplitModel, SplitModels
from plumbob.setting_sources import printed
from plumbob.threats import Threat, View, WhiteBox

NOT_LINEAR = "it solves linear models, and these are networks"
SMALLEST_SCORE = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class LinearEquationsOfScores:
    """left @ x = right[i] for the unknown columns x of every row i."""

    left: FloatArray  # (classes - 1) x unknown columns
    right: FloatArray  # rows x (classes - 1)
    told: NDArray[np.bool_]  # rows whose scores were not withheld; the others have zeros in `right`


def linear_model(view: View) -> LinearModel:
    """The joint model of a view: logistic regression, or the parties' linear models side by side."""
    if view.model is None:
        raise BadInput("equation solving needs the model (white box)")
    if view.protocol != "split_models":
        return LinearModel.from_arrays(view.model)
    locals = SplitModel.from_arrays(view.model).locals
    weights = np.zeros((len(view.known) + len(view.unknown), len(locals[0].biases[0])))
    for local in locals:
        if len(local.weights) > 1:
            raise Unfit(NOT_LINEAR)
        weights[local.columns] = local.weights[0]
    return LinearModel(weights, np.asarray(sum(local.biases[0] for local in locals)))


def equations(view: View) -> LinearEquationsOfScores:
    """The linear equations that a view of logistic regression holds (Eq 3 and 8), all rows at once."""
    model = linear_model(view)
    scores = np.asarray(view.received("scores"), dtype=np.float64)
    logs = np.log(np.maximum(scores, SMALLEST_SCORE))  # a score of 0 (rounded, underflown) becomes the smallest number
    known = view.own @ model.weights[view.known] + model.bias
    told = np.asarray(~np.isnan(scores).any(axis=1))
    steps = np.where(told[:, None], -np.diff(logs - known, axis=1), 0.0)
    return LinearEquationsOfScores(-np.diff(model.weights[view.unknown], axis=1).T, steps, told)


class EquationSolving(Attack):
    """ESA as published: the pseudo-inverse applied to all rows in one product. `adaptive`: it accounts for a known defence."""

    name = "equation_solving"
    aliases = ("ESA",)
    identity = "EquationSolving(adaptive)"
    summary = "ESA: solves the scores of logistic regression as linear equations by the pseudo-inverse"
    paper = "luo2021"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression", "split_models")
    requires = (WhiteBox,)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n u c")  # one pseudo-inverse, then a product
    workload = "matrices"
    sources = {"adaptive": printed("Section IV-A, which knows of no defence")}

    def __init__(self, *, adaptive: bool = False) -> None:
        self.adaptive = adaptive

    def why_not_here(self, protocol: Protocol, threat: Threat) -> str | None:
        return NOT_LINEAR if isinstance(protocol, SplitModels) and protocol.layers else None

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        from plumbob.attacks.scores._defended_equations import adapted  # which builds on the equations above

        view = self.seen(view)
        if view.protocol == "split_models" and view.model is not None and "0/w1" in view.model:
            return nothing(view, NOT_LINEAR)
        system = adapted(view, rng) if self.adaptive else equations(view)
        return Guess(view.unknown_names, system.right @ np.linalg.pinv(system.left).T)
