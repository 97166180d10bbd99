"""Linearised posterior (ours): every row of scores is c - 1 exact equations in the unknown columns, also for a network.

With g(x) the differences of neighbouring logits, ln v_k - ln v_{k+1} = g_k(x_own, x). Around the current guess these are
linear, J x = b, so a Gaussian prior N(m_i, S) given them is a solve of the size of the equations:
    x_i = m_i + V J'(J V J' + R)^-1 (b - J m_i),   V = S with the box, by expectation propagation
with a step length per row, repeated until it settles. The prior is learnt from all rows at once: m_i = mean + slope own_i
by generalised least squares on the linearised equations, S by EM, both pulled to "exchangeable columns": the unknown
columns are further draws of the known ones. No true value is used, only how the scores of many rows hang together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.box import TINY, cut_normal
from plumbob.attacks.columns import from_complete_rows
from plumbob.attacks.equation_solving import SMALLEST
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.protocols.differentiable import logits_of
from plumbob.threats import Schema, View, WhiteBox

ROUNDS, LEARNING_ROUNDS = 14, 14
LEARNING_ROWS = 1024  # rows the prior is learnt from, evenly picked
CHUNK = 1024  # rows solved together
DIRECTIONS = 1200  # most coefficients learnt at once; beyond, the leading components of the known columns are used
LOOSE, TIGHT = 0.3, 1e-4  # how exactly equations are met, first and last, relative to what the prior leaves open
WIDE = 1e6
TRUSTS = (0.0, 1.0)  # how much a row counts in learning
BEND, SLOPE, PULL = 1.0, 2.0, 2.0  # weights of linearisation error, of the first slopes and of the first covariance
UNMET, ELSEWHERE = 0.02, (0.5, 0.2, 0.8)  # a logit missed by this much starts its row again, from these points
TRIALS, TRIAL_ROWS, TRIAL_ROUNDS = 2, 192, 8


@dataclass(frozen=True)
class Prior:
    """x_i ~ N(mean + slope' parts_i, covariance), `parts` the scaled components of the known columns, in unit ranges."""

    mean: FloatArray
    slope: FloatArray  # components x unknown columns
    covariance: FloatArray
    between: float  # variance of column means around what is expected of them

    def rows(self, parts: FloatArray) -> FloatArray:
        return np.clip(self.mean + parts @ self.slope, 0.0, 1.0)


@dataclass(frozen=True)
class Equations:
    """g(x_i) = answers_i for rows of unit-scaled unknown columns; rows of a chunk are named by `own`."""

    differences: Callable[[FloatArray, FloatArray], FloatArray]  # own, x -> g
    tangents: Callable[[FloatArray, FloatArray], FloatArray]  # own, x -> J, rows x equations x columns


class LinearisedPosterior(Attack):
    """The posterior mean of networks: Gauss-Newton in the box under a prior learnt from all rows."""

    name = "linearised_posterior"
    summary = "ours: the scores of a network as equations, linearised row by row under a prior learnt from all rows"
    paper = "plumbob"
    protocols = ("neural_network", "split_models")
    requires = (WhiteBox, Schema)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if view.ranges is None:
            raise BadInput("the linearised posterior needs the ranges of the unknown columns")
        low, high = view.ranges.T
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        told = np.flatnonzero(~np.isnan(scores).any(axis=1))
        answers = -np.diff(np.log(np.maximum(scores, SMALLEST)), axis=1)
        system = network_equations(view, low, high - low)
        if view.auxiliary is None:
            prior = fitted_prior(view, system, answers, told, trust_in_learning(view, answers, told, rng))
            centres, covariance = prior.rows(components(view.own, len(low))), prior.covariance
        else:
            span = np.where(high > low, high - low, 1.0)
            known, unknown = view.auxiliary[:, view.known], (view.auxiliary[:, view.unknown] - low) / span
            centres, covariance = from_complete_rows(view.own, known, unknown)
            centres = np.clip(centres, 0.0, 1.0)
        unit = centres.copy()
        for rows in chunks(told):
            unit[rows] = solve(covariance, system, view.own[rows], centres[rows], answers[rows])
        return Guess(view.unknown_names, np.asarray(low + (high - low) * unit))


def fitted_prior(
    view: View, system: Equations, answers: FloatArray, told: NDArray[np.intp], trust: float, most: int = LEARNING_ROWS
) -> Prior:
    """The prior of the unknown columns: from known columns and weights, then (as far as trusted) from the scores."""
    parts = components(view.own, len(view.unknown))
    prior = exchangeable(view, parts)
    rows = thinned(told, most)
    if trust == 0.0 or len(rows) < 2:
        return prior
    return learnt(prior, system, view.own[rows], parts[rows], answers[rows], trust)


def trust_in_learning(view: View, answers: FloatArray, told: NDArray[np.intp], rng: np.random.Generator) -> float:
    """How much a row's scores shall count in the prior: what guesses known columns best that are hidden on purpose."""
    count = view.own.shape[1]
    hide = max(1, min(len(view.unknown), count) // 3)
    if count < 3 or len(told) < 2 or answers.shape[1] >= len(view.unknown):
        return TRUSTS[0]
    rows, errors = thinned(told, TRIAL_ROWS), np.zeros(len(TRUSTS))
    for _ in range(TRIALS):
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
    """At most so many of the rows, evenly picked."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.intp))]


def chunks(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


def network_equations(view: View, low: FloatArray, span: FloatArray) -> Equations:
    """The joint model's logit differences and their Jacobian in the unknown columns."""
    if view.model is None:
        raise BadInput("the linearised posterior needs the model (white box)")
    fine, fast = (logits_of(view.protocol, view.model, kind) for kind in (torch.float64, torch.float32))
    known, unknown = torch.tensor(view.known), torch.tensor(view.unknown)
    width = len(known) + len(unknown)

    def complete(own: FloatArray, unit: torch.Tensor) -> torch.Tensor:
        rows = torch.empty((len(own), width), dtype=unit.dtype)
        rows[:, known] = torch.tensor(own, dtype=unit.dtype)
        rows[:, unknown] = torch.tensor(low, dtype=unit.dtype) + torch.tensor(span, dtype=unit.dtype) * unit
        return rows

    def differences(own: FloatArray, unit: FloatArray) -> FloatArray:
        with torch.no_grad():
            logits = fine(complete(own, torch.tensor(unit)))
        return np.asarray((logits[:, :-1] - logits[:, 1:]).numpy())

    def tangents(own: FloatArray, unit: FloatArray) -> FloatArray:
        point = torch.tensor(unit, dtype=torch.float32, requires_grad=True)
        logits = fast(complete(own, point))
        steps = (logits[:, :-1] - logits[:, 1:]).sum(dim=0)
        parts = [torch.autograd.grad(step, point, retain_graph=True)[0] for step in steps]
        return torch.stack(parts, dim=1).double().numpy()

    return Equations(differences, tangents)


def components(own: FloatArray, unknown: int) -> FloatArray:
    """The known columns' principal components, unit variance, as many as can be regressed on."""
    centred = own - own.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    keep = values > 1e-6 * np.sqrt(len(own))
    keep &= np.arange(len(values)) < max(1, DIRECTIONS // unknown - 1)
    return np.asarray(left[:, keep] * np.sqrt(len(own)))


def exchangeable(view: View, parts: FloatArray) -> Prior:
    """The unknown columns as further draws of the known ones, the box itself as one more, evenly spread."""
    own, unknown = view.own, len(view.unknown)
    means = own.mean(axis=0)
    count = own.shape[1] + 1.0
    mean, between = means_from_weights(view, means)
    variance = (own.var(axis=0).sum() + 1 / 12) / count
    shared, slope = row_factor(own, parts)
    covariance = (variance - shared) * np.eye(unknown) + max(shared - float((slope**2).sum()), 0.0)
    return Prior(mean, np.tile(slope[:, None], unknown), covariance, between)


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


def expected_means(marks: FloatArray, view: View, means: FloatArray) -> tuple[FloatArray, float]:
    """Means of the unknown columns by a mark of every column in the model, NaN if it has none.

    What the mark says is learnt from the known columns: a line, with the ridge that does best on columns left out, or
    no line at all if that does better.
    """
    count = len(means) + 1.0
    centre = (means.sum() + 0.5) / count
    best, slope = float(((means - centre) ** 2).sum()), 0.0
    seen = np.isfinite(marks[view.known])
    unknown = np.zeros(len(view.unknown))
    if seen.sum() >= 4:
        middle, scale = marks[view.known][seen].mean(), marks[view.known][seen].std() + TINY
        standard = np.nan_to_num(np.clip((marks - middle) / scale, -2.5, 2.5))
        known, unknown = standard[view.known], standard[view.unknown]
        product, power = known * (means - centre), float(known @ known)
        for ridge in (0.5, 2.0, 8.0):
            left_out = (product.sum() - product) / (power - known**2 + ridge)
            error = float(((means - centre - left_out * known) ** 2).sum())
            if error < best:
                best, slope = error, float(product.sum()) / (power + ridge)
    return np.clip(centre + slope * unknown, 0.02, 0.98), (best + 1 / 12) / count


def row_factor(own: FloatArray, parts: FloatArray) -> tuple[float, FloatArray]:
    """Mean covariance of two known columns (one factor behind all), and what a further column has of each component."""
    count = own.shape[1]
    if count < 2 or len(own) < 2:
        return 0.0, np.zeros(parts.shape[1])
    centred = own - own.mean(axis=0)
    covariance = centred.T @ centred / len(own)
    total, own_part = float(covariance.sum()), float(np.trace(covariance))
    shared = max((total - own_part) / (count * (count - 1)), 0.0)
    noise = max(own_part / count - shared, TINY)
    gain = shared / (shared * count + noise)  # of the sum of the known cells
    return shared, gain * parts.T @ centred.sum(axis=1) / len(own)


@dataclass
class State:
    """Where the rows of a chunk stand: guesses, their covariances, and the Gaussians that stand for the box."""

    guess: FloatArray
    covariance: FloatArray
    precision: FloatArray
    pull: FloatArray
    tangents: FloatArray
    targets: FloatArray
    noise: FloatArray


def start(centres: FloatArray, covariance: FloatArray, equations: int) -> State:
    rows, columns = centres.shape
    flat = np.zeros((rows, columns))
    return State(
        np.clip(centres, 0.02, 0.98),
        np.broadcast_to(covariance, (rows, columns, columns)),
        flat,
        flat,
        np.zeros((rows, equations, columns)),
        np.zeros((rows, equations)),
        np.zeros((rows, equations)),
    )


def solve(
    covariance: FloatArray,
    system: Equations,
    own: FloatArray,
    centres: FloatArray,
    answers: FloatArray,
    rounds: int = ROUNDS,
) -> FloatArray:
    """Guesses of rows under a given prior; rows that settle off their equations start again from elsewhere."""
    guess, misses = settled(covariance, system, own, centres, answers, centres, rounds)
    for elsewhere in ELSEWHERE:
        todo = np.flatnonzero(misses > UNMET)
        if not len(todo) or rounds < ROUNDS:
            break
        begin = np.full((len(todo), centres.shape[1]), elsewhere)
        again, missed = settled(covariance, system, own[todo], centres[todo], answers[todo], begin, rounds)
        better = missed < misses[todo]
        guess[todo[better]], misses[todo[better]] = again[better], missed[better]
    return guess


def settled(
    covariance: FloatArray,
    system: Equations,
    own: FloatArray,
    centres: FloatArray,
    answers: FloatArray,
    begin: FloatArray,
    rounds: int,
) -> tuple[FloatArray, FloatArray]:
    """Guesses from one starting point, and the largest miss of each row's equations."""
    state = start(begin, covariance, answers.shape[1])
    for step in range(rounds):
        state = advance(state, covariance, system, own, centres, answers, tolerance(step, rounds))
    return state.guess, np.abs(answers - system.differences(own, state.guess)).max(axis=1, initial=0.0)


def tolerance(step: int, steps: int) -> float:
    return float(LOOSE * (TIGHT / LOOSE) ** min(1.0, step / (steps - 3)))


def advance(
    state: State,
    covariance: FloatArray,
    system: Equations,
    own: FloatArray,
    centres: FloatArray,
    answers: FloatArray,
    loose: float,
) -> State:
    """One linearisation, two rounds of expectation propagation, and as much of the step as lowers the merit."""
    here = state.guess
    columns = here.shape[1]
    inverse = np.linalg.inv(
        covariance + 1e-9 * np.trace(covariance) / columns * np.eye(columns) + TINY * np.eye(columns)
    )
    values, tangents = system.differences(own, here), system.tangents(own, here)
    targets = answers - values + np.einsum("nmd,nd->nm", tangents, here)
    open_ = np.einsum("nmd,de,nme->nm", tangents, covariance, tangents, optimize=True)
    noise = loose**2 * open_ + 1e-10 * open_.mean() + 1e-16
    precision, pull = state.precision, state.pull
    for _ in range(2):
        mean, spread = gaussian(inverse, centres, precision, pull, tangents, targets, noise)
        precision, pull = boxed(mean, spread, precision, pull)
    mean, spread = gaussian(inverse, centres, precision, pull, tangents, targets, noise)

    def merit(point: FloatArray, rows: NDArray[np.intp], residual: FloatArray) -> FloatArray:
        gap = point - centres[rows]
        prior = np.einsum("nd,de,ne->n", gap, inverse, gap, optimize=True)
        box = (precision[rows] * point**2 - 2 * pull[rows] * point).sum(axis=1)
        return np.asarray(prior + box + (residual**2 / noise[rows]).sum(axis=1))

    everyone = np.arange(len(here))
    height = merit(here, everyone, answers - values)
    move, fresh, todo, scale = np.clip(mean, 0.0, 1.0) - here, here.copy(), everyone, 1.0
    for _ in range(5):
        point = here[todo] + scale * move[todo]
        better = merit(point, todo, answers[todo] - system.differences(own[todo], point)) < height[todo]
        fresh[todo[better]] = point[better]
        todo, scale = todo[~better], 0.4 * scale
        if not len(todo):
            break
    return State(fresh, spread, precision, pull, tangents, targets, noise)


def gaussian(
    inverse: FloatArray,
    centres: FloatArray,
    precision: FloatArray,
    pull: FloatArray,
    tangents: FloatArray,
    targets: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of rows under prior, box Gaussians and linearised equations."""
    columns, size = centres.shape[1], targets.shape[1]
    prior = np.linalg.inv(inverse + precision[:, :, None] * np.eye(columns))
    mean = np.einsum("nde,ne->nd", prior, centres @ inverse + pull)
    scaled = tangents @ prior
    gram = scaled @ tangents.transpose(0, 2, 1) + noise[:, :, None] * np.eye(size)
    gain = np.linalg.solve(gram, scaled)
    mean = mean + np.einsum("nm,nmd->nd", targets - np.einsum("nmd,nd->nm", tangents, mean), gain)
    return mean, prior - scaled.transpose(0, 2, 1) @ gain


def boxed(
    mean: FloatArray, spread: FloatArray, precision: FloatArray, pull: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gaussians that stand for the box, from the moments of each cell cut to it."""
    left = np.maximum(np.einsum("ndd->nd", spread), 1e-10)
    cavity = 1.0 / left - precision
    usable = cavity > 1e-6
    cavity = np.where(usable, cavity, 1.0)
    middle = np.clip(np.where(usable, (mean / left - pull) / cavity, 0.5), -20.0, 21.0)
    flat = np.full_like(middle, 0.5)
    tilted, variance = cut_normal(flat, flat * WIDE)(middle, 1.0 / cavity)
    fresh = np.clip(1.0 / np.maximum(variance, 1e-9) - cavity, 0.0, 1e8)
    fresh_pull = tilted * (fresh + cavity) - middle * cavity
    damped = np.where(usable, 0.8, 0.0)
    return precision + damped * (fresh - precision), pull + damped * (fresh_pull - pull)


def learnt(
    first: Prior, system: Equations, own: FloatArray, parts: FloatArray, answers: FloatArray, trust: float
) -> Prior:
    """The prior that makes the linearised equations of all rows likely, pulled to the first one."""
    prior = first
    state = start(prior.rows(parts), prior.covariance, answers.shape[1])
    for step in range(LEARNING_ROUNDS):
        loose = tolerance(step, LEARNING_ROUNDS)
        centres = prior.rows(parts)
        state = advance(state, prior.covariance, system, own, centres, answers, loose)
        if step >= 2:
            prior = improved(prior, first, state, system, own, parts, answers, trust)
    return prior


def improved(
    prior: Prior,
    first: Prior,
    state: State,
    system: Equations,
    own: FloatArray,
    parts: FloatArray,
    answers: FloatArray,
    trust: float,
) -> Prior:
    """One round: mean and slope by generalised least squares, covariance by EM."""
    count, columns = len(parts), parts.shape[1]
    unknown = len(prior.mean)
    centres = prior.rows(parts)
    bent = (
        answers - system.differences(own, centres) - (state.targets - np.einsum("nmd,nd->nm", state.tangents, centres))
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
    pseudo = PULL * unknown
    covariance = (pseudo * first.covariance + trust * scatter) / (pseudo + trust * count)
    return replace(prior, mean=mean, slope=slope, covariance=covariance)
