"""The base class of defences: a change at one named point of a protocol."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

import numpy as np

from plumbob.bundle import Array
from plumbob.defences.guarantee import Guarantee
from plumbob.errors import BadInput
from plumbob.federation import Federation, FloatArray, IntArray, Party
from plumbob.identity import Identified
from plumbob.known_defences import KnownDefences
from plumbob.protocols.base import Model, PredictionProtocol, Protocol, Release
from plumbob.protocols.shared.gathering import Gathering
from plumbob.threats import Threat


class Defence(Identified, ABC):
    """One defence. Override the method of its point; the others change nothing."""

    point: ClassVar[str]  # inputs, training, embeddings, labels, gradients, histograms, scores, knowledge
    paper: ClassVar[str] = ""
    begins: ClassVar[str] = ""  # why what others at its point have changed would be lost in it, so that it comes first
    most_classes: ClassVar[int | None] = None  # of the label, for which it is made; None: any number
    sweep_settings: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)  # the settings at which the defence sweep tries it

    def protect(self, protocol: Protocol) -> Protocol:
        """The protocol as it is trained under this defence, or the same one where it changes nothing there."""
        return protocol

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        """What happens to scores before the active party gets them (point `scores`), whatever rows it asks about."""
        return None

    def threat(self, threat: Threat) -> Threat:
        """What remains of a threat's knowledge (point `knowledge`)."""
        return threat

    def facing(self, threats: Sequence[Threat], others: Federation | None = None) -> Defence:
        """The same defence, told whom it is measured against and which complete rows of other people those have.

        Most do not ask. What does, says so in `identified`.
        """
        return self

    def fits_classes(self, classes: int) -> bool:
        """Whether it is made for a label of so many classes."""
        return self.most_classes is None or classes <= self.most_classes

    def changes(self, point: str) -> bool:
        """Whether it changes what defences named after it are given at a point."""
        return self.point == point

    def known(self) -> KnownDefences:
        """What the attacker knows of the defence: by default all its numbers. A defence is judged with this known."""
        numbers = {key: value for key, value in self.settings.items() if isinstance(value, int | float | bool)}
        return KnownDefences.named(self.name, {key: np.asarray(value) for key, value in numbers.items()})

    def guarantees(self) -> tuple[Guarantee, ...]:
        """What it promises by differential privacy; by default nothing."""
        return ()


class NoDefence(Defence):
    """The protocol as it is."""

    name = "none"
    identity = "NoDefence()"
    summary = "no defence: the protocol unchanged"
    point = "none"

    def known(self) -> KnownDefences:
        return KnownDefences()


class Combined(Defence):
    """Several defences at once: written `a+b` in a plan. Scores pass through them in the order given."""

    name = "combined"
    summary = "several defences combined"
    point = "several"

    def __init__(self, parts: Sequence[Defence]) -> None:
        self.parts = tuple(parts)
        for place, part in enumerate(self.parts):
            lost = [other.name for other in self.parts[:place] if part.begins and other.changes(part.point)]
            if lost:
                raise BadInput(f"{part.name} {part.begins}, so it must come before {lost[0]}; name it first")

    def protect(self, protocol: Protocol) -> Protocol:
        # What changes training comes before what only watches it.
        for part in sorted(self.parts, key=lambda part: part.point == "scores"):
            protocol = part.protect(protocol)
        return protocol

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        steps = [step for part in self.parts if (step := part.release(protocol, model, federation)) is not None]
        if not steps:
            return None

        def all_of(scores: FloatArray, rows: Federation) -> FloatArray:
            for step in steps:
                scores = step(scores, rows)
            return scores

        return all_of

    def threat(self, threat: Threat) -> Threat:
        for part in self.parts:
            threat = part.threat(threat)
        return threat

    def facing(self, threats: Sequence[Threat], others: Federation | None = None) -> Defence:
        return Combined([part.facing(threats, others) for part in self.parts])

    def fits_classes(self, classes: int) -> bool:
        return all(part.fits_classes(classes) for part in self.parts)

    def known(self) -> KnownDefences:
        return reduce(or_, (part.known() for part in self.parts), KnownDefences())

    def guarantees(self) -> tuple[Guarantee, ...]:
        return tuple(promise for part in self.parts for promise in part.guarantees())

    def identified(self) -> str:
        return "+".join(part.identified() for part in self.parts)

    def __repr__(self) -> str:
        return "+".join(map(repr, self.parts))


@dataclass(frozen=True)
class WatchedModel(Model):
    """A model with the scores it gives its training rows, for defences that learn what scores look like."""

    inner: Model
    training_scores: FloatArray

    def arrays(self) -> dict[str, Array]:
        return self.inner.arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        raise BadInput("a model's training scores are not among its arrays")

    def scores(self, values: FloatArray) -> FloatArray:
        return self.inner.scores(values)

    def reordered(self, order: IntArray) -> Self:
        return type(self)(self.inner.reordered(order), self.training_scores)

    def part(self, columns: IntArray) -> dict[str, Array]:
        return self.inner.part(columns)


class OtherwiseTrained(PredictionProtocol):
    """Another protocol with a `fit` of its own. Predictions are exchanged as ever, under the inner protocol's name, so that
    attacks and transcripts see no other protocol."""

    def __init__(self, inner: PredictionProtocol) -> None:
        self.inner = inner
        self.name, self.summary, self.by_party = inner.name, inner.summary, inner.by_party  # type: ignore[misc]  # of this one only

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        return self.inner.answer(party, part, rows)

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        return self.inner.combine(model, answers, columns)

    def collector(self, active: str) -> str:
        return self.inner.collector(active)

    def gathering(self) -> Gathering:
        return self.inner.gathering()


class Watched(OtherwiseTrained):
    """Another protocol, whose models come with the scores of their training rows."""

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Model:
        model = self.inner.fit(values, label, classes, rng, blocks)
        return WatchedModel(model, model.scores(values))

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        return super().combine(model.inner if isinstance(model, WatchedModel) else model, answers, columns)

    def __repr__(self) -> str:
        return f"Watched({self.inner!r})"


def watched(protocol: Protocol) -> Protocol:
    """A protocol of prediction with its training scores kept, once."""
    return (
        Watched(protocol)
        if isinstance(protocol, PredictionProtocol) and not isinstance(protocol, Watched)
        else protocol
    )


def training_scores(name: str, model: Model) -> FloatArray:
    """The scores that a watched model gave its training rows."""
    if not isinstance(model, WatchedModel):
        raise BadInput(f"{name}: expected a model trained by the protocol that `protect` returned, got another one")
    return model.training_scores
