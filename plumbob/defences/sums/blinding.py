"""Blinding (ours) of the sums of SecureBoost: random bits everywhere but where the gradients are.

    sent = [[S + u + 2^top v]]        u uniform below the gradients, v uniform above them
A code below or above the gradients drowns in u and v; G and H are read exactly, so trees and accuracy do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.sums._histogram_settings import HistogramDefence


class Blinding(HistogramDefence):
    """Passive parties add random bits to every sum."""

    name = "blinding"
    identity = "Blinding()"
    summary = "SecureBoost's passive parties add random bits to every sum, everywhere but where the gradients are"
    paper = "plumbob"

    def changed(self) -> Mapping[str, Any]:
        return {"blinding": True}
