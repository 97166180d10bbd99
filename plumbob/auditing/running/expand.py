"""From a plan to its findings, before any is made: every unit, every case, the address of each, and what is left out.

A unit is one protocol and one trial; a case is one finding of a unit. An address is a hash of all that determines the finding
and of the code that makes it, so a finding that a store holds under it need not be made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product

from plumbob import __version__, bundle
from plumbob.attacks import Attack, attacks
from plumbob.auditing.concluding.untried import Gap, Inapplicable, Untried
from plumbob.auditing.planning.chosen import AttackPlan
from plumbob.auditing.planning.matrix import lacks
from plumbob.auditing.planning.plan import DefencePlan, Plan, ProtocolPlan
from plumbob.auditing.planning.sweep import fits, in_training, points
from plumbob.auditing.running.finding import address
from plumbob.auditing.running.open_data import Source
from plumbob.auditing.running.provenance import code_of, modules_of
from plumbob.defences import Combined, Defence
from plumbob.federation import Federation
from plumbob.scoring.column_ceiling import CEILING
from plumbob.threats import Threat, describe

PACKAGES = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn", "pandas": "pandas", "torch": "torch"}
PACKAGES |= {"openmined-psi": "private_set_intersection", "xgboost": "xgboost"}
FORMAT = 3  # raise it when the meaning of a finding changes, and old ones are computed anew
MADE_IN = "plumbob.auditing.running.run"  # the module that makes findings; it imports all that takes part


@dataclass(frozen=True)
class Unit:
    """One protocol, one trial: the amount of work that is done or not done."""

    protocol: ProtocolPlan
    trial: int


@dataclass(frozen=True)
class Case:
    """One finding to be made."""

    unknown: float | None
    defence: DefencePlan
    threat: Threat
    attack: AttackPlan | None  # None: no attack, but what could be learnt
    sent: str = ""  # what the attack's party sends that the protocol does not ask for

    @property
    def title(self) -> str:
        """How a finding names the attack."""
        return CEILING if self.attack is None else self.attack.title

    @property
    def place(self) -> tuple[float | None, str, str]:
        """Cases of one unit that are found in the same transcript have the same."""
        return self.unknown, self.defence.title, self.sent

    @property
    def remaining(self) -> Threat:
        """The threat as far as the defence leaves it its knowledge."""
        return self.defence.defence().threat(self.threat)


Chosen = tuple[AttackPlan, Attack]  # an attack as the plan names it, and made
Todo = tuple[tuple[Case, str], ...]  # cases with their keys


def units(plan: Plan) -> list[Unit]:
    """The work of a plan, in order."""
    return [Unit(protocol, trial) for protocol in plan.protocols for trial in range(plan.trials or 1)]


def defences_for(plan: Plan, protocol: ProtocolPlan) -> list[DefencePlan]:
    """The plan's defences, less those that would only repeat `none` on this protocol where `none` is tried."""
    kind = protocol.protocol()
    compared = kind.phase == "training" or any(defence.name == "none" for defence in plan.defences)
    defences = [d for d in plan.defences if protocol.model is None or "training" not in points(d.defence())]
    return [d for d in defences if fits(d.defence(), kind) or not (compared or in_training(d.defence()))]


def untried(plan: Plan) -> list[Untried]:
    """Defences that could not be measured on a protocol, attacks that read what nobody sends there, and why."""
    notes: list[Untried] = [*inapplicable(plan), *left_out(plan)]
    for protocol in plan.protocols:
        fitting = [defence.title for defence in defences_for(plan, protocol)]
        attacked = {case.defence.title for case in attack_cases(plan, Unit(protocol, 0))}
        for defence in plan.defences:
            title = defence.title
            where = f"{title} on {protocol.title}"
            if title not in fitting:
                trained = protocol.model is not None
                notes.append(Untried(where, "the model is trained already" if trained else "it changes nothing there"))
            elif not fits(defence.defence(), protocol.protocol()):
                notes.append(
                    Untried(f"the effect of {where}", "it changes nothing there, so its findings are those without it")
                )
            elif title not in attacked:
                notes.append(
                    Untried(where, "no attack of this plan applies under this defence, which is no proof of safety")
                )
    return notes


