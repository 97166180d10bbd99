"""What gradients mean that a known defence has changed: for every number an estimate, and how far off it may be.

    dp_gradients         noise of a known width; clipping scales all of a row's cells alike, which ratios do not notice
    quantised_gradients  half a level at most: variance step^2 / 12, step^2 / 6 if rounded by chance; one bit is like paired fakes
    sparse_gradients     what was sent is exact; what was not is smaller than the least that was
    fake_gradients       paired: an order and no more, so that the noise is what the batches do not explain. As printed: small
                         positive numbers are exact, and the lower half is taken to mirror the upper
With the variances the rows' own gradients are a posterior mean: S Z = K G + noise, Z around the mean over all batches with
the variance that the batches show. What a row put into a layer is then drawn towards what is expected without any gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.special import ndtri

from plumbob.attacks.gradients._row_gradients import Inputs, Separation
from plumbob.attacks.gradients._worker_uploads import Gradients, Uploads
from plumbob.federation import FloatArray, IntArray
from plumbob.known_defences import (
    KnownDefences,
    KnownDpGradients,
    KnownFakeGradients,
    KnownQuantisedGradients,
    KnownSparseGradients,
)

CHANGES = (KnownDpGradients, KnownQuantisedGradients, KnownSparseGradients, KnownFakeGradients)
MOST_SOLVING_OPERATIONS = 3e10  # operations that solving cell by cell may take
VARIANCE_OF_EXACT = 1e-12  # share of the mean square that counts as the variance of an exact number
LEAST_ROW_VARIANCE = 1e-4  # share of what batches vary by that rows are taken to vary by at the least
SURE_A_NUMBER_IS_TRUE = 0.5  # share of the expected fake number up to which a positive number counts as true


def changed(defence: KnownDefences) -> bool:
    """Whether numbers were changed before they were sent."""
    return any(kind in defence for kind in CHANGES)


@dataclass(frozen=True)
class GradientEstimates:
    """Gradients as estimates, rounds x cells, with their variances (rounds x cells, or one column for all cells)."""

    values: FloatArray
    variance: FloatArray | None  # None: to be estimated from what the batches do not explain


def orders_only(defence: KnownDefences) -> bool:
    """Whether nothing but the order of a layer's cells is known."""
    fake = defence.get(KnownFakeGradients)
    return fake is not None and not fake.literal


def told(defence: KnownDefences, sent: Gradients, sizes: FloatArray, whole: int) -> GradientEstimates:
    """What the numbers sent of one parameter mean; `whole` is how many cells it has, `sizes` those of the batches."""
    values = sent.values.astype(np.float64)
    variance = np.zeros((len(values), 1))
    if orders_only(defence):
        return GradientEstimates(values, None)
    fake, sparse = defence.get(KnownFakeGradients), defence.get(KnownSparseGradients)
    quantised, private = defence.get(KnownQuantisedGradients), defence.get(KnownDpGradients)
    if fake is not None and values.shape[1] == whole:
        values, variance = _unfaked(values, fake.sigma)
    if sparse is not None:
        magnitude = np.abs(values)
        least = np.where(magnitude > 0, magnitude, np.inf).min(axis=1, keepdims=True)
        missing = (values == 0) & (sparse.share < 1)
        variance = variance + np.where(missing, np.where(np.isfinite(least), least, 0.0) ** 2 / 3, 0.0)
    if quantised is not None:
        bits, chance = quantised.bits, quantised.stochastic
        if bits == 1 and not chance:  # a sign and no more
            return GradientEstimates(values, None)
        step = np.ptp(values, axis=1, keepdims=True) / (2**bits - 1)
        variance = variance + step**2 / (6 if chance else 12)
    if private is not None:
        if private.noise is None:
            return GradientEstimates(values, None)
        width = private.noise * private.clip
        variance = variance + (width / sizes[:, None]) ** 2
    return GradientEstimates(values, variance)


