"""Grid enumeration (ours): which whole-number rows reproduce the scores of a network, for several hidden columns at once.

A score in double precision carries some 45 bits, a row of ages, counts and codes 10 to 35. So one row fits, and it shows
without the truth. Trying every row of the grid is not needed:
    lines       all columns but the one with most values are fixed; along it a network is nearly linear, so the value that
                meets the score is solved for, and is the answer if it lies on the grid and meets all scores exactly
    likeliest   lines are tried in the order of a prior given the row's own cells (`_grid_prior.py`)
    learning    rows found so far are complete rows of other people for the prior of the rest
Rows that are not found within the budget get the posterior mean over lines, weighed by the prior and by how much of each line
fits. Scores that a known defence made coarse leave many rows that fit: the guess is the mean of draws from the prior, weighed by
how well they fit the release. A cell is put on its likeliest value where that is nearly certain.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Meaning, meaning
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.scores._grid_lines import RowLogits, answers_of
from plumbob.attacks.scores._grid_posterior import drawn
from plumbob.attacks.scores._grid_search import Search, thinned
from plumbob.errors import BadInput, whole
from plumbob.federation import BoolArray, FloatArray
from plumbob.known_defences import KnownRounding
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.networks import one_thread
from plumbob.threats import Schema, View, WhiteBox

LINES_DRAWN, ROWS_DRAWN = 64, 256  # for a posterior mean: lines of a row, and rows of cells for a coarse release
FINE = 10.0  # rounded scores of so many units or more are solved for
FINE_DIGITS, SEARCHED_DIGITS = (
    3,
    5,
)  # digits below which they never are, and below which no row is the only one that fits


class GridEnumeration(Attack):
    """Whole rows from the scores of networks, and posterior means of those that are not found."""

    name = "grid_enumeration"
    identity = "GridEnumeration(rows, scored)"
    summary = "ours: finds the whole-number rows that reproduce a network's scores, likeliest first"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("neural_network", "split_models")
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    cost_terms = ("1", "w")  # a bounded number of candidates through the network
    presets = {"small": {"rows": 40, "scored": 20_000}}

    def __init__(self, *, rows: int = 256, scored: int = 1_000_000, adaptive: bool = True) -> None:
        self.rows = whole("grid enumeration: rows", rows, 1)  # rows that are worked on, evenly spaced
        self.scored = whole("grid enumeration: scored", scored, 1_000)  # about how many candidates are scored in all
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.ranges is None or view.steps is None:
            raise BadInput("grid enumeration needs the ranges and types of the unknown columns")
        if not (view.steps > 0).any():
            return nothing(view, "none of the hidden columns has whole or decimal numbers")
        with one_thread():
            return self._enumerated(view, rng)

    def _enumerated(self, view: View, rng: np.random.Generator) -> Guess:
        scores = view.received("scores")
        released, known = np.asarray(scores, dtype=np.float64), meaning(view.defence)
        told, exact = answers_of(scores)
        given = ~np.isnan(released).any(axis=1)
        fine = given & solvable(released, view, known)
        if known is not None and fine.any():
            told, exact = _of_rounded(released, view, known)
        search = Search(view, RowLogits(view), told, exact, self.scored)
        rows = thinned(np.flatnonzero(fine), self.rows)
        if known is None or (fine.any() and view.defence[KnownRounding].digits >= SEARCHED_DIGITS):
            search.run(rows)
        values = search.expected()
        rest = np.setdiff1d(rows, search.found.row)
        weighed = [search.found, search.along_lines(rest, LINES_DRAWN, rng)]
        if known is not None:
            vague = thinned(np.flatnonzero(given & ~fine), max(self.rows, self.scored // ROWS_DRAWN))
            draws = drawn(search.prior, search.logits, view.own, released, known, vague, ROWS_DRAWN, rng)
            if search.taught:
                values[vague] = draws.moved(values[vague])
            else:
                weighed.append(draws)
            rows = np.union1d(rows, vague)
        for some in weighed:
            of, cells = some.means()
            values[of] = cells
        assert view.ranges is not None
        low, high = view.ranges.T
        worked = f"{len(rows):,} of {len(values):,} rows were worked on, {len(search.sure):,} of them found exactly"
        return Guess(view.unknown_names, np.asarray(low + (high - low) * values), certificate=worked)


def solvable(released: FloatArray, view: View, known: Meaning | None) -> BoolArray:
    """Rows whose scores are known so exactly that lines can be solved for them."""
    if known is None:
        return np.ones(len(released), dtype=bool)
    rounding = view.defence.get(KnownRounding)
    if rounding is None or rounding.digits < FINE_DIGITS or not known.hard:
        return np.zeros(len(released), dtype=bool)
    return np.asarray((released >= FINE * 10.0**-rounding.digits).all(axis=1))


def _of_rounded(released: FloatArray, view: View, known: Meaning) -> tuple[FloatArray, FloatArray]:
    """The differences in the middle of what fits rounded scores, and how far they may be off."""
    middle = known.middle(torch.from_numpy(np.nan_to_num(released, nan=0.5))).numpy().clip(1e-12)
    half = 0.5 * 10.0 ** -view.defence[KnownRounding].digits
    return -np.diff(np.log(middle), axis=1), half / middle[:, 1:] + half / middle[:, :-1]