def inapplicable(plan: Plan) -> list[Inapplicable]:
    """Attacks whose party does not follow the protocol, where no threat of the plan lets it; once, whatever their settings."""
    notes = {}
    for protocol, one in product(plan.protocols, plan.fitting_attacks):
        attack = one.attack()
        if attack.deviates() and protocol.name in attack.protocols:
            why = [attack.why_not(protocol.name, part.threat(), plan.sent(protocol)) for part in plan.threats]
            if None not in why:
                what = f"{one.name} on {protocol.title}"
                notes[what] = Inapplicable(what, f"it {next(filter(None, why))}")
    return list(notes.values())


def left_out(plan: Plan) -> list[Untried]:
    """Attacks that apply and are not run, since another one nearly always learns more in less time; once for each protocol."""
    notes: dict[str, Untried] = {}
    every = _chosen(plan)
    for protocol, threat in product(plan.protocols, plan.threats):
        fitting = _fitting(plan, protocol, threat.threat(), every)
        for one, attack in fitting:
            if rival := outdone(plan, protocol.name, attack, fitting):
                what = f"{one.name} on {protocol.title}"
                why = (
                    f"{rival}, which is run, nearly always learns more in less time; effort thorough runs it, and any plan "
                    "that names it"
                )
                notes.setdefault(what, Untried(what, why))
    return list(notes.values())


def outdone(plan: Plan, protocol: str, attack: Attack, fitting: Sequence[Chosen]) -> str:
    """The attack that takes this one's place where the plan leaves the choice to its effort; empty where none does."""
    rival = attack.outdone.get(protocol, "") if plan.attacks is None and plan.effort != "thorough" else ""
    return rival if any(other.name == rival for _, other in fitting) else ""


def gaps(plan: Plan) -> list[Gap]:
    """Situations of a plan in which no attack applies, and why: nothing is known of them."""
    found = []
    for protocol in plan.protocols:
        attackers = attack_cases(plan, Unit(protocol, 0))
        measured = {(case.defence.title, case.threat.name): case.remaining for case in attackers}
        for defence, chosen in product(defences_for(plan, protocol), plan.threats):
            if (defence.title, chosen.name) in measured:
                continue
            threat = defence.defence().threat(chosen.threat())
            stronger = [n for (d, n), other in measured.items() if d == defence.title and threat.within(other)]
            kind = protocol.protocol()
            silent = lacks(kind, threat)
            idle = not all(isinstance(one, kind.open_to) for one in threat.deviations)
            why = _why_none(plan, protocol, threat)
            if silent:
                why = silent
            elif stronger:
                why = f"no better known than {stronger[0]}, which sees the same and knows no less"
            covered = stronger[0] if stronger and not silent else ""
            meaningful = not (silent or stronger or idle)
            found.append(
                Gap(protocol.title, chosen.name, defence.title, why, meaningful=meaningful, covered_by=covered)
            )
    return found


def _why_none(plan: Plan, protocol: ProtocolPlan, threat: Threat) -> str:
    """What keeps the attacks that work on a protocol from a threat."""
    able = [attack for attack in attacks().values() if protocol.name in attack.protocols]
    kind, sent = protocol.protocol(), plan.sent(protocol)
    reasons = [
        why
        for attack in able
        if (why := attack.why_not(protocol.name, threat, sent) or attack.why_not_here(kind, threat)) is not None
    ]
    if not able:
        return "no attack works on this protocol"
    if not reasons:
        return "no attack of this plan applies"
    nearest = min(dict.fromkeys(reasons), key=len)
    return (
        f"Plumbob has no attack for this party here{'; the nearest' if nearest.startswith('needs') else ':'} {nearest}"
    )


def cases(plan: Plan, unit: Unit) -> list[Case]:
    """What a unit finds out: every fitting combination, and in each situation what could be learnt, attack or not."""
    found, every = [], _chosen(plan)
    for unknown, defence in product(plan.unknown or (None,), defences_for(plan, unit.protocol)):
        here: list[Case] = []
        for threat in (named.threat() for named in plan.threats):
            remaining, known = defence.defence().threat(threat), plan.in_place(defence)
            sent = plan.sent(unit.protocol)
            fitting = _fitting(plan, unit.protocol, remaining, every)
            fitting = [pair for pair in fitting if not outdone(plan, unit.protocol.name, pair[1], fitting)]
            here += [
                Case(unknown, defence, threat, one, _brought(one, remaining, sent)) for one in attackers(fitting, known)
            ]
            here += [Case(unknown, defence, threat, None)] if plan.ceiling else []
        places = list(dict.fromkeys(case.sent for case in here))
        found += sorted(here, key=lambda case: places.index(case.sent) if case.sent else -1)  # honest runs first
    return found


