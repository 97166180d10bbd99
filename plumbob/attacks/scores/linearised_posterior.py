"""Linearised posterior (ours): every row of scores gives c - 1 exact equations in the unknown columns, also for networks.

Each row is solved for by Gauss-Newton in the box (`_boxed_gauss_newton.py`) around what is expected of it without its own
scores. Two expectations are learnt from how the scores of many rows hang together; no true value is used:
    alike       m_i = mean + slope own_i by generalised least squares on the linearised equations, covariance by EM, both
                pulled to "exchangeable columns": the unknown columns are further draws of the known ones
    generator   m_i = f_G(own_i), the sharp form of GRNA, which never looks at a row's own scores
The guess is the mean of both answers, the second counting less where there are few equations to learn from. Each fits the
scores; they err in different ways: where columns are alike the first is better, where they are not the second. Where the
equations fix a row there is one answer, and no generator is asked. Where a known defence changed the scores, each equation is
that of the mean given the release (`_defended_logits.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, meaning
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores._box_equations import TINY
from plumbob.attacks.scores._boxed_gauss_newton import (
    NewtonState,
    NonlinearEquations,
    advance,
    chunks,
    network_equations,
    solve,
    start,
    tolerance,
)
from plumbob.attacks.scores._column_prior import ColumnPrior, components, expected_means, from_complete_rows, row_factor
from plumbob.attacks.scores._defended_logits import expected_answers
from plumbob.attacks.scores.equation_solving import SMALLEST_SCORE
from plumbob.attacks.scores.generative_regression import GenerativeRegression
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.threats import Schema, View, WhiteBox

FEWEST_TOLD_ROWS = 50  # told rows below which a generator has nothing to learn from
HALFWAY = 500  # equations of all rows at which the generator gets half of its full share, which is one half
LEARNING_ROUNDS = 14
LEARNING_ROWS = 1024  # rows the prior is learnt from, evenly picked
TRUSTS = (0.0, 1.0)  # how much a row counts in learning
# Weights of linearisation error, of the first slopes and of the first covariance
BEND, SLOPE, COVARIANCE_PULL = 1.0, 2.0, 2.0
BLEND_TRIALS, TRIAL_ROWS, TRIAL_ROUNDS = 2, 192, 8


class LinearisedPosterior(Attack):
    """The posterior mean of networks: Gauss-Newton in the box under a prior learnt from all rows."""

    name = "linearised_posterior"
    identity = "LinearisedPosterior()"
    summary = (
        "ours: solves the scores of a network as equations, linearised row by row, under a prior learnt from all rows"
    )
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("neural_network", "split_models")
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n u^2", "n w", "n u w")  # tangents: u derivatives of each row's scores

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.ranges is None:
            raise BadInput("the linearised posterior needs the ranges of the unknown columns")
        low, high = view.ranges.T
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        told = np.flatnonzero(~np.isnan(scores).any(axis=1))
        answers = -np.diff(np.log(np.maximum(scores, SMALLEST_SCORE)), axis=1)
        system = network_equations(view, low, high - low)
        answers = defended_answers(view, system, answers, told, rng)
        solved = partial(solved_rows, system, view.own, answers, told)
        if view.auxiliary is None:
            prior = fitted_prior(view, system, answers, told, trust_in_learning(view, answers, told, rng))
            unit = solved(prior.covariance, prior.rows(components(view.own, len(low))))
            if answers.shape[1] < len(low) and len(told) >= FEWEST_TOLD_ROWS:
                centres, covariance = generated(view, low, high - low, rng)
                told_equations = len(told) * answers.shape[1]
                share = 0.5 * told_equations / (told_equations + HALFWAY)
                unit = (1.0 - share) * unit + share * solved(covariance, centres)
        else:
            span = np.where(high > low, high - low, 1.0)
            known, unknown = view.auxiliary[:, view.known], (view.auxiliary[:, view.unknown] - low) / span
            centres, covariance = from_complete_rows(view.own, known, unknown)
            unit = solved(covariance, np.clip(centres, 0.0, 1.0))
        return Guess(view.unknown_names, np.asarray(low + (high - low) * unit))


def defended_answers(
    view: View, system: NonlinearEquations, answers: FloatArray, told: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """The answers, or where a known defence changed the scores what is expected of them before rows are solved for."""
    if meaning(view.defence) is None:
        return answers
    assert view.ranges is not None
    low, high = view.ranges.T
    if view.auxiliary is None:
        parts = components(view.own, len(low))
        prior = exchangeable(view, parts)
        centres, covariance, between = prior.rows(parts), prior.covariance, prior.between * np.eye(len(low))
    else:
        span = np.where(high > low, high - low, 1.0)
        known, unknown = view.auxiliary[:, view.known], (view.auxiliary[:, view.unknown] - low) / span
        centres, covariance = from_complete_rows(view.own, known, unknown)
        centres, between = np.clip(centres, 0.0, 1.0), covariance / len(known)
    return expected_answers(view, system, answers, told, centres, covariance, between, rng)


def solved_rows(
    system: NonlinearEquations,
    own: FloatArray,
    answers: FloatArray,
    told: NDArray[np.intp],
    covariance: FloatArray,
    centres: FloatArray,
) -> FloatArray:
    """Rows near the centres that fit; the centres themselves where the scores were withheld."""
    unit = centres.copy()
    for rows in chunks(told):
        unit[rows] = solve(covariance, system, own[rows], centres[rows], answers[rows])
    return unit


def generated(view: View, low: FloatArray, span: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """What a generator expects of the rows, and how far cells lie from it: columns near a border vary less."""
    guess = GenerativeRegression.preset("sharp", adaptive=True).run(view, rng).values
    assert guess is not None
    centres = np.clip((guess - low) / np.where(span > 0, span, 1.0), 0.005, 0.995)
    means, middle = view.own.mean(axis=0), centres.mean(axis=0)
    relative = (view.own.var(axis=0).sum() + 1 / 12) / ((means * (1 - means)).sum() + 1 / 4)
    return centres, np.diag(relative * middle * (1 - middle))


def fitted_prior(
    view: View,
    system: NonlinearEquations,
    answers: FloatArray,
    told: NDArray[np.intp],
    trust: float,
    most: int = LEARNING_ROWS,
) -> ColumnPrior:
    """The prior of the unknown columns: from known columns and weights, then (as far as trusted) from the scores."""
    parts = components(view.own, len(view.unknown))
    prior = exchangeable(view, parts)
    rows = thinned(told, most)
    if trust == 0.0 or len(rows) < 2:
        return prior
    return learnt(prior, LearningRows(system, view.own[rows], parts[rows], answers[rows], trust))


def trust_in_learning(view: View, answers: FloatArray, told: NDArray[np.intp], rng: np.random.Generator) -> float:
    """How much a row's scores shall count in the prior: what guesses known columns best that are hidden on purpose."""
    count = view.own.shape[1]
    hide = max(1, min(len(view.unknown), count) // 3)
    if count < 3 or len(told) < 2 or answers.shape[1] >= len(view.unknown):
        return TRUSTS[0]
    rows, errors = thinned(told, TRIAL_ROWS), np.zeros(len(TRUSTS))
    for _ in range(BLEND_TRIALS):
        hidden = np.sort(rng.permutation(count)[:hide])
        shown = np.setdiff1d(np.arange(count), hidden)
        assert view.ranges is not None
        trial = replace(
            view,
            known=view.known[shown],
            unknown=np.concatenate([view.unknown, view.known[hidden]]),
            own=view.own[rows][:, shown],
            ranges=np.vstack([view.ranges, np.tile([0.0, 1.0], (hide, 1))]),
        )
        low, high = np.asarray(trial.ranges).T
        system = network_equations(trial, low, high - low)
        everyone = np.arange(len(rows))
        for i, trust in enumerate(TRUSTS):
            prior = fitted_prior(trial, system, answers[rows], everyone, trust)
            centres = prior.rows(components(trial.own, len(low)))
            unit = solve(prior.covariance, system, trial.own, centres, answers[rows], TRIAL_ROUNDS)
            errors[i] += ((unit[:, -hide:] - view.own[rows][:, hidden]) ** 2).mean()
    return TRUSTS[int(np.argmin(errors))]


def thinned(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most that many of the rows, evenly spaced."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.intp))]


def exchangeable(view: View, parts: FloatArray) -> ColumnPrior:
    """The unknown columns as further draws of the known ones, the box itself as one more, evenly spread."""
    own, unknown = view.own, len(view.unknown)
    means = own.mean(axis=0)
    count = own.shape[1] + 1.0
    mean, between = means_from_weights(view, means)
    variance = (own.var(axis=0).sum() + 1 / 12) / count
    shared, slope = row_factor(own, parts)
    covariance = (variance - shared) * np.eye(unknown) + max(shared - float((slope**2).sum()), 0.0)
    return ColumnPrior(mean, np.tile(slope[:, None], unknown), covariance, between)


def means_from_weights(view: View, means: FloatArray) -> tuple[FloatArray, float]:
    """Expected means of the unknown columns, and the variance around them.

    Gradient steps move a column's first weights by sums of x_j delta and the biases by sums of delta, so how weights go
    with biases tells of the mean of x_j.
    """
    if view.model is None or view.protocol != "neural_network":
        return expected_means(np.full(len(means) + len(view.unknown), np.nan), view, means)
    weights, bias = view.model["w0"], view.model["b0"] - view.model["b0"].mean()
    marks = (weights - weights.mean(axis=1, keepdims=True)) @ bias / max(float(bias @ bias), TINY)
    return expected_means(marks, view, means)


@dataclass(frozen=True)
class LearningRows:
    """What a prior is learnt from: equations, and of each row the own cells, their components and the scores' answers."""

    system: NonlinearEquations
    own: FloatArray
    parts: FloatArray
    answers: FloatArray
    trust: float


def learnt(first: ColumnPrior, seen: LearningRows) -> ColumnPrior:
    """The prior that makes the linearised equations of all rows likely, pulled to the first one."""
    prior = first
    state = start(prior.rows(seen.parts), prior.covariance, seen.answers.shape[1])
    for step in range(LEARNING_ROUNDS):
        loose = tolerance(step, LEARNING_ROUNDS)
        centres = prior.rows(seen.parts)
        state = advance(state, prior.covariance, seen.system, seen.own, centres, seen.answers, loose)
        if step >= 2:
            prior = improved(prior, first, state, seen)
    return prior


def improved(prior: ColumnPrior, first: ColumnPrior, state: NewtonState, seen: LearningRows) -> ColumnPrior:
    """One round: mean and slope by generalised least squares, covariance by EM."""
    parts, trust = seen.parts, seen.trust
    count, columns = parts.shape
    unknown = len(prior.mean)
    centres = prior.rows(parts)
    bent = (
        seen.answers
        - seen.system.differences(seen.own, centres)
        - (state.targets - np.einsum("nmd,nd->nm", state.tangents, centres))
    )
    scaled = state.tangents @ prior.covariance
    gram = scaled @ state.tangents.transpose(0, 2, 1) + (state.noise + BEND * bent**2)[:, :, None] * np.eye(
        bent.shape[1]
    )
    weighed = np.linalg.solve(gram, state.tangents)  # G^-1 J
    information = state.tangents.transpose(0, 2, 1) @ weighed
    told = np.einsum("nmd,nm->nd", weighed, state.targets)
    design = np.hstack([np.ones((count, 1)), parts])
    size = columns + 1
    squares = (design[:, :, None] * design[:, None, :]).reshape(count, size * size)
    left = trust * (squares.T @ information.reshape(count, -1)).reshape(size, size, unknown, unknown)
    left = left.transpose(0, 2, 1, 3).reshape(size * unknown, size * unknown)
    right = trust * (design.T @ told).ravel()
    variance = float(np.trace(first.covariance)) / unknown
    pulled = np.full((size, unknown), SLOPE * max(columns, 1) / variance)
    pulled[0] = 1.0 / first.between
    guess = np.vstack([first.mean, first.slope])
    solved = np.linalg.solve(left + np.diag(pulled.ravel()), right + (pulled * guess).ravel()).reshape(size, unknown)
    mean, slope = np.clip(solved[0], 0.01, 0.99), solved[1:]
    error = state.guess - (mean + parts @ slope)
    scatter = error.T @ error + state.covariance.sum(axis=0)
    pseudo = COVARIANCE_PULL * unknown
    covariance = (pseudo * first.covariance + trust * scatter) / (pseudo + trust * count)
    return replace(prior, mean=mean, slope=slope, covariance=covariance)
