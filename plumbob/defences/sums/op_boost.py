"""OP-Boost (Li et al., VLDB 2022; in FederatedScope): passive parties put rows into noisy bins that keep the order on the whole.

    P(bin b' | bin b)  proportional to  exp(-epsilon |b - b'| / 2)
A bin says of a row's value x what it says of one d bins away, up to a factor exp(epsilon d): metric local privacy. Trees are
grown on noisy bins; predictions use the true values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.sums._histogram_settings import HistogramDefence
from plumbob.errors import positive
from plumbob.known_defences import KnownDefences, KnownOpBoost
from plumbob.setting_sources import ours


class OpBoost(HistogramDefence):
    """Order-preserving desensitisation of passive columns; `epsilon` for each bin of distance."""

    name = "op_boost"
    identity = "OpBoost(epsilon)"
    summary = "passive parties of SecureBoost put rows into noisy bins near their own"
    paper = "li2022opboost"
    sources = {"epsilon": ours("per bin of distance; the paper names budgets per value")}
    sweep_settings = ({"epsilon": 2.0}, {"epsilon": 0.2})

    def __init__(self, *, epsilon: float = 1.0) -> None:
        self.epsilon = positive("op_boost: epsilon", epsilon)

    def changed(self) -> Mapping[str, Any]:
        return {"order_epsilon": self.epsilon}

    def known(self) -> KnownDefences:
        return KnownDefences.of(KnownOpBoost(self.epsilon))
