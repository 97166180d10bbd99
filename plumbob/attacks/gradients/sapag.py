"""SAPAG, a baseline of jin2021: gradients matched through a Gaussian kernel, parameter by parameter.

    D = sum over parameters of 1 - exp( -|g - g'|^2 / s )          s the variance of the real gradient's cells
The sum of squares of thousands of cells is far above the variance of one, so where a parameter is large the kernel is flat and
says nothing; the small ones lead.
"""

from __future__ import annotations

from plumbob.attacks.gradients._gradient_matching import MadeUpBatch, Matching, MatchingServer, Pairs
from plumbob.lazy_imports import Tensor, torch

TINY_GRADIENT_VARIANCE = 1e-20  # of a variance: dead units have gradients of zeros


class Sapag(Matching):
    """The Gaussian kernel of gradients."""

    name = "sapag"
    identity = "Sapag(iterations, report_every, rate)"
    summary = "jin2021's baseline: matches gradients through a Gaussian kernel (SAPAG)"

    def objective(self, batch: MadeUpBatch, server: MatchingServer) -> Tensor:
        return kernel(batch.pairs())


def kernel(pairs: Pairs) -> Tensor:
    """The sum over parameters of 1 - exp(-|g - g'|^2 / s)."""
    return torch.stack(
        [
            -torch.expm1(-(fake - real).square().sum() / real.var(unbiased=False).clamp_min(TINY_GRADIENT_VARIANCE))
            for fake, real in pairs
        ]
    ).sum()
