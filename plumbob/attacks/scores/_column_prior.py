"""What the columns suggest of one another, before and beside the scores.

The unknown columns are taken for further draws of the known ones, and the box itself for half a known column, spread
evenly. Columns that stand near each other in a party's table are often alike; how much so is asked of the data. With
places p, and nothing for pairs of different tables,
    means    mu ~ N(centre, between R),    R_jk = near exp(-|p_j - p_k| / reach), R_jj = 1
    cells    x_i ~ N(mu, D R D),           R with a part common to all columns beside it, D the deviations
both are seen through the known columns and through the equations A x_i = a_i: z = H x with H = (1 0; 0 A). So centre,
between and R are fitted to the mean and the covariance of z, which hold no unknown value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from plumbob.attacks.scores._box_equations import TINY, before_cut, propagate_together
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.threats import View

PSEUDO = 0.5  # the box counts as half a known column, spread evenly
RIDGE = 1e-9
MEAN_LIKENESS = ((0.0, 1.0), (0.9, 2.0), (0.9, 5.0), (0.97, 5.0))  # near, reach: all alike likely
DIRECTIONS = 1200  # most coefficients regressed at once; beyond, the leading components of the known columns are used
COMMON, NEARNESSES, REACH = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9), (0.0, 0.2, 0.4, 0.6, 0.8), (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Places:
    """Where the known and the unknown columns stand in their parties' tables."""

    known: IntArray
    unknown: IntArray

    def likeness(self, near: float, reach: float, common: float = 0.0) -> FloatArray:
        """Correlations of all columns, the known ones first."""
        fading = np.zeros((len(self.known) + len(self.unknown),) * 2)
        for block, places in ((slice(len(self.known)), self.known), (slice(len(self.known), None), self.unknown)):
            fading[block, block] = np.exp(-np.abs(np.subtract.outer(places, places)) / reach)
        return np.asarray((1.0 - near - common) * np.eye(len(fading)) + common + near * fading)

    def seen_through(self, matrix: FloatArray) -> FloatArray:
        """H: the known columns and the equations of the unknown ones."""
        known = len(self.known)
        seen = np.zeros((known + len(matrix), known + len(self.unknown)))
        seen[:known, :known] = np.eye(known)
        seen[known:, known:] = matrix
        return seen


def gaussian_rows(
    matrix: FloatArray, targets: FloatArray, own: FloatArray, places: Places
) -> tuple[FloatArray, FloatArray]:
    """Centres (n x d) and covariance of the unknown columns given a row's known ones, all before the cut to the box."""
    known = own.shape[1]
    mean, doubt = column_means(matrix, targets.mean(axis=0), own.mean(axis=0), places)
    covariance = cell_covariance(matrix, targets, own, mean, places)
    slope, rest = given_known(covariance, known)
    rest = rest + np.diag(doubt)
    centre = before_cut(mean[None], np.diag(rest)[None])
    return centre + (own - own.mean(axis=0)) @ slope, rest


def column_means(
    matrix: FloatArray, told: FloatArray, means: FloatArray, places: Places
) -> tuple[FloatArray, FloatArray]:
    """Means of the unknown columns and the variance left in them, averaged over likenesses by their evidence."""
    seen, values = places.seen_through(matrix), np.concatenate([means, told])
    ones, count = seen.sum(axis=1), len(values) + PSEUDO
    evidence, found = [], []
    for near, reach in MEAN_LIKENESS:
        alike = places.likeness(near, reach)
        spread = seen @ alike @ seen.T + RIDGE * np.eye(len(values))
        weighed = np.linalg.solve(spread, np.column_stack([ones, values]))
        power = ones @ weighed[:, 0] + PSEUDO
        centre = float(np.clip((ones @ weighed[:, 1] + PSEUDO / 2.0) / power, 0.02, 0.98))
        gap = values - centre * ones
        scatter = gap @ (weighed[:, 1] - centre * weighed[:, 0]) + PSEUDO * (1.0 / 12.0 + (centre - 0.5) ** 2)
        between = scatter / count
        evidence.append(-0.5 * (count * np.log(between) + np.linalg.slogdet(spread)[1] + np.log(power)))
        slope, rest = given_known(between * alike, len(means))
        expected = np.clip(centre + (means - centre) @ slope, 0.02, 0.98)[None]
        parent = before_cut(expected, np.diag(rest)[None])
        mean, left = propagate_together(matrix, told[None], parent, rest, steps=40)
        found.append((mean[0], left[0]))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = sum(w * m for w, (m, _) in zip(weights, found, strict=True))
    left = sum(w * (v + (m - mean) ** 2) for w, (m, v) in zip(weights, found, strict=True))
    return np.clip(mean, 0.01, 0.99), np.asarray(left)


