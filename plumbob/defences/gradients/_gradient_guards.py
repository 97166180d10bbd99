"""What defences at the point `gradients` have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from plumbob.defences._guarded import GuardedDefence
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline


class GradientDefence(GuardedDefence):
    """A change of what workers send up, or of the rows they take."""

    point = "gradients"

    @abstractmethod
    def begin(self, outline: GradientOutline) -> GradientGuard[Any]:
        """The guard of one training."""
