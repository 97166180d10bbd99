"""The search for the rows that reproduce scores: which rows, how many lines of each, and what is learnt on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plumbob.attacks.scores._column_prior import from_complete_rows
from plumbob.attacks.scores._grid_lines import Crossings, RowLogits, crossings, differences, nodes_needed
from plumbob.attacks.scores._grid_posterior import Weighed
from plumbob.attacks.scores._grid_prior import FEWEST, GridPrior, grid_prior
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View

FINEST = 2.0**-20  # grid of a column that has none: it is the one that is solved for
PILOT, PILOT_LINES = 16, (64, 512, 4096, 32_768)  # rows that are tried first, and lines of each
ENOUGH, PILOT_SHARE = 8, 0.75  # rows found that end this, and the part of the budget that may be spent on it
LINES = (64, 256, 1024, 4096, 16_384, 65_536)  # lines of all other rows, round by round
CELLS_TOGETHER = 20_000  # lines that are followed at once
FINER = 65  # values of a line that are scored first where all lines were tried
ACCIDENTS = 0.01  # matches by chance among a row's lines, up to which one match is sure
CERTAIN = 0.95  # share of the best match among a row's matches, from which it is sure
BEYOND = 24.0  # bits of the columns that are not solved for, beyond which nothing is searched
LOOSE = 0.3  # how far draws may miss the other equations, in deviations


def thinned(rows: IntArray, most: int) -> IntArray:
    """At most that many of the rows, evenly spaced."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]