def cell_covariance(
    matrix: FloatArray, targets: FloatArray, own: FloatArray, mean: FloatArray, places: Places
) -> FloatArray:
    """Covariance of all columns, known ones first: the likeness under which that of (known, equations) is likeliest."""
    means = own.mean(axis=0)
    within = (own.var(axis=0).sum() + PSEUDO / 12.0) / ((means * (1.0 - means)).sum() + PSEUDO / 4.0)
    deviations = np.sqrt(np.concatenate([own.var(axis=0) + 1e-6, within * mean * (1.0 - mean)]))
    scale, seen = np.outer(deviations, deviations), places.seen_through(matrix)
    centred = np.hstack([own - means, targets - targets.mean(axis=0)])
    sample = centred.T @ centred / len(centred)
    best, found = -np.inf, scale
    for common, near, reach in product(COMMON, NEARNESSES, REACH):
        if common + near > 0.97 or (near == 0.0 and reach > REACH[0]):
            continue
        covariance = scale * places.likeness(near, reach, common)
        expected = seen @ covariance @ seen.T + RIDGE * np.eye(len(sample))
        size = np.trace(np.linalg.solve(expected, sample)) / max(len(sample), 1)  # the best factor before it
        likelihood = -np.linalg.slogdet(expected)[1] - len(sample) * np.log(max(size, TINY))
        if likelihood > best:
            best, found = likelihood, covariance
    return np.asarray(found)


def given_known(covariance: FloatArray, known: int) -> tuple[FloatArray, FloatArray]:
    """Slopes of the unknown columns on the known ones (which come first), and the covariance that is left."""
    size = len(covariance)
    slope = np.linalg.solve(covariance[:known, :known] + RIDGE * np.eye(known), covariance[:known, known:])
    rest = covariance[known:, known:] - covariance[known:, :known] @ slope
    return np.asarray(slope), np.asarray((rest + rest.T) / 2.0 + RIDGE * np.eye(size - known))


def from_complete_rows(own: FloatArray, known: FloatArray, unknown: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the unknown columns given a row's known ones, and the covariance that is left, from complete rows."""

    fitted = sklearn.covariance.LedoitWolf().fit(np.hstack([known, unknown]))
    split = known.shape[1]
    centre, covariance = fitted.location_, fitted.covariance_
    slope = np.linalg.solve(covariance[:split, :split], covariance[:split, split:])
    rest = covariance[split:, split:] - covariance[split:, :split] @ slope
    return centre[split:] + (own - centre[:split]) @ slope, rest


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


@dataclass(frozen=True)
class ColumnPrior:
    """x_i ~ N(mean + slope' parts_i, covariance), `parts` the scaled components of the known columns, in unit ranges."""

    mean: FloatArray
    slope: FloatArray  # components x unknown columns
    covariance: FloatArray
    between: float  # variance of column means around what is expected of them

    def rows(self, parts: FloatArray) -> FloatArray:
        return np.clip(self.mean + parts @ self.slope, 0.0, 1.0)


def components(own: FloatArray, unknown: int) -> FloatArray:
    """The known columns' principal components, unit variance, as many as can be regressed on."""
    centred = own - own.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    keep = values > 1e-6 * np.sqrt(len(own))
    keep &= np.arange(len(values)) < max(1, DIRECTIONS // unknown - 1)
    return np.asarray(left[:, keep] * np.sqrt(len(own)))


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
