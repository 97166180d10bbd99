"""Rows that fit a network's scores: Gauss-Newton in the box, for many rows at once.

With g(x) the differences of neighbouring logits, ln v_k - ln v_{k+1} = g_k(x_own, x). Around the current guess these are
linear, J x = b, so a Gaussian prior N(m_i, S) given them is a solve of the size of the equations:
    x_i = m_i + V J'(J V J' + R)^-1 (b - J m_i),   V = S with the box, by expectation propagation
with a step length per row, repeated until it settles; R falls from loose to tight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.differentiable_models import logits_of
from plumbob.attacks.scores._box_equations import TINY, cut_normal
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.lazy_imports import torch
from plumbob.threats import View

NEWTON_ROUNDS = 14
NEWTON_ROWS_TOGETHER = 1024  # rows solved together
# How exactly equations are met, first and last, relative to what the prior leaves open
FIRST_TOLERANCE, LAST_TOLERANCE = 0.3, 1e-4
OPEN_VARIANCE = 1e6
UNMET, ELSEWHERE = 0.02, (0.5, 0.2, 0.8)  # a logit missed by this much starts its row again, from these points


@dataclass(frozen=True)
class NonlinearEquations:
    """g(x_i) = answers_i for rows of unit-scaled unknown columns; rows of a chunk are named by `own`."""

    differences: Callable[[FloatArray, FloatArray], FloatArray]  # own, x -> g
    tangents: Callable[[FloatArray, FloatArray], FloatArray]  # own, x -> J, rows x equations x columns


def network_equations(view: View, low: FloatArray, span: FloatArray) -> NonlinearEquations:
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

    return NonlinearEquations(differences, tangents)


@dataclass
class NewtonState:
    """Where the rows of a chunk stand: guesses, their covariances, and the Gaussians that stand for the box."""

    guess: FloatArray
    covariance: FloatArray
    precision: FloatArray
    pull: FloatArray
    tangents: FloatArray
    targets: FloatArray
    noise: FloatArray


def start(centres: FloatArray, covariance: FloatArray, equations: int) -> NewtonState:
    rows, columns = centres.shape
    flat = np.zeros((rows, columns))
    return NewtonState(
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
    system: NonlinearEquations,
    own: FloatArray,
    centres: FloatArray,
    answers: FloatArray,
    rounds: int = NEWTON_ROUNDS,
) -> FloatArray:
    """Guesses of rows under a given prior; rows that settle off their equations start again from elsewhere."""
    guess, misses = settled(covariance, system, own, centres, answers, centres, rounds)
    for elsewhere in ELSEWHERE:
        todo = np.flatnonzero(misses > UNMET)
        if not len(todo) or rounds < NEWTON_ROUNDS:
            break
        begin = np.full((len(todo), centres.shape[1]), elsewhere)
        again, missed = settled(covariance, system, own[todo], centres[todo], answers[todo], begin, rounds)
        better = missed < misses[todo]
        guess[todo[better]], misses[todo[better]] = again[better], missed[better]
    return guess


def settled(
    covariance: FloatArray,
    system: NonlinearEquations,
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
    return float(FIRST_TOLERANCE * (LAST_TOLERANCE / FIRST_TOLERANCE) ** min(1.0, step / (steps - 3)))


def advance(
    state: NewtonState,
    covariance: FloatArray,
    system: NonlinearEquations,
    own: FloatArray,
    centres: FloatArray,
    answers: FloatArray,
    loose: float,
) -> NewtonState:
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
    return NewtonState(fresh, spread, precision, pull, tangents, targets, noise)


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
    tilted, variance = cut_normal(flat, flat * OPEN_VARIANCE)(middle, 1.0 / cavity)
    fresh = np.clip(1.0 / np.maximum(variance, 1e-9) - cavity, 0.0, 1e8)
    fresh_pull = tilted * (fresh + cavity) - middle * cavity
    damped = np.where(usable, 0.8, 0.0)
    return precision + damped * (fresh - precision), pull + damped * (fresh_pull - pull)


def chunks(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    for begin in range(0, len(rows), NEWTON_ROWS_TOGETHER):
        yield rows[begin : begin + NEWTON_ROWS_TOGETHER]
