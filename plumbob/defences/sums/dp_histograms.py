"""Differential privacy of the sums (weng2022, Section 6, which says that it does not hide orders): Laplace noise on every bin.

    G_B + Laplace(4 |g| c / epsilon),    H_B + Laplace(4 |h| c / epsilon),        c = columns x depth x trees
A row whose passive values change leaves one bin and enters another in each column, level and tree: its sums of g change by up
to 2 |g| c in all, those of h by 2 |h| c; either has half of the budget. Noise is a multiple of the gradients' precision, as
whoever knows of nothing below them draws it. `blinding` beside it (`dp_histograms+blinding`) covers the bits below as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.defences.sums._histogram_settings import HistogramDefence
from plumbob.errors import positive
from plumbob.known_defences import KnownDefences, KnownDpHistograms
from plumbob.setting_sources import ours

SUMS_HAZARDS = (
    *SHARED_HAZARDS,
    "Only the sums are covered. The answers which rows go left, and the number and the bounds of bins, are sent as they are.",
    "It holds for an active party that sends gradients within their bounds and nothing else. What it hides below their precision "
    "is added up without noise (reverse sum), and nobody without the key can see that.",
)


class DpHistograms(HistogramDefence):
    """Sums that are `epsilon`-private for each row's passive columns, all trees of the training together."""

    name = "dp_histograms"
    identity = "DpHistograms(epsilon)"
    summary = "Laplace noise on every sum of a bin, for differential privacy of the passive columns"
    paper = "weng2022"
    sources = {"epsilon": ours("Section 6 names no budget")}
    sweep_settings = ({"epsilon": 1_000.0}, {"epsilon": 10.0})

    def __init__(self, *, epsilon: float = 1.0) -> None:
        self.epsilon = positive("dp_histograms: epsilon", epsilon)

    def changed(self) -> Mapping[str, Any]:
        return {"budget": self.epsilon}

    def known(self) -> KnownDefences:
        return KnownDefences.of(KnownDpHistograms(epsilon=self.epsilon, total=True))

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            Guarantee(
                unit="one row of a passive party: one person, if each has one row",
                neighbours="any two values of one party's columns of a row; the gradients and all that crosses besides are fixed",
                epsilon=self.epsilon,
                delta="0",
                trust="each passive party draws the noise on its own sums; nobody else is trusted",
                mechanism="Laplace noise of scale 4 columns depth trees / epsilon times the largest |g| (|h|) on sums of g (h)",
                composition="all sums of one training: columns, levels and trees, half of it for g and half for h",
                hazards=SUMS_HAZARDS,
            ),
        )
