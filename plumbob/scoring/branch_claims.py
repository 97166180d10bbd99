"""Score claims about branches: on which side of a tree's thresholds a row's values lie.

Guessed values claim a side at every node on an unknown column. With r(x) the number of a column's thresholds below x, a guess
is on the wrong side of |r(guess) - r(truth)| of them, and the correct branching rate (CBR) is the share of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Branches
from plumbob.federation import BoolArray, FloatArray
from plumbob.scoring import metrics
from plumbob.scoring._cell_claims import rate, score_claims
from plumbob.scoring.score import ColumnScore, Score, received_scores, share_removed
from plumbob.scoring.truth import Truth
from plumbob.threats import View


@dataclass(frozen=True)
class _Sides:
    """Rows x thresholds: which sides were claimed and wrong, by the attack, on random paths, and of the more frequent side."""

    spoken: BoolArray
    wrong: BoolArray
    random_spoken: BoolArray
    random_wrong: BoolArray
    usual_wrong: BoolArray

    def rates(self, mine: BoolArray | slice) -> dict[str, float]:
        """How often the baselines are wrong at these thresholds."""
        return {
            "random_path": rate(self.random_wrong[:, mine], self.random_spoken[:, mine]),
            "best_constant": rate(self.usual_wrong[:, mine], self.spoken[:, mine]),
        }


def branching(values: FloatArray, truth: Truth) -> dict[str, float]:
    """CBR of guessed values over all nodes on unknown columns, and that of uniform draws and of the more frequent sides.

    Empty where the model has no such node.
    """
    if truth.nodes is None or not len(truth.nodes[0]):
        return {}
    column, threshold = truth.nodes
    right, drawn, usual, total = 0.0, 0.0, 0.0, 0
    for j in np.unique(column):
        levels = np.sort(threshold[column == j])
        seen = slice(None) if truth.filled is None else ~truth.filled[:, j]
        below = np.searchsorted(levels, truth.values[seen, j])
        rows, count = len(below), len(levels)
        above = rows - np.cumsum(np.bincount(below, minlength=count + 1))[:count]  # rows above each threshold
        chance = np.clip(levels, 0.0, 1.0)  # of a uniform value to lie below
        total += rows * count
        right += rows * count - int(np.abs(np.searchsorted(levels, values[seen, j]) - below).sum())
        usual += int(np.maximum(above, rows - above).sum())
        drawn += float((above * (1 - chance) + (rows - above) * chance).sum())
    if not total:
        return {}
    return {"right": right / total, "uniform": drawn / total, "usual": usual / total, "nodes": float(len(column))}


def score_branches(branches: Branches, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    """Correct branching rate: the share of claimed sides that are true (luo2021, Section VI-A)."""
    claimed = branches.paths[branches.chosen]
    side = np.where(truth.values[:, branches.column] <= branches.threshold, 1, 2).astype(np.int8)
    seen = np.ones(side.shape, dtype=np.bool_) if truth.filled is None else ~truth.filled[:, branches.column]
    spoken = (claimed > 0) & seen
    random_paths = branches.paths[rng.integers(len(branches.paths), size=len(claimed))]
    random_spoken = (random_paths > 0) & seen
    usual = np.where(2 * ((side == 1) & seen).sum(axis=0) >= seen.sum(axis=0), 1, 2)  # known to scoring only
    sides = _Sides(
        spoken,
        spoken & (claimed != side),
        random_spoken,
        random_spoken & (random_paths != side),
        spoken & (usual != side),
    )
    columns = _branch_columns(branches, sides, truth, view)
    candidates = float(branches.candidates.mean())
    return score_claims("branches", spoken, sides.wrong, sides.rates(slice(None)), truth, columns, candidates)


def _branch_columns(branches: Branches, sides: _Sides, truth: Truth, view: View) -> tuple[ColumnScore, ...]:
    """The thresholds of every column by themselves."""
    own_correlation = metrics.mean_correlation(view.own, truth.values, truth.seen)
    score_correlation = metrics.mean_correlation(received_scores(view), truth.values, truth.seen)
    columns = []
    for j, name in enumerate(truth.names):
        mine = branches.column == j
        spoken, wrong = sides.spoken[:, mine], sides.wrong[:, mine]
        claims, rates = int(spoken.sum()), sides.rates(mine)
        best = min(rates, key=lambda baseline: rates[baseline])
        missed = sides.usual_wrong[:, mine].sum(axis=1).astype(np.float64)
        if best == "random_path":  # which makes other claims: its rate on ours
            missed = rates[best] * spoken.sum(axis=1)
        gain, gain_error = share_removed(wrong.sum(axis=1).astype(np.float64), missed)
        error = rate(wrong, spoken)
        columns.append(
            ColumnScore(
                name=name,
                error=error if claims else 0.0,
                best_baseline=best,
                baseline_error=rates[best] if claims else 0.0,
                gain=gain,
                gain_error=gain_error,
                exact=1 - error if claims else 0.0,
                own_correlation=float(own_correlation[j]),
                score_correlation=float(score_correlation[j]),
                claims=claims,
                kind=truth.kinds[j] if truth.kinds else "",
            )
        )
    return tuple(columns)
