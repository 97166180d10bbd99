"""The appendix for a data-protection impact assessment, in three blocks that are never mixed: declared by the controller,
measured by the audit, and the risk that follows from both.

Everything is taken from the run: the plan, the parties, the flows of the transcript, the findings. What a tool cannot decide is
left as a blank for the controller. The page names the parts of GDPR Art. 35(7) (a) to (d) and holds no value of any row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from plumbob.attacks import attacks, name_of
from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, frontiers
from plumbob.auditing.concluding.summarise import Summary, attacked
from plumbob.auditing.planning.matrix import role
from plumbob.auditing.running.data_flows import SHUT, Flow
from plumbob.auditing.running.finding import Finding
from plumbob.protocols import PROTOCOLS
from plumbob.report import answer as words
from plumbob.report import at_most, identifiability, phrases, protection, severity, standards
from plumbob.report.page import POLICY, templates
from plumbob.report.phrases import count, label, percent, plain, sentence_list, short
from plumbob.report.protection import size
from plumbob.report.residual import NOT_TESTED, Pair, Side, Stage, counted, stages
from plumbob.report.severity import NOT_KNOWN, Risk
from plumbob.report.subject import Member, Subject, subject
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS, Threat
from plumbob.transcript import COORDINATOR

__all__ = ["Member", "Subject", "render", "subject"]

NAMED = 200  # columns of a party that are listed by name
SHOWN = 300  # columns that a table lists
PHASES = {"align": "matching rows", "setup": "setting up", "train": "training", "predict": "prediction"}
TONES = {  # by level; the others are not known
    Level.EXACT: "exact",
    Level.EXACT_FOR_SOME: "exact",
    Level.LEAK: "leak",
    Level.ORDER: "order",
    Level.NONE: "none",
    Level.HELD: "none",
}
MATCHING = {  # what messages hold that match rows; those of a protocol stand in the glossary of its class
    "psi request": "ids, encrypted, to be compared",
    "psi setup": "ids, encrypted, to be compared",
    "psi response": "ids, encrypted twice",
    "shared ids": "the ids that all parties share",
    "ids": "all ids of a party",
}


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
    steps = stages(found, choices, threats)
    page = templates().get_template("assessment.html.j2")
    return page.render(
        policy=POLICY,
        about=about,
        title=f"Data-protection impact assessment, appendix: {short(about.data)}",
        overall=words.overall(found),
        tone=severity.tone,
        made=made,
        **_declared(about, findings),
        **_measured(about, found, findings, choices, steps),
        **_combined(about, found, findings, choices, steps),
        accuracies=_accuracies(summaries, steps),
    )


def _declared(about: Subject, findings: Sequence[Finding]) -> dict[str, Any]:
    """What the plan and its data say."""
    return {
        "members": [*map(_member, about.members), *_helper(about, findings)],
        "dealt": ", ".join(percent(share) for share in about.dealt),
        "curious": [_curious(threat) for threat in about.threats],
    }


def _measured(
    about: Subject,
    found: Sequence[words.Answer],
    findings: Sequence[Finding],
    choices: Sequence[Frontier],
    steps: Sequence[Stage],
) -> dict[str, Any]:
    """What the messages and the attacks showed."""
    tested = [a for a in found if a.summaries]
    bare = [a for a in tested if not phrases.defended(a.situation.defence)] or tested
    return {
        "aligned": [_flow(flow) for flow in about.alignment],
        "flows": _flow_tables(findings, choices),
        "untrained": _untrained(about, findings),
        "views": [view for threat in about.threats for view in _views(about, threat, findings)],
        "learnt": [_learnt(about, stage, side) for stage in steps for side in stage.sides if side.risks],
        "criteria": identifiability.criteria(about, steps),
        "opinion": identifiability.opinion(about, steps),
        "nist": standards.privacy_attacks(about, found, findings),
        "evidence": [(label(a.situation.protocol), a.learner, words.sure(a)) for a in bare],
        "untested": _untested(about, found, findings),
    }


def _combined(
    about: Subject,
    found: Sequence[words.Answer],
    findings: Sequence[Finding],
    choices: Sequence[Frontier],
    steps: Sequence[Stage],
) -> dict[str, Any]:
    """Severity, likelihood and risk before and after measures, and what the standards make of them."""
    every = [risk for stage in steps for side in stage.sides for risk in side.risks]
    return {
        "means": identifiability.means(about, found, findings),
        "at_most": at_most.in_short([stage.before if stage.before.tested else stage.after for stage in steps]),
        "protected": any(stage.after.measure for stage in steps),
        "initial": counted(stage.before for stage in steps),
        "labelled": any(risk.column.metric == "labels" for risk in every),
        "residual": counted(stage.after for stage in steps),
        "risks": [_stage(stage) for stage in steps],
        "sources": sentence_list(list(dict.fromkeys(map(role, about.threats)))),
        "assets": sentence_list(list(dict.fromkeys(label(stage.protocol) for stage in steps))),
        "severity_rule": severity.SEVERITY_RULE,
        "likelihood_rule": severity.LIKELIHOOD_RULE,
        "risk_rule": severity.RISK_RULE,
        "measures": [_measures(choice) for choice in choices],
        "clauses": standards.clauses(about, steps, findings),
        "promises": standards.promises(about, found),
        "no_promise": standards.NO_PROMISE,
    }


def _curious(threat: Threat) -> dict[str, str]:
    granted = sentence_list(threat.knowledge) or "nothing"
    return {"who": role(threat), "threat": label(threat.name), "granted": granted}


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
            heading = f"{label(protocol)}, {phrases.defence_words(defence)}"
            shown.append({"heading": heading, "rows": [_flow(flow) for flow in flows]})
    return shown


def _views(about: Subject, threat: Threat, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """What the curious of one threat see, protocol by protocol, without defence if that was run."""
    views = []
    for protocol in dict.fromkeys(f.protocol for f in findings if f.threat == threat.name):
        parts = [f for f in findings if f.protocol == protocol and f.threat == threat.name]
        first = next((f for f in parts if f.flows and not phrases.defended(f.defence)), None)
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
                "granted": sentence_list(threat.knowledge) or "nothing",
                "hidden": count(first.unknown_columns, "column"),
                "recorded": bool(first.flows),
            }
        )
    return views


def _content(name: str) -> str:
    """What messages of a name hold: in the words of the protocol that sends them, or the name itself."""
    glossaries = (MATCHING, *(kind.glossary for kind in PROTOCOLS.values()))
    return next((glossary[name] for glossary in glossaries if name in glossary), label(name))


def _learnt(about: Subject, stage: Stage, side: Side) -> dict[str, Any]:
    """What was learnt of every column with one measure, or with none."""
    everywhere = set.intersection(*(set(risk.untested) for risk in side.risks))
    return {
        "heading": f"{stage.heading}, {side.words}",
        "untested": _threats(name for name in side.risks[0].untested if name in everywhere),
        "rows": [_row(risk, everywhere) for risk in side.risks[:SHOWN]],
        "left_out": max(0, len(side.risks) - SHOWN),
        "at_most": at_most.lines(about, side),
    }


def _row(risk: Risk, said: Collection[str]) -> dict[str, Any]:
    """One column; threats of which nothing is known are named where that is not said of all columns."""
    column = risk.column
    return {
        "column": short(column.verdict.column),
        "words": column.words,
        "learner": column.learner,
        "attack": label(column.attack),
        "untested": _threats(name for name in risk.untested if name not in said),
        "level": NOT_KNOWN if risk.level == NOT_KNOWN else column.badge,
        "tone": "unknown" if risk.level == NOT_KNOWN else TONES.get(column.level, "unknown"),
    }


def _threats(names: Iterable[str]) -> str:
    return sentence_list([label(name) for name in names])


def _stage(stage: Stage) -> dict[str, Any]:
    """One protocol before and after its measure, column by column."""
    pairs = stage.pairs
    return {
        "heading": stage.heading,
        "measure": stage.measure,
        "both": len(stage.sides) > 1,
        "rows": [_pair(pair) for pair in pairs[:SHOWN]],
        "left_out": max(0, len(pairs) - SHOWN),
        "residual": stage.residual,
        "consultation": stage.consultation,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    before = (NOT_TESTED,) * 3 if pair.before is None else _scales(pair.before)
    after = (NOT_KNOWN,) * 3 if pair.after is None else _scales(pair.after)
    severities, likelihoods, levels = zip(before, after, strict=True)
    return {
        "column": short(pair.column.verdict.column),
        "risks": levels,
        "severity": list(dict.fromkeys(severities)),
        "likelihood": list(dict.fromkeys(likelihoods)),
    }


def _scales(risk: Risk) -> tuple[str, str, str]:
    return risk.severity, risk.likelihood, risk.shown


def _accuracies(summaries: Sequence[Summary], steps: Sequence[Stage]) -> list[tuple[str, str, str]]:
    """How accurate each model is without a measure and with the recommended one, for whoever weighs necessity against risk."""
    told: dict[tuple[str, str, str], float] = {}
    for s in summaries:
        if s.model_accuracy is not None:
            told.setdefault((s.setting.data, s.setting.protocol, s.setting.defence), s.model_accuracy)
    shown = {
        (stage.data, stage.protocol, side.measure or "none"): (stage, side) for stage in steps for side in stage.sides
    }
    return [(stage.heading, side.words, percent(told[key])) for key, (stage, side) in shown.items() if key in told]


def _measures(choice: Frontier) -> dict[str, Any]:
    rows = []
    for option in sorted(choice.options, key=lambda o: (o.defence != choice.recommended, o.worst.leak.mean)):
        loss, extra = choice.lost(option), protection.added(choice, option)
        rows.append(
            {
                "defence": phrases.defence_words(option.defence).removeprefix("with "),
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


def _untested(about: Subject, found: Sequence[words.Answer], findings: Sequence[Finding]) -> list[str]:
    planned = {threat.name for threat in about.threats}
    ran = {name_of(finding.attack) for finding in findings}
    others = [f"{label(name)}: {threat.summary}" for name, threat in THREATS.items() if name not in planned]
    idle = sorted(label(name) for name in attacks() if name not in ran)
    said = [f"Not measured: {plain(gap)}." for gap in about.gaps]
    said += [f"{plain(a.judged.gap.words)}." for a in found if a.judged.gap and not a.judged.counts]
    said += [f"Threat not in the plan: {other}." for other in others]
    if idle:
        said.append(f"Attacks that Plumbob knows and that were not run here: {sentence_list(idle)}.")
    said.append("Attacks that nobody has published yet, or that use knowledge outside of this federation.")
    said.append(
        "Anything but the confidentiality of columns (and labels, where stated) towards the other parties: not integrity, "
        "availability, retention, transfers, access rights, nor what the model does to people."
    )
    return said
