"""Posterior mean (ours): among all values that fit the scores, the mean under what the known columns suggest.

ESA's equations hold exactly, but its answer is the shortest one: pulled to zero, often outside of the range. Here the
equations fix what they fix, and the rest is filled with a posterior mean inside the granted ranges. The prior takes the
unknown columns for further draws of the known ones ("exchangeable columns", and the box itself as half a uniform one):
    cut normal  x_ij ~ N(mu_j + shift_i, spread_j) on the box; mu solves the same problem for the mean row,
                A mu = mean(a), with mu_j ~ N(centre, between) on the box, fitted to known columns and equations
    mixture     x_ij - shift_i ~ the pooled values of the known columns (a 1-D Gaussian mixture)
with shift_i the part of a column that a row's mean over the others predicts. Both means are blended by the weight
that does best on known columns hidden on purpose, then moved to the nearest point of {x in box, A x = a}. With auxiliary
rows the prior is theirs: a Gaussian given the known columns, with shrunk covariance. Where a defence changed the scores,
a is replaced by its mean given the release (`adaptive.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plumbob.attacks.adaptive import adapted
from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.box import (
    TINY,
    before_cut,
    cut_normal,
    from_mixture,
    nearest_in_box,
    propagate,
    reduce,
)
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.threats import Schema, View, WhiteBox

PSEUDO = 0.5  # the box counts as half a known column, spread evenly
CHUNK = 512  # rows solved together: few enough to stay in the cache


class PosteriorMean(Attack):
    """The mean of what fits, for logistic regression."""

    name = "posterior_mean"
    summary = "ours: the mean of all values that fit the scores, the ranges and what the known columns suggest"
    paper = "plumbob"
    protocols = ("logistic_regression",)
    requires = (WhiteBox, Schema)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
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
                values[rows] = solve(left, right, view.own[rows], low, high, rng)
            else:
                known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
                values[rows] = solve_with_rows(left, right, view.own[rows], low, high, known, unknown)
        return Guess(view.unknown_names, values)


def solve(
    left: FloatArray, right: FloatArray, own: FloatArray, low: FloatArray, high: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Estimates x (rows x columns) in [low, high] with left @ x_i = right_i, given the known columns of the same rows."""
    span = high - low
    matrix, targets = reduce(left * span, right - left @ low)  # unknowns now in 0..1
    unit = np.clip(targets @ matrix, 0.0, 1.0)  # the solution, if there are as many equations as unknowns
    if len(matrix) < left.shape[1]:
        weight = blend_weight(left * span, own, rng)
        for rows, first, second in candidates(matrix, targets, own):
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
    prior, rest = rows_prior(own, known, unknown)
    span = high - low
    matrix, targets = reduce(left * span, right - left @ low)
    scaled = matrix @ (rest / np.outer(span, span))
    unit = (prior - low) / span
    gram = scaled @ matrix.T + 1e-12 * np.eye(len(matrix))
    unit = unit + (targets - unit @ matrix.T) @ np.linalg.solve(gram, scaled)
    for begin in range(0, len(unit), CHUNK):
        rows = slice(begin, begin + CHUNK)
        unit[rows] = nearest_in_box(matrix, targets[rows], unit[rows])
    return np.asarray(low + span * unit)


def without_scores(view: View) -> FloatArray:
    """What the curious party would guess before any score arrives: from auxiliary rows, else from its own row means.

    A floor for every attack: what needs no message is not a leak of the protocol.
    """
    if view.auxiliary is not None:
        known, unknown = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
        return np.clip(rows_prior(view.own, known, unknown)[0], 0.0, 1.0)
    means = view.own.mean(axis=0)
    centre = (means.sum() + PSEUDO / 2.0) / (len(means) + PSEUDO)
    shift, _ = row_shift(view.own)
    return np.broadcast_to(np.clip(centre + shift, 0.0, 1.0)[:, None], (len(view.own), len(view.unknown)))