@dataclass
class Search:
    """What is known, what was found, and what is left of the budget."""

    view: View
    logits: RowLogits
    told: FloatArray  # differences of logits, rows x equations
    exact: FloatArray  # how exactly
    budget: int
    steps: FloatArray = field(init=False)
    prior: GridPrior = field(init=False)
    found: Weighed = field(init=False)
    sure: IntArray = field(init=False)
    nodes: int = field(default=0, init=False)
    learnt: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        assert self.view.steps is not None
        self.steps = np.where(self.view.steps > 0, self.view.steps, FINEST)
        self.sure, self.found = np.zeros(0, dtype=np.int64), Weighed.none(len(self.steps))
        self._learn()

    @property
    def last(self) -> int:
        """The column that is solved for: the one with most values."""
        return int(self.prior.order[-1])

    @property
    def possible(self) -> bool:
        """Whether a row would show that it is the one, and is likely enough among those that can be tried."""
        assert self.view.steps is not None
        without = int((self.view.steps <= 0).sum())
        checked = without == 0 or (without == 1 and self.told.shape[1] > 1)
        return checked and self.prior.bits() < BEYOND

    def run(self, rows: IntArray) -> None:
        """Look for these rows, some first, until the budget is spent or nothing more is found."""
        if not self.possible or not len(rows):
            return
        self._try_first(thinned(rows, PILOT))
        for lines in LINES if len(self.sure) else ():
            todo = np.setdiff1d(rows, self.sure)
            together = max(1, CELLS_TOGETHER // lines)
            for begin in range(0, len(todo), together):
                if self.spent:
                    return
                self.look(todo[begin : begin + together], lines)
            if lines >= self.prior.lines():
                break
        if len(self.sure) and self.nodes < FINER and lines >= self.prior.lines():  # some lines turn between the nodes
            self.nodes, left = FINER, np.setdiff1d(rows, self.found.row)
            for begin in range(0, len(left), together):
                if not self.spent:
                    self.look(left[begin : begin + together], lines)

    def _try_first(self, pilot: IntArray) -> None:
        """Few rows, with more and more lines, until there are enough to learn from."""
        for lines in PILOT_LINES:
            together = max(1, CELLS_TOGETHER // min(lines, self.prior.lines()))
            for begin in range(0, len(pilot), together):
                if len(self.sure) >= ENOUGH or self.logits.scored > PILOT_SHARE * self.budget:
                    return
                self.look(np.setdiff1d(pilot[begin : begin + together], self.sure), lines)

    @property
    def spent(self) -> bool:
        return self.logits.scored >= self.budget

    def look(self, rows: IntArray, lines: int) -> None:
        """Follow the likeliest lines of rows, and learn from what was found."""
        if not len(rows):
            return
        cells, logs = self.prior.likeliest(self.view.own[rows], lines)
        row, cells = np.repeat(rows, cells.shape[1]), cells.reshape(-1, cells.shape[2])
        met = self.follow(row, cells)
        matched = np.flatnonzero(np.abs(met.miss) <= self.exact[row[met.line], 0])
        hit, of = cells[met.line[matched]].copy(), row[met.line[matched]]
        hit[:, self.last] = met.value[matched]
        if self.told.shape[1] > 1:
            off = np.abs(differences(self.logits(of, hit)) - self.told[of])
            good = (off <= self.exact[of]).all(axis=1)
            hit, of, matched = hit[good], of[good], matched[good]
        _, once = np.unique(np.column_stack([of, np.rint(hit / self.steps)]), axis=0, return_index=True)
        hit, of = hit[once], of[once]
        matched = matched[once]
        loose = 2.0 * self.exact[row[met.line], 0] / met.slope
        accidents = np.bincount(row[met.line], np.minimum(loose, 1.0), len(self.view.own))
        wide = np.log(np.maximum(loose[matched], 1.0))
        log = logs.ravel()[met.line[matched]] + self.prior.of_last(self.view.own[of], hit) + wide
        fresh = Weighed(of, hit, log)
        best = np.zeros(len(self.view.own))
        np.maximum.at(best, of, fresh.shares() if len(of) else np.zeros(0))
        surely = rows[(best[rows] >= CERTAIN) & (accidents[rows] <= ACCIDENTS)]
        self.found = self.found.of(np.setdiff1d(self.found.row, of)) | fresh
        self.sure = np.union1d(self.sure, surely)
        if len(self.sure) >= max(FEWEST, 1.5 * self.learnt):
            self._learn()

    def follow(self, row: IntArray, cells: FloatArray) -> Crossings:
        """Where lines of rows meet the first equation."""

        def miss(lines: IntArray, values: FloatArray) -> FloatArray:
            x = cells[lines]
            x[:, self.last] = values
            logits = self.logits(row[lines], x)
            return np.asarray(logits[:, 0] - logits[:, 1] - self.told[row[lines], 0])

        step = float(self.steps[self.last])
        self.nodes = self.nodes or nodes_needed(miss, min(256, len(row)), step)
        return crossings(miss, len(row), step, self.nodes, self.exact[row, 0])

    def along_lines(self, rows: IntArray, lines: int, rng: np.random.Generator) -> Weighed:
        """Lines drawn from the prior, each met where it meets the scores, weighed by how much of it does."""
        if not len(rows):
            return Weighed.none(len(self.steps))
        cells = self.prior.drawn(self.view.own[rows], lines, rng).reshape(len(rows) * lines, -1)
        row = np.repeat(rows, lines)
        met = self.follow(row, cells)
        of, x = row[met.line], cells[met.line].copy()
        x[:, self.last] = met.root
        log = self.prior.of_last(self.view.own[of], x) - np.log(met.slope)
        if self.told.shape[1] > 1 and len(of):
            off = differences(self.logits(of, x)) - self.told[of]
            log = log - 0.5 * ((off / (LOOSE * off.std(axis=0) + 1e-12)) ** 2).sum(axis=1)
        return Weighed(of, x, log)

    def complete(self) -> tuple[FloatArray, FloatArray]:
        """Complete rows: those granted, and those found."""
        view = self.view
        known, hidden = view.own[:0], np.zeros((0, len(self.steps)))
        if view.auxiliary is not None:
            known, hidden = view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]
        best = self.found.of(self.sure)
        top = best.shares() >= CERTAIN if len(best.row) else np.zeros(0, dtype=bool)
        return np.vstack([known, view.own[best.row[top]]]), np.vstack([hidden, best.cells[top]])

    @property
    def taught(self) -> bool:
        """Whether there are complete rows to learn from."""
        return len(self.complete()[1]) >= FEWEST

    def expected(self) -> FloatArray:
        """What the prior expects of every row."""
        if not self.taught:
            return np.array(without_scores(self.view))
        known, hidden = self.complete()
        return np.clip(from_complete_rows(self.view.own, known, hidden)[0], 0.0, 1.0)

    def _learn(self) -> None:
        """The prior from all complete rows at hand."""
        assert self.view.steps is not None
        most = np.where(self.view.steps > 0, -self.steps, 1.0)
        self.prior = grid_prior(self.view, self.view.steps, np.argsort(most, kind="stable"), *self.complete())
        self.learnt = len(self.sure)
