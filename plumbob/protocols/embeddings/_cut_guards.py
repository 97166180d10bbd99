"""What a defence may change in a network cut at its first layer (`split_network`): the point `embeddings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Protocol as Interface

import numpy as np

from plumbob.bundle import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class CutOutline:
    """What is agreed before the first round."""

    rows: int
    columns: Mapping[str, int]  # by passive party
    width: int  # of the cut layer
    cut: int  # layers below it


class CutGuard:
    """A defence at the point `embeddings`, in one training. Override what it changes; the rest leaves all as it is."""

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """A passive party's columns as its bottom model gets them: once for all rows trained on, once for other rows."""
        return values

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:
        """The bottom model that is trained in place of `module`; it gets `columns` columns, including fabricated ones."""
        return module

    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:
        """What is sent in place of the outputs; gradients are taken as if these had been sent."""
        return outputs

    def known(self) -> dict[str, Array]:
        """What everybody knows of the defence."""
        return {}


class CutGuarding(Interface):
    """What makes a guard for each training."""

    def begin(self, outline: CutOutline) -> CutGuard: ...
