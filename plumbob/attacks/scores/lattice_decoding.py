"""Lattice decoding (ours): integer columns recovered exactly from the scores, far beyond ESA's limit.

ESA needs as many equations as unknown columns, since a real number may be anything. But ages, counts, codes and cents lie
on a grid, and a score in double precision carries some 45 bits: c - 1 equations say 45 (c - 1) bits about a row. Where that
is more than the grid of its unknown cells has, only one row fits (`lattice_points.py` finds it, and it shows without the truth).
    expected    the posterior mean's prior at first; then the rows decoded so far, as complete rows of other people
                (each half of the rows learns from the other)
    accidents   answers moved by a small part belong to no row: how near these come tells how near is not by chance
    error       of rounding in the scores, or of their known release in b digits, row by row
Rows that are not determined keep the posterior mean, given those that are. Columns without a grid get a very fine one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks._common.lattice_points import Decoded, Problem
from plumbob.attacks._common.release_likelihood import SCORE_RELEASES
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores._box_equations import reduce
from plumbob.attacks.scores._column_prior import Places, from_complete_rows, gaussian_rows
from plumbob.attacks.scores.equation_solving import LinearEquationsOfScores, equations
from plumbob.attacks.scores.posterior_mean import PosteriorMean, solve_with_rows
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.known_defences import KnownDpSgd, KnownDropout, KnownHideModel, KnownRounding, KnownVerification
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.threats import Schema, View, WhiteBox

FINEST_GRID = 2.0**-40  # grid of columns that have none, in units of their range
BITS_FROM_EXPECTATION = 5.0  # bits of a cell that an expectation may tell at most
DECOY, STRAY = 1e6, 0.05  # answers that belong to no row are so many errors off, or this part of their spread if less
DECODING_ROUNDS = 8  # of learning from the rows decoded so far
TYPICAL = 0.3  # errors are sums of many roundings, and so smaller than the sum of their bounds
# Share of accidents expected among the rows that are told, and that are learnt from
ACCIDENTS_TOLD, ACCIDENTS_LEARNT_FROM = 0.05, 0.3
CLASSES_OF_ERROR = 8.0  # rows whose errors differ by no more than this factor share a lattice


class LatticeDecoding(Attack):
    """Complete rows from scores, for logistic regression."""

    name = "lattice_decoding"
    identity = "LatticeDecoding()"
    summary = "ours: recovers integer columns from full-precision scores by lattice reduction"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression",)
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n u", "loose", "loose n u")  # a short search of a lattice, where scores leave one

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.ranges is None or view.steps is None:
            raise BadInput("lattice decoding needs the ranges and types of the unknown columns")
        guess = PosteriorMean().run(view, rng).values
        assert guess is not None
        system = equations(view)
        right, errors = answers(view, system)
        rows = np.flatnonzero(np.isfinite(errors).all(axis=1))
        if len(rows):
            guess[rows], _ = decode(view, system.left, right[rows], errors[rows], rows, guess[rows], rng)
        return Guess(view.unknown_names, guess)


def answers(view: View, system: LinearEquationsOfScores) -> tuple[FloatArray, FloatArray]:
    """Right-hand sides of ESA's equations and how far each is off as a rule; infinite if the scores are beyond use.

    Of a rounded score the middle of its interval is taken, and the interval's deviation for its error.
    """
    assert view.model is not None
    model = LinearModel.from_arrays(view.model)
    raw = view.received("scores")
    scores, lost = np.asarray(raw, dtype=np.float64), cut_off(view)
    usable = np.isfinite(scores) & (scores > 0.0) & np.isfinite(lost)
    given = np.where(usable, scores, 1.0)
    rounding = view.defence.get(KnownRounding)
    down = rounding is None or not rounding.nearest
    middle = given + np.where(usable & down, lost, 0.0) / 2.0
    right = system.right - np.diff(np.log(middle) - np.log(given), axis=1)
    size = np.abs(view.own) @ np.abs(model.weights[view.known]) + np.abs(model.weights).sum(axis=0) + np.abs(model.bias)
    double = float(np.finfo(np.float64).eps)
    precision = float(np.finfo(raw.dtype).eps) if raw.dtype.kind == "f" else double
    typical = TYPICAL * (precision + 0.5 * double * (1.0 + np.abs(np.log(given)) + size / 2.0))
    each = np.where(usable, typical + lost / (np.sqrt(12.0) * middle), np.inf)
    return right, np.asarray(each[:, 1:] + each[:, :-1])


def cut_off(view: View) -> float:
    """What a known defence may have cut off a score: 0 without one, infinite if it did more than rounding."""
    changes = set(view.defence.names) - {kind.name for kind in MODEL_SCORES_KEPT_BY}
    if not changes:
        return 0.0
    return 10.0 ** -view.defence[KnownRounding].digits if changes == {KnownRounding.name} else float("inf")


MODEL_SCORES_KEPT_BY = (
    KnownDpSgd,
    KnownDropout,
    KnownHideModel,
    KnownVerification,
)  # the scores they release are the model's own


def decode(
    view: View,
    left: FloatArray,
    right: FloatArray,
    errors: FloatArray,
    rows: NDArray[np.intp],
    guess: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The guess of these rows, with every one that is determined put in its place, and which cells were."""
    assert view.ranges is not None
    assert view.steps is not None
    low, high = view.ranges.T
    span = high - low
    left, right = left * span, right - left @ low
    steps = np.where(view.steps > 0.0, view.steps, FINEST_GRID)
    if hopeless(left, errors, steps):
        return guess, np.zeros(guess.shape, dtype=np.bool_)
    own, unit = view.own[rows], (guess - low) / span
    first = _first_prior(view, left, right, own, unit)
    priors = [(first[0][half::2], first[1]) for half in range(2)]
    off = np.minimum(DECOY * errors, STRAY * right.std(axis=0))
    decoys = right + rng.uniform(-1.0, 1.0, right.shape) * off  # as near to everything but to a row
    found, null = (Decoded(unit.copy(), np.full(unit.shape, np.inf), np.full(len(unit), np.inf)) for _ in range(2))
    learnt, enough = np.zeros(len(unit), dtype=np.bool_), 2 * unit.shape[1] + 20
    for _ in range(DECODING_ROUNDS):
        for half, (mean, covariance) in enumerate(priors):
            some = np.arange(half, len(unit), 2)
            for answers, out in ((right, found), (decoys, null)):
                _decode_some(left, answers, errors, steps, some, mean, covariance, out)
        before, learnt = learnt.sum(), found.chance <= cutoff(found.chance, null.chance, ACCIDENTS_LEARNT_FROM)
        others = [learnt & (np.arange(len(unit)) % 2 != half) for half in range(2)]
        if learnt.sum() <= before or min(map(np.sum, others)) < enough:
            break
        priors = [from_complete_rows(own[half::2], own[of], found.values[of]) for half, of in enumerate(others)]
    sure = found.chance <= cutoff(found.chance, null.chance, ACCIDENTS_TOLD)
    told = sure[:, None] & (found.odds < 1.0)
    if sure.sum() >= enough and not told.all():
        zero, one = np.zeros(len(low)), np.ones(len(low))
        unit = solve_with_rows(left, right, own, zero, one, own[sure], found.values[sure])
    return np.asarray(low + span * np.where(told, found.values, unit)), told


