"""The appendix for a data-protection impact assessment: flows, who sees what, risks, measures, residual risk, in plain words.

Everything is taken from the run: the plan, the parties, the flows of the transcript, the findings. What a tool cannot decide is
left as a blank for the controller. The page follows the headings of GDPR Art. 35(7) (a) to (d) and holds no value of any row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbob.attacks import attacks
from plumbob.auditing.concluding.ceilings import attacked
from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, frontiers
from plumbob.auditing.concluding.summarise import Summary
from plumbob.auditing.planning.matrix import phase
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.data_flows import SHUT, Flow, flows_of
from plumbob.auditing.running.expand import gaps, untried
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import Source
from plumbob.protocols import PROTOCOLS
from plumbob.report import answer as words
from plumbob.report import not_audited, protection, severity
from plumbob.report.answer import Answer, count, label, percent, plain, sentence_list, short
from plumbob.report.page import POLICY, templates
from plumbob.report.protection import size
from plumbob.report.severity import Risk
from plumbob.threats import THREATS, Threat
from plumbob.transcript import COORDINATOR

DEALT = ("active", "passive")  # whom columns are dealt out to at random
NAMED = 200  # columns of a party that are listed by name
SHOWN = 300  # columns whose risk stands in the table
PHASES = {"align": "matching rows", "setup": "setting up", "train": "training", "predict": "prediction"}
MATCHING = {  # what messages hold that match rows; those of a protocol stand in the glossary of its class
    "psi request": "ids, encrypted, to be compared",
    "psi setup": "ids, encrypted, to be compared",
    "psi response": "ids, encrypted twice",
    "shared ids": "the ids that all parties share",
    "ids": "all ids of a party",
}


@dataclass(frozen=True)
class Member:
    """One party: what it brings."""

    name: str
    active: bool
    columns: tuple[str, ...]
    rows: int


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
    not_audited: tuple[str, ...] = ()  # columns of the parties' files that took no part


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
    missing = [gap.words for gap in gaps(plan)]
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
        gaps=(*missing, *(one.words for one in untried(plan))),
        attacks=plan.fitting_attacks,
        notes=source.notes,
        untrained=tuple(part.title for part in plan.protocols if phase(part.name) == "prediction"),
        not_audited=tuple(not_audited.listed(source.dropped)),
    )


def render(
    about: Subject,
    findings: Sequence[Finding],
    *,
    made: Mapping[str, str],
    conclusion: Conclusion | None = None,
) -> str:
    """The whole page. `made` says with which versions."""
    conclusion = conclude(findings) if conclusion is None else conclusion
    findings, summaries = attacked(findings), conclusion.summaries
    found = words.answers(conclusion)
    choices = frontiers(findings, conclusion)
    threats = {threat.name: threat for threat in about.threats}
    bare = [a for a in found if not words.defended(a.situation.defence)] or found
    initial = severity.risks(bare, threats)
    return (
        templates()
        .get_template("assessment.html.j2")
        .render(
            policy=POLICY,
            about=about,
            title=f"Data-protection impact assessment, appendix: {short(about.data)}",
            members=[*map(_member, about.members), *_helper(about, findings)],
            dealt=", ".join(percent(share) for share in about.dealt),
            aligned=[_flow(flow) for flow in about.alignment],
            flows=_flow_tables(findings, choices),
            untrained=_untrained(about, findings),
            views=[view for threat in about.threats for view in _views(about, threat, findings)],
            overall=words.overall(found),
            protected=bool(found) and all(words.defended(a.situation.defence) for a in found),
            initial=[_risk(one) for one in initial[:SHOWN]],
            left_out=max(0, len(initial) - SHOWN),
            counts=severity.counts(initial),
            labelled=any(a.label for a in bare),
            severity_rule=severity.SEVERITY_RULE,
            likelihood_rule=severity.LIKELIHOOD_RULE,
            risk_rule=severity.RISK_RULE,
            accuracies=_accuracies(summaries),
            measures=[_measures(choice) for choice in choices],
            residual=[_residual(choice, found, threats) for choice in choices],
            evidence=[(words.label(a.situation.protocol), a.learner, words.sure(a)) for a in bare],
            untested=_untested(about, findings),
            tone=severity.tone,
            made=made,
        )
    )


def _member(member: Member) -> dict[str, Any]:
    listed = [short(name) for name in member.columns[:NAMED]]
    more = len(member.columns) - len(listed)
    return {
        "name": short(member.name),
        "role": "active: holds the label" if member.active else "passive",
        "columns": f"{len(member.columns):,}",
        "rows": f"{member.rows:,}",
        "dealt": True,
        "names": listed,
        "more": more,
    }


def _helper(about: Subject, findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The coordinator, where messages go to it or come from it."""
    flows = [*about.alignment, *(flow for finding in findings for flow in finding.flows)]
    if not any(COORDINATOR in (flow.sender, flow.receiver) for flow in flows):
        return []
    role = "coordinator: takes, combines and passes on messages; holds neither label nor columns"
    return [{"name": COORDINATOR, "role": role, "columns": "0", "rows": "–", "dealt": False, "names": [], "more": 0}]


