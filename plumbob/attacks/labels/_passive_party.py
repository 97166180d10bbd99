"""What attacks on the label by a passive party of a split network have in common."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack
from plumbob.kinds import Kind
from plumbob.threats import Threat


class PassiveLabelAttack(Attack, ABC):
    """It reads gradients at the cut, and says something of the label only."""

    nist = ATTRIBUTE_INFERENCE
    protocols: ClassVar[tuple[str, ...]] = ("split_network",)
    addresses = (Kind.LABEL,)
    needs_active = False
    cost_terms = ("1", "n", "n w")

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """The active party needs no attack: the label is its own."""
        if protocol in self.protocols and (threat.active or threat.corrupted):
            return "needs a passive party; the label is the active one's own"
        return super().why_not(protocol, threat, sent)