def hopeless(left: FloatArray, errors: FloatArray, steps: FloatArray) -> bool:
    """Whether the grid has more bits than equations and a very good expectation could tell: then nothing is tried."""
    grid = np.log2(1.0 / steps) - BITS_FROM_EXPECTATION
    told = np.log2(np.maximum(np.abs(left).sum(axis=1), np.finfo(np.float64).tiny) / np.median(errors, axis=0))
    return bool(np.maximum(grid, 0.0).sum() > told.sum())


def _decode_some(
    left: FloatArray,
    answers: FloatArray,
    errors: FloatArray,
    steps: FloatArray,
    rows: NDArray[np.intp],
    mean: FloatArray,
    covariance: FloatArray,
    out: Decoded,
) -> None:
    """Decode these rows under one prior, those of about the same error together, and keep it in `out`."""
    inverse = np.linalg.inv(np.linalg.cholesky(covariance + np.diag(steps**2 / 12.0 + 1e-9)))
    level = np.floor(np.log(errors[rows].max(axis=1)) / np.log(CLASSES_OF_ERROR))
    for each in np.unique(level):
        here = level == each
        some = rows[here]
        part = Problem(left, answers[some], errors[some].max(axis=0), steps, mean[here], inverse).solve()
        out.values[some], out.odds[some], out.chance[some] = part.values, part.odds, part.chance


def cutoff(chance: FloatArray, decoys: FloatArray, wrong: float) -> float:
    """The largest chance up to which decoys come to no more than this share of the rows, and one for caution.

    >>> cutoff(np.array([0.001, 0.002, 0.003, 0.4]), np.array([0.2, 0.5, 0.6, 0.9]), 0.35)
    0.003
    """
    ordered = np.sort(chance[np.isfinite(chance)])
    accidents = np.searchsorted(np.sort(decoys), ordered, side="right") + 1
    passes = np.flatnonzero(accidents <= wrong * np.arange(1, len(ordered) + 1))
    return float(ordered[passes[-1]]) if len(passes) else -1.0


def _first_prior(
    view: View, left: FloatArray, right: FloatArray, own: FloatArray, unit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What is expected before any row is decoded: auxiliary rows, else the posterior mean and what columns suggest."""
    if view.auxiliary is not None:
        return from_complete_rows(own, view.auxiliary[:, view.known], view.auxiliary[:, view.unknown])
    matrix, targets = reduce(left, right)
    return unit, gaussian_rows(matrix, targets, own, Places(view.known, view.unknown))[1]
