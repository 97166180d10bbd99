"""Noise on output gradients: the active party adds it to the gradients it sends back.

    sent_i = g_i + e_i,   e_i of deviation `scale` x max |g| / sqrt(width) in every cell, fresh for every message
Gaussian noise is the isotropic baseline of li2022: a row's noise is as long as the longest gradient of the batch times `scale`.
With `laplace` it is drawn as in fu2022, with the same deviation.

The top model learns from the gradients without noise, so this is no differential privacy: later gradients depend on the labels
through it. `private_residuals` has noise where it counts. A row is in every epoch, and the noise is drawn anew: it averages out.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import boolean, positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class OutputGradientNoise(LabelDefence):
    """Gaussian or Laplace noise, in units of the longest gradient of the batch."""

    name = "output_gradient_noise"
    identity = "OutputGradientNoise(scale, laplace)"
    summary = "the active party adds Gaussian or Laplace noise to the gradients it sends back"
    paper = "li2022"
    sources = {
        "scale": ours("1 makes the noise as long as the longest gradient"),
        "laplace": ours("isotropic Gaussian noise is the baseline of li2022, Laplace noise that of fu2022"),
    }
    sweep_settings = ({"scale": 1.0}, {"scale": 8.0})

    def __init__(self, *, scale: float = 1.0, laplace: bool = False) -> None:
        self.scale = positive("output_gradient_noise: scale", scale)
        self.laplace = boolean("output_gradient_noise: laplace", laplace)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[OutputGradientNoise]:
        return _Noisy(self)


class _Noisy(LabelGuard[OutputGradientNoise]):
    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        gradients, shape = backward.gradients, tuple(backward.gradients.shape)
        draws = rng.laplace(0, 0.5**0.5, shape) if self.defence.laplace else rng.standard_normal(shape)
        width = self.defence.scale * float(gradients.norm(dim=1).max()) / shape[1] ** 0.5
        noisy: torch.Tensor = gradients + width * torch.from_numpy(draws).to(gradients.dtype)
        return noisy
