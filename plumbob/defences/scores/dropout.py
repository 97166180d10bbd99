"""Dropout (luo2021, Section VII): hidden units are dropped at random while a network is trained.

The model is less bound to single columns; its scores are released in full. Protocols without hidden units stay as they are.
"""

from __future__ import annotations

import copy

from plumbob.defences.base import Defence
from plumbob.errors import BadInput
from plumbob.protocols.base import Protocol
from plumbob.setting_sources import ours


class Dropout(Defence):
    """Networks are trained with dropout of the given `rate`."""

    name = "dropout"
    identity = "Dropout(rate)"
    summary = "networks are trained with dropout; protocols without hidden units are unchanged"
    point = "training"
    paper = "luo2021"
    sources = {
        "rate": ours("Section VII names none; the usual one of its reference 44"),
    }

    def __init__(self, *, rate: float = 0.5) -> None:
        if not 0 < rate < 1:
            raise BadInput(f"dropout: expected a rate above 0 and below 1, got {rate}")
        self.rate = rate

    def protect(self, protocol: Protocol) -> Protocol:
        settings = vars(protocol)
        hidden = settings.get("layers", True) and settings.get("hidden", True)
        if "dropout" not in settings or not hidden:
            return protocol
        changed = copy.copy(protocol)
        vars(changed)["dropout"] = self.rate
        return changed
