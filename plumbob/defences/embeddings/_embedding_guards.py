"""What defences at the point `embeddings` have in common: each training of `split_network` gets a guard of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from plumbob.defences.base import Defence
from plumbob.errors import BadInput
from plumbob.protocols.base import Protocol
from plumbob.protocols.embeddings._cut_guards import CutGuard, CutOutline
from plumbob.protocols.embeddings.split_network import SplitNetwork

if TYPE_CHECKING:
    import torch


class CutDefence(Defence):
    """A change of what passive parties put into their bottom models, of these, or of what they send."""

    point = "embeddings"
    last: ClassVar[bool] = False  # whether nothing may change the columns after it
    folds: ClassVar[bool] = False  # whether it lowers the rank of the first layer, which can be done once

    @abstractmethod
    def begin(self, outline: CutOutline) -> CutGuard:
        """The guard of one training."""

    def protect(self, protocol: Protocol) -> Protocol:
        if not isinstance(protocol, SplitNetwork):
            return protocol
        for other in protocol.guards:
            if self.folds and isinstance(other, CutDefence) and other.folds:
                raise BadInput(f"{self.name}: {other.name} already lowers the first layer's rank; use one of them")
        return protocol.guarded(self)


def folded(columns: int, rank: int, above: torch.nn.Module) -> torch.nn.Module:
    """`above` on [Q x | rest]: Q is a trained matrix of so many rows for the first `columns`, the rest stays as it is.

    Q starts with orthonormal rows, so that outputs are of the size they would have had without it.
    """
    import torch
    from torch import nn

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
