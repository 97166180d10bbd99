"""Posterior mean (ours): the mean of all values that fit the scores, under a prior from the known columns.

ESA's equations hold exactly, but its answer is the shortest one: pulled to zero, often outside of the range. Here the
equations fix what they fix, and the rest is filled with a posterior mean inside the granted ranges, under two priors
(`_column_prior.py`) that take the unknown columns for further draws of the known ones:
    Gaussian    x_i ~ N(m_i, S) on the box; means and covariance fitted to known columns and equations, with what
                columns that stand near each other have in common
    mixture     x_ij - shift_i ~ the pooled values of the known columns, shift_i what a row's own mean predicts
Both means are blended by the weight that does best on known columns hidden on purpose, then moved to the nearest point
of {x in box, A x = a}. With auxiliary rows the prior is theirs: a Gaussian given the known columns, with shrunk
covariance. Where a defence changed the scores, a is replaced by its mean given the release (`_defended_equations.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores._box_equations import (
    TINY,
    from_mixture,
    nearest_in_box,
    propagate,
    propagate_together,
    reduce,
)
from plumbob.attacks.scores._column_prior import (
    PSEUDO,
    Places,
    from_complete_rows,
    gaussian_rows,
    pooled_mixture,
    row_shift,
)
from plumbob.attacks.scores._defended_equations import adapted
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.threats import Schema, View, WhiteBox

ROWS_TOGETHER = 512  # rows solved together: few enough to stay in the cache
COVARIANCE_CELLS = 4_000_000  # and few enough that their covariances have at most so many cells
FEWEST_KNOWN = 3  # known columns below which their pooled values say too little for a mixture


class PosteriorMean(Attack):
    """The posterior mean for logistic regression."""

    name = "posterior_mean"
    identity = "PosteriorMean()"
    summary = "ours: the mean of all values that fit the scores and ranges, under a prior from the known columns"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression",)
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n u", "loose", "loose n u")  # draws in a box of u columns, where scores leave one
    workload = "matrices"

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.ranges is None:
            raise BadInput("the posterior mean needs the ranges of the unknown columns")
        system = adapted(view, rng)
        low, high = view.ranges.T
        values = np.empty((len(view.own), len(low)))
        for rows in (system.told, ~system.told):
            if not rows.any():
                continue
            told = len(system.left) if rows is system.told else 0  # withheld rows: the prior alone
            left, right = system.left[:told], system.right[rows, :told]
            if view.auxiliary is None:
                places = Places(view.known, view.unknown)
                values[rows] = solve(left, right, view.own[rows], low, high, places, rng)
            else:
                known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
                values[rows] = solve_with_rows(left, right, view.own[rows], low, high, known, unknown)
        return Guess(view.unknown_names, values)


def solve(
    left: FloatArray,
    right: FloatArray,
    own: FloatArray,
    low: FloatArray,
    high: FloatArray,
    places: Places,
    rng: np.random.Generator,
) -> FloatArray:
    """Estimates x (rows x columns) in [low, high] with left @ x_i = right_i, given the known columns of the same rows."""
    span = high - low
    matrix, targets = reduce(left * span, right - left @ low)  # unknowns now in 0..1
    unit = np.clip(targets @ matrix, 0.0, 1.0)  # the solution, if there are as many equations as unknowns
    if len(matrix) < left.shape[1]:
        weight = blend_weight(left * span, own, places, rng)
        for rows, first, second in candidates(matrix, targets, own, places):
            unit[rows] = nearest_in_box(matrix, targets[rows], weight * first + (1.0 - weight) * second)
    return np.asarray(low + span * unit)


def solve_with_rows(
    left: FloatArray,
    right: FloatArray,
    own: FloatArray,
    low: FloatArray,
    high: FloatArray,
    known: FloatArray,
    unknown: FloatArray,
) -> FloatArray:
    """The same with complete rows of other people: x | own ~ N(m + B (own - m_own), S), then the equations, then the box."""
    prior, rest = from_complete_rows(own, known, unknown)
    span = high - low
    matrix, targets = reduce(left * span, right - left @ low)
    scaled = matrix @ (rest / np.outer(span, span))
    unit = (prior - low) / span
    gram = scaled @ matrix.T + 1e-12 * np.eye(len(matrix))
    unit = unit + (targets - unit @ matrix.T) @ np.linalg.solve(gram, scaled)
    for begin in range(0, len(unit), ROWS_TOGETHER):
        rows = slice(begin, begin + ROWS_TOGETHER)
        unit[rows] = nearest_in_box(matrix, targets[rows], unit[rows])
    return np.asarray(low + span * unit)


def without_scores(view: View) -> FloatArray:
    """What the curious party would guess before any score arrives: from auxiliary rows, else from its own columns.

    A floor for every attack: what needs no message is not a leak of the protocol.
    """
    complete = view.auxiliary if view.people_rows is None else view.people_rows
    if complete is not None:
        known, unknown = complete[:, view.known], complete[:, view.unknown]
        return np.clip(from_complete_rows(view.own, known, unknown)[0], 0.0, 1.0)
    if not view.own.shape[1]:
        return np.full((len(view.own), len(view.unknown)), 0.5)
    means = view.own.mean(axis=0)
    centre = (means.sum() + PSEUDO / 2.0) / (len(means) + PSEUDO)
    shift, _ = row_shift(view.own)
    return np.broadcast_to(np.clip(centre + shift, 0.0, 1.0)[:, None], (len(view.own), len(view.unknown)))


def candidates(
    matrix: FloatArray, targets: FloatArray, own: FloatArray, places: Places
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Posterior means in the box under the Gaussian and the mixture prior, chunk of rows by chunk of rows."""
    centres, covariance = gaussian_rows(matrix, targets, own, places)
    shift, residual = row_shift(own)
    weights, middles, variances = pooled_mixture(residual)
    pooled_mean = float(weights @ middles)
    pooled_variance = float(weights @ (variances + (middles - pooled_mean) ** 2))
    chunk = max(1, min(ROWS_TOGETHER, COVARIANCE_CELLS // len(covariance) ** 2))
    for begin in range(0, len(targets), chunk):
        rows = slice(begin, begin + chunk)
        first, _ = propagate_together(matrix, targets[rows], centres[rows], covariance)
        offset = shift[rows, None]
        flat = np.zeros((len(offset), matrix.shape[1]))
        shifted = targets[rows] - offset * matrix.sum(axis=1)
        tilt = from_mixture(weights, middles, variances)
        second, _ = propagate(matrix, shifted, flat + pooled_mean, flat + pooled_variance, tilt)
        yield rows, np.clip(first, 0.0, 1.0), np.clip(second + offset, 0.0, 1.0)


def blend_weight(
    equations: FloatArray, own: FloatArray, places: Places, rng: np.random.Generator, trials: int = 6
) -> float:
    """Weight of the Gaussian estimate that does best on known columns hidden on purpose (one trial's pull to 1/2)."""
    unknown, known = equations.shape[1], own.shape[1]
    if known < FEWEST_KNOWN:
        return 1.0
    hide = int(np.clip(round(known * unknown / (known + unknown)), 2, known - 1))
    asked = max(1, round(np.linalg.matrix_rank(equations) * hide / unknown))
    if asked >= hide:
        return 0.5
    sample = own[np.linspace(0, len(own) - 1, min(len(own), 256)).astype(int)]
    gains, powers = np.zeros(trials), np.zeros(trials)
    for trial in range(trials):
        order = rng.permutation(known)
        truth, rest = sample[:, order[:hide]], sample[:, order[hide:]]
        columns = rng.choice(unknown, hide, replace=hide > unknown)
        mixed = rng.standard_normal((asked, len(equations))) @ equations[:, columns]
        matrix, targets = reduce(mixed, truth @ mixed.T)
        hidden = Places(places.known[order[hide:]], places.known[order[:hide]])
        for rows, first, second in candidates(matrix, targets, rest, hidden):
            gains[trial] += ((first - second) * (truth[rows] - second)).sum()
            powers[trial] += ((first - second) ** 2).sum()
    prior = float(powers.mean()) + TINY
    return float(np.clip((gains.sum() + 0.5 * prior) / (powers.sum() + prior), 0.0, 1.0))
