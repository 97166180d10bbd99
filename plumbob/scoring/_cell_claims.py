"""The score of claims about cells that are right or wrong: sides of thresholds, places in an order.

error = wrong claims / claims, over all cells and by row
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from plumbob.federation import BoolArray
from plumbob.scoring import metrics
from plumbob.scoring.score import ColumnScore, Score, total_gain
from plumbob.scoring.truth import Truth


def rate(hits: BoolArray, tries: BoolArray) -> float:
    """The share of tries that are hits; 0 where nothing was tried."""
    total = int(tries.sum())
    return int(hits.sum()) / total if total else 0.0


def score_claims(
    metric: str,
    spoken: BoolArray,
    wrong: BoolArray,
    baselines: Mapping[str, float],
    truth: Truth,
    columns: tuple[ColumnScore, ...],
    candidates: float | None = None,
) -> Score:
    """All claims together. `wrong` is a part of `spoken`, by row."""
    error = rate(wrong, spoken)
    rows = wrong.sum(axis=1) / np.maximum(1, spoken.sum(axis=1))
    low, middle, high = np.quantile(rows, [0.05, 0.5, 0.95])
    return Score(
        metric=metric,
        error=error,
        baselines=dict(baselines),
        gain=total_gain(error, baselines),
        r2=0.0,
        bound=metrics.norm_bound(truth.cells),
        sharp_bound=metrics.sharp_bound(truth.cells),
        attack_accuracy=None,
        constant_accuracy=None,
        row_error_quantiles=(float(low), float(middle), float(high)),
        candidates=candidates,
        rows=len(truth.values),
        columns=columns,
    )
