"""Columns of two values near a noisy span (ours): what ye2022's Algorithm 2 looks for among 2^r candidates, by ascent.

With Q the centred span's basis, the share of a column's variance that the span explains is |Q'(x - mean)|^2 / |x - mean|^2.
    given x   the direction w = Q'(x - mean) explains most of it
    given w   the best x cuts the rows' numbers Q w at one place (Otsu's), found by sorting them
Each step raises the share, so every start ends at a column. Starts are random directions and those of an independent component
analysis, which in many dimensions lie near single columns.

Embeddings with noise of known sd tell a real column from a good cut: x = Z b + error leaves n sd^2 b0.b unexplained, no
more, with b0 the coefficients without noise: the ratio of what is left to that is about 1 for a real one (`fits`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.federation import FloatArray, IntArray

STARTS = 256
ASCENT_ROWS = 3_000  # rows on which starts are followed
ASCENT_STEPS = 40
FASTICA_TURNS = 60  # of FastICA
LEAST_SHARE_OF_A_VALUE = 0.002  # share of rows that a value must have
POLISH = 40_000  # rows on which the best are followed further
POLISHED = 24  # so many of them
REAL = 1.25  # `fits` of real columns lie below this


@dataclass(frozen=True)
class Cuts:
    """Columns of 0 and 1, the best first."""

    columns: FloatArray  # n x count
    explained: FloatArray  # share of each one's variance that the span explains
    fits: FloatArray  # what is left, in units of what noise leaves: about 1 for a real column


def cuts(span: EmbeddingSpan, rng: np.random.Generator, starts: int = STARTS) -> Cuts:
    """Columns of two values that the span explains best, those before all others of which noise explains the rest."""
    nothing = Cuts(np.zeros((len(span.basis), 0)), np.zeros(0), np.zeros(0))
    centred = span.basis - span.basis.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > 1e-9
    basis = left[:, kept]
    if not basis.shape[1]:
        return nothing
    some = np.sort(rng.permutation(len(basis))[:ASCENT_ROWS])
    small, _ = np.linalg.qr(basis[some] - basis[some].mean(axis=0))
    directions = [rng.standard_normal((small.shape[1], starts)), _apart(small * np.sqrt(len(small)), rng)]
    ends, reached = _climb(small, np.hstack(directions))
    best = _unlike(ends, np.argsort(-reached, kind="stable"))[:POLISHED]
    # Coordinates on the sample, turned to those on all rows: both bases are of the same span.
    onto = small @ (small.T @ ends[:, best])
    turned = np.linalg.lstsq(basis[some] - basis[some].mean(axis=0), onto, rcond=None)[0]
    most = np.sort(rng.permutation(len(basis))[:POLISH])
    columns, explained = _climb(basis[most] if len(most) < len(basis) else basis, turned)
    if len(most) < len(basis):
        columns, explained = _climb(basis, np.linalg.lstsq(basis[most], columns, rcond=None)[0], 1)
    fits = _fits(span, columns)
    order = np.lexsort((-explained, fits > REAL))  # NaN is not above anything
    chosen = _unlike(columns, order)
    return Cuts(columns[:, chosen], explained[chosen], fits[chosen])


def _apart(white: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Directions in which uncorrelated coordinates are furthest from normal, all at once (FastICA, kurtosis).

    Two values are as far from normal as numbers can be; columns that hang together little are found among these.
    """
    turn = np.linalg.qr(rng.standard_normal((white.shape[1],) * 2))[0]
    for _ in range(FASTICA_TURNS):
        following = white.T @ (white @ turn) ** 3 / len(white) - 3 * turn
        left, _, right = np.linalg.svd(following)
        before, turn = turn, left @ right
        if np.abs(np.abs((before * turn).sum(axis=0)) - 1).max() < 1e-4:
            break
    return turn


def _climb(basis: FloatArray, directions: FloatArray, steps: int = ASCENT_STEPS) -> tuple[FloatArray, FloatArray]:
    """Columns where the ascent from each direction ends, and what is explained of them."""
    columns = _cut(basis @ directions)
    explained = np.zeros(directions.shape[1])
    going = np.arange(directions.shape[1])
    for _ in range(steps):
        centred = columns[:, going] - columns[:, going].mean(axis=0)
        w = basis.T @ centred
        share = (w**2).sum(axis=0) / (centred**2).sum(axis=0)
        better = share > explained[going] + 1e-9
        explained[going] = np.maximum(share, explained[going])
        going, w = going[better], w[:, better]
        if not len(going):
            break
        columns[:, going] = _cut(basis @ w)
    return columns, explained


def _cut(numbers: FloatArray) -> FloatArray:
    """Each column of numbers cut where most of its variance lies between the two sides: 1 above."""
    rows = len(numbers)
    order = np.argsort(numbers, axis=0)
    ranked = np.take_along_axis(numbers, order, axis=0)
    below = np.arange(1, rows)[:, None]
    sums = np.cumsum(ranked, axis=0)[:-1]
    total = sums[-1] + ranked[-1]
    between = (sums - below / rows * total) ** 2 / (below * (rows - below))
    least = max(1, int(LEAST_SHARE_OF_A_VALUE * rows))
    between[: least - 1] = between[rows - least :] = -1.0
    between[ranked[1:] == ranked[:-1]] = -1.0  # like numbers stay on one side
    place = between.argmax(axis=0)
    limit = ranked[place, np.arange(numbers.shape[1])]
    return np.asarray((numbers > limit).astype(np.float64))


def _unlike(columns: FloatArray, order: IntArray) -> list[int]:
    """Of columns that agree, or are each other's opposite, on nearly all rows the first in this order."""
    signs = (2 * columns - 1).astype(np.float32)
    same = np.abs(signs.T @ signs) / len(signs)
    kept: list[int] = []
    for j in order:
        if same[j, kept].max(initial=0.0) < 0.95:
            kept.append(int(j))
    return kept


def _fits(span: EmbeddingSpan, columns: FloatArray) -> FloatArray:
    """What is left of each column over n sd^2 b0.b, both taken about their means."""
    rows = len(span.basis)
    z = span.embedding - span.embedding.mean(axis=0)
    turn = np.linalg.qr(span.mixing)[0]  # the span's directions among the embedding's columns
    inner = z @ turn
    gram = inner.T @ inner
    centred = columns - columns.mean(axis=0)
    right = inner.T @ centred
    b = np.linalg.lstsq(gram, right, rcond=None)[0]
    noise = span.sd**2 * rows
    clean = np.linalg.eigvalsh(gram)[0] > 1.05 * noise
    b0 = np.linalg.solve(gram - noise * np.eye(len(gram)), right) if clean else b
    left = (centred**2).sum(axis=0) - (right * b).sum(axis=0)
    expected = noise * (b0 * b).sum(axis=0)
    return np.where(expected > 1e-6 * rows, left / np.maximum(expected, 1e-30), np.nan)
