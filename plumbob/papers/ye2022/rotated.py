"""A training with its passive columns and first weights turned by the same matrix: what Theorem 1 of ye2022 compares."""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray
from plumbob.known_defences import KnownDefences
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline


class Rotated:
    """(W, X) becomes (W U', X U'), so that the first outputs are the same."""

    def __init__(self, turn: FloatArray) -> None:
        self.turn = turn

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Rotated]:
        return _Rotated(self)

    def known(self) -> KnownDefences:
        return KnownDefences()


class _Rotated(EmbeddingGuard[Rotated]):
    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        return values @ torch.from_numpy(self.defence.turn.T).to(values.dtype)

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:

        with torch.no_grad():
            weight = module.get_parameter("weight")
            weight.copy_(weight @ torch.from_numpy(self.defence.turn.T).to(weight.dtype))
        return module
