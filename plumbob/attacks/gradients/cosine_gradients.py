"""Gradients matched by cosine similarity, a baseline of jin2021: norms do not count, and smooth images are preferred.

D = 1 - <g, g'> / (|g| |g'|) + beta TV          over all parameters at once
"""

from __future__ import annotations

from plumbob.attacks.gradients._gradient_matching import (
    RIVAL_SOURCES,
    MadeUpBatch,
    Matching,
    MatchingServer,
    Pairs,
    variation,
)
from plumbob.errors import not_negative
from plumbob.lazy_imports import Tensor, torch
from plumbob.setting_sources import ours
from plumbob.setting_types import NotNegative, Positive, Whole

TINY_SQUARED_LENGTH = 1e-20  # of squared lengths: a gradient of zeros has no angle


class CosineGradients(Matching):
    """The cosine distance of gradients and the images' total variation, which is not truncated here."""

    name = "cosine_gradients"
    identity = "CosineGradients(iterations, report_every, rate, beta)"
    summary = "jin2021's baseline: matches gradients by cosine similarity and prefers smooth images"
    sources = RIVAL_SOURCES | {"beta": ours("the paper names none; that of CAFE's total variation in Table 9")}

    def __init__(
        self,
        *,
        iterations: Whole | None = None,
        rate: Positive | None = None,
        beta: NotNegative = 1e-4,
        report_every: Whole | None = None,
    ) -> None:
        super().__init__(iterations=iterations, rate=rate, report_every=report_every)
        self.beta = not_negative("beta", beta)

    def objective(self, batch: MadeUpBatch, server: MatchingServer) -> Tensor:
        rough = [variation(batch.inputs[name]) for name in server.pictures]
        return torch.stack([angle(batch.pairs()), *(self.beta * tv for tv in rough)]).sum()


def angle(pairs: Pairs) -> Tensor:
    """1 - cosine of the angle between all dummy and all real gradients."""
    across = torch.stack([fake @ real for fake, real in pairs]).sum()
    lengths = [
        torch.stack([p[i].square().sum() for p in pairs]).sum().clamp_min(TINY_SQUARED_LENGTH).sqrt() for i in (0, 1)
    ]
    return 1 - across / (lengths[0] * lengths[1])
