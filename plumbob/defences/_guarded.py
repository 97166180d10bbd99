"""What defences that change the messages of a training have in common: each training gets a guard of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from plumbob.defences.base import Defence
from plumbob.protocols.base import Protocol
from plumbob.protocols.shared.guards import Guard, GuardedProtocol


class GuardedDefence(Defence):
    """A change at a point of a training's messages. A family says which point, and what its guards are told."""

    last: ClassVar[bool] = False  # whether nothing may change a message after it

    @abstractmethod
    def begin(self, outline: Any) -> Guard[Any]:
        """The guard of one training."""

    def changes(self, point: str) -> bool:
        return super().changes(point) and not self.last  # what comes last is given to no other

    def protect(self, protocol: Protocol) -> Protocol:
        if not isinstance(protocol, GuardedProtocol) or self.point not in protocol.parts:
            return protocol
        return protocol.guarded(self)
