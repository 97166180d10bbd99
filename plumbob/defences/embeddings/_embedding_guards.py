"""What defences at the point `embeddings` have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from plumbob.defences._guarded import GuardedDefence
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.base import Protocol
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline, GuardedProtocol

ROUNDING = 1e-5  # of a column's length: less than this is left of one that depends on others, in numbers of 32 bits


class EmbeddingDefence(GuardedDefence):
    """A change of what passive parties put into their bottom models, of these, or of what they send."""

    point = "embeddings"
    folds: ClassVar[bool] = False  # whether it lowers the rank of the first layer, which can be done once

    @abstractmethod
    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Any]:
        """The guard of one training."""

    def protect(self, protocol: Protocol) -> Protocol:
        for other in protocol.guards if isinstance(protocol, GuardedProtocol) else ():
            if self.folds and isinstance(other, EmbeddingDefence) and other.folds:
                raise BadInput(f"{self.name}: {other.name} already lowers the first layer's rank; use one of them")
        return super().protect(protocol)


def folded(columns: int, rank: int, above: torch.nn.Module) -> torch.nn.Module:
    """`above` on [Q x | rest]: Q is a trained matrix of so many rows for the first `columns`, the rest stays as it is.

    Q starts with orthonormal rows, so that outputs are of the size they would have had without it.
    """

    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fold = nn.Linear(columns, rank, bias=False)
            nn.init.orthogonal_(self.fold.weight)
            self.above = above

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            joined = torch.cat([self.fold(values[:, :columns]), values[:, columns:]], dim=1)
            outputs: torch.Tensor = self.above(joined)
            return outputs

    return Folded().to(next(above.parameters()).dtype)


def independent(columns: FloatArray, constant: bool = False) -> IntArray:
    """The columns, by position, that are no sum of multiples of earlier ones, or with `constant` of these and of a constant.

    >>> independent(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])).tolist()
    [0, 1]
    """
    basis = np.full((len(columns), int(constant)), 1 / np.sqrt(len(columns)))
    kept = []
    for j, column in enumerate(columns.T):
        left = column - basis @ (basis.T @ column)
        left -= basis @ (basis.T @ left)
        size = float(np.linalg.norm(left))
        if size > ROUNDING * float(np.linalg.norm(column)):
            kept.append(j)
            basis = np.column_stack([basis, left / size])
    return np.array(kept, dtype=np.int64)
