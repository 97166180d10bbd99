"""Likelihood and severity of what was found, by a rule that the assessment states beside its table.

Severity goes by what was learnt of a column, likelihood by how little the curious need for it. Both are read off findings;
nothing is judged by hand, and neither says what harm it would do to a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import group
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.scoring.leak_levels import Level
from plumbob.threats import AuxiliaryRows, Threat, WhiteBox

STEPS = ("none found", "limited", "significant", "maximal")
RISKS = ("none found", "low", "medium", "high")
HALF = 0.5  # of guessing's error removed, from which a leak is significant
TONES = (Level.NONE, Level.ORDER, Level.LEAK, Level.EXACT)  # colours of the steps
SEVERITY_RULE = (
    ("maximal", "the values (of the label: the classes) are recovered exactly"),
    ("significant", "at least half of guessing’s error is removed"),
    ("limited", "less than half is removed, or only the order of the rows is learnt"),
    ("none found", "no attack that was tried beat guessing"),
)
LIKELIHOOD_RULE = (
    ("maximal", "one party by itself, from its own messages"),
    ("significant", "one party by itself, if it also knows the model or some complete rows of other people"),
    ("limited", "only if parties collude or the coordinator is corrupted, or in fewer than half of the trials"),
    ("none found", "no attack that was tried beat guessing"),
)
RISK_RULE = (
    "The risk is high where both are at least significant, medium where one of them is, low where both are limited."
)


@dataclass(frozen=True)
class Risk:
    """One column at its worst in one place: what was learnt, by whom, how badly and how easily."""

    column: ColumnAnswer
    severity: str
    likelihood: str

    @property
    def level(self) -> str:
        steps = STEPS.index(self.severity), STEPS.index(self.likelihood)
        if 0 in steps:
            return "none found"
        return RISKS[1 + sum(step >= 2 for step in steps)]

    @property
    def rank(self) -> tuple[int, int, int, float]:
        steps = STEPS.index(self.severity), STEPS.index(self.likelihood)
        return (RISKS.index(self.level), *steps, self.column.verdict.gain)


def severity(column: ColumnAnswer) -> str:
    if column.level is Level.LEAK:
        return "significant" if column.verdict.gain >= HALF else "limited"
    return {Level.EXACT: "maximal", Level.ORDER: "limited"}.get(column.level, "none found")


def likelihood(column: ColumnAnswer, threat: Threat | None) -> str:
    """By what the threat takes for granted; a threat that nobody describes is taken for one party with the model."""
    if not column.level.leaks:
        return "none found"
    if column.level is not Level.EXACT and 2 * column.verdict.leaking < column.verdict.trials:
        return "limited"
    if threat is None:
        return "significant"
    if threat.colluding or threat.colluding_all_but is not None or threat.corrupted:
        return "limited"
    granted = any(threat.grant(kind) is not None for kind in (WhiteBox, AuxiliaryRows))
    return "significant" if granted else "maximal"


def risks(found: Iterable[Answer], threats: Mapping[str, Threat]) -> list[Risk]:
    """Every column of every data set and protocol once, at the threat and attack of its highest risk; worst first.

    The label is among them where it is learnt.
    """
    every = [
        Risk(column, severity(column), likelihood(column, threats.get(column.situation.threat)))
        for answer in found
        for column in (*answer.columns, *([answer.label] if answer.label else []))
    ]
    places = group(every, lambda r: (r.column.situation.protocol, *_what(r)))
    worst = [max(parts, key=lambda risk: risk.rank) for parts in places.values()]
    return sorted(worst, key=lambda risk: risk.rank, reverse=True)


def counts(found: Sequence[Risk]) -> dict[str, int]:
    """How many columns (with the label) stand at each risk, the highest first; a column counts once, by its worst protocol."""
    worst = [max((risk.level for risk in parts), key=RISKS.index) for parts in group(found, _what).values()]
    return {level: worst.count(level) for level in reversed(RISKS)}


def _what(risk: Risk) -> tuple[str, bool, str]:
    """Which column of which data, or the label."""
    return risk.column.situation.data, risk.column.metric == "labels", risk.column.verdict.column


def tone(level: str) -> str:
    """The colour of a verdict's level for a step of either scale."""
    return TONES[max(scale.index(level) for scale in (RISKS, STEPS) if level in scale)].css
