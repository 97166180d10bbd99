"""What a gate found: sentences for people, one line of JSON and JUnit XML for programs.

Names come from data files. Sentences lose the characters that steer a terminal, XML those it cannot hold; JSON keeps
names as they are, as findings do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.etree import ElementTree

from rich.console import Console

from plumbob.auditing.concluding.summarise import Situation
from plumbob.auditing.planning.gate import COLUMNS, Breach, Check, Outcome
from plumbob.report import phrases
from plumbob.report.terminal import say
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level

SHOWN = 10  # sentences a terminal shows; JSON and JUnit have all
HOW = {
    Level.EXACT: "is recovered exactly",
    Level.EXACT_FOR_SOME: "is recovered exactly for some people",
    Level.LEAK: "leaks",
    Level.ORDER: "leaks the order of its rows",
    Level.UNDECIDED: "is undecided",
    Level.NOT_TESTED: "was not tested",
}
TOLD_APART = "has its high values told from its low ones"
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def print_gate(found: Outcome, console: Console) -> None:
    """Whether the gate holds, and what broke it."""
    checks, broken = found.checks, sentences(found.checks)
    verdict, style = ("Gate broken", "bold red") if broken else ("Gate holds", "bold green")
    say(console, f"{verdict}: {found.gate.text}", style, whole=True)
    for sentence in broken[:SHOWN]:
        say(console, f"  {sentence}", whole=True)
    if len(broken) > SHOWN:
        say(console, f"  and {len(broken) - SHOWN:,} more; --json and --junit name them all", "dim", whole=True)
    bare = any(not check.holds and not phrases.defended(check.situation.defence) for check in checks)
    if bare and any(phrases.defended(check.situation.defence) for check in checks):
        hint = "Every defence of the plan is checked, none as well: leave it out if it only serves to compare."
        say(console, f"  {hint}", whole=True)
    for gap in found.gaps:
        say(console, f"  {phrases.plain(gap.words)}.", "dim", whole=True)


def sentences(checks: Sequence[Check]) -> list[str]:
    """One sentence for everything that broke a condition, in the gate's order."""
    return [sentence for check in checks for sentence in _sentences(check)]


def _sentences(check: Check) -> list[str]:
    if check.holds:
        return []
    where = _where(check.situation)
    if check.value is None:
        return [f"{check.condition.words}: {_unmeasured(check.condition.measure.name)} ({where})."]
    return [f"{check.condition.words}: {_what(check, breach)} ({where})." for breach in check.breaches]


def _where(situation: Situation) -> str:
    parts = {"protocol": situation.protocol, "threat": situation.threat, "defence": situation.defence}
    return ", ".join(f"{kind} {phrases.short(name)}" for kind, name in parts.items())


def _what(check: Check, breach: Breach) -> str:
    measure = check.condition.measure
    by = f" by {phrases.label(breach.attack)}" if breach.attack else ""
    share = f", {phrases.percent(breach.unknown)} of the columns unknown" if breach.unknown is not None else ""
    shown = f"{breach.value:.3f} (95 % interval {breach.low:.3f} to {breach.high:.3f})"
    if measure.counts:
        assert breach.level is not None
        how = TOLD_APART if breach.level is Level.ORDER and breach.two_values else HOW[breach.level]
        target = breach.column if breach.column == LABEL else f"column {phrases.short(breach.column)}"
        return f"{target} {how}{by}, gain {shown}{share}"
    if breach.column:
        return f"column {phrases.short(breach.column)} has the gain {shown}{by}{share}"
    if measure.more_is_better:
        return f"the model's accuracy is {shown}{share}"
    return f"labels are guessed with accuracy {shown}{by}{share}"


def _unmeasured(measure: str) -> str:
    if measure == "min_accuracy":
        return "not measured, since the model did not learn in this audit"
    if measure in COLUMNS:
        return "not tested, so not known to be safe"
    return "not measured, since no attack here guesses labels"


@dataclass(frozen=True)
class Line:
    """One condition in one situation, as the page shows it."""

    condition: str
    where: str
    value: str
    limit: str
    holds: bool
    broken_by: tuple[str, ...]


@dataclass(frozen=True)
class GateSection:
    """A gate in a report."""

    text: str
    holds: bool
    lines: tuple[Line, ...]
    unmeasured: tuple[str, ...]

    @property
    def headline(self) -> str:
        broken = sum(not line.holds for line in self.lines)
        if self.holds:
            return f"The gate holds: {phrases.count(len(self.lines), 'check')} passed"
        return f"The gate is broken: {broken} of {phrases.count(len(self.lines), 'check')} failed"


def gate_section(found: Outcome) -> GateSection:
    """Passed or failed, and every condition with its value and limit."""
    return GateSection(
        found.gate.text,
        found.holds,
        tuple(
            Line(
                condition=check.condition.measure.summary,
                where=_where(check.situation),
                value=_value(check),
                limit=f"{check.condition.words}",
                holds=check.holds,
                broken_by=tuple(_sentences(check)[:SHOWN]),
            )
            for check in found.checks
        ),
        tuple(phrases.plain(gap.words) for gap in found.gaps),
    )


def _value(check: Check) -> str:
    """What was measured; where an interval decides, also its worse end."""
    if check.value is None:
        return "not measured"
    if check.condition.measure.counts:
        return f"{check.value:,.0f}"
    return f"{check.value:.3f}"


def gate_line(found: Outcome) -> str:
    """One line of JSON: the gate, whether it holds, and everything that broke it."""
    broken: list[dict[str, Any]] = []
    for check in (check for check in found.checks if not check.holds):
        condition, situation = check.condition, asdict(check.situation)
        for breach, sentence in zip(check.breaches or (None,), _sentences(check), strict=True):
            broken.append(
                {"condition": condition.words, "measure": condition.measure.name, "limit": condition.limit}
                | {"measured": check.value, **situation, **(_plain(breach) if breach else {})}
                | {"words": sentence}
            )
    line: dict[str, Any] = {"gate": found.gate.text, "holds": found.holds, "broken_by": broken}
    line["not_checked"] = [gap.words for gap in found.gaps]
    return json.dumps(line, separators=(",", ":"), allow_nan=False)


def _plain(breach: Breach) -> dict[str, Any]:
    return asdict(breach) | {"level": breach.level or ""}


def junit(found: Outcome) -> str:
    """JUnit XML: one test case per condition and situation, one skipped for each situation that no attack fits."""
    checks, skipped = found.checks, len(found.gaps)
    failures = sum(not check.holds for check in checks)
    counts = {"tests": len(checks) + skipped, "failures": failures, "errors": 0, "skipped": skipped}
    numbers = {name: str(number) for name, number in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "plumbob", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"gate {found.gate.text}", **numbers})
    for check in checks:
        where = f"{phrases.plain(check.situation.data)}, {_where(check.situation)}"
        case = ElementTree.SubElement(suite, "testcase", classname=_legal(where), name=_legal(check.condition.words))
        told = [_legal(sentence) for sentence in _sentences(check)]
        if told:
            failure = ElementTree.SubElement(case, "failure", message=told[0], type=check.condition.measure.name)
            failure.text = "\n".join(told)
    for gap in found.gaps:
        case = ElementTree.SubElement(suite, "testcase", classname=_legal(phrases.plain(gap.what)), name="measured")
        ElementTree.SubElement(case, "skipped", message=_legal(gap.words))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _legal(text: str) -> str:
    """Without what XML 1.0 cannot hold, however it is escaped."""
    return _NO_XML.sub("?", text)
