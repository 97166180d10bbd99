"""What every defence is: a change at one named point of a protocol."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from plumbob.bundle import Array
from plumbob.federation import Federation, FloatArray
from plumbob.protocols.base import Model, Protocol
from plumbob.threats import Threat

Release = Callable[[FloatArray], FloatArray]


class Defence(ABC):
    """One protection. Override the method of its point; the others leave everything as it is."""

    name: ClassVar[str]
    summary: ClassVar[str]
    point: ClassVar[str]  # inputs, training, scores, knowledge
    paper: ClassVar[str] = ""

    def protect(self, protocol: Protocol) -> Protocol:
        """The protocol as it is trained under this defence (points `inputs` and `training`)."""
        return protocol

    def release(self, protocol: Protocol, model: Model, federation: Federation) -> Release | None:
        """What happens to scores before the active party gets them (point `scores`)."""
        return None

    def threat(self, threat: Threat) -> Threat:
        """What remains of a threat's knowledge (point `knowledge`)."""
        return threat

    def known(self) -> dict[str, Array]:
        """What the attacker knows of the defence: by default all its settings. A defence is judged with this known."""
        return {
            f"{self.name}/{key}": np.asarray(value)
            for key, value in vars(self).items()
            if not key.startswith("_") and isinstance(value, int | float | bool)
        } | {f"{self.name}/on": np.array(True)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class NoDefence(Defence):
    """The protocol as it is."""

    name = "none"
    summary = "no defence: the protocol as it is"
    point = "none"

    def known(self) -> dict[str, Array]:
        return {}
