"""The threats of a plan: a built-in one by name, or one that changes what such a threat knows and may send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from pydantic import Field

from plumbob.auditing.planning.chosen import Part
from plumbob.errors import BadInput
from plumbob.protocols import PROTOCOLS, Protocol
from plumbob.threats import (
    THREATS,
    AnyGradient,
    AuxiliaryRows,
    Deviation,
    Grant,
    KnownLabels,
    KnownPeople,
    LowBits,
    OwnSteps,
    Schema,
    Threat,
    WhiteBox,
)


class ThreatPlan(Part):
    """Who is curious and what it knows: a built-in threat, modified by the given keys."""

    name: str = "active"
    colluding: tuple[str, ...] | None = None
    knows: tuple[Literal["model", "schema"], ...] | None = None
    auxiliary_rows: int | None = Field(default=None, ge=0)
    auxiliary_from: Literal["training", "prediction"] | None = None
    known_people: int | None = Field(default=None, ge=0)
    known_labels: int | None = Field(default=None, ge=0)
    deviates: tuple[Literal["low_bits", "any_gradient", "own_steps"], ...] | None = None

    def threat(self) -> Threat:
        if self == ThreatPlan(name=self.name):
            return THREATS.named(self.name)  # a bare name must be a known one
        base = THREATS.get(self.name, THREATS["active"])
        chosen_here = AuxiliaryRows | KnownPeople | KnownLabels | Deviation
        grants = [grant for grant in base.grants if not isinstance(grant, chosen_here)]
        if self.knows is not None:
            grants = [kind() for kind, word in _KNOWS.items() if word in self.knows]
        grants += self._rows(base)
        known = " and ".join(grant.words for grant in grants) or "nothing but its messages"
        chosen = tuple(kind() for kind, word in _DEVIATES.items() if word in (self.deviates or ()))
        sent = base.deviations if self.deviates is None else chosen
        passive = not base.active and not base.corrupted
        if any((one.active and not base.active) or (not one.active and not passive) for one in sent):
            whom = "the active party, which" if any(one.active for one in sent) else "a passive party, which by itself"
            raise BadInput(f"threat '{self.name}': 'deviates' is about {whom} is not curious here")
        everyone_but = base.colluding_all_but if self.colluding is None else None
        colluding = base.colluding if self.colluding is None else self.colluding
        helpers = ", ".join(colluding) or ("every passive party but one" if everyone_but is not None else "")
        helpers = " and ".join(filter(None, (helpers, "the coordinator" if base.corrupted else "")))
        who = f"the active party with {helpers}" if helpers else "the active party"
        if not base.active:
            who = (
                "the coordinator by itself"
                if base.corrupted
                else f"passive parties ({', '.join(colluding) or 'the first'})"
            )
        does = f" that {' and '.join(deviation.words for deviation in sent)}" if sent else ""
        return Threat(
            self.name,
            f"{who}{does}, knowing {known}",
            (*grants, *sent),
            tuple(colluding),
            everyone_but,
            base.corrupted,
            base.active,
        )

    def _rows(self, base: Threat) -> list[Grant]:
        """The complete rows it is granted, of other people and of these, and the labels."""
        rows = base.grant(AuxiliaryRows) if self.auxiliary_rows is None else None
        rows = AuxiliaryRows(self.auxiliary_rows) if self.auxiliary_rows else rows
        if self.auxiliary_from is not None:
            if not isinstance(rows, AuxiliaryRows):
                raise BadInput(
                    f"threat '{self.name}': 'auxiliary_from' needs auxiliary rows; say how many ('auxiliary_rows')"
                )
            rows = replace(rows, predicted=self.auxiliary_from == "prediction")
        people = base.grant(KnownPeople) if self.known_people is None else None
        people = KnownPeople(self.known_people) if self.known_people else people
        labels = base.grant(KnownLabels) if self.known_labels is None else None
        labels = KnownLabels(self.known_labels) if self.known_labels else labels
        return [one for one in (rows, people, labels) if one is not None]


_KNOWS: dict[type[Grant], Literal["model", "schema"]] = {WhiteBox: "model", Schema: "schema"}
_DEVIATES: dict[type[Deviation], Literal["low_bits", "any_gradient", "own_steps"]] = {
    LowBits: "low_bits",
    AnyGradient: "any_gradient",
    OwnSteps: "own_steps",
}


def usual_deviations(protocols: Iterable[Protocol], every: bool) -> tuple[ThreatPlan, ...]:
    """The threats that a plan which names none asks of protocols that an active party may deviate from: low bits, which change
    no model, and any gradient where those are protected, or where `every` one is wanted."""
    honest = [protocol for protocol in protocols if LowBits in protocol.open_to and protocol.sent is None]
    names = ["active-low-bits"] if honest else []
    names += ["active-any-gradient"] if honest and (every or any(p.settings.get("blinding") for p in honest)) else []
    return tuple(ThreatPlan(name=name) for name in names)


def check_deviations(threats: Iterable[ThreatPlan], protocols: Iterable[Protocol]) -> None:
    """Refuse a threat whose party may do something that no protocol of the plan takes."""
    every = list(protocols)
    taken = tuple(kind for protocol in every for kind in protocol.open_to)
    for threat in (named.threat() for named in threats):
        for deviation in threat.deviations:
            if not isinstance(deviation, taken):
                names = ", ".join(protocol.name for protocol in every)
                takers = " and ".join(name for name, kind in PROTOCOLS.items() if isinstance(deviation, kind.open_to))
                raise BadInput(
                    f"threat '{threat.name}': {deviation.who} that {deviation.words} makes a difference in {takers} only, "
                    f"and the plan names {names}; add it to 'protocols' or remove the threat"
                )
