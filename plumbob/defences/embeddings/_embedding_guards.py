"""What defences at the point `embeddings` have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from plumbob.defences._guarded import GuardedDefence
from plumbob.errors import BadInput
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.base import Protocol
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline, GuardedProtocol


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
