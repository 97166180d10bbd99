"""Matched moments (ours): rows of other people undo a cut without one of their embeddings, through what both sides share.

    x_target = x_own C + w B + e,   w: half-whitened embeddings less what own columns tell of them
    E[f (x_target - x_own C)] of the other people  =  E[f w] B of the federation's,   f: label, products of own columns
One side of each equation comes from complete rows, the other from embeddings; nobody is in both. With B ~ N(0, t var(e)) and the
noise that is measured this is one linear system. t makes the moments likeliest; where that adds nothing the guess is own columns
alone. At a deeper cut it is the best linear map. It pays from a few hundred rows on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.auxiliary._held_out_learners import Features, learn
from plumbob.attacks.auxiliary._told_embeddings import CONSTANT, SILENT, half_whitened, labels_of, other_people, told
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.federation import FloatArray
from plumbob.threats import AuxiliaryRows, View

FACTORS = 12  # directions of own columns that are multiplied with each other
FAR = 5.0  # standard deviations at which features are cut off
RIDGE = 0.02  # of the regression on own columns
TREES = 60  # of the learner that has own columns alone
FEWEST = 20  # rows from which moments mean anything
SHARES = np.concatenate([[0.0], np.logspace(-4, 1, 16)])  # t
EVIDENCE = 3.0  # log-likelihood that embeddings must add to own columns


class MatchedMoments(Attack):
    """The likeliest linear map from embeddings to hidden columns, by moments that both populations share."""

    name = "matched_moments"
    identity = "matched_moments()"
    summary = (
        "ours: matches moments of other people's complete rows with those of embeddings; sees no embedding of theirs"
    )
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("split_network",)
    requires = (AuxiliaryRows,)
    cost_terms = ("1", "n d", "n u")
    workload = "matrices"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        rows, seen = other_people(view, "matched moments"), told(view)
        if seen is None or seen.constant:
            return nothing(view, SILENT if seen is None else CONSTANT)
        own, hidden = Features(rows[:, view.known], view.own), rows[:, view.unknown]
        alone = learn([[own.with_products(), own]], hidden, TREES)
        if len(rows) < FEWEST:
            return Guess(
                view.unknown_names, np.clip(alone.values, 0.0, 1.0), untried=f"fewer than {FEWEST} rows of other people"
            )
        matched = _Matched.of(view, own, seen.asked)
        lost = alone.errors.mean(axis=0)
        values = [matched.column(hidden[:, j], alone.values[:, j], float(lost[j])) for j in range(hidden.shape[1])]
        return Guess(view.unknown_names, np.clip(np.column_stack(values), 0.0, 1.0))


@dataclass(frozen=True)
class _Matched:
    """Features and embeddings less what own columns tell of them; those of the two populations on one scale."""

    own: Features  # with a column of ones
    tests: Features  # f, white in the federation
    cells: FloatArray  # w

    @classmethod
    def of(cls, view: View, own: Features, cells: FloatArray) -> _Matched:
        scaled = own.scaled()
        wide, short = half_whitened(scaled.asked, scaled.taught, FACTORS)
        wide, short = np.clip(wide, -FAR, FAR), np.clip(short, -FAR, FAR)
        first, second = np.triu_indices(wide.shape[1])
        tests = Features(short[:, first] * short[:, second], wide[:, first] * wide[:, second])
        labels = labels_of(view)
        if labels is not None:
            classes = np.eye(len(view.classes))[:, 1:]
            tests = tests.beside(Features(classes[labels[1]], classes[labels[0]]))
        ones = Features(np.ones((len(short), 1)), np.ones((len(wide), 1)))
        base = ones.beside(Features(np.clip(scaled.taught, -FAR, FAR), np.clip(scaled.asked, -FAR, FAR)))
        rest, shift = _less(base.asked, tests.asked)
        left = Features(tests.taught - base.taught @ shift, rest)
        wide, short = half_whitened(left.asked, left.taught)
        spread = np.maximum(wide.std(axis=0), 1e-12)
        white = Features(np.clip(short / spread, -FAR, FAR), np.clip(wide / spread, -FAR, FAR))
        return cls(base, white, _less(base.asked, half_whitened(cells, cells[:0])[0])[0])

    def column(self, hidden: FloatArray, alone: FloatArray, lost: float) -> FloatArray:
        """One hidden column; own columns `alone`, which err by `lost`, where moments say nothing or promise no less error."""
        base, tests, count = self.own, self.tests, len(hidden)
        inner = base.taught.T @ base.taught / count + RIDGE * np.eye(base.taught.shape[1])
        fitted = np.linalg.solve(inner, base.taught.T @ hidden / count)
        rest = hidden - base.taught @ fitted
        variance = float(rest.var())
        if variance < 1e-12 or not tests.taught.shape[1] or not self.cells.shape[1]:
            return alone
        moments = tests.taught.T @ rest / count
        noise = ((tests.taught * rest[:, None]).var(axis=0) + variance) / 2 / count
        slopes = tests.asked.T @ self.cells / len(self.cells)
        share, more = _likeliest(moments, slopes @ slopes.T * variance, noise)
        if more < EVIDENCE:
            return alone
        spread = share * variance * slopes @ slopes.T + np.diag(noise)
        weights = share * variance * slopes.T @ np.linalg.solve(spread, moments)
        told = self.cells @ weights
        return np.asarray(base.asked @ fitted + told) if variance - float(told.var()) < lost else alone


def _less(base: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a regression on `base` leaves of a table, and the regression."""
    fitted = np.linalg.lstsq(base, table, rcond=1e-9)[0]
    return np.asarray(table - base @ fitted), np.asarray(fitted)


def _likeliest(moments: FloatArray, spread: FloatArray, noise: FloatArray) -> tuple[float, float]:
    """The share of the prior under which these moments are likeliest, and how much more than under none."""
    found = []
    for share in SHARES:
        root = np.linalg.cholesky(share * spread + np.diag(np.maximum(noise, 1e-18)))
        scaled = np.linalg.solve(root, moments)
        found.append(-0.5 * float(scaled @ scaled) - float(np.log(np.diag(root)).sum()))
    best = int(np.argmax(found))
    return float(SHARES[best]), found[best] - found[0]
