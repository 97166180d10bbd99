"""Boxes and equations: what is known of x in [0, 1]^d with A x = a, for many rows at once with one shared A.

Two questions. Which point fits and is nearest a given one (`nearest_in_box`, a damped Newton method on the dual)? And
what is the mean of all points that fit, by expectation propagation? Under independent priors (`propagate`) every prior
factor j is replaced by a Gaussian of precision t_ij, so that with V = diag(1/t_i)
    E x = m + V A'(A V A')^-1 (a - A m),   Var x = V - V A'(A V A')^-1 A V
are solves of the size of the equations, batched over rows. Under one Gaussian for all columns together
(`propagate_together`) the equations are met first and only the box is replaced:  Var x = P - P T^1/2 B^-1 T^1/2 P with
B = 1 + T^1/2 P T^1/2, P what the equations leave of the covariance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from plumbob.federation import FloatArray

# (cavity mean, cavity variance), both rows x columns -> mean and variance of factor times cavity
Tilt = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

PROPAGATION_ROUNDS = 16  # rounds of expectation propagation, unless it settles before
SETTLED_MEAN_CHANGE = 3e-4  # change of a mean, in units of the range, below which it has
DAMPING = 0.7
TINY = 1e-12
UNINFORMATIVE_VARIANCE = 1e8  # variance of what says nothing


def reduce(equations: FloatArray, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equations with orthonormal rows and the same least-squares solutions (rank-deficient ones merged)."""
    left, values, right = np.linalg.svd(equations, full_matrices=False)
    keep = values > 1e-10 * max(float(values.max(initial=0.0)), TINY)
    return right[keep], answers @ left[:, keep] / values[keep]


