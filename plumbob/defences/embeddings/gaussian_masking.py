"""Gaussian masking (ye2022, Algorithm 3): a passive party adds noise to its outputs before it sends them.

    sent = z + u,   u ~ N(0, sigma^2) in every cell, fresh for every message
It then learns from the gradient it gets as if it had sent z.

A row is in every epoch, so its mean over T epochs is X times the mean of the weights and noise of sigma / sqrt(T) only: the
active party knows the rows of each batch and averages. Choose sigma for sigma / sqrt(T), not for sigma.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import printed


class GaussianMasking(EmbeddingDefence):
    """Normal noise with deviation `sigma` on every output."""

    name = "gaussian_masking"
    identity = "GaussianMasking(sigma)"
    summary = "passive parties add Gaussian noise to the embeddings they send"
    paper = "ye2022"
    sources = {
        "sigma": printed("Section VI-D: 0.1 to 0.5"),
    }
    sweep_settings = ({"sigma": 0.1}, {"sigma": 0.5}, {"sigma": 2.0})

    def __init__(self, *, sigma: float = 0.1) -> None:
        self.sigma = positive("gaussian_masking: sigma", sigma)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[GaussianMasking]:
        return _Noisy(self)


class _Noisy(EmbeddingGuard[GaussianMasking]):
    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:

        return outputs + torch.from_numpy(rng.normal(0, self.defence.sigma, tuple(outputs.shape))).to(outputs.dtype)
