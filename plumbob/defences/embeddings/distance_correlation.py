"""Distance correlation (NoPeek, vepakomma2020): passive parties train embeddings that say little of their columns.

    loss + strength x dCor(x, z),   by a step on the bottom model alone
Fewer distances survive, but a linear map of full rank stays one: columns lie in the span of the embeddings whatever it weighs.
"""

from __future__ import annotations

from plumbob.defences._distance_correlation import distance_correlation
from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import ours


class DistanceCorrelation(EmbeddingDefence):
    """A distance correlation that is lowered with this `strength`."""

    name = "distance_correlation"
    identity = "DistanceCorrelation(strength)"
    aliases = ("NoPeek",)
    summary = "passive parties lower the distance correlation between their columns and the embeddings they send"
    paper = "vepakomma2020"
    sources = {
        "strength": ours("the paper compares several"),
    }
    sweep_settings = ({"strength": 0.1}, {"strength": 1.0})

    def __init__(self, *, strength: float = 0.1) -> None:
        self.strength = positive("distance_correlation: strength", strength)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[DistanceCorrelation]:
        return _Uncorrelated(self)


class _Uncorrelated(EmbeddingGuard[DistanceCorrelation]):
    def penalty(self, party: str, inputs: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor | None:
        if len(inputs) < 2:
            return None
        return self.defence.strength * distance_correlation(inputs, outputs)