def _untrained(about: Subject, findings: Iterable[Finding]) -> str:
    """One sentence on the protocols whose flows show no training, as none is played."""
    names = [label(name) for name in dict.fromkeys(f.protocol for f in findings) if name in about.untrained]
    if not names:
        return ""
    return (
        f"Training is not played in this audit for {sentence_list(names)}: the model was trained centrally or taken as given, "
        "and only its prediction is shown and attacked. What crosses while it is trained has to be assessed apart."
    )


def _flow(flow: Flow) -> dict[str, Any]:
    return {
        "phase": PHASES.get(flow.phase, plain(flow.phase)),
        "sender": short(flow.sender),
        "receiver": short(flow.receiver),
        "what": _content(flow.name),
        "name": short(flow.name),
        "form": flow.form,
        "open": flow.form not in SHUT,
        "messages": flow.messages,
        "bytes": size(flow.bytes),
    }


def _flow_tables(findings: Iterable[Finding], choices: Sequence[Frontier]) -> list[dict[str, Any]]:
    """The flows of every protocol without defence, and with the recommended one where these differ."""
    taken = {(choice.protocol, choice.recommended) for choice in choices}
    tables: dict[tuple[str, str], tuple[Flow, ...]] = {}
    for finding in findings:
        place = (finding.protocol, finding.defence)
        if finding.flows and place not in tables:
            tables[place] = finding.flows
    protocols = {protocol for protocol, _ in tables}
    bare = {protocol: tables[protocol, "none"] for protocol in protocols if (protocol, "none") in tables}
    shown = []
    for (protocol, defence), flows in tables.items():
        first = protocol not in bare and (protocol, defence) == next(place for place in tables if place[0] == protocol)
        chosen = (protocol, defence) in taken and flows != bare.get(protocol)
        if defence == "none" or first or chosen:
            heading = f"{label(protocol)}, {words.defence_words(defence)}"
            shown.append({"heading": heading, "rows": [_flow(flow) for flow in flows]})
    return shown


