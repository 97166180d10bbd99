"""Severity, likelihood and risk of what was found, in the CNIL's words, by a rule that the assessment states beside its table.

Severity goes by what was learnt of a column, likelihood by how little the curious need for it. Both are read off findings;
nothing is judged by hand, and neither says what harm it would do to a person. What was not tested is not known: it never counts
as nothing found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import group
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.scoring.leak_levels import Level
from plumbob.threats import AuxiliaryRows, Threat, WhiteBox

NOT_KNOWN = "not known"
NEGLIGIBLE, LIMITED, SIGNIFICANT, MAXIMUM = STEPS = ("negligible", "limited", "significant", "maximum")
NONE_FOUND, LOW, MEDIUM, HIGH = "none found", "low", "medium", "high"
RISKS = (NONE_FOUND, NOT_KNOWN, LOW, MEDIUM, HIGH)  # in the order in which situations of a column are compared
FOUND = "found"
LINES = (HIGH, f"at least {MEDIUM}", MEDIUM, f"at least {LOW}", LOW, NOT_KNOWN, NONE_FOUND)  # of a count of columns
HALF = 0.5  # of guessing's error removed, from which a leak is significant
# A level that is not listed is not known rather than harmless; that of a leak goes by its gain.
SEVERITIES = {Level.EXACT: MAXIMUM, Level.EXACT_FOR_SOME: MAXIMUM, Level.ORDER: LIMITED, Level.NONE: NEGLIGIBLE}
SEVERITIES |= {Level.HELD: NEGLIGIBLE}  # taking part adds nothing
CERTAIN = (Level.EXACT, Level.EXACT_FOR_SOME)  # one trial is enough: whoever is hit is hit
NOTHING_ABOVE = "no leak above the limit stated, by the attacks that were run or by the ceiling; that is not a proof"
SEVERITY_RULE = (
    (MAXIMUM, "values are recovered exactly, of everybody or of some people (of the label: the classes)"),
    (SIGNIFICANT, "at least half of the error of guessing is removed"),
    (LIMITED, "less than half is removed, or only the order of the rows is learnt"),
    (NEGLIGIBLE, NOTHING_ABOVE),
    (NOT_KNOWN, "not tested, or undecided"),
)
LIKELIHOOD_RULE = (
    (MAXIMUM, "one party by itself, from its own messages"),
    (SIGNIFICANT, "one party by itself, if it also knows the model or some complete rows of other people"),
    (LIMITED, "only if parties collude or the coordinator is corrupted, or in fewer than half of the trials"),
    (NEGLIGIBLE, NOTHING_ABOVE),
    (NOT_KNOWN, "not tested, or undecided"),
)
RISK_RULE = (
    "The risk is high where both are at least significant, medium where one of them is, low where both are limited. "
    "Where nothing was found but a threat of the plan was not tested, the risk is not known. "
    "Where something was found and a threat of the plan was not tested, the risk is at least what was found."
)


@dataclass(frozen=True)
class Risk:
    """One column at its worst in one place: what was learnt, by whom, how badly and how easily."""

    column: ColumnAnswer
    severity: str
    likelihood: str
    untested: tuple[str, ...] = ()  # threats of which nothing is known here

    @property
    def level(self) -> str:
        if NOT_KNOWN in (self.severity, self.likelihood):
            return NOT_KNOWN
        steps = STEPS.index(self.severity), STEPS.index(self.likelihood)
        if 0 in steps:
            return NONE_FOUND
        return (LOW, MEDIUM, HIGH)[sum(step >= 2 for step in steps)]

    @property
    def shown(self) -> str:
        """The level; where a threat was not tested and it could be higher, at least the level."""
        return f"at least {self.level}" if self.untested and self.level in (LOW, MEDIUM) else self.level

    @property
    def settled(self) -> bool:
        """Whether no test that is missing could raise it."""
        return self.level == HIGH or (self.level != NOT_KNOWN and not self.untested)

    @property
    def rank(self) -> tuple[int, int, float]:
        steps = sum(STEPS.index(step) for step in (self.severity, self.likelihood) if step in STEPS)
        return RISKS.index(self.level), steps, self.column.verdict.gain


def known(column: ColumnAnswer) -> bool:
    """Whether a column was tested and the test decided something."""
    return column.level in SEVERITIES or column.level is Level.LEAK


def severity(column: ColumnAnswer) -> str:
    if not known(column):
        return NOT_KNOWN
    if column.level is Level.LEAK:
        return SIGNIFICANT if column.verdict.gain >= HALF else LIMITED
    return SEVERITIES[column.level]


def likelihood(column: ColumnAnswer, threat: Threat | None) -> str:
    """By what the threat takes for granted; a threat that nobody describes is taken for one party with the model."""
    if severity(column) in (NEGLIGIBLE, NOT_KNOWN):
        return severity(column)
    if column.level not in CERTAIN and 2 * column.verdict.leaking < column.verdict.trials:
        return LIMITED
    if threat is None:
        return SIGNIFICANT
    if threat.colluding or threat.colluding_all_but is not None or threat.corrupted:
        return LIMITED
    granted = any(threat.grant(kind) is not None for kind in (WhiteBox, AuxiliaryRows))
    return SIGNIFICANT if granted else MAXIMUM


def risks(found: Iterable[Answer], threats: Mapping[str, Threat]) -> list[Risk]:
    """Every column of every data set and protocol once, at the threat and attack of its highest risk; worst first.

    The answers are those of one measure, or of none. Threats of the plan that no attack was run under are not known, unless the
    curious get nothing to learn from or a stronger threat was tested: these count for nothing. The label is among the columns
    where it is hidden from the curious.
    """
    answers = [answer for answer in found if answer.judged.counts]
    every = [risk for answer in answers for risk in _risks(answer, threats)]
    open_ = group(
        [answer for answer in answers if not answer.summaries], lambda a: (a.situation.data, a.situation.protocol)
    )
    missing = {place: [answer.situation.threat for answer in parts] for place, parts in open_.items()}
    places = group(every, lambda r: (r.column.situation.protocol, *_what(r)))
    worst = [_worst(parts, missing.get(_place(parts[0]), [])) for parts in places.values()]
    return sorted(worst, key=lambda risk: risk.rank, reverse=True)


def _risks(answer: Answer, threats: Mapping[str, Threat]) -> list[Risk]:
    """Every column of one situation, and the label."""
    threat = threats.get(answer.situation.threat)
    return [Risk(column, severity(column), likelihood(column, threat)) for column in answer.every]


def _worst(parts: Sequence[Risk], missing: Sequence[str]) -> Risk:
    """A column's highest risk, with the threats of which nothing is known."""
    undecided = [risk.column.situation.threat for risk in parts if risk.level == NOT_KNOWN]
    untested = tuple(dict.fromkeys((*undecided, *missing)))
    worst = max(parts, key=lambda risk: risk.rank)
    if untested and worst.level == NONE_FOUND:
        return Risk(worst.column, NOT_KNOWN, NOT_KNOWN, untested)
    return Risk(worst.column, worst.severity, worst.likelihood, untested)


