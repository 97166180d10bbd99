"""Gaussian masking (ye2022, Algorithm 3): a passive party adds noise to its outputs before it sends them.

    sent = z + u,   u ~ N(0, sigma^2) in every cell, fresh for every message
It then learns from the gradient it gets as if it had sent z.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbob.bundle import Array
from plumbob.defences.embeddings._embedding_guards import CutDefence
from plumbob.errors import positive
from plumbob.protocols.embeddings._cut_guards import CutGuard, CutOutline

if TYPE_CHECKING:
    import torch


class GaussianMasking(CutDefence):
    """Normal noise with deviation `sigma` on every output."""

    name = "gaussian_masking"
    identity = "GaussianMasking(sigma)"
    summary = "passive parties add Gaussian noise to the embeddings they send"
    paper = "ye2022"

    def __init__(self, *, sigma: float = 0.1) -> None:
        self.sigma = positive("gaussian_masking: sigma", sigma)

    def begin(self, outline: CutOutline) -> CutGuard:
        return _Noisy(self)


class _Noisy(CutGuard):
    def __init__(self, defence: GaussianMasking) -> None:
        self.defence = defence

    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:
        import torch

        return outputs + torch.from_numpy(rng.normal(0, self.defence.sigma, tuple(outputs.shape))).to(outputs.dtype)

    def known(self) -> dict[str, Array]:
        return self.defence.known()