def rows_prior(own: FloatArray, known: FloatArray, unknown: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the unknown columns given a row's known ones, and the covariance that is left, from complete rows."""
    from sklearn.covariance import LedoitWolf

    fitted = LedoitWolf().fit(np.hstack([known, unknown]))
    split = known.shape[1]
    centre, covariance = fitted.location_, fitted.covariance_
    slope = np.linalg.solve(covariance[:split, :split], covariance[:split, split:])
    rest = covariance[split:, split:] - covariance[split:, :split] @ slope
    return centre[split:] + (own - centre[:split]) @ slope, rest


def candidates(
    matrix: FloatArray, targets: FloatArray, own: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Posterior means in the box under the cut-normal and the mixture prior, chunk of rows by chunk of rows."""
    shift, residual = row_shift(own)
    mean, spread = column_means(matrix, targets.mean(axis=0, keepdims=True), own)
    weights, centres, variances = pooled_mixture(residual)
    pooled_mean = float(weights @ centres)
    pooled_variance = float(weights @ (variances + (centres - pooled_mean) ** 2))
    parent = before_cut(mean, spread)
    for begin in range(0, len(targets), CHUNK):
        rows = slice(begin, begin + CHUNK)
        offset = shift[rows, None]
        flat = np.zeros((len(offset), matrix.shape[1]))
        first, _ = propagate(matrix, targets[rows], mean + offset, spread + flat, cut_normal(parent + offset, spread))
        shifted = targets[rows] - offset * matrix.sum(axis=1)
        tilt = from_mixture(weights, centres, variances)
        second, _ = propagate(matrix, shifted, flat + pooled_mean, flat + pooled_variance, tilt)
        yield rows, np.clip(first, 0.0, 1.0), np.clip(second + offset, 0.0, 1.0)


def column_means(matrix: FloatArray, target: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimated means of the unknown columns and the spread of cells around them, both 1 x columns.

    The means of known and unknown columns are draws from N(centre, between). With orthonormal equations the mean row's
    targets are draws from N(centre A1, between), so they tell of centre and between like further columns.
    """
    means, ones, told = own.mean(axis=0), matrix.sum(axis=1), target[0]
    count = own.shape[1] + PSEUDO
    centre = (means.sum() + PSEUDO / 2.0 + ones @ told) / (count + ones @ ones)
    scatter = ((means - centre) ** 2).sum() + ((told - centre * ones) ** 2).sum() + PSEUDO / 12.0
    between = scatter / (count + len(matrix))
    within = (own.var(axis=0).sum() + PSEUDO / 12.0) / ((means * (1.0 - means)).sum() + PSEUDO / 4.0)
    centre = np.clip(centre, 0.02, 0.98)
    prior_mean, prior_variance = np.full((2, 1, matrix.shape[1]), [[[centre]], [[between]]])
    tilt = cut_normal(before_cut(prior_mean, prior_variance), prior_variance)
    mean, doubt = propagate(matrix, target, prior_mean, prior_variance, tilt, steps=60)
    mean = np.clip(mean, 0.01, 0.99)
    return mean, within * mean * (1.0 - mean) + doubt


def row_shift(own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a row's own mean predicts of a further column (n,), and the known columns less that (n, p)."""
    count = own.shape[1]
    if count < 2:
        return np.zeros(len(own)), own
    centred = own - own.mean(axis=0)
    others = (centred.sum(axis=1, keepdims=True) - centred) / (count - 1)
    power = float((others**2).sum())
    slope = float(np.clip((others * centred).sum() / power, 0.0, 1.0)) if power > TINY else 0.0
    return slope * centred.mean(axis=1), own - slope * others


def pooled_mixture(columns: FloatArray, size: int = 10, most: int = 4000) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, centres, variances of a 1-D Gaussian mixture of all cells and the pseudo-column (EM from quantiles)."""
    rows = np.linspace(0, len(columns) - 1, min(len(columns), max(1, most // (columns.shape[1] + 1)))).astype(int)
    fill = max(1, round(PSEUDO * len(rows)))
    uniform = (np.arange(fill) + 0.5) / fill
    values = np.concatenate([columns[rows].ravel(), uniform])[:, None]
    centres = np.quantile(values, (np.arange(size) + 0.5) / size) + 1e-6 * np.arange(size)
    variances, weights = np.full(size, values.var() / size + 1e-5), np.full(size, 1.0 / size)
    for _ in range(50):
        log = np.log(weights / np.sqrt(variances)) - 0.5 * (values - centres) ** 2 / variances
        share = np.exp(log - log.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        total = share.sum(axis=0) + 1e-9
        weights, centres = total / total.sum(), (share * values).sum(axis=0) / total
        variances = (share * (values - centres) ** 2).sum(axis=0) / total + 1e-5
    return weights, centres, variances


def blend_weight(equations: FloatArray, own: FloatArray, rng: np.random.Generator, trials: int = 6) -> float:
    """Weight of the cut-normal estimate that does best on known columns hidden on purpose (one trial's pull to 1/2)."""
    unknown, known = equations.shape[1], own.shape[1]
    hide = int(np.clip(round(known * unknown / (known + unknown)), 2, max(known - 1, 2)))
    asked = max(1, round(np.linalg.matrix_rank(equations) * hide / unknown))
    if known < 3 or asked >= hide:
        return 0.5
    sample = own[np.linspace(0, len(own) - 1, min(len(own), 256)).astype(int)]
    gains, powers = np.zeros(trials), np.zeros(trials)
    for trial in range(trials):
        order = rng.permutation(known)
        truth, rest = sample[:, order[:hide]], sample[:, order[hide:]]
        columns = rng.choice(unknown, hide, replace=hide > unknown)
        mixed = rng.standard_normal((asked, len(equations))) @ equations[:, columns]
        matrix, targets = reduce(mixed, truth @ mixed.T)
        for _, first, second in candidates(matrix, targets, rest):
            gains[trial] = ((first - second) * (truth - second)).sum()
            powers[trial] = ((first - second) ** 2).sum()
    prior = float(powers.mean()) + TINY
    return float(np.clip((gains.sum() + 0.5 * prior) / (powers.sum() + prior), 0.0, 1.0))
