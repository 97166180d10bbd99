"""Sparse output gradients (gradient compression, fu2022): only the largest cells of a batch are sent.

    sent = g where |g| is among the ceil(share x cells) largest of the message, else 0
What is sent is exact. Rows of the rarer class have the longest gradients, so theirs are sent, and a 0 tells the other class.
"""

from __future__ import annotations

import math

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import BadInput, positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class SparseOutputGradients(LabelDefence):
    """The `share` of a message's cells with the largest magnitudes."""

    name = "sparse_output_gradients"
    identity = "SparseOutputGradients(share)"
    summary = "the active party sends back only the largest cells of the gradients"
    paper = "fu2022"
    sources = {
        "share": ours("the paper compares several"),
    }
    sweep_settings = ({"share": 0.1}, {"share": 0.01})

    def __init__(self, *, share: float = 0.1) -> None:
        self.share = positive("sparse_output_gradients: share", share)
        if share > 1:
            raise BadInput(f"sparse_output_gradients: share: expected a number of at most 1, got {share!r}")

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[SparseOutputGradients]:
        return _Sparse(self)


class _Sparse(LabelGuard[SparseOutputGradients]):
    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        flat = backward.gradients.flatten()
        top = torch.topk(flat.abs(), math.ceil(self.defence.share * len(flat))).indices
        return torch.zeros_like(flat).scatter_(0, top, flat[top]).view(backward.gradients.shape)