def propagate(
    matrix: FloatArray,
    targets: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    tilt: Tilt,
    steps: int = PROPAGATION_ROUNDS,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of rows with independent factors, given matrix @ x_i = targets_i."""
    precision = 1.0 / variance
    pull, least = mean * precision, 1e-3 * precision
    joint, left = condition(matrix, targets, mean, variance)
    for _ in range(steps):
        precision, pull = refined(joint, left, precision, pull, tilt, least)
        before = joint
        joint, left = condition(matrix, targets, pull / precision, 1.0 / precision)
        if np.abs(joint - before).max(initial=0.0) < SETTLED_MEAN_CHANGE:
            break
    return joint, left


def refined(
    joint: FloatArray, left: FloatArray, precision: FloatArray, pull: FloatArray, tilt: Tilt, least: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """One damped round: the Gaussian that stands for each factor, from the moments of the factor in its surroundings."""
    cavity = 1.0 / left - precision
    usable = (cavity > 1e-6) & (left > TINY)
    cavity = np.where(usable, cavity, 1.0)
    cavity_mean = np.where(usable, (joint / left - pull) / cavity, 0.5)
    tilted, tilted_variance = tilt(cavity_mean, 1.0 / cavity)
    fresh = np.maximum(1.0 / np.maximum(tilted_variance, 1e-9) - cavity, least)
    fresh_pull = tilted * (fresh + cavity) - cavity_mean * cavity
    damped = np.where(usable, DAMPING, 0.0)
    return precision + damped * (fresh - precision), pull + damped * (fresh_pull - pull)


def propagate_together(
    matrix: FloatArray,
    targets: FloatArray,
    centres: FloatArray,
    covariance: FloatArray,
    steps: int = PROPAGATION_ROUNDS,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of rows N(centres_i, covariance) cut to [0, 1]^d, given matrix @ x_i = targets_i."""
    scaled = covariance @ matrix.T
    ridge = 1e-12 * np.trace(covariance) * np.eye(len(matrix))
    gain = np.linalg.solve(matrix @ scaled + ridge, scaled.T)
    open_ = covariance - scaled @ gain
    middle = centres + (targets - centres @ matrix.T) @ gain
    box = cut_normal(np.full((1, 1), 0.5), np.full((1, 1), UNINFORMATIVE_VARIANCE))
    least = np.full_like(middle, 1.0 / UNINFORMATIVE_VARIANCE)
    precision, pull = least, 0.5 * least
    joint, left = middle, np.zeros_like(middle)
    for step in range(steps + 1):
        root = np.sqrt(precision)[:, :, None]
        part = root * open_
        inner = np.eye(len(covariance)) + part * root.transpose(0, 2, 1)
        spread = open_ - part.transpose(0, 2, 1) @ np.linalg.solve(inner, part)
        before, joint = joint, middle + np.einsum("nij,nj->ni", spread, pull - precision * middle)
        left = np.maximum(np.einsum("nii->ni", spread), 1e-14)
        if step and np.abs(joint - before).max(initial=0.0) < SETTLED_MEAN_CHANGE:
            break
        precision, pull = refined(joint, left, precision, pull, box, least)
    return joint, left


def condition(
    matrix: FloatArray, targets: FloatArray, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variances of N(mean_i, diag(variance_i)) given matrix @ x_i = targets_i."""
    scaled = matrix * variance[:, None, :]
    gram = scaled @ matrix.T
    size = len(matrix)
    ridge = 1e-11 * np.trace(gram, axis1=1, axis2=2) / max(size, 1) + 1e-300
    gain = np.linalg.solve(gram + ridge[:, None, None] * np.eye(size), scaled)
    joint = mean + np.einsum("nm,nmd->nd", targets - mean @ matrix.T, gain)
    return joint, np.maximum(variance - (scaled * gain).sum(axis=1), 1e-14)


def cut_normal(centre: FloatArray, spread: FloatArray) -> Tilt:
    """Moments of N(centre, spread) cut to [0, 1] times a Gaussian."""

    def tilt(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        joint = spread * variance / (spread + variance)
        middle = (centre * variance + mean * spread) / (spread + variance)
        flip = middle > 0.5  # mirrored so that the mass lies at the left: no cancellation in the tails
        middle, sd = np.where(flip, 1.0 - middle, middle), np.sqrt(joint)
        lower, upper = -middle / sd, (1.0 - middle) / sd
        above = log_ndtr(-lower)
        mass = above + np.log(-np.expm1(np.minimum(log_ndtr(-upper) - above, -TINY))) + 0.5 * np.log(2 * np.pi)
        at_low = np.exp(np.minimum(-0.5 * lower**2 - mass, 50.0))
        at_high = np.exp(np.minimum(-0.5 * upper**2 - mass, 50.0))
        out = np.clip(middle + sd * (at_low - at_high), 1e-9, 1.0 - 1e-9)
        left = joint * (1.0 + lower * at_low - upper * at_high - (at_low - at_high) ** 2)
        return np.where(flip, 1.0 - out, out), np.clip(left, 1e-10, joint)

    return tilt


def before_cut(mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Centre of the normal with this spread that has this mean once cut to [0, 1]."""
    centre, wide = mean.copy(), np.full_like(mean, 1e6)
    for _ in range(30):
        reached, left = cut_normal(centre, spread)(mean, wide)
        centre = np.clip(centre + (mean - reached) * np.minimum(spread / left, 3.0), -3.0, 4.0)
    return centre


def from_mixture(weights: FloatArray, centres: FloatArray, variances: FloatArray) -> Tilt:
    """Moments of a Gaussian mixture times a Gaussian."""

    def tilt(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        total = variances + variance[..., None]
        gap = mean[..., None] - centres
        share = np.log(weights) - 0.5 * (np.log(total) + gap**2 / total)
        share = np.exp(share - share.max(axis=-1, keepdims=True))
        share /= share.sum(axis=-1, keepdims=True)
        gain = variances / total
        part = centres + gain * gap
        out = (share * part).sum(axis=-1)
        return out, (share * (gain * variance[..., None] + (part - out[..., None]) ** 2)).sum(axis=-1)

    return tilt


def nearest_in_box(matrix: FloatArray, targets: FloatArray, guess: FloatArray, slack: float = 1e-11) -> FloatArray:
    """Point of [0, 1]^d nearest the guess with matrix @ x_i = targets_i: damped Newton on the dual, x = clip(g + A'l).

    The slack makes it min |x - g|^2 + |A x - a|^2 / slack, so the dual has a maximum; an empty set gets least squares.
    """
    dual, todo, damp = np.zeros_like(targets), np.arange(len(targets)), np.full(len(targets), 1e-3)
    identity = np.eye(len(matrix))

    def value(multiplier: FloatArray, rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        free = guess[rows] + multiplier @ matrix
        point = np.clip(free, 0.0, 1.0)
        miss = targets[rows] - point @ matrix.T - slack * multiplier
        height = 0.5 * ((point - guess[rows]) ** 2).sum(1) + (multiplier * (miss + 0.5 * slack * multiplier)).sum(1)
        return height, miss, ((free > 0.0) & (free < 1.0)).astype(np.float64)

    for _ in range(100):
        height, miss, inside = value(dual[todo], todo)
        unmet = np.abs(miss).max(axis=1, initial=0.0) > TINY
        todo, height, miss, inside = todo[unmet], height[unmet], miss[unmet], inside[unmet]
        if not len(todo):
            break
        bend = np.minimum(damp[todo], np.linalg.norm(miss, axis=1)) + slack
        hessian = (matrix * inside[:, None, :]) @ matrix.T + bend[:, None, None] * identity
        move = np.linalg.solve(hessian, miss[..., None])[..., 0]
        slope, scale = (move * miss).sum(axis=1), np.ones(len(todo))
        for _ in range(30):
            short = value(dual[todo] + scale[:, None] * move, todo)[0] < height + 1e-4 * scale * slope - 1e-13
            if not short.any():
                break
            scale[short] *= 0.5
        dual[todo] += scale[:, None] * move
        damp[todo] *= np.where(scale == 1.0, 0.2, 2.0)
    point = np.clip(guess + dual @ matrix, 0.0, 1.0)
    unmet = np.abs(targets - point @ matrix.T).max(axis=1, initial=0.0) > 1e-7
    if unmet.any():  # the set is empty
        point[unmet] = least_squares_in_box(matrix, targets[unmet], point[unmet])
    return point


def least_squares_in_box(matrix: FloatArray, targets: FloatArray, start: FloatArray, steps: int = 500) -> FloatArray:
    """Point of [0, 1]^d with least |matrix @ x_i - targets_i|: projected gradient with momentum (rows orthonormal)."""
    point, ahead = start, start
    for step in range(steps):
        fresh = np.clip(ahead + (targets - ahead @ matrix.T) @ matrix, 0.0, 1.0)
        ahead = fresh + (step / (step + 3.0)) * (fresh - point)
        point = fresh
    return point
