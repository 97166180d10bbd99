"""What the audit answers of three standards: NIST AI 100-2, ISO/IEC 27559, NIST SP 800-226.

NIST names the attacks, ISO the steps of an assessment, SP 800-226 the parameters of differential privacy. Names and headings are
those of the standards; what stands beside them is read off the plan and the findings. No line says that a standard is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plumbob.attacks import attack_called
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, DATA_RECONSTRUCTION, Attack
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.running.finding import Finding
from plumbob.report import severity
from plumbob.report.answer import Answer
from plumbob.report.identifiability import tally
from plumbob.report.phrases import count, defended, label, sentence_list, short
from plumbob.report.residual import NOT_TESTED, Stage, counted
from plumbob.report.severity import FOUND, NONE_FOUND, NOT_KNOWN
from plumbob.report.subject import Promise, Subject
from plumbob.scoring.leak_levels import Level
from plumbob.threats import AuxiliaryRows, Threat, WhiteBox

MEMBERSHIP = "membership inference"
PRIVACY_ATTACKS = {  # of NIST AI 100-2e2025, with what each aims at
    DATA_RECONSTRUCTION: "hidden records, from what was computed of them",
    ATTRIBUTE_INFERENCE: "hidden values of a person, from what is known of that person",
    MEMBERSHIP: "whether a person was in the training data",
    "property inference": "facts about the training data as a whole",
    "model extraction": "the model itself",
}
CONTROLLER = "for the controller"
NO_PROMISE = "Not applicable: no defence with differential privacy in this audit."
LISTED = 12  # attacks that a cell names


def privacy_attacks(about: Subject, found: Sequence[Answer], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The privacy attacks of NIST AI 100-2: which were run, at which stage, with what knowledge, and what they found."""
    called = {title: attack_called(title) for title in dict.fromkeys(f.attack for f in findings)}
    ran = {title: attack for title, attack in called.items() if attack is not None}
    kinds = {**PRIVACY_ATTACKS, **{attack.nist: "" for attack in ran.values() if attack.nist not in PRIVACY_ATTACKS}}
    threats = {threat.name: threat for threat in about.threats}
    return [_privacy_attack(about, kind, aim, ran, (found, findings), threats) for kind, aim in kinds.items()]


def _privacy_attack(
    about: Subject,
    kind: str,
    aim: str,
    ran: dict[str, type[Attack]],
    results: tuple[Sequence[Answer], Sequence[Finding]],
    threats: dict[str, Threat],
) -> dict[str, Any]:
    """One kind of attack; where none was run, it was not tested."""
    found, findings = results
    names = [name for name, attack in ran.items() if attack.nist == kind]
    if not names and kind == MEMBERSHIP and about.matched:
        return _by_matching(about)
    if not names:
        return {
            "kind": kind,
            "aim": aim,
            "run": NOT_TESTED,
            "stage": "–",
            "knowledge": "–",
            "can": "–",
            "found": NOT_TESTED,
        }
    used = [f for f in findings if f.attack in names]
    stages = {"training" if about.trains(f.protocol) else "deployment" for f in used}
    boxes = dict.fromkeys(_knowledge(threats.get(f.threat), f, about.trains(f.protocol)) for f in used)
    can = ["its own messages of training"] if "training" in stages else []
    can += ["query access: answers of the model"] if "deployment" in stages else []
    can += ["changes what it sends"] if any(ran[name].deviates() for name in names) else []
    return {
        "kind": kind,
        "aim": aim,
        "run": _listed(names),
        "stage": sentence_list(sorted(stages, reverse=True)),
        "knowledge": ", ".join(boxes),
        "can": "; ".join(can),
        "found": _found(found, names),
    }


def _by_matching(about: Subject) -> dict[str, Any]:
    """No attack is needed: every party knows the people of the rows that it matched, and so who was trained on."""
    learners = sentence_list([short(one) for one in dict.fromkeys(one.learner for one in about.matched)])
    return {
        "kind": MEMBERSHIP,
        "aim": PRIVACY_ATTACKS[MEMBERSHIP],
        "run": f"none is needed: {learners} matched the rows of training and know whose they are",
        "stage": "training",
        "knowledge": "the shared ids",
        "can": "takes part in matching",
        "found": FOUND,
    }


def _knowledge(threat: Threat | None, finding: Finding, trains: bool) -> str:
    """NIST's three steps of knowledge. Whoever takes part in training sees a part of the model."""
    if finding.white_box and (threat is None or threat.grant(WhiteBox) is not None):
        return "white box"
    partly = trains or (threat is not None and threat.grant(AuxiliaryRows) is not None)
    return "gray box" if partly else "black box"


def _found(found: Sequence[Answer], names: Sequence[str]) -> str:
    """The worst that these attacks showed, without a measure where that was run."""
    bare = [a for a in found if not defended(a.situation.defence)] or list(found)
    asked = [a for a in bare if any(s.setting.attack in names for s in a.summaries)]
    if any(one.leaks for a in asked for levels in _own(a, names).values() for one in levels):
        return FOUND
    return NONE_FOUND if asked and all(_decided(a, names) for a in asked) else NOT_KNOWN


