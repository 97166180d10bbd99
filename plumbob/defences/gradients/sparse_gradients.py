"""Sparse gradients (gradient compression): only the largest entries of every layer are sent, the others are zero.

Made to save traffic, and often named as a defence (zhu2019). What was not sent is not added to the next round.
"""

from __future__ import annotations

import math

import numpy as np

from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.errors import BadInput, positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline, Upload


class SparseGradients(GradientDefence):
    """The `share` of entries with the largest magnitudes, layer by layer."""

    name = "sparse_gradients"
    identity = "SparseGradients(share)"
    summary = "only the largest entries of every layer's gradient are sent"
    paper = "zhu2019"

    def __init__(self, *, share: float = 0.1) -> None:
        self.share = positive("sparse_gradients: share", share)
        if share > 1:
            raise BadInput(f"sparse_gradients: share: expected a number of at most 1, got {share!r}")

    def begin(self, outline: GradientOutline) -> GradientGuard[SparseGradients]:
        return _Sparse(self)


class _Sparse(GradientGuard[SparseGradients]):
    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:

        sent = {}
        for key, gradient in upload.gradients.items():
            flat = gradient.flatten()
            top = torch.topk(flat.abs(), math.ceil(self.defence.share * len(flat))).indices
            sent[key] = torch.zeros_like(flat).scatter_(0, top, flat[top]).view(gradient.shape)
        return sent
