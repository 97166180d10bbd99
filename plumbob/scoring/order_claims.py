"""Score claims about bins against the bins that the passive parties actually used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.base import Orders
from plumbob.bundle import Array
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring import metrics
from plumbob.scoring._cell_claims import rate, score_claims
from plumbob.scoring.evidence import effective_rows, ties
from plumbob.scoring.score import ColumnScore, Score, share_removed
from plumbob.scoring.truth import Truth
from plumbob.threats import View


def score_orders(orders: Orders, truth: Truth, view: View) -> Score:
    """The error is the share of claimed cells that lie in another bin; the baseline always names the fullest bin."""
    if truth.bins is None or orders.bins.shape != truth.bins.shape:
        shape = None if truth.bins is None else truth.bins.shape
        raise ValueError(f"expected claims about bins of shape {shape}, got {orders.bins.shape}")
    seen = np.ones(truth.bins.shape, dtype=np.bool_) if truth.filled is None else ~truth.filled
    spoken = (orders.bins >= 0) & seen
    wrong = spoken & (orders.bins != truth.bins)
    usual = np.array(
        [np.bincount(column[there], minlength=1).argmax() for column, there in zip(truth.bins.T, seen.T, strict=True)]
    )
    usual_wrong = spoken & (truth.bins != usual)
    own_mean = view.own.mean(axis=1) if view.own.shape[1] else np.zeros(len(spoken))
    own_correlation = metrics.mean_correlation(view.own, truth.values, truth.seen)
    columns = []
    for j, name in enumerate(truth.names):
        rows = spoken[:, j]
        claims = int(rows.sum())
        error, baseline = (float(cells[rows, j].mean()) if claims else 0.0 for cells in (wrong, usual_wrong))
        gain, gain_error = share_removed(wrong[:, j].astype(float), usual_wrong[:, j].astype(float))
        tie, tie_error = _tie(orders.bins[:, j], truth.values[:, j], view, rows)
        columns.append(
            ColumnScore(
                name=name,
                error=error,
                best_baseline="best_constant",
                baseline_error=baseline,
                gain=gain,
                gain_error=gain_error,
                rank=_rank(orders.bins[rows, j], truth, j, rows),
                own_rank=abs(_rank(own_mean[rows], truth, j, rows)),
                exact=1 - error if claims else 0.0,
                own_correlation=float(own_correlation[j]),
                claims=claims,
                kind=truth.kinds[j] if truth.kinds else "",
                tie=tie,
                tie_error=tie_error,
                effective=effective_rows(usual_wrong[:, j].astype(float)),
            )
        )
    baselines = {"best_constant": rate(usual_wrong, spoken)}
    return score_claims("orders", spoken, wrong, baselines, truth, tuple(columns))


def _tie(claimed: IntArray, true: FloatArray, view: View, rows: BoolArray) -> tuple[float, float]:
    """How much the claims know beyond own columns, over the rows that have one."""
    if rows.sum() < 2:
        return 0.0, 1.0
    tie, error = ties(claimed[rows, None].astype(np.float64), true[rows, None], view.own[rows])
    return float(tie[0]), float(error[0])


def _rank(claimed: Array, truth: Truth, column: int, rows: NDArray[np.bool_]) -> float:
    """Spearman's correlation of the claims with the true values, over the rows that have a claim."""
    if len(claimed) < 2:
        return 0.0
    return float(metrics.rank_correlation(claimed[:, None].astype(float), truth.values[rows][:, [column]])[0])