def _unfaked(values: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """Numbers of the printed line 17: those surely true as they are, the others by the number at the mirrored rank."""
    cells = values.shape[1]
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    fake = -sigma * ndtri((np.arange(cells) + 0.5) / cells)
    sure = (ranked >= 0) & (ranked < SURE_A_NUMBER_IS_TRUE * np.maximum(fake, 0.0))
    upper = np.where(sure, ranked, np.nan)
    typical = (
        np.sqrt(np.nanmean(upper**2, axis=1, keepdims=True)) if sure.any(axis=1).all() else np.ones((len(values), 1))
    )
    size = np.where(sure, ranked, np.minimum(np.abs(ranked), typical))
    mirrored = -size[:, ::-1]
    lower = np.arange(cells) >= cells / 2
    guess = np.where(sure, ranked, np.where(lower, mirrored, size))
    spread = np.where(sure, 0.0, guess**2 + (0.1 * typical) ** 2)
    found, variance = np.empty_like(values), np.empty_like(values)
    np.put_along_axis(found, order, guess, axis=1)
    np.put_along_axis(variance, order, spread, axis=1)
    return found, variance


@dataclass(frozen=True)
class Estimates:
    """The rows' own gradients, rows x cells, with the mean square by which a row's cells are expected to be off.

    `explained` is, per row, the share of what rows differ by that the batches tell; the rest is the mean over all rows.
    """

    values: FloatArray
    off: FloatArray
    explained: FloatArray

    @classmethod
    def of(cls, values: FloatArray, left: FloatArray, spread: float, middle: float) -> Estimates:
        """From the variances that are left of rows that vary by `spread` around a centre known up to `middle`."""
        left = np.clip(left, 0.0, spread)
        return cls(values, left + middle, 1 - left / spread)


def estimates(uploads: Uploads, rounds: IntArray, meant: GradientEstimates) -> Estimates:
    """The posterior mean of Z in S Z = K G + noise; its solution where nothing was changed."""
    if meant.variance is not None and not meant.variance.any():
        separation = Separation.of(uploads, rounds)
        found = separation.rows(Gradients(rounds, meant.values, np.arange(meant.values.shape[1])))
        return Estimates(found, np.zeros(len(found)), separation.determined.astype(np.float64))
    batches, sizes = uploads.indicator[rounds], uploads.sizes[rounds][:, None]
    total = batches.shape[1]
    centre = meant.values.mean(axis=0)
    right = sizes * (meant.values - centre)  # S (Z - centre) + noise
    u, d, v = linalg.svd(batches, full_matrices=False)
    square = (right**2).mean(axis=0)
    if meant.variance is None:
        free = max(len(rounds) - int((d > 1e-9 * d[0]).sum()), 1)
        explained = u @ (u.T @ right) if len(rounds) > total else 0.5 * right
        noise = np.broadcast_to(((right - explained) ** 2).sum(axis=0) / free, right.shape)
    else:
        noise = np.broadcast_to(sizes**2 * meant.variance, right.shape)
    if not square.any():
        return Estimates(np.tile(centre, (total, 1)), np.zeros(total), np.zeros(total))
    noise = noise + VARIANCE_OF_EXACT * (square + square.mean())
    middle = float((noise / sizes**2).mean()) / len(rounds)  # the centre's own variance
    shared = np.mean(sizes * (1 - sizes / total)) or 1.0
    own = (square - noise.mean(axis=0)) / shared
    unseen = float(noise.mean()) * np.sqrt(2.0 / right.size) / shared  # what rows may vary by without showing
    pooled = max(float(own.mean()), unseen, LEAST_ROW_VARIANCE * float(square.mean()) / shared)
    spread = np.maximum(own, 0.1 * pooled) + 1e-300  # the variance of rows, cell by cell
    uneven = float(np.ptp(noise, axis=0).max(initial=0.0)) > 0
    if uneven and len(rounds) ** 3 * right.shape[1] <= MOST_SOLVING_OPERATIONS:
        found, left = _cell_by_cell(batches, right, noise, spread)
        return Estimates.of(centre + found, left, float(spread.mean()), middle)
    ridge = noise.mean(axis=0) / spread
    shrink = d[:, None] / (d[:, None] ** 2 + ridge)
    found = centre + v.T @ (shrink * (u.T @ right))
    left = spread.mean() - (v.T**2) @ (spread * shrink * d[:, None]).mean(axis=1)
    return Estimates.of(found, left, float(spread.mean()), middle)


def estimates_of(uploads: Uploads, party: str, key: str) -> Estimates:
    """The rows' own gradients of one parameter, from what was sent of it."""
    sent = uploads.gradients(party, key)
    whole = int(np.prod(uploads.parameters(party, 0)[key].shape))
    return estimates(uploads, sent.rounds, told(uploads.view.defence, sent, uploads.sizes[sent.rounds], whole))


def _cell_by_cell(
    batches: FloatArray, right: FloatArray, noise: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Z less its centre, and what is left of the rows' variance, where a cell is better known in some rounds than in others."""
    together = batches @ batches.T
    found, left = np.empty((batches.shape[1], right.shape[1])), np.zeros(batches.shape[1])
    for cell in range(right.shape[1]):
        matrix = spread[cell] * together
        matrix[np.diag_indices_from(matrix)] += noise[:, cell]
        solved = linalg.solve(matrix, np.column_stack([right[:, cell], batches]), assume_a="pos", check_finite=False)
        found[:, cell] = spread[cell] * (batches.T @ solved[:, 0])
        left += spread[cell] - spread[cell] ** 2 * np.einsum("tn,tn->n", batches, solved[:, 1:])
    return found, left / max(right.shape[1], 1)


@dataclass(frozen=True)
class Expected:
    """What a layer's inputs are expected to be without any gradient: mean and variance of every cell."""

    mean: FloatArray
    variance: FloatArray

    def in_units(self, weights: Estimates) -> Estimates:
        """Estimates of v_n h_n' in units in which they are as large as v_n: paired fakes of two layers are of one size."""
        size = float(np.sqrt((self.mean**2 + self.variance).mean()))
        return replace(weights, values=size * weights.values, off=size**2 * weights.off)


def expected_inputs(weights: Estimates, above: Estimates, before: Expected) -> tuple[Inputs, FloatArray]:
    """H from v_n h_n' and v_n that are both uncertain, and per row how far it can be trusted, from 0 to 1.

    The h that fits best on average over what v_n may be, drawn to what was expected before; all the way where the batches tell
    nothing of a row that they do not tell of all.
    """
    rows, d2 = above.values.shape
    products = weights.values.reshape(rows, d2, -1)
    scale = float(before.variance.mean()) or 1.0
    norm = (above.values**2).sum(axis=1)
    doubt = d2 * above.off + weights.off / scale
    trust = np.minimum(weights.explained, above.explained)
    weight = trust / np.maximum(norm + doubt, 1e-300)
    fit = np.einsum("nk,nkd->nd", above.values, products) - norm[:, None] * before.mean
    return Inputs(before.mean + weight[:, None] * fit, np.ones(rows, dtype=bool)), weight * norm
