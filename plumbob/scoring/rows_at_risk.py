"""Rows at risk, counted but never identified: rows with cells that an attack hits and guessing misses.

A cell is hit if the guess lies within so much of the column's range. Per column and tolerance the baseline is the one guess
without messages that hits most of its cells, the column's most crowded constant among them (known to scoring only). What is
hit beyond it is counted by column, and by row: a row counts at a share s if at least s of its columns are hit, and at least
s of those that the baseline misses. Rows that are hit at all, whatever the baseline does, are counted beside it. The same
guesses, dealt to other rows, tell how much is chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.federation import FloatArray, IntArray
from plumbob.scoring.metrics import EXACT_CELL

TOLERANCES = {"exact": EXACT_CELL, "1": 0.01, "5": 0.05}  # in units of the range
SHARES_OF_ROWS = {"any": 0.0, "half": 0.5, "all": 1.0}
DEALS = 20  # times that guesses are dealt to other rows
Hits = NDArray[np.bool_]


@dataclass(frozen=True)
class AtRisk:
    """Counts of rows, and by column; `chance` is the mean of the same over deals."""

    rows: dict[
        str, float
    ]  # any_1, half_1, ..., all_5, and each with _chance; with _hit: whether guessing hits too or not
    exact: IntArray  # by column
    within_1: IntArray
    chance_1: FloatArray
    missed: Hits  # cells that no guess without messages hits exactly

    def only(self, rows: Hits, column: int) -> AtRisk:
        """What is known of one column, in some rows."""
        here = slice(column, column + 1)
        return AtRisk({}, self.exact[here], self.within_1[here], self.chance_1[here], self.missed[rows][:, here])


def at_risk(
    guess: FloatArray,
    truth: FloatArray,
    baselines: Mapping[str, FloatArray],
    rng: np.random.Generator,
    seen: Hits | None = None,
) -> AtRisk:
    """Count; `baselines` are squared errors by cell, as scoring has them. Cells that were not seen are none."""
    every = np.ones(truth.shape, dtype=np.bool_) if seen is None else seen
    missed = {
        name: every & ~_baseline_hits(truth, baselines, every, tolerance) for name, tolerance in TOLERANCES.items()
    }
    hit = {name: every & _hits(guess, truth, tolerance) for name, tolerance in TOLERANCES.items()}
    rows: dict[str, float] = {}
    for name in ("1", "5"):
        rows |= {f"{share}_{name}": float(n) for share, n in _counts(hit[name], missed[name], every).items()}
        rows |= {f"{share}_{name}_hit": float(n) for share, n in _counts(hit[name], every, every).items()}
    rows |= {f"{share}_{name}_chance": 0.0 for name in ("1", "5") for share in SHARES_OF_ROWS}
    chance = np.zeros(guess.shape[1])
    for order in [rng.permutation(len(guess)) for _ in range(DEALS)]:
        for name in ("1", "5"):
            dealt = every & _hits(guess[order], truth, TOLERANCES[name])
            for share, number in _counts(dealt, missed[name], every).items():
                rows[f"{share}_{name}_chance"] += number / DEALS
            if name == "1":
                chance += (dealt & missed[name]).sum(axis=0) / DEALS
    exact, within = ((hit[name] & missed[name]).sum(axis=0) for name in ("exact", "1"))
    return AtRisk(rows, exact, within, chance, missed["exact"])


def _hits(guess: FloatArray, truth: FloatArray, tolerance: float) -> Hits:
    return np.asarray(np.abs(guess - truth) <= tolerance)


def _counts(hit: Hits, missed: Hits, seen: Hits) -> dict[str, int]:
    """Rows of which any, at least half or all columns that were seen are hit, beyond the baseline."""
    columns, open_ = seen.sum(axis=1), missed.sum(axis=1)
    found, beyond = hit.sum(axis=1), (hit & missed).sum(axis=1)
    return {
        name: int(((beyond > 0) & (beyond >= share * open_) & (found >= share * columns)).sum())
        for name, share in SHARES_OF_ROWS.items()
    }


def _baseline_hits(truth: FloatArray, baselines: Mapping[str, FloatArray], seen: Hits, tolerance: float) -> Hits:
    """Cells that the best guess without messages hits, column by column."""
    cells = [np.sqrt(errors) <= tolerance for errors in baselines.values()]
    centre = [crowded(column[there, None], tolerance)[0] for column, there in zip(truth.T, seen.T, strict=True)]
    cells.append(np.abs(truth - np.array(centre)) <= tolerance * (1 + 1e-9))
    counts = np.stack([(one & seen).sum(axis=0) for one in cells])
    best = counts.argmax(axis=0)
    return np.stack([cells[best[j]][:, j] for j in range(truth.shape[1])], axis=1)


def crowded(truth: FloatArray, tolerance: float) -> FloatArray:
    """For every column the constant with the most cells within the tolerance.

    >>> crowded(np.array([[0.0], [0.0], [0.5], [1.0]]), 0.01).tolist()
    [0.01]
    """
    if not len(truth):
        return np.zeros(truth.shape[1])
    ordered = np.sort(truth, axis=0)
    ends = [np.searchsorted(column, column + 2 * tolerance, side="right") for column in ordered.T]
    starts = [int((end - np.arange(len(end))).argmax()) for end in ends]
    return np.array([column[start] for column, start in zip(ordered.T, starts, strict=True)]) + tolerance
