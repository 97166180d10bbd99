"""Quantised embeddings: a passive party sends its outputs on a grid of 2^bits levels, the same for all and fixed ahead.

    sent = the level nearest to z + e,   levels evenly from -reach to reach, e uniform in one step, or 0 without `dither`
With dither the mean of what is sent is z as long as z is within reach; the uniform noise is not taken away again.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import boolean, positive, whole
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline


class QuantisedEmbeddings(EmbeddingDefence):
    """Outputs in a few levels between -`reach` and `reach`; what is beyond is cut off."""

    name = "quantised_embeddings"
    identity = "QuantisedEmbeddings(bits, dither, reach)"
    summary = "passive parties round embeddings to a few levels, up or down at random"
    paper = "plumbob"

    def __init__(self, *, bits: int = 4, dither: bool = True, reach: float = 4.0) -> None:
        self.bits = whole("quantised_embeddings: bits", bits, 1, 16)
        self.dither = boolean("quantised_embeddings: dither", dither)
        self.reach = positive("quantised_embeddings: reach", reach)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[QuantisedEmbeddings]:
        return _Levels(self)


class _Levels(EmbeddingGuard[QuantisedEmbeddings]):
    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:

        most, reach = 2**self.defence.bits - 1, self.defence.reach
        place = (outputs + reach) * (most / (2 * reach))
        if self.defence.dither:
            place = place + torch.from_numpy(rng.random(tuple(outputs.shape)) - 0.5).to(outputs.dtype)
        sent: torch.Tensor = place.round().clamp(0, most) * (2 * reach / most) - reach
        return sent
