"""Grafting-LDP (takahashi2023): trees are grown on noisy labels, and the active party mends them by itself.

    labels by LP-MST in two stages, epsilon-private each; subtrees whose majorities are all wrong are grown anew on true labels
    and the active party's own columns, unseen by others
What passive parties see (rows of nodes, encrypted gradients, splits) follows from the noisy labels alone. Scores that the next
tree starts from are those of the noisy trees, so that nothing of the true labels comes back into messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.defences.sums._histogram_settings import HistogramDefence
from plumbob.errors import positive
from plumbob.known_defences import KnownDefences, KnownGraftingLdp
from plumbob.setting_sources import ours


class GraftingLdp(HistogramDefence):
    """Labels with `epsilon`-private noise for all that is sent; grafts for accuracy."""

    name = "grafting_ldp"
    identity = "GraftingLdp(epsilon)"
    summary = "SecureBoost on labels with differential privacy, mended by subtrees that the active party grows alone"
    paper = "takahashi2023"
    sources = {"epsilon": ours("the paper tries several")}
    sweep_settings = ({"epsilon": 2.0}, {"epsilon": 0.5})

    def __init__(self, *, epsilon: float = 1.0) -> None:
        self.epsilon = positive("grafting_ldp: epsilon", epsilon)

    def changed(self) -> Mapping[str, Any]:
        return {"label_epsilon": self.epsilon}

    def known(self) -> KnownDefences:
        return KnownDefences.of(KnownGraftingLdp(self.epsilon))

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            Guarantee(
                unit="the label of one row: one person, if each has one row",
                neighbours="any two labels of one row; columns and rows are fixed",
                epsilon=self.epsilon,
                delta="0",
                trust="the active party draws the noise on its own labels; nobody else is trusted",
                mechanism="randomised response, with priors from a model of noisy labels of other rows",
                composition="one answer for each row, used in all trees; what follows from the answers costs nothing more",
                hazards=(
                    *SHARED_HAZARDS,
                    "Predictions come from the mended model, which has seen the true labels. They are not covered.",
                ),
            ),
        )
