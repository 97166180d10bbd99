"""Left out (ours): a party keeps its two-valued columns out of the joint model.

    z = W x,   x with 0 in place of every column that takes two values or fewer
What is in no message cannot be found in one, except as far as the other columns tell it. The cost is what the columns were
worth to the model; measure it before anything else is tried, as it may be nothing.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline


class LeftOut(EmbeddingDefence):
    """All columns of two values are left out."""

    name = "left_out"
    identity = "LeftOut()"
    summary = "passive parties keep their two-valued columns out of the joint model"
    paper = "plumbob"

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[LeftOut]:
        return _LeftOut(self)


class _LeftOut(EmbeddingGuard[LeftOut]):
    def __init__(self, defence: LeftOut) -> None:
        super().__init__(defence)
        self._kept: dict[str, torch.Tensor] = {}

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        if party not in self._kept:
            self._kept[party] = torch.tensor([len(torch.unique(column)) > 2 for column in values.T]).to(values.dtype)
        return values * self._kept[party]
