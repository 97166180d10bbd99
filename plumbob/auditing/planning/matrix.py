"""The matrix of threats: who is curious, what it knows, in which phase, which attacks apply or why none does, and what they see.

One block per protocol, since a protocol is attacked either in training or in prediction; one row per threat; the reasons
are those of `Attack.why_not`, for the attacks that work on the protocol at all. An attack that looks for two values says
nothing of the others by finding none: a row also names the kinds of targets that none of its attacks addresses.

A row that no attack fits is either empty, which is a gap of Plumbob, or not applicable: the curious get no message that says
anything of other parties' rows. Which messages do, every protocol declares (`tells`), and a test runs each to check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from plumbob.attacks import attacks
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan import Plan
from plumbob.kinds import COLUMNS, Kind
from plumbob.protocols import PROTOCOLS, Protocol, protocol_named
from plumbob.threats import THREATS, Threat
from plumbob.transcript import COORDINATOR

NOTHING = "nothing beyond its messages"
ROLES = {"active": "the active party", "passive": "a passive party", COORDINATOR: "the coordinator"}


class Status(StrEnum):
    """What is to be said of one threat against one protocol."""

    ATTACKED = "attacked"
    NOT_APPLICABLE = "not applicable"
    EMPTY = "empty"


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
    lacks: str = ""  # the message that the curious do not get, where they get none that says anything of others' rows

    @property
    def status(self) -> Status:
        if self.fits:
            return Status.ATTACKED
        return Status.NOT_APPLICABLE if self.lacks else Status.EMPTY

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


def roles(threat: Threat) -> tuple[str, ...]:
    """The roles of the curious in a protocol."""
    helpers = threat.colluding or threat.colluding_all_but is not None
    alone = () if threat.corrupted else ("passive",)
    first = ("active", *(("passive",) if helpers else ())) if threat.active else alone
    return (*first, *((COORDINATOR,) if threat.corrupted else ()))


def lacks(protocol: Protocol, threat: Threat) -> str:
    """Which message the curious lack, where none that they get says anything of others' rows; empty where one does.

    >>> lacks(protocol_named("random_forest"), THREATS["passive-training"])
    "a passive party gets no message about other parties' rows, which are sent as 'scores' to the active party and as 'answer' \
to the coordinator"
    """
    curious = roles(threat)
    if any(protocol.told(one) for one in curious):
        return ""
    sent = [f"{_quoted(protocol.told(one))} to {ROLES[one]}" for one in protocol.roles if protocol.told(one)]
    told = f"no message about other parties' rows, which are sent as {' and as '.join(sent)}"
    if not any(one in protocol.roles for one in curious):
        return f"{ROLES[curious[0]]} takes no part in {protocol.name.replace('_', ' ')} and gets {told}"
    return f"{ROLES[curious[0]]} gets {told}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


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
        lacks=lacks(protocol_named(protocol), threat),
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
