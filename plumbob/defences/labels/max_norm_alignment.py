"""Max-norm alignment (li2022): every row's gradient is made as long, on average, as the longest of the batch.

    sent_i = (1 + s_i n_i) g_i,   s_i^2 = |g_max|^2 / |g_i|^2 - 1,   n_i ~ N(0, 1)
The norm no longer tells the rarer class. What is sent still lies on the line of g_i, and its mean over rounds is g_i.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard


class MaxNormAlignment(LabelDefence):
    """Noise along each row's own gradient. It has no settings."""

    name = "max_norm_alignment"
    identity = "MaxNormAlignment()"
    summary = (
        "the active party stretches every row's gradient at random, so that on average all are as long as the longest"
    )
    paper = "li2022"

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[MaxNormAlignment]:
        return _Aligned(self)


class _Aligned(LabelGuard[MaxNormAlignment]):
    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        gradients = backward.gradients
        squares = gradients.double().pow(2).sum(dim=1)
        spread = (squares.max() / squares.clamp_min(1e-300) - 1).clamp(min=0.0).sqrt()
        stretch = 1 + spread * torch.from_numpy(rng.standard_normal(len(gradients)))
        stretched: torch.Tensor = (stretch[:, None] * gradients.double()).to(gradients.dtype)
        return stretched
