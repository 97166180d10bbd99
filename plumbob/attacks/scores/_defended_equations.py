"""Equations from scores that a known defence has changed: each right-hand side becomes its mean given the release.

Scores tell of the unknown columns only through t = x W. So by the tower rule E[x | release] = E[E[x | t] | release], and for
E[x | t] close to linear it is enough to put E[t | release] where the exact t would have been. That mean is drawn for:
    prior     t_i ~ N(m + shift_i W'1, S), with m and S as exchangeable columns have them (or as auxiliary rows have them),
              then refitted to all rows at once (a few rounds of Monte Carlo EM)
    release   fits or not (rounding, label only, codebook) or a Gaussian around it (noise, purifier): `release_likelihood.py`
    draws     elliptical slice sampling, all rows at once: for one score at a time, then for all of a row's scores
No defence on the scores: the equations are those of ESA, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.release_likelihood import meaning
from plumbob.attacks.scores._column_prior import PSEUDO, from_complete_rows, row_shift
from plumbob.attacks.scores.equation_solving import LinearEquationsOfScores, equations, linear_model
from plumbob.federation import FloatArray, IntArray
from plumbob.known_defences import KnownDefences, KnownNoise, KnownRounding
from plumbob.lazy_imports import torch
from plumbob.threats import View

EM_SWEEPS = (8, 8, 8)  # sweeps of each round of EM, on EM_ROWS rows; the first third of a round is not averaged
EM_ROWS = 500
FINAL = 30  # sweeps for all rows with the prior that EM has found
SHRINKS = 25  # tries of one slice before a row stays where it is
FITTING_DISTANCE = 1e-24  # squared distance up to which scores fit a release, for rounding

# (scores, rows they belong to) -> log likelihood of what those rows were told, up to a constant
Likelihood = Callable[[FloatArray, IntArray], FloatArray]


@dataclass(frozen=True)
class ReleasedScores:
    """What a release says: how likely scores are given it, and scores that fit it to start from."""

    likelihood: Likelihood
    start: FloatArray


def adapted(view: View, rng: np.random.Generator) -> LinearEquationsOfScores:
    """ESA's equations, with the mean of each right-hand side given what is known of the defence of the scores."""
    system = equations(view)
    rows = np.flatnonzero(system.told)
    scores = np.asarray(view.received("scores"), dtype=np.float64)[rows]
    told = read(scores, view.defence)
    if told is None or not len(rows):
        return system
    model = linear_model(view)
    known = view.own[rows] @ model.weights[view.known] + model.bias
    mean, spread, doubt = prior(view, model.weights[view.unknown], rows)
    sums = expected(told, known, mean, spread, doubt, rng)
    right = system.right.copy()
    right[rows] = -np.diff(sums, axis=1)
    narrow = known_nearly(scores, view.defence)
    if narrow.any():
        logs = np.log(told.start[narrow]) - known[narrow]
        right[rows[narrow]] = -np.diff(logs, axis=1)
    return replace(system, right=right)


def known_nearly(scores: FloatArray, defence: KnownDefences) -> NDArray[np.bool_]:
    """Rows whose rounded scores are all known within a hundredth part: the middle says it, and draws would hardly move."""
    rounding = defence.get(KnownRounding)
    if rounding is None or KnownNoise in defence:
        return np.zeros(len(scores), dtype=np.bool_)
    return np.asarray((scores > 100.0 * 10.0**-rounding.digits).all(axis=1))


def read(scores: FloatArray, defence: KnownDefences) -> ReleasedScores | None:
    """The meaning of released scores as a likelihood. None: they are as they were."""
    known = meaning(defence)
    if known is None:
        return None
    released, misfit, hard, width = torch.tensor(scores), known.misfit, known.hard, known.width

    def likelihood(v: FloatArray, rows: IntArray) -> FloatArray:
        off = misfit(torch.from_numpy(v), released[torch.from_numpy(rows)]).numpy()
        return np.where(off <= FITTING_DISTANCE, 0.0, -np.inf) if hard else np.asarray(-0.5 * off / width**2)

    return ReleasedScores(likelihood, known.middle(released).numpy())