def _chosen(plan: Plan) -> list[Chosen]:
    return [(one, one.attack()) for one in plan.fitting_attacks]


def _fitting(plan: Plan, protocol: ProtocolPlan, threat: Threat, every: Sequence[Chosen]) -> list[Chosen]:
    """Those of the plan's attacks that apply; of a recorded run the settings are not known."""
    sent, kind = plan.sent(protocol), None if plan.data.recorded else protocol.protocol()
    fitting = [pair for pair in every if pair[1].why_not(protocol.name, threat, sent) is None]
    fitting = [pair for pair in fitting if kind is None or pair[1].why_not_here(kind, threat) is None]
    return sorted(fitting, key=lambda pair: protocol.name in pair[1].outdone)  # these last


def _brought(attack: AttackPlan, threat: Threat, sent: str | None) -> str:
    """What an attack's party does that the protocol does not ask for; nothing where that is settled otherwise."""
    conduct = attack.attack().sends() if sent is None else None
    return "" if conduct is None else repr(conduct.granted(threat))


def attackers(fitting: Sequence[Chosen], defences: Sequence[str]) -> list[AttackPlan]:
    """Each attack by who knows the defences in place and, as published, by who does not; once where that is the same."""
    found: dict[str, AttackPlan] = {}
    for one, attack in fitting:
        told = bool(attack.accounts_for(defences))
        for attacker in one.attackers if told else (one,):
            found.setdefault(attacker.title if told else one.whoever, attacker)
    return list(found.values())


def attack_cases(plan: Plan, unit: Unit) -> list[Case]:
    """Those of attacks."""
    return [case for case in cases(plan, unit) if case.attack is not None]


def facing(plan: Plan, defence: Defence, others: Federation | None = None) -> Defence:
    """A defence, told of the plan's threats and of rows of other people."""
    return defence.facing([named.threat() for named in plan.threats], others)


def draws(plan: Plan, source_digest: str, unit: Unit, case: Case) -> str:
    """A hash of the setting: what seeds the draws of an attack and of its score."""
    parts = {
        "format": FORMAT,
        "data": source_digest,
        "protocol": unit.protocol.protocol().identified(),
        "name": unit.protocol.drawn,
        "trial": unit.trial,
        "seed": plan.seed,
        "train_share": plan.train_share,
        "rows": plan.rows,
        "unknown": case.unknown,
        "defence": facing(plan, case.defence.defence()).identified(),
        "threat": describe(case.threat),
        "attack": CEILING if case.attack is None else case.attack.attack().identified(),
    }
    if unit.protocol.model is not None:
        parts |= {"model": unit.protocol.sha256, "columns": unit.protocol.columns}
    return hashlib.sha256(bundle.canonical(parts).encode()).hexdigest()[:32]


@cache
def versions() -> dict[str, str]:
    """Of Plumbob and of the packages that could change a number."""
    there = {name: version(name) for name in PACKAGES if find_spec(PACKAGES[name]) is not None}
    return {"plumbob": __version__} | there


def keyed(plan: Plan, source: Source) -> list[tuple[Unit, Todo]]:
    """Every finding of a plan, in order, with its address: a hash of its setting, names included, and one of the code."""
    digest, identity = source.digest, source.identity

    def key(unit: Unit, case: Case) -> str:
        parts = [versions(), identity, draws(plan, digest, unit, case), case.defence.title, case.title]
        parts += [unit.protocol.title] if unit.protocol.title != unit.protocol.drawn else []
        setting = hashlib.sha256(bundle.canonical(parts).encode()).hexdigest()[:32]
        return address(setting, made_by(unit, case))

    return [(unit, tuple((case, key(unit, case)) for case in cases(plan, unit))) for unit in units(plan)]


def made_by(unit: Unit, case: Case) -> str:
    """A hash of the code that a finding goes through: the workbench, and the protocol, defence and attack it is of."""
    defence = case.defence.defence()
    parts = defence.parts if isinstance(defence, Combined) else (defence,)
    attacks = [] if case.attack is None else [case.attack.attack()]
    return code_of(modules_of([unit.protocol.protocol(), *parts, *attacks]) | {MADE_IN})
