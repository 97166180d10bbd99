"""What defences at the point `histograms` have in common: each is a setting of SecureBoost, whose parties carry it out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from plumbob.defences.base import Defence
from plumbob.protocols.base import Protocol
from plumbob.protocols.sums.secure_boost import SecureBoost


class HistogramDefence(Defence):
    """A change of the sums per bin, or of who works them out."""

    point = "histograms"

    @abstractmethod
    def changed(self) -> Mapping[str, Any]:
        """The settings of SecureBoost that switch it on."""

    def protect(self, protocol: Protocol) -> Protocol:
        if not isinstance(protocol, SecureBoost):
            return protocol
        return type(protocol)(**{**protocol.chosen, **self.changed()})
