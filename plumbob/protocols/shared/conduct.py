"""What a party does that the protocol does not ask for: an attack brings it, a protocol that takes such a thing carries it out.

    attack.sends()  ->  a Conduct       protocol.deviating(conduct)  ->  the same protocol with a party that behaves so
A conduct runs in the protocol's process, so it is given what its party has and nothing else (`Standing`, and what arrives).
What the party remembers of it becomes notes of that party, `sent/NAME`, where the attack finds it.

    HiddenCode         bits below gradients that are summed up                 secure_boost  (`gradient_plaintexts.py`)
    ChosenGradients    other gradients than the loss's, to passive parties     split_network
    OwnOptimiser       other steps of a passive party's own bottom model       split_network
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from plumbob.bundle import Array
from plumbob.federation import FloatArray, IntArray
from plumbob.grants import AuxiliaryRows, Threat
from plumbob.identity import Identified
from plumbob.lazy_imports import torch

SENT = "sent/"  # what the notes are called that a conduct leaves
KIND = "sent/kind"  # the note that says which conduct it was, as bytes of text


class Conduct(Identified, ABC):
    """What a deviating party does. Settings go to the constructor; they are part of what a run is known by."""

    kind: ClassVar[str]  # in words

    def granted(self, threat: Threat) -> Self:
        """The same by a party that knows what this threat grants."""
        return self

    def absent(self, sent: str) -> str:
        """Why an attack that needs this finds nothing in a run in which the party did something else (`sent`), or nothing."""
        return (
            f"reads what {self.kind} leave, and {f'{sent} were sent here' if sent else 'every party was honest here'}"
        )


@dataclass(frozen=True)
class Standing:
    """What an active party has when a training begins."""

    own: FloatArray
    label: IntArray
    classes: int
    known: IntArray  # its own columns, as positions in the joint model
    hidden: Mapping[str, IntArray]  # by passive party, those it holds; '' for all of them, where only a sum is seen
    width: int  # of an embedding
    rounds: int
    others: FloatArray | None = None  # complete rows of other people, as many as the threat grants
    others_label: IntArray | None = None


class GradientChoice(ABC):
    """One training of a party that chooses the gradients it sends."""

    @abstractmethod
    def gradients(self, party: str, rows: IntArray, told: Array, honest: Array) -> Array:
        """What is sent to a party that told these outputs, in place of the loss's gradient; '' is all parties at once."""

    def notes(self) -> Mapping[str, Array]:
        """What the party remembers when the training is over."""
        return {}


class ChosenGradients(Conduct):
    """Gradients of the active party's own choosing. `auxiliary`: how many complete rows of other people it has for that."""

    auxiliary: int

    def granted(self, threat: Threat) -> Self:
        rows = threat.grant(AuxiliaryRows)
        other = copy.copy(self)
        other.auxiliary = rows.count if isinstance(rows, AuxiliaryRows) else 0
        return other

    @abstractmethod
    def begin(self, standing: Standing, rng: np.random.Generator) -> GradientChoice:
        """At the start of a training."""


class OwnOptimiser(Conduct):
    """Steps of a passive party's bottom model that are not those of the optimizer that was agreed on."""

    @abstractmethod
    def begin(self) -> Steps:
        """At the start of a training."""


class Steps(ABC):
    """One training of a party that changes its own steps."""

    @abstractmethod
    def change(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Change the gradients of its parameters, from which the optimizer takes its step."""
