"""Discrete output gradients (DiscreteSGD, fu2022): every cell is rounded to the nearest of a few levels.

    levels: `bins` + 1 points, evenly from m - 2 s to m + 2 s,   m, s: mean and deviation of all cells of the batch
What lies beyond becomes the end point. Signs and directions stay, as far as they are larger than a bin.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import whole
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours

REACH = 2.0  # deviations on both sides of the mean


class DiscreteOutputGradients(LabelDefence):
    """Gradients in so many `bins`."""

    name = "discrete_output_gradients"
    identity = "DiscreteOutputGradients(bins)"
    summary = "the active party rounds the gradients it sends back to a few levels"
    paper = "fu2022"
    sources = {
        "bins": ours("the authors' code has 12; more intervals leave more of the gradient"),
    }
    sweep_settings = ({"bins": 2}, {"bins": 12})

    def __init__(self, *, bins: int = 12) -> None:
        self.bins = whole("discrete_output_gradients: bins", bins, 1, 65_536)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[DiscreteOutputGradients]:
        return _Levels(self)


class _Levels(LabelGuard[DiscreteOutputGradients]):
    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        return rounded(backward.gradients, self.defence.bins)


def rounded(gradients: torch.Tensor, bins: int) -> torch.Tensor:
    """Every cell at the nearest level; cells that are all the same stay."""
    reach = REACH * gradients.std(correction=0)
    if not float(reach) > 0:
        return gradients
    low, step = gradients.mean() - reach, 2 * reach / bins
    place: torch.Tensor = ((gradients - low) / step).round().clamp(0, bins)
    return low + place * step
