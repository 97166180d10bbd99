"""What an assessment is about, besides the findings: the plan, the parties, what could not be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.matrix import phase
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.sweep import fits
from plumbob.auditing.running.data_flows import Flow, flows_of
from plumbob.auditing.running.expand import gaps, untried
from plumbob.auditing.running.open_data import Source
from plumbob.data.matched import Matched
from plumbob.defences import Combined
from plumbob.defences.guarantee import Guarantee
from plumbob.protocols import PROTOCOLS
from plumbob.report import not_audited
from plumbob.threats import Threat

DEALT = ("active", "passive")  # whom columns are dealt out to at random


@dataclass(frozen=True)
class Member:
    """One party: what it brings."""

    name: str
    active: bool
    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True)
class Promise:
    """A defence with differential privacy, and the protocols on which it is in force, both as findings name them."""

    defence: str
    protocols: tuple[str, ...]
    guarantee: Guarantee


@dataclass(frozen=True)
class Subject:
    """What an assessment needs to know of an audit besides its findings."""

    data: str
    purpose: str
    members: tuple[Member, ...]
    active: str
    parties: tuple[str, ...]  # as the messages name them
    dealt: tuple[float, ...]  # shares of columns that were dealt out at random; empty if the parties are given
    classes: int
    threats: tuple[Threat, ...]
    alignment: tuple[Flow, ...]
    gaps: tuple[str, ...]  # what could not be measured
    attacks: tuple[str, ...]  # of the plan
    notes: tuple[str, ...] = ()
    untrained: tuple[str, ...] = ()  # protocols, as findings name them, of which only the prediction is played
    promises: tuple[Promise, ...] = ()  # of differential privacy
    matched: tuple[Matched, ...] = ()  # what matching rows told whom
    not_audited: tuple[str, ...] = ()  # columns of the parties' files that took no part

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the threats that the plan asks for."""
        return tuple(threat.name for threat in self.threats)

    def trains(self, protocol: str) -> bool:
        """Whether a protocol, as findings name it, is attacked while it trains."""
        if protocol in self.untrained:
            return False
        return protocol not in PROTOCOLS or phase(protocol) == "training"


def subject(plan: Plan, source: Source) -> Subject:
    """The subject of a filled plan on its data: names and counts, no values."""
    federation = source.federation
    if federation is not None:
        members = tuple(
            Member(party.name, party.name == federation.active, tuple(c.name for c in party.columns), len(party.values))
            for party in federation.parties
        )
    else:
        assert source.table is not None
        members = (Member("all parties together", True, source.table.names, len(source.table.values)),)
    return Subject(
        data=source.name,
        purpose=plan.purpose or "",
        members=members,
        active="active" if federation is None else federation.active,
        parties=DEALT if federation is None else tuple(party.name for party in federation.parties),
        dealt=() if federation is not None else plan.unknown or (),
        classes=len(source.classes),
        threats=tuple(threat.threat() for threat in plan.threats),
        alignment=() if source.alignment is None else flows_of(source.alignment),
        matched=source.matched,
        gaps=(*_gaps(gaps(plan)), *(one.words for one in untried(plan))),
        attacks=tuple(attack.title for attack in plan.fitting_attacks),
        notes=source.notes,
        untrained=tuple(part.title for part in plan.protocols if phase(part.name) == "prediction"),
        promises=_promises(plan),
        not_audited=tuple(not_audited.listed(source.dropped)),
    )


def _gaps(found: Sequence[Gap]) -> list[str]:
    """Situations without an attack, one sentence for all defences of a threat."""
    threats = group([gap for gap in found if gap.meaningful], lambda gap: (gap.protocol, gap.threat, gap.why))
    return [
        f"{protocol}, threat {threat}, defence {', '.join(gap.defence for gap in some)}: {why}"
        for (protocol, threat, why), some in threats.items()
    ]


def _promises(plan: Plan) -> tuple[Promise, ...]:
    """What the plan's defences promise, each with the protocols that it changes."""
    found = []
    for part in plan.defences:
        defence = part.defence()
        for one in defence.parts if isinstance(defence, Combined) else (defence,):
            able = tuple(p.title for p in plan.protocols if p.model is None and fits(one, p.protocol()))
            found += [Promise(part.title, able, guarantee) for guarantee in one.guarantees()]
    return tuple(found)
