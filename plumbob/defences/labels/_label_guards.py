"""What defences at the point `labels` have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from plumbob.defences._guarded import GuardedDefence
from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.errors import BadInput
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard

UNIT = "the label of one row: one person, if each has one row"
NEIGHBOURS = "one row's label is another; the columns are the same and are not protected"
TRUST = "the active party, which has the labels, draws the noise; passive parties need not be trusted"


class LabelDefence(GuardedDefence):
    """A change of what the active party trains on, or of the gradients it sends back."""

    point = "labels"

    @abstractmethod
    def begin(self, outline: EmbeddingOutline) -> LabelGuard[Any]:
        """The guard of one training."""


def normal(like: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Standard normal numbers of the shape and type of another tensor."""
    return torch.from_numpy(rng.standard_normal(tuple(like.shape))).to(like.dtype)


def two_classes(name: str, outline: EmbeddingOutline) -> None:
    """Refuse more classes, for defences that are made for two."""
    if outline.classes != 2:
        raise BadInput(f"{name}: expected a label of 2 classes, got {outline.classes}; use another defence of labels")


def label_privacy(epsilon: float, delta: str, mechanism: str, composition: str, *more: str) -> Guarantee:
    """What a mechanism with label differential privacy promises."""
    return Guarantee(UNIT, NEIGHBOURS, epsilon, delta, TRUST, mechanism, composition, (*more, *SHARED_HAZARDS))
