"""SAPAG, as jin2021 compares with it: gradients matched through a Gaussian kernel, parameter by parameter.

    D = sum over parameters of 1 - exp( -|g - g'|^2 / s )          s the variance of the real gradient's cells
The sum of squares of thousands of cells is far above the variance of one, so where a parameter is large the kernel is flat and
says nothing; the small ones lead.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from plumbob.attacks.base import Guess
from plumbob.attacks.generative_regression import one_thread
from plumbob.attacks.gradient_matching import Dummies, Pairs, Server, ServerAttack, search, seed_of
from plumbob.errors import positive
from plumbob.threats import View

TINY = 1e-20  # of a variance: dead units have gradients of zeros


class Sapag(ServerAttack):
    """The Gaussian kernel of gradients."""

    name = "sapag"
    summary = "jin2021's rival: matches gradients through a Gaussian kernel (SAPAG)"

    def __init__(self, *, iterations: int = 300, rate: float = 1e-2, report_every: int | None = None) -> None:
        self._store_length(iterations, report_every)
        self.rate = positive("rate", rate)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        with one_thread():
            server = Server(view)
            dummies = Dummies.drawn(server, seed_of(rng))
            return search(self, server, dummies, lambda batch: kernel(batch.pairs()), self.rate)


def kernel(pairs: Pairs) -> Tensor:
    """The sum over parameters of 1 - exp(-|g - g'|^2 / s)."""
    return torch.stack(
        [-torch.expm1(-(fake - real).square().sum() / real.var(unbiased=False).clamp_min(TINY)) for fake, real in pairs]
    ).sum()
