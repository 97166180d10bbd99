"""The matrix of threats: who is curious, what it knows, in which phase, which attacks apply or why none does, and what they see.

One block per protocol, since a protocol is attacked either in training or in prediction; one row per threat; the reasons
are those of `Attack.why_not`, for the attacks that work on the protocol at all. An attack that looks for two values says
nothing of the others by finding none: a row also names the kinds of targets that none of its attacks addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from plumbob.attacks import attacks
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan import Plan
from plumbob.kinds import COLUMNS, Kind
from plumbob.protocols import PROTOCOLS
from plumbob.threats import THREATS, Threat

NOTHING = "nothing beyond its messages"


@dataclass(frozen=True)
class Row:
    """One threat against one protocol."""

    threat: str
    role: str
    knowledge: tuple[str, ...]
    fits: tuple[str, ...]
    reasons: tuple[tuple[str, tuple[str, ...]], ...]  # why the others do not: the reason, and the attacks it holds for
    planned: bool = True  # whether the plan names the threat
    targets: tuple[Kind, ...] = COLUMNS  # kinds of what is hidden from the curious

    @property
    def knows(self) -> str:
        return ", ".join(self.knowledge) or NOTHING

    @property
    def addressed(self) -> dict[str, tuple[Kind, ...]]:
        """Which attacks would see a leak in which kinds of targets."""
        return {name: tuple(kind for kind in attacks()[name].addresses if kind in self.targets) for name in self.fits}

    @property
    def blind(self) -> tuple[Kind, ...]:
        """Kinds of targets in which no attack that fits would see a leak."""
        seen = {kind for kinds in self.addressed.values() for kind in kinds}
        return tuple(kind for kind in self.targets if kind not in seen)


@dataclass(frozen=True)
class Block:
    """One protocol against every threat."""

    protocol: str  # as findings call it
    phase: str
    rows: tuple[Row, ...]
    planned: tuple[str, ...] = ()  # attacks of the plan


def phase(protocol: str) -> str:
    return PROTOCOLS[protocol].phase


def role(threat: Threat) -> str:
    """Who is curious, in words."""
    if not threat.active and threat.corrupted:
        return "the coordinator alone"
    if not threat.active:
        return "passive parties together" if len(threat.colluding) > 1 else "a passive party"
    helpers = ["passive parties"] if threat.colluding or threat.colluding_all_but is not None else []
    helpers += ["the coordinator"] if threat.corrupted else []
    who = f"the active party with {' and '.join(helpers)}" if helpers else "the active party"
    return f"{who} that {' and '.join(one.words for one in threat.deviations)}" if threat.deviations else who


def row(protocol: str, threat: Threat, planned: bool = True, sent: str | None = None) -> Row:
    """Which attacks a threat can make on a protocol, and why not the others that work on it; `sent` as for `why_not`."""
    able = {
        name: attack.why_not(protocol, threat, sent)
        for name, attack in attacks().items()
        if protocol in attack.protocols
    }
    reasons = group(((why, name) for name, why in able.items() if why is not None), lambda pair: pair[0])
    return Row(
        threat=threat.name,
        role=role(threat),
        knowledge=threat.knowledge,
        fits=tuple(name for name, why in able.items() if why is None),
        reasons=tuple((why, tuple(name for _, name in pairs)) for why, pairs in reasons.items()),
        planned=planned,
        targets=COLUMNS if threat.active else (*COLUMNS, Kind.LABEL),
    )


def matrix(
    protocols: Mapping[str, str] | None = None,
    threats: Iterable[Threat] = (),
    planned: Sequence[str] = (),
    sent: Mapping[str, str | None] = MappingProxyType({}),
) -> list[Block]:
    """A block for every protocol (title to name; all of them by default), with all threats and the given ones first.

    Threats whose party sends what nobody would take in the protocol are left out, unless they are given.
    """
    named = {threat.name: threat for threat in threats}
    every = [*named.values(), *(threat for threat in THREATS.values() if threat.name not in named)]
    titles = protocols if protocols is not None else {name: name for name in sorted(PROTOCOLS, key=phase)}
    return [
        Block(
            title,
            phase(name),
            tuple(
                row(name, threat, not named or threat.name in named, sent.get(title))
                for threat in every
                if threat.name in named or all(isinstance(one, PROTOCOLS[name].open_to) for one in threat.deviations)
            ),
            tuple(planned),
        )
        for title, name in titles.items()
    ]


def of_plan(plan: Plan) -> list[Block]:
    """The plan's protocols against every threat that is known, the plan's own ones first."""
    titles = {part.title: part.name for part in plan.protocols}
    return matrix(
        titles,
        [part.threat() for part in plan.threats],
        list(dict.fromkeys(attack.name for attack in plan.fitting_attacks)),
        {part.title: plan.sent(part) for part in plan.protocols},
    )
