"""The gate of an audit: conditions on its findings, such as `max_gain<0.2 and exact_columns==0`.

A condition compares a measure with a number and must hold in every situation of the audit: on every protocol, against
every threat, under every defence. A measure with an interval is compared by its worse end, or by its mean where the
condition says `mean(...)`. A column counts by its worst verdict over all attacks and shares of unknown columns. What was
not measured does not hold.

    gate       condition { "and" condition }
    condition  measure comparison number  |  "mean" "(" measure ")" comparison number
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.conclusion import Conclusion, Judged, Standing
from plumbob.auditing.concluding.judging import interval
from plumbob.auditing.concluding.summarise import Situation, attacked, group, situation_of
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.running.finding import Finding
from plumbob.errors import BadInput, suggest
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level

LONGEST = 1_000  # characters of an expression
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CONDITION = re.compile(
    r"\s*(?:(?P<mean>mean)\s*\(\s*(?P<inner>\w+)\s*\)|(?P<name>\w+))\s*(?P<sign>[<>=!]+)\s*"
    r"(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Measure:
    """A measure that a gate can test."""

    name: str
    summary: str
    worst: float  # the worst value it can take; the best is 0, or 1 where more is better
    more_is_better: bool = False

    @property
    def best(self) -> float:
        return 1.0 if self.more_is_better else 0.0

    @property
    def counts(self) -> bool:
        """Whether it is a number of columns, which has no interval of its own."""
        return math.isinf(self.worst)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("max_gain", "largest gain over guessing of any column", 1.0),
        Measure("leaks", "columns, and the label, that leak or are not known to be safe", math.inf),
        Measure("leaking_columns", "columns that leak or are not known to be safe", math.inf),
        Measure("exact_columns", "columns that are recovered, for some people at least, or may be", math.inf),
        Measure("max_label_accuracy", "share of the rows whose class the curious parties infer", 1.0),
        Measure("min_accuracy", "share of the rows that the model classifies correctly", 0.0, more_is_better=True),
    )
}
COLUMNS = ("max_gain", "leaks", "leaking_columns", "exact_columns")  # measures of what attacks find
NEARLY_ALL = 0.9  # of a gain that may have gone unseen: from here on a column may be recovered exactly


@dataclass(frozen=True)
class Breach:
    """What violated a condition: a column or, for measures that are not per column, the situation as a whole."""

    attack: str  # the one that does worst; empty of a model's accuracy
    unknown: float | None  # the share of unknown columns at which it does
    column: str  # empty where the measure is about no column
    level: Level | None  # the column's verdict
    value: float
    low: float
    high: float
    two_values: bool = False  # whether guess or column has no more than two


@dataclass(frozen=True)
class Condition:
    """One comparison of a gate."""

    measure: Measure
    sign: str
    limit: float
    mean: bool = False

    @property
    def words(self) -> str:
        name = f"mean({self.measure.name})" if self.mean else self.measure.name
        return f"{name}{self.sign}{self.limit:.12g}"

    def allows(self, value: float, low: float, high: float) -> bool:
        """Whether a value passes: by the worse end of its interval, or by its mean."""
        end = low if self.measure.more_is_better else high
        return COMPARISONS[self.sign](value if self.mean else end, self.limit)


@dataclass(frozen=True)
class Check:
    """One condition in one situation."""

    condition: Condition
    situation: Situation
    holds: bool
    value: float | None  # None: nothing there measures it
    breaches: tuple[Breach, ...] = ()


@dataclass(frozen=True)
class Gate:
    """Conditions that must all hold.

    >>> [condition.words for condition in Gate.parse("max_gain < 0.2 and exact_columns == 0").conditions]
    ['max_gain<0.2', 'exact_columns==0']
    """

    text: str
    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Parse a gate; its text is never evaluated as code."""
        if len(text) > LONGEST:
            raise BadInput(f"gate: expected at most {LONGEST:,} characters, got {len(text):,}")
        parts = re.split(r"\band\b", text, flags=re.IGNORECASE)
        conditions = tuple(_condition(part) for part in parts)
        return cls(" and ".join(condition.words for condition in conditions), conditions)

    @property
    def about_labels(self) -> bool:
        return any(condition.measure.name == "max_label_accuracy" for condition in self.conditions)

    def outcome(self, findings: Sequence[Finding], conclusion: Conclusion) -> Outcome:
        """What it says of an audit: every condition in every situation, in the order of the gate."""
        trials = group(attacked(findings), situation_of)
        meant = [judged for judged in conclusion.situations if judged.counts]
        checks = [
            _check(condition, judged, trials.get(judged.situation, []))
            for condition in self.conditions
            for judged in meant
            if judged.gap is None or condition.measure.name in COLUMNS
        ]
        return Outcome(self, tuple(checks), tuple(one.gap for one in conclusion.situations if one.gap is not None))


@dataclass(frozen=True)
class Outcome:
    """What a gate says of an audit: every condition in every situation, and the situations that no attack was run in."""

    gate: Gate
    checks: tuple[Check, ...]
    gaps: tuple[Gap, ...] = ()

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


