"""The learner that errs least on rows it was not fitted to, of ridge regressions and randomised trees, column by column.

ridge      y = mean + Z V (s / (s^2 + l)) U'(y - mean),   Z = U s V' the centred features, l from almost nothing up
trees      gradient boosting on all features
error      mean squared error on the fold left out, over all folds; of one row each where rows are few
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.row_messages import reduced
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn

NEAR = 0.35  # share of a grid's step: where less is left on held-out rows, guesses are rounded to the grid
FOLDS = 8
FEW_ROWS = 40  # up to so many every row is a fold of its own
PENALTIES = np.logspace(-12, 1, 14)  # shares of the largest squared singular value
PRODUCTS = 12  # principal components that are multiplied with each other
SEED = 0  # of folds and trees: whoever learns from own columns alone finds the same
FEWEST_GROWN = 40  # rows from which trees are grown


@dataclass(frozen=True)
class Learnt:
    """Predictions of the rows asked about, and of every column the error that is left on held-out rows."""

    values: FloatArray
    errors: FloatArray  # squared, held-out rows x columns

    @property
    def left(self) -> FloatArray:
        """The root of their mean, of every column."""
        return np.asarray(np.sqrt(self.errors.mean(axis=0)))


@dataclass(frozen=True)
class Features:
    """The same features of the rows to learn from and of those asked about."""

    taught: FloatArray
    asked: FloatArray

    def scaled(self) -> Features:
        """Standardised together, without columns that are constant."""
        both = np.vstack([self.taught, self.asked])
        spread = both.std(axis=0)
        kept = spread > 1e-12
        centre, spread = both[:, kept].mean(axis=0), spread[kept]
        return Features((self.taught[:, kept] - centre) / spread, (self.asked[:, kept] - centre) / spread)

    def beside(self, other: Features) -> Features:
        return Features(np.hstack([self.taught, other.taught]), np.hstack([self.asked, other.asked]))

    def with_products(self) -> Features:
        """With squares and products of the largest principal components."""
        both = reduced(np.vstack([self.taught, self.asked]), PRODUCTS)
        first, second = np.triu_indices(both.shape[1])
        made = both[:, first] * both[:, second]
        count = len(self.taught)
        return self.beside(Features(made[:count], made[count:]))


def learn(groups: list[list[Features]], targets: FloatArray, trees: int) -> Learnt:
    """Each column of `targets` by the best of all learners on all tables, trees on the last table of each group only.

    A later one is taken where it errs less by a standard error of the difference: a choice among many is else one of luck.
    """
    folds = _folds(len(targets))
    best = _constant(targets, folds, len(groups[0][0].asked))
    for tables in groups:
        for table in tables:
            if table.taught.shape[1]:
                best = better(best, _ridge(table.scaled(), targets, folds))
        if trees and len(targets) >= FEWEST_GROWN and tables[-1].taught.shape[1]:
            best = better(best, _forest(tables[-1], targets, trees))
    return best


def _folds(count: int) -> IntArray:
    if count <= FEW_ROWS:
        return np.arange(count)
    return np.random.default_rng(SEED).permutation(count) % FOLDS


def better(one: Learnt, other: Learnt) -> Learnt:
    """The other where it errs less by a standard error, column by column."""
    spared = one.errors - other.errors
    wins = spared.mean(axis=0) > spared.std(axis=0) / np.sqrt(len(spared))
    return Learnt(np.where(wins, other.values, one.values), np.where(wins, other.errors, one.errors))


def lower(one: Learnt, other: Learnt) -> Learnt:
    """Whichever errs less, column by column."""
    wins = other.errors.mean(axis=0) < one.errors.mean(axis=0)
    return Learnt(np.where(wins, other.values, one.values), np.where(wins, other.errors, one.errors))


def at_grid(found: Learnt, steps: FloatArray | None) -> FloatArray:
    """Guesses at the nearest point of a column's grid, where the error that is left is well below its step."""
    if steps is None:
        return found.values
    fine = (steps > 0) & (found.left < NEAR * steps)
    safe = np.where(fine, steps, 1.0)
    return np.where(fine, np.round(found.values / safe) * safe, found.values)


def _constant(targets: FloatArray, folds: IntArray, asked: int) -> Learnt:
    guesses = np.empty_like(targets)
    for fold in np.unique(folds):
        guesses[folds == fold] = targets[folds != fold].mean(axis=0)
    return Learnt(np.tile(targets.mean(axis=0), (asked, 1)), (guesses - targets) ** 2)


def _ridge(table: Features, targets: FloatArray, folds: IntArray) -> Learnt:
    """At the penalty that errs least on held-out rows, for every column its own."""
    errors = np.empty((len(PENALTIES), *targets.shape))
    for fold in np.unique(folds):
        out = folds == fold
        fit = _Fit.of(table.taught[~out], targets[~out])
        for place, penalty in enumerate(PENALTIES):
            guesses = fit.predictions(table.taught[out], np.full(targets.shape[1], penalty))
            errors[place, out] = (guesses - targets[out]) ** 2
    best = errors.mean(axis=1).argmin(axis=0)
    values = _Fit.of(table.taught, targets).predictions(table.asked, PENALTIES[best])
    return Learnt(values, errors[best, :, np.arange(targets.shape[1])].T)


@dataclass(frozen=True)
class _Fit:
    """One decomposition, which serves all penalties and columns."""

    centre: FloatArray
    values: FloatArray
    right: FloatArray
    weights: FloatArray  # singular values x columns
    targets: FloatArray

    @classmethod
    def of(cls, features: FloatArray, targets: FloatArray) -> _Fit:
        centre = features.mean(axis=0)
        left, values, right = np.linalg.svd(features - centre, full_matrices=False)
        return cls(centre, values, right, left.T @ (targets - targets.mean(axis=0)), targets)

    def predictions(self, asked: FloatArray, penalties: FloatArray) -> FloatArray:
        """With a penalty for each column; no further from the targets than thrice their range."""
        room = penalties * max(1e-30, float(self.values.max(initial=0.0)) ** 2)
        shrunk = self.values[:, None] / (self.values[:, None] ** 2 + room)
        made = self.targets.mean(axis=0) + (asked - self.centre) @ (self.right.T @ (shrunk * self.weights))
        low, high = self.targets.min(axis=0), self.targets.max(axis=0)
        return np.asarray(np.clip(made, low - 3 * (high - low), high + 3 * (high - low)))


def _forest(table: Features, targets: FloatArray, trees: int) -> Learnt:
    """All columns by the same trees; a row is held out of those that were grown without it."""
    grown = sklearn.ensemble.ExtraTreesRegressor(
        trees, min_samples_leaf=3, bootstrap=True, oob_score=True, random_state=SEED
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a row that no tree was grown without is guessed to be 0
        grown.fit(table.taught, targets if targets.shape[1] > 1 else targets[:, 0])
    guesses, asked = (
        np.reshape(part, (-1, targets.shape[1])) for part in (grown.oob_prediction_, grown.predict(table.asked))
    )
    return Learnt(asked, (guesses - targets) ** 2)
