"""Evidence that a guess knows something about individuals: what verdicts are tested on, column by column.

tie        rank correlation of guess and truth beyond what is linear in the own columns (all as ranks): under no leak its
           standard error is 1 / sqrt(n - k - 2), whatever the distributions, and a guess made of own columns has none.
           Where both sides say the same of nearly all rows it is no evidence: two rare values meet by chance.
           It is a share of the most that guess and truth allow: of 40 ones among 20,000 rows a guess that puts all of
           them first has a rank correlation of 0.08 only
effective  (sum b)^2 / sum b^2 of the baseline's squared errors b: how many rows a mean of them rests on; one heavy tail
           makes it small, and then no interval of the gain is narrow
chance     exact hits that luck explains: those of the same guesses dealt to other rows, or of values a step away,
           whichever are more. An attack that knows some people exactly has more hits than near misses
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plumbob.correlation import correlations, standardised
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring.metrics import EXACT_CELL, ranks

SUPPORT = 10  # rows that must be expected to differ from the usual value on both sides
MOST_CONTROLS = 3  # rows for each own column that is controlled for, at least
NEAR = 10.0  # window of near misses, in units of the exact hit's
FINEST_STEP = 100 * EXACT_CELL  # a column's grid is one only if it is coarser than this
LEAST_EFFECTIVE = 5.0  # rows that an interval rests on, at least


@dataclass(frozen=True)
class Evidence:
    """Per column."""

    tie: FloatArray
    tie_error: FloatArray  # 1 where the tie is no evidence
    exact_chance: FloatArray  # hits, among the cells that the baseline misses


def own_directions(own: FloatArray) -> FloatArray:
    """An orthonormal basis of the own columns' ranks, centred: the leading directions where rows are few."""
    if not own.shape[1] or len(own) < 2:
        return np.zeros((len(own), 0))
    ranked = standardised(ranks(own))
    left, sizes, _ = np.linalg.svd(ranked, full_matrices=False)
    rank = int((sizes > 1e-9 * max(1.0, sizes[0])).sum())
    return np.asarray(left[:, : min(rank, len(own) // MOST_CONTROLS)])


def ties(guess: FloatArray, truth: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Partial rank correlation of each column's guess and truth, and its standard error where there is no leak.

    >>> rng = np.random.default_rng(0)
    >>> own, noise = rng.random((500, 2)), rng.random((500, 1))
    >>> hidden = own[:, :1] + noise
    >>> [round(float(ties(one, hidden, own)[0][0]), 1) for one in (own[:, :1], hidden)]
    [0.0, 1.0]
    """
    basis = own_directions(own)
    freedom = len(guess) - basis.shape[1] - 2
    if freedom < 1:
        return np.zeros(guess.shape[1]), np.ones(guess.shape[1])
    sides = []
    for side in (guess, truth):
        ranked = standardised(ranks(side))
        left = ranked - basis @ (basis.T @ ranked)
        size = np.linalg.norm(left, axis=0)
        told = size > 1e-6 * math.sqrt(len(left))  # all of it is linear in own columns: nothing beyond them
        sides.append(np.where(told, left / np.where(told, size, 1.0), 0.0))
    shared = _unusual(guess) * _unusual(truth) / len(guess)
    most = np.array([reach(*pair) for pair in zip(guess.T, truth.T, strict=True)])
    error = np.where(shared >= SUPPORT, 1 / math.sqrt(freedom) / most, 1.0)
    return np.clip((sides[0] * sides[1]).sum(axis=0) / most, -1.0, 1.0), error


def reach(guess: FloatArray, truth: FloatArray) -> float:
    """The largest rank correlation of the two in any order, as a share of what the guess's ties allow any function of it.

    A guess of two values cannot be scaled to say more than it says; one of many values can be cut where the truth is.

    >>> ones = np.repeat([0.0, 1.0], [9900, 100])
    >>> [round(reach(guess, ones), 2) for guess in (np.arange(10000.0), ones, np.repeat([0.0, 1.0], 5000))]
    [0.17, 1.0, 1.0]
    """
    order = np.sort(guess)
    starts = np.flatnonzero(np.r_[True, order[1:] != order[:-1]])
    low, high = standardised(ranks(order[:, None]))[:, 0], standardised(ranks(np.sort(truth)[:, None]))[:, 0]
    if len(starts) < 2 or not high.any():
        return 1.0
    counts = np.diff(np.r_[starts, len(order)])
    found = []
    for other in (high, high[::-1]):
        explained = math.sqrt(float((np.add.reduceat(other, starts) ** 2 / counts).sum() / (other**2).sum()))
        found.append(abs(float(low @ other)) / float(np.linalg.norm(low) * np.linalg.norm(other)) / explained)
    return min(1.0, max(found))


def _unusual(values: FloatArray) -> FloatArray:
    """How many cells of each column are not its most frequent value; a column without one that repeats has nearly all."""
    ordered = np.sort(values, axis=0)
    most = [np.diff(np.flatnonzero(np.r_[True, column[1:] != column[:-1], True])).max() for column in ordered.T]
    return len(values) - np.array(most, dtype=np.float64)


def label_tie(guess: IntArray, label: IntArray) -> float:
    """The strongest correlation of "this class was guessed" with "this class is true", whichever classes: names may be swapped.

    >>> label_tie(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1]))
    1.0
    """
    told = [(guess == one).astype(np.float64)[:, None] for one in np.unique(guess)]
    true = [(label == one).astype(np.float64)[:, None] for one in np.unique(label)]
    return float(np.abs(correlations(np.hstack(told), np.hstack(true))).max())


def effective_rows(baseline: FloatArray) -> float:
    """How many rows a mean of these squared errors rests on.

    >>> effective_rows(np.ones(10)), effective_rows(np.array([1e6, 0.0, 0.0]))
    (10.0, 1.0)
    """
    squares = float((baseline**2).sum())
    return float(baseline.sum()) ** 2 / squares if squares > 0 else 0.0


def exact_chance(guess: FloatArray, truth: FloatArray, missed: BoolArray) -> FloatArray:
    """Exact hits among the missed cells that luck explains, column by column."""
    return np.array(
        [
            max(_dealt(guess[:, j], truth[missed[:, j], j]), _near_misses(guess[:, j], truth[:, j], missed[:, j]))
            for j in range(guess.shape[1])
        ]
    )


def _dealt(guess: FloatArray, targets: FloatArray) -> float:
    """Expected hits of the targets by guesses in random order: pairs that agree, over the rows."""
    if not len(targets):
        return 0.0
    ordered = np.sort(guess)
    agree = np.searchsorted(ordered, targets + EXACT_CELL, "right") - np.searchsorted(
        ordered, targets - EXACT_CELL, "left"
    )
    return float(agree.sum()) / len(guess)


def _near_misses(guess: FloatArray, truth: FloatArray, missed: BoolArray) -> float:
    """How many cells of the exact hit's width would be hit if errors were as dense at 0 as beside it."""
    errors = np.abs(guess - truth)[missed]
    beside = ((errors > EXACT_CELL) & (errors <= (1 + NEAR) * EXACT_CELL)).sum() / NEAR
    step = _step(truth)
    if step:
        beside = max(beside, ((errors > 0.5 * step) & (errors <= 1.5 * step)).sum() / 2)
    return float(beside)


def _step(column: FloatArray) -> float:
    """The least distance of two values that differ; 0 where it is as fine as the hits' tolerance."""
    gaps = np.diff(np.unique(column))
    least = float(gaps.min()) if len(gaps) else 0.0
    return least if least >= FINEST_STEP else 0.0


def evidence(guess: FloatArray, truth: FloatArray, own: FloatArray, missed: BoolArray) -> Evidence:
    """All of it for a guess of values; `missed` are the cells that guessing does not hit exactly."""
    return Evidence(*ties(guess, truth, own), exact_chance(guess, truth, missed))
