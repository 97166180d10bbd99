"""How much a guess says about individuals, beside what needs no score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, View, cut
from plumbob.transcript import Transcript


def r2(values: np.ndarray, truth: np.ndarray) -> float:
    return float(1 - np.mean((values - truth) ** 2) / truth.var(axis=0).mean())


def beats_own_means(values: np.ndarray, log: Transcript, view: View) -> bool:
    """Above the mean of all own cells and above the means of the rows, which need no score."""
    truth = truth_of(log, view).values
    baselines = (np.full_like(truth, view.own.mean()), np.broadcast_to(view.own.mean(1, keepdims=True), truth.shape))
    return r2(values, truth) > max(r2(baseline, truth) for baseline in baselines)


def with_and_without_rows(guess: Callable[[View], np.ndarray], log: Transcript) -> tuple[float, float]:
    """R^2 of a guess without auxiliary rows, and with them."""
    truth = truth_of(log, cut(log, LUO2021)).values
    without, having = (r2(guess(cut(log, THREATS[threat])), truth) for threat in ("active", "active-auxiliary"))
    return without, having
