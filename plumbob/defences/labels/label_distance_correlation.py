"""Label distance correlation (sun2022): the active party trains embeddings that say little of the label.

    loss + strength x log dCor(z, y),   z: what was received, y: the label, one column per class
It is made for what the embeddings themselves show of the label. What gradients show passes it by, and the gradient of this term
depends on the label itself.
"""

from __future__ import annotations

from plumbob.defences._distance_correlation import distance_correlation
from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import positive
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours

SMALLEST = 1e-4  # of a correlation whose logarithm is lowered


class LabelDistanceCorrelation(LabelDefence):
    """A distance correlation that is lowered with this `strength`."""

    name = "label_distance_correlation"
    identity = "LabelDistanceCorrelation(strength)"
    summary = "the active party lowers the distance correlation between what it receives and the label"
    paper = "sun2022"
    sources = {
        "strength": ours("the paper compares several"),
    }
    sweep_settings = ({"strength": 0.1}, {"strength": 1.0})

    def __init__(self, *, strength: float = 0.1) -> None:
        self.strength = positive("label_distance_correlation: strength", strength)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[LabelDistanceCorrelation]:
        return _Uncorrelated(self, outline.classes)


class _Uncorrelated(LabelGuard[LabelDistanceCorrelation]):
    def __init__(self, defence: LabelDistanceCorrelation, classes: int) -> None:
        super().__init__(defence)
        self._classes = classes

    def burden(self, received: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
        told = nn.functional.one_hot(targets, self._classes) if targets.ndim == 1 else targets
        if len(received) < 2 or bool((told == told[0]).all()):  # a batch of one class has nothing to hide
            return None
        found = distance_correlation(received, told).clamp_min(SMALLEST).log()
        return self.defence.strength * found
