"""What defences at the point `gradients` have in common: each training of `split_training` gets a guard of its own."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import ClassVar

from plumbob.defences.base import Defence
from plumbob.protocols.base import Protocol
from plumbob.protocols.gradients.split_training import Guard, Outline, SplitTraining


class GradientDefence(Defence):
    """A change of what workers send up, or of the rows they take."""

    point = "gradients"
    last: ClassVar[bool] = False  # whether nothing may change what it sends

    @abstractmethod
    def begin(self, outline: Outline) -> Guard:
        """The guard of one training."""

    def changes(self, point: str) -> bool:
        return super().changes(point) and not self.last

    def protect(self, protocol: Protocol) -> Protocol:
        if not isinstance(protocol, SplitTraining):
            return protocol
        changed = copy.copy(protocol)
        changed.guards = tuple(sorted((*protocol.guards, self), key=lambda guard: getattr(guard, "last", False)))
        return changed