def _views(about: Subject, threat: Threat, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """What the curious of one threat see, protocol by protocol, without defence if that was run."""
    views = []
    for protocol in dict.fromkeys(f.protocol for f in findings if f.threat == threat.name):
        parts = [f for f in findings if f.protocol == protocol and f.threat == threat.name]
        first = next((f for f in parts if f.flows and not words.defended(f.defence)), None)
        first = first or next((f for f in parts if f.flows), parts[0])
        curious = threat.curious(about.active, about.parties)
        got = [f for f in first.flows if f.receiver in curious and f.sender not in curious]
        views.append(
            {
                "threat": label(threat.name),
                "protocol": label(protocol),
                "who": threat.summary.partition(", which ")[0],
                "own": f"{count(first.known_columns, 'column')} of its own"
                if first.known_columns
                else "no column of its own",
                "messages": list(dict.fromkeys(f"{_content(f.name)} ({f.form})" for f in got)),
                "granted": sentence_list([grant.words for grant in threat.grants]) or "nothing",
                "hidden": count(first.unknown_columns, "column"),
                "recorded": bool(first.flows),
            }
        )
    return views


def _content(name: str) -> str:
    """What messages of a name hold: in the words of the protocol that sends them, or the name itself."""
    glossaries = (MATCHING, *(kind.glossary for kind in PROTOCOLS.values()))
    return next((glossary[name] for glossary in glossaries if name in glossary), label(name))


def _risk(one: Risk) -> dict[str, Any]:
    column = one.column
    return {
        "column": short(column.verdict.column),
        "protocol": label(column.situation.protocol),
        "learner": column.learner,
        "words": column.words,
        "severity": one.severity,
        "likelihood": one.likelihood,
        "level": one.level,
    }


def _accuracies(summaries: Sequence[Summary]) -> list[tuple[str, str, str]]:
    """How accurate each model is, for whoever weighs necessity against risk."""
    told: dict[tuple[str, str], float] = {}
    for s in summaries:
        if s.model_accuracy is not None:
            told.setdefault((s.setting.protocol, s.setting.defence), s.model_accuracy)
    return [(label(protocol), words.defence_words(defence), percent(a)) for (protocol, defence), a in told.items()]


def _measures(choice: Frontier) -> dict[str, Any]:
    rows = []
    for option in sorted(choice.options, key=lambda o: (o.defence != choice.recommended, o.worst.leak.mean)):
        loss, extra = choice.lost(option), protection.added(choice, option)
        rows.append(
            {
                "defence": words.defence_words(option.defence).removeprefix("with "),
                "status": protection.status(choice, option),
                "leaking": protection.verdict(option),
                "leak": percent(option.worst.leak.mean),
                "lost": "–" if loss is None else protection.points(loss),
                "seconds": "–" if extra is None else protection.seconds(extra[0] + extra[1]),
                "bytes": "–" if extra is None else size(extra[2]),
                "chosen": option is choice.chosen,
            }
        )
    return {"heading": protection.place(choice), "advice": protection.advice(choice), "rows": rows}


def _residual(choice: Frontier, found: Sequence[Answer], threats: Mapping[str, Threat]) -> dict[str, Any]:
    """What is left under the recommended measure; without one, what there was."""
    here = [a for a in found if (a.situation.data, a.situation.protocol) == (choice.data, choice.protocol)]
    chosen = choice.recommended or "none"
    left = severity.risks([a for a in here if a.situation.defence == chosen], threats)
    tried = {a.situation.threat for a in here if a.situation.defence == chosen}
    missing = [name for name in dict.fromkeys(a.situation.threat for a in here) if name not in tried]
    return {
        "heading": protection.place(choice),
        "measure": words.defence_words(chosen),
        "counts": severity.counts(left),
        "rows": [_risk(one) for one in left if one.level != "none found"][:SHOWN],
        "measured": bool(left),
        "missing": [label(name) for name in missing],
        "none": not choice.recommended,
    }


def _untested(about: Subject, findings: Sequence[Finding]) -> list[str]:
    planned = {threat.name for threat in about.threats}
    ran = {finding.attack for finding in findings}
    others = [f"{label(name)}: {threat.summary}" for name, threat in THREATS.items() if name not in planned]
    idle = sorted(label(name) for name in attacks() if name not in ran)
    said = [f"Not measured: {plain(gap)}." for gap in about.gaps]
    said += [f"Threat not in the plan: {other}." for other in others]
    if idle:
        said.append(f"Attacks that Plumbob knows and that were not run here: {sentence_list(idle)}.")
    said.append("Attacks that nobody has published yet, or that use knowledge outside of this federation.")
    said.append(
        "Anything but the confidentiality of columns (and labels, where stated) towards the other parties: not integrity, "
        "availability, retention, transfers, access rights, nor what the model does to people."
    )
    return said