def _condition(text: str) -> Condition:
    """One comparison, refused if it is malformed or cannot distinguish a leak from none."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise BadInput(
            f"gate: expected a condition such as max_gain<0.2, several joined by 'and', got {text.strip()!r}"
        )
    name, sign = found["inner"] or found["name"], found["sign"]
    if name not in MEASURES:
        raise BadInput(f"gate: no measure '{name}'{suggest(name, list(MEASURES))}")
    if sign not in COMPARISONS:
        raise BadInput(f"gate: no comparison '{sign}' in {text.strip()!r}; known: <, <=, >, >=, ==")
    condition = Condition(MEASURES[name], sign, float(found["limit"]), found["mean"] is not None)
    _check_sense(condition)
    return condition


def _check_sense(condition: Condition) -> None:
    """Refuse a condition that always or never holds, or one that requires a leak."""
    measure, sign, words = condition.measure, condition.sign, condition.words
    if measure.counts and not condition.limit.is_integer():
        raise BadInput(f"gate: '{measure.name}' is a number of columns, so '{words}' needs a whole number")
    if measure.counts and condition.mean:
        raise BadInput(f"gate: '{measure.name}' is a number of columns without an interval; write it without mean()")
    if sign == "==" and not measure.counts:
        raise BadInput(f"gate: '{measure.name}' is continuous; compare it with < or > instead of == in '{words}'")
    if sign in TURNED and sign.startswith(">") != measure.more_is_better:
        raise BadInput(
            f"gate: '{words}' requires the unsafe case; write what must hold: {measure.name}{TURNED[sign]}..."
        )
    holds = COMPARISONS[sign]
    if not holds(measure.best, condition.limit) and sign != "==":
        raise BadInput(f"gate: '{words}' can never hold; '{measure.name}' is {measure.best:g} at best")
    if holds(measure.worst, condition.limit):
        raise BadInput(f"gate: '{words}' always holds; '{measure.name}' is {measure.worst:g} at worst")


def _check(condition: Condition, judged: Judged, trials: list[Finding]) -> Check:
    name, situation = condition.measure.name, judged.situation
    columns = [one for one in judged.standings if one.verdict.column != LABEL]
    if name in COLUMNS and (judged.gap is not None or not judged.standings):
        return Check(condition, situation, False, None)
    if name == "max_gain":
        if any(one.level is Level.NOT_TESTED for one in columns):
            return Check(condition, situation, False, None)
        return _largest(condition, situation, [_of_column(one) for one in columns])
    if condition.measure.counts:
        found = tuple(map(_of_column, filter(COUNTED[name], judged.standings if name == "leaks" else columns)))
        holds = COMPARISONS[condition.sign](len(found), condition.limit)
        return Check(condition, situation, holds, float(len(found)), () if holds else found)
    return _largest(condition, situation, _labels(trials) if name == "max_label_accuracy" else _accuracies(trials))


def _may_leak(one: Standing) -> bool:
    return one.level.leaks or not one.level.known


def _may_be_exact(one: Standing) -> bool:
    if one.level is Level.UNDECIDED:
        return (one.verdict.unseen or 0.0) >= NEARLY_ALL
    return one.level in (Level.EXACT, Level.EXACT_FOR_SOME, Level.NOT_TESTED)


COUNTED = {"leaks": _may_leak, "leaking_columns": _may_leak, "exact_columns": _may_be_exact}


def _largest(condition: Condition, situation: Situation, found: Sequence[Breach]) -> Check:
    """A measure that is the worst of several values: each of them must pass."""
    if not found:
        return Check(condition, situation, False, None)
    worst = min if condition.measure.more_is_better else max
    broken = [one for one in found if not condition.allows(one.value, one.low, one.high)]
    ordered = sorted(broken, key=lambda one: one.value, reverse=not condition.measure.more_is_better)
    return Check(condition, situation, not broken, worst(one.value for one in found), tuple(ordered))


def _of_column(one: Standing) -> Breach:
    """A gain below 0 (an attack worse than guessing) counts as 0; where nothing was found, the end is what may be unseen."""
    verdict = one.verdict
    value = max(0.0, verdict.gain)
    low, high = max(0.0, verdict.low), max(0.0, verdict.high) if value else 0.0
    if verdict.unseen is not None:
        low, high = 0.0, verdict.unseen
    where = (one.attack, one.unknown, verdict.column, verdict.level)
    return Breach(*where, value, min(low, value), max(value, min(1.0, high)), verdict.two_values)


def _labels(trials: Sequence[Finding]) -> list[Breach]:
    """Classes that attacks inferred, by attack and share of unknown columns."""
    told = group([f for f in trials if f.score.label_accuracy is not None], lambda f: (f.attack, f.unknown))
    return [
        _of_rows(attack, unknown, [f.score.label_accuracy or 0.0 for f in found], found)
        for (attack, unknown), found in told.items()
    ]


def _accuracies(trials: Sequence[Finding]) -> list[Breach]:
    """The model's accuracy by share of unknown columns; a model that did not learn has none."""
    runs = group([f for f in trials if f.trained and f.model_accuracy is not None], lambda f: f.unknown)
    once = {unknown: list({f.trial: f for f in found}.values()) for unknown, found in runs.items()}
    return [_of_rows("", unknown, [f.model_accuracy or 0.0 for f in found], found) for unknown, found in once.items()]


def _of_rows(attack: str, unknown: float, shares: Sequence[float], trials: Sequence[Finding]) -> Breach:
    """A share of rows with its interval over trials and rows."""
    mean, rows = sum(shares) / len(shares), min(f.score.rows for f in trials)
    value, margin = interval(shares, math.sqrt(mean * (1 - mean) / max(1, rows)))
    return Breach(attack, unknown, "", None, value, max(0.0, value - margin), min(1.0, value + margin))
