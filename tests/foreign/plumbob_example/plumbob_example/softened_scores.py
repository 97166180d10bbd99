"""Softened scores: every score is moved towards an even distribution over the classes."""

from __future__ import annotations

from plumbob.defences import Defence
from plumbob.federation import Federation
from plumbob.protocols.base import Model, PredictionProtocol, Release


class SoftenedScores(Defence):
    """The scores s become (1 - share) s + share / c, for c classes. The predicted class stays."""

    name = "softened_scores"
    summary = "scores are moved towards an even distribution"
    point = "scores"
    paper = "example2026"
    sweep_settings = ({"share": 0.25}, {"share": 0.75})

    def __init__(self, *, share: float = 0.5) -> None:
        self.share = share

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        return lambda scores, _: (1 - self.share) * scores + self.share / scores.shape[1]