def prior(view: View, weights: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of t per row, its covariance within the rows, and the covariance of what is not known of the mean itself."""
    low, high = (np.zeros(len(weights)), np.ones(len(weights))) if view.ranges is None else view.ranges.T
    span = high - low
    if view.auxiliary is not None:
        known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
        centre, rest = from_complete_rows(view.own[rows], known, unknown)
        spread = weights.T @ rest @ weights
        return centre @ weights, spread, spread / len(known)
    own = view.own[rows]
    means, count = own.mean(axis=0), own.shape[1] + PSEUDO
    middle = (means.sum() + PSEUDO / 2.0) / count
    between = (((means - middle) ** 2).sum() + PSEUDO / 12.0) / count
    shift, residual = row_shift(own)
    within = (residual.var(axis=0).sum() + PSEUDO / 12.0) / count
    scaled = weights * span[:, None]
    gram = scaled.T @ scaled
    return low @ weights + (middle + shift[:, None]) * scaled.sum(axis=0), within * gram, between * gram


def expected(
    told: ReleasedScores,
    known: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    doubt: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """E[t | release] for every row, up to a constant per row: the scores do not tell it, the differences do not need it."""
    classes = known.shape[1]
    flat = np.eye(classes) - 1.0 / classes
    mean, spread, doubt = mean @ flat, flat @ spread @ flat, flat @ doubt @ flat
    first, tie = spread, 2.0 * classes  # the first covariance counts as so many rows
    sums = (np.log(np.maximum(told.start, 1e-9)) - known) @ flat
    few = np.unique(np.linspace(0, len(known) - 1, min(EM_ROWS, len(known))).astype(int))
    count, draws, moved = len(few), sums[few], np.zeros(classes)
    fewer = ReleasedScores(lambda v, rows: told.likelihood(v, few[rows]), told.start[few])
    for sweeps in EM_SWEEPS:
        draws, average, scatter = sample(fewer, known[few], draws, mean[few] + moved, spread, sweeps, rng)
        gap = (average - mean[few]).mean(axis=0)
        # the mean of all rows, drawn to the prior one by what was in doubt of it
        tight = spread / count + 1e-9 * max(np.trace(doubt), 1e-12) * np.eye(classes)
        moved = doubt @ np.linalg.solve(doubt + tight, gap)
        left = average - mean[few] - moved
        spread = (left.T @ left + scatter + tie * first) / (count + tie)
    return sample(told, known, sums, mean + moved, spread, FINAL, rng)[1]


def sample(
    told: ReleasedScores,
    known: FloatArray,
    sums: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Last draw and mean of t for each row, and the summed covariances of the draws; all with zero sum over the classes.

    Rows are told apart by their largest score, against which the others are measured: its logarithm is the best known.
    """
    classes = known.shape[1]
    last, average, scatter = np.empty_like(sums), np.empty_like(sums), np.zeros((classes, classes))
    reference = np.argmax(told.start, axis=1)
    flat = np.eye(classes) - 1.0 / classes
    for r in np.unique(reference):
        rows = np.flatnonzero(reference == r)
        others = np.delete(np.arange(classes), r)
        differ = np.eye(classes)[others] - np.eye(classes)[r]
        back = flat[:, others]  # differences to t with zero sum
        inner = differ @ spread @ differ.T
        inner += 1e-6 * max(np.trace(inner) / len(inner), 1e-12) * np.eye(len(inner))
        state = _Chain(told.likelihood, known[rows] @ differ.T, rows, int(r), mean[rows] @ differ.T, inner, rng)
        now, total, square = sums[rows] @ differ.T, np.zeros((len(rows), len(others))), np.zeros_like(inner)
        skip = sweeps // 3
        level = state.level(now, np.arange(len(rows)))
        for sweep in range(sweeps):
            now, level = state.sweep(now, level)
            if sweep >= skip:
                total = total + now
                square += now.T @ now
        kept = sweeps - skip
        middle = total / kept
        last[rows], average[rows] = now @ back.T, middle @ back.T
        scatter += back @ (square / kept - middle.T @ middle) @ back.T
    return last, average, scatter


class _Chain:
    """Elliptical slice sampling of y ~ N(mean, spread) with a likelihood, for rows with one reference class."""

    def __init__(
        self,
        likelihood: Likelihood,
        known: FloatArray,
        rows: IntArray,
        reference: int,
        mean: FloatArray,
        spread: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self.likelihood, self.known, self.rows = likelihood, known, rows
        self.others = np.delete(np.arange(known.shape[1] + 1), reference)
        self.mean, self.rng = mean, rng
        self.root, self.precision = np.linalg.cholesky(spread), np.linalg.inv(spread)

    def level(self, y: FloatArray, index: IntArray) -> FloatArray:
        """Log likelihood of rows `index` at differences y to the reference class."""
        logits = np.zeros((len(y), len(self.others) + 1))
        logits[:, self.others] = self.known[index] + y
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return self.likelihood(raised / raised.sum(axis=1, keepdims=True), self.rows[index])

    def sweep(self, y: FloatArray, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        size = y.shape[1]
        for j in range(size if size > 1 else 0):
            share = 1.0 / self.precision[j, j]
            centre = y.copy()
            centre[:, j] -= (y - self.mean) @ self.precision[j] * share
            draw = np.zeros_like(y)
            draw[:, j] = np.sqrt(share) * self.rng.standard_normal(len(y))
            y, level = self.slice(y, level, centre, draw)
        return self.slice(y, level, self.mean, self.rng.standard_normal(y.shape) @ self.root.T)

    def slice(
        self, y: FloatArray, level: FloatArray, centre: FloatArray, draw: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """One move on the ellipse through y and the draw around the centre; brackets shrink row by row."""
        floor = level + np.log(self.rng.random(len(y)))
        floor = np.where(np.isfinite(floor), floor, -1e300)  # a start that does not fit takes the first that does
        angle = self.rng.random(len(y)) * 2.0 * np.pi
        low, high = angle - 2.0 * np.pi, angle.copy()
        y, level = y.copy(), level.copy()
        todo, offset = np.arange(len(y)), y - centre
        for _ in range(SHRINKS):
            turn = angle[todo, None]
            moved = centre[todo] + offset[todo] * np.cos(turn) + draw[todo] * np.sin(turn)
            reached = self.level(moved, todo)
            fine = reached > floor[todo]
            y[todo[fine]], level[todo[fine]] = moved[fine], reached[fine]
            todo = todo[~fine]
            if not len(todo):
                break
            below = angle[todo] < 0.0
            low[todo] = np.where(below, angle[todo], low[todo])
            high[todo] = np.where(below, high[todo], angle[todo])
            angle[todo] = low[todo] + self.rng.random(len(todo)) * (high[todo] - low[todo])
        return y, level
