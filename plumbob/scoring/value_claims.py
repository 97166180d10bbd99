"""Score guesses of values: column by column against the best guess that needs no message.

Cells that preparation filled are nobody's data. They take part in nothing here: no error, no baseline, no count of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.auxiliary.complete_rows import learnt_alone
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring import baselines, metrics
from plumbob.scoring.evidence import effective_rows, evidence
from plumbob.scoring.fixed_guess import fixed_hits
from plumbob.scoring.rows_at_risk import AtRisk, at_risk
from plumbob.scoring.score import ColumnScore, Score, above_mean, received_scores, share_removed, total_gain
from plumbob.scoring.truth import Truth
from plumbob.threats import View


def score_values(values: FloatArray, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    """Judge a guess of every cell."""
    true, seen = truth.values, truth.seen
    squared = (values - true) ** 2
    prior = without_scores(view)
    alone = None if truth.tiles else learnt_alone(view)
    guesses = baselines.squared_errors(true, view.own, prior, seen, alone)
    # Of pixels, nobody asks for single ones. A generator of its own, so that other draws stay as they were.
    held = np.array([bool(words) for words in truth.held]) if truth.held else None
    risk = None if truth.tiles else at_risk(values, true, guesses, np.random.default_rng(len(true)), seen, held)
    error = float(squared.mean(axis=0).mean()) if seen is None else metrics.mean_of(squared, seen)
    totals = {name: metrics.mean_of(cells, seen) for name, cells in guesses.items()}
    low, middle, high = np.quantile(metrics.row_means(squared, seen), [0.05, 0.5, 0.95])
    judges = not truth.tiles and len(np.unique(truth.other_labels)) > 1  # too slow on thousands of pixels
    accuracy = _attack_accuracies(values, truth, rng) if judges else None
    known = view.own if alone is None else np.hstack([view.own, alone])
    compared = _Compared(values, true, view.own, prior, known, received_scores(view), guesses, risk, truth.kinds)
    return Score(
        metric="values",
        error=error,
        baselines=totals,
        gain=total_gain(error, totals),
        r2=above_mean(error, float(true.var(axis=0).mean()) if seen is None else totals["best_constant"]),
        bound=metrics.norm_bound(truth.cells),
        sharp_bound=metrics.sharp_bound(truth.cells),
        attack_accuracy=None if accuracy is None else accuracy[0],
        constant_accuracy=None if accuracy is None else accuracy[1],
        row_error_quantiles=(float(low), float(middle), float(high)),
        candidates=None,
        rows=len(true),
        columns=_columns(compared, truth),
        rows_at_risk={} if risk is None else risk.rows,
    )


@dataclass(frozen=True)
class _Compared:
    """A guess, the truth, and what a guess without messages is made of and misses, row by row."""

    values: FloatArray
    true: FloatArray
    own: FloatArray
    prior: FloatArray
    known: FloatArray  # own columns, and what learners make of them
    scores: FloatArray
    baselines: Mapping[str, FloatArray]
    risk: AtRisk | None  # not counted of pictures
    kinds: tuple[str, ...]

    def only(self, rows: BoolArray, column: int) -> _Compared:
        """One column in some rows."""
        here = np.ix_(np.flatnonzero(rows), np.array([column]))
        return _Compared(
            self.values[here],
            self.true[here],
            self.own[rows],
            self.prior[here],
            self.known[rows],
            self.scores[rows],
            {name: cells[here] for name, cells in self.baselines.items()},
            None if self.risk is None else self.risk.only(rows, column),
            self.kinds[column : column + 1],
        )


def _columns(compared: _Compared, truth: Truth) -> tuple[ColumnScore, ...]:
    """Every column by itself, or of pictures every tile; a column with filled cells on the others."""
    columns = list(_judged(compared, _parts(truth), bool(truth.tiles)))
    if truth.filled is None:
        return tuple(columns)
    for j in np.flatnonzero(truth.filled.any(axis=0)):
        rows = ~truth.filled[:, j]
        if rows.any():
            (columns[j],) = _judged(compared.only(rows, int(j)), [(truth.names[j], np.array([0]))], False)
        else:
            columns[j] = ColumnScore(
                truth.names[j], 0.0, "best_constant", 0.0, 0.0, 0.0, 0.0, claims=0, own_correlation=0.0
            )
    return tuple(columns)


def _judged(compared: _Compared, parts: list[tuple[str, IntArray]], tiles: bool) -> tuple[ColumnScore, ...]:
    """Columns, or tiles, against the best of the guesses that need no message."""
    values, true, risk = compared.values, compared.true, compared.risk
    squared = (values - true) ** 2
    errors, variances = squared.mean(axis=0), true.var(axis=0)
    rank = metrics.rank_correlation(values, true)
    own_rank = _own_rank(compared.own, compared.prior, true)
    shares = {t: metrics.within(values, true, t) for t in (metrics.EXACT_CELL, 0.01, 0.05, 0.10)}
    mean_error = np.abs(values.mean(axis=0) - true.mean(axis=0))
    own_correlation = metrics.mean_correlation(compared.own, true)
    score_correlation = metrics.mean_correlation(compared.scores, true)
    two_values = np.array([min(map(len, map(np.unique, pair))) <= 2 for pair in zip(values.T, true.T, strict=True)])
    # A prior that differs by row is among what the guess must know more than.
    known = np.hstack([compared.known, np.unique(compared.prior, axis=1)])
    shown = None if risk is None else evidence(values, true, known, risk.missed)
    fixed = {t: None if tiles else fixed_hits(true, t) for t in (0.01, 0.05, 0.10)}
    columns = []
    for name, part in parts:
        cells = {baseline: guess[:, part].mean(axis=1) for baseline, guess in compared.baselines.items()}
        best = min(cells, key=lambda baseline: float(cells[baseline].mean()))
        gain, gain_error = share_removed(squared[:, part].mean(axis=1), cells[best])
        error = float(errors[part].mean())
        columns.append(
            ColumnScore(
                name=name,
                error=error,
                best_baseline=best,
                baseline_error=float(cells[best].mean()),
                gain=gain,
                gain_error=gain_error,
                r2=above_mean(error, float(variances[part].mean())),
                rank=float(rank[part].mean()),
                own_rank=float(own_rank[part].mean()),
                exact=float(shares[metrics.EXACT_CELL][part].mean()),
                within_1=float(shares[0.01][part].mean()),
                within_5=float(shares[0.05][part].mean()),
                within_10=float(shares[0.10][part].mean()),
                mean_error=float(mean_error[part].mean()),
                own_correlation=float(own_correlation[part].mean()),
                score_correlation=float(score_correlation[part].mean()),
                claims=true[:, part].size,
                rows_exact=None if risk is None else int(risk.exact[part[0]]),
                rows_1=None if risk is None else int(risk.within_1[part[0]]),
                rows_1_chance=None if risk is None else float(risk.chance_1[part[0]]),
                two_values=bool(two_values[part].all()) and not tiles,
                kind="" if tiles or not compared.kinds else compared.kinds[part[0]],
                tie=None if shown is None else float(shown.tie[part[0]]),
                tie_error=1.0 if shown is None else float(shown.tie_error[part[0]]),
                effective=effective_rows(cells[best]),
                rows_missed=None if risk is None else int(risk.missed[:, part[0]].sum()),
                rows_exact_chance=None if shown is None else float(shown.exact_chance[part[0]]),
                fixed_1=_at(fixed[0.01], part),
                fixed_5=_at(fixed[0.05], part),
                fixed_10=_at(fixed[0.10], part),
            )
        )
    return tuple(columns)


def _at(shares: FloatArray | None, part: IntArray) -> float | None:
    return None if shares is None else float(shares[part[0]])


def _parts(truth: Truth) -> list[tuple[str, IntArray]]:
    """What is judged by itself: every column, or of pictures every tile."""
    if truth.tiles:
        return [(tile.name, tile.pixels) for tile in truth.tiles]
    return [(name, np.array([j])) for j, name in enumerate(truth.names)]


def _own_rank(own: FloatArray, prior: FloatArray, true: FloatArray) -> FloatArray:
    """The better rank correlation of what the curious party guesses without a message."""
    own_row_mean = own.mean(axis=1, keepdims=True) if own.shape[1] else np.zeros((len(true), 1))
    ranks = [metrics.rank_correlation(np.broadcast_to(g, true.shape), true) for g in (own_row_mean, prior)]
    return np.asarray(np.max(np.abs(ranks), axis=0))


def _attack_accuracies(values: FloatArray, truth: Truth, rng: np.random.Generator) -> tuple[float, float] | None:
    """Of the guess, and of guessing every column's true mean, over the rows without a filled cell."""
    seed = int(rng.integers(2**31))
    whole = np.ones(len(values), dtype=np.bool_) if truth.filled is None else ~truth.filled.any(axis=1)
    if not whole.any():
        return None
    true = truth.values[whole]
    constant = np.broadcast_to(true.mean(axis=0), true.shape)
    of, mean = (
        metrics.attack_accuracy(v, true, truth.other_rows, truth.other_labels, np.random.default_rng(seed))
        for v in (values[whole], constant)
    )
    return of, mean
