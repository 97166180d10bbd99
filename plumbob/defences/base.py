"""What every defence is: a change at one named point of a protocol."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import ClassVar

from plumbob.federation import Federation, FloatArray
from plumbob.protocols.base import Model, Protocol

Release = Callable[[FloatArray], FloatArray]


class Defence(ABC):
    """One protection. Override the method of its point; the others leave everything as it is."""

    name: ClassVar[str]
    summary: ClassVar[str]
    point: ClassVar[str]  # inputs, training, scores
    paper: ClassVar[str] = ""

    def release(self, protocol: Protocol, model: Model, federation: Federation) -> Release | None:
        """What happens to scores before the active party gets them (point `scores`)."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class NoDefence(Defence):
    """The protocol as it is."""

    name = "none"
    summary = "no defence: the protocol as it is"
    point = "none"
