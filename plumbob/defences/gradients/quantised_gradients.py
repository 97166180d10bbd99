"""Quantised gradients: entries of a layer are rounded to 2^bits equidistant levels from the smallest to the largest.

With one bit an entry is its sign times the layer's mean magnitude. `stochastic` rounds up or down by chance so that the mean is
right. Made to save traffic, and often named as a defence (zhu2019).
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.errors import boolean, whole
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline, Upload


class QuantisedGradients(GradientDefence):
    """Gradients in a few levels."""

    name = "quantised_gradients"
    identity = "QuantisedGradients(bits, stochastic)"
    summary = "every gradient entry is rounded to a few levels"
    paper = "zhu2019"

    def __init__(self, *, bits: int = 4, stochastic: bool = False) -> None:
        self.bits = whole("quantised_gradients: bits", bits, 1, 16)
        self.stochastic = boolean("quantised_gradients: stochastic", stochastic)

    def begin(self, outline: GradientOutline) -> GradientGuard[QuantisedGradients]:
        return _Levels(self)


class _Levels(GradientGuard[QuantisedGradients]):
    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        return {key: self._rounded(gradient, rng) for key, gradient in upload.gradients.items()}

    def _rounded(self, gradient: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        bits, stochastic = self.defence.bits, self.defence.stochastic
        chance = torch.from_numpy(rng.random(gradient.shape, dtype=np.float32)) if stochastic else None
        if bits == 1 and chance is None:
            one_bit: torch.Tensor = gradient.sign() * gradient.abs().mean()
            return one_bit
        low, high = gradient.min(), gradient.max()
        step = (high - low) / (2**bits - 1)
        if not float(step) > 0:
            return gradient
        place = (gradient - low) / step
        level = place.round() if chance is None else (place + chance).floor().clamp_max(2**bits - 1)
        rounded: torch.Tensor = low + level * step
        return rounded