def _own(answer: Answer, names: Sequence[str]) -> dict[str, list[Level]]:
    """What these attacks alone say of every column and the label."""
    told = [s for s in answer.summaries if s.setting.attack in names]
    verdicts = [v for s in told for v in (*s.verdicts, *([s.label] if s.label else []))]
    return {name: [v.level for v in parts] for name, parts in group(verdicts, lambda v: v.column).items()}


def _decided(answer: Answer, names: Sequence[str]) -> bool:
    """Whether these attacks found nothing where they would have: a leak that others found does not make it so."""
    own = _own(answer, names)
    quiet = all(Level.NONE in levels and Level.UNDECIDED not in levels for levels in own.values())
    return bool(own) and quiet and all(one.level.known for one in answer.every if one.verdict.column in own)


def _listed(names: Sequence[str]) -> str:
    shown = [label(name) for name in names[:LISTED]]
    return sentence_list([*shown, f"{len(names) - LISTED} more"] if len(names) > LISTED else shown)


def clauses(about: Subject, stages: Sequence[Stage], findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    """Clause, heading and what the audit answers, for the clauses of ISO/IEC 27559 that such an audit touches."""
    columns = sum(len(member.columns) for member in about.members)
    ran = list(dict.fromkeys(f.attack for f in findings))
    rows = sorted({f.score.rows for f in findings})
    span = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}" if rows else "0"
    measures = [d for d in dict.fromkeys(f.defence for f in findings) if defended(d)]
    tried = _listed(measures) if measures else "no measure was tried"
    again = [f"{s.heading}, {s.after.words}: {s.residual}" for s in stages if s.after.measure]
    initial = _counted(stages)
    knows = "what each curious party holds, receives and is taken to know"
    return [
        ("6.2", "Threat modelling", f"{count(len(about.threats), 'threat')}: {_listed(about.asked)}"),
        ("6.2.2", "Security and privacy practices", f"declared: {CONTROLLER}"),
        (
            "6.2.3",
            "Motives and capacity to re-identify",
            f"{knows}, and the cost of its attacks; motives: {CONTROLLER}",
        ),
        ("6.3", "Transparency and impact assessment", f"this page; privacy-related harms: {CONTROLLER}"),
        ("7.2", "Data features", f"{count(columns, 'column')} by name; their sensitivity: {CONTROLLER}"),
        ("7.3", "Attack modelling", f"maximum risk: a column counts by its worst case; a sample of {span} rows"),
        (
            "8.2.2",
            "Quantifying identifiability",
            f"threat re-identification risk without a measure: {initial or NOT_TESTED}",
        ),
        ("8.2.3", "Adversarial testing", f"{count(len(ran), 'attack')}: {_listed(ran)}" if ran else NOT_TESTED),
        ("8.3", "Mitigation", tried),
        (
            "8.3.4",
            "Re-evaluation",
            f"residual re-identification risk: {'; '.join(again)}" if again else "not done: no measure is recommended",
        ),
        ("9", "De-identification governance", CONTROLLER),
    ]


def _counted(stages: Sequence[Stage]) -> str:
    """How many columns stand at each risk without a measure, in words."""
    found = counted(stage.before for stage in stages)
    return ", ".join(f"{number} {level}" for level, number in found.items() if number)


def promises(about: Subject, found: Sequence[Answer]) -> list[dict[str, Any]]:
    """The parameters of every defence with differential privacy that NIST SP 800-226 asks for, its settings side by side."""
    kinds = group(about.promises, lambda promise: (promise.defence.partition(" (")[0], promise.guarantee.unit))
    return [_kind(label(name), parts, about, found) for (name, _), parts in kinds.items()]


def _kind(name: str, parts: Sequence[Promise], about: Subject, found: Sequence[Answer]) -> dict[str, Any]:
    """One kind of defence: a row for each parameter, a column for each setting; one value where all settings share it."""
    settings = [promise.defence.partition(" (")[2].removesuffix(")") or "usual settings" for promise in parts]
    columns = [_parameters(promise, about, found) for promise in parts]
    rows = [(row, [column[row] for column in columns]) for row in columns[0]]
    return {
        "heading": name,
        "settings": [short(setting) for setting in settings],
        "rows": [(row, values if len(set(values)) > 1 else values[:1]) for row, values in rows],
        "hazards": list(dict.fromkeys(hazard for promise in parts for hazard in promise.guarantee.hazards)),
    }


def _parameters(promise: Promise, about: Subject, found: Sequence[Answer]) -> dict[str, str]:
    told = promise.guarantee
    under = [a for a in found if a.situation.defence == promise.defence and a.situation.protocol in promise.protocols]
    left = severity.risks(under, {threat.name: threat for threat in about.threats})
    return {
        "In force on": sentence_list([label(name) for name in promise.protocols]) or "no protocol of this audit",
        "Unit of privacy": told.unit,
        "Neighbouring data sets": told.neighbours,
        "Epsilon": f"{told.epsilon:g}",
        "Delta": told.delta,
        "Trust model": told.trust,
        "Mechanism": told.mechanism,
        "Composition and accountant": told.composition,
        "Attacks under it (measured)": tally(left),
    }
