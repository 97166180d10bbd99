"""Rotation (ours, to show that it does not help): a party rotates its columns by a secret orthogonal matrix.

    z = W U x,   U drawn once, the same for all rows
W U is just another matrix of the same rank: the outputs span what they spanned before.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.federation import FloatArray
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline


class Rotation(EmbeddingDefence):
    """Columns times a secret orthogonal matrix."""

    name = "rotation"
    identity = "Rotation()"
    summary = (
        "passive parties rotate their columns by a secret orthogonal matrix; the span of the embeddings stays the same"
    )
    paper = "plumbob"

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Rotation]:
        return _Rotated(self)


class _Rotated(EmbeddingGuard[Rotation]):
    def __init__(self, defence: Rotation) -> None:
        super().__init__(defence)
        self._turns: dict[str, FloatArray] = {}

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        if party not in self._turns:
            self._turns[party] = random_orthogonal(values.shape[1], rng)
        return values @ torch.from_numpy(self._turns[party]).to(values.dtype)


def random_orthogonal(size: int, rng: np.random.Generator) -> FloatArray:
    """Uniform among all orthogonal matrices of that size."""
    turn, upper = np.linalg.qr(rng.normal(size=(size, size)))
    return np.asarray(turn * np.sign(np.diag(upper)))
