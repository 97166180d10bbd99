"""Hide the model (luo2021, Section VII): the active party uses it, but is not shown its parameters.

Scores and their order stay as they are; what goes is the white box, and with it every attack that solves for the inputs of
a known function. A black-box attacker may still fit a model of its own (jiang2022, Section 4.3).
"""

from __future__ import annotations

from dataclasses import replace

from plumbob.defences.base import Defence
from plumbob.threats import Threat, WhiteBox


class HideModel(Defence):
    """No curious party knows the joint model."""

    name = "hide_model"
    identity = "HideModel()"
    summary = "the model is hidden from curious parties: the threat becomes black-box"
    point = "knowledge"
    paper = "luo2021"

    def threat(self, threat: Threat) -> Threat:
        return replace(threat, grants=tuple(grant for grant in threat.grants if not isinstance(grant, WhiteBox)))