def counts(found: Sequence[Risk], *, whole: bool = True) -> dict[str, int]:
    """How many columns (with the label) stand at each risk, the highest first; a column counts once, by its worst protocol.

    Columns whose risk is not known have a line of their own, and so have those whose risk could be higher: all of them, where
    some protocol was not tested at all (`whole` is false).
    """
    shown = [_over_protocols(parts, whole) for parts in group(found, _what).values()]
    return {level: shown.count(level) for level in LINES}


def _over_protocols(parts: Sequence[Risk], whole: bool) -> str:
    """A column's risk in words; at least so high, where some protocol leaves it open."""
    worst = max((risk.level for risk in parts), key=RISKS.index)
    if worst in (HIGH, NOT_KNOWN) or (whole and all(risk.settled for risk in parts)):
        return worst
    return NOT_KNOWN if worst == NONE_FOUND else f"at least {worst}"


def _place(risk: Risk) -> tuple[str, str]:
    return risk.column.situation.data, risk.column.situation.protocol


def _what(risk: Risk) -> tuple[str, bool, str]:
    """Which column of which data, or the label."""
    return risk.column.situation.data, risk.column.metric == "labels", risk.column.verdict.column


TONES = {HIGH: "exact", MAXIMUM: "exact", MEDIUM: "leak", SIGNIFICANT: "leak", LOW: "order", LIMITED: "order"}
TONES |= {NONE_FOUND: "none", NEGLIGIBLE: "none", FOUND: "leak"}


def tone(word: str) -> str:
    """The colour for a word of any scale; grey for what is not known or not tested."""
    return TONES.get(word.removeprefix("at least "), "unknown")
