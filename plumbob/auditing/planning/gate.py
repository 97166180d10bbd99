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

from plumbob.auditing.concluding.ceilings import attacked
from plumbob.auditing.concluding.inconclusive import inconclusive
from plumbob.auditing.concluding.summarise import Situation, Summary, Verdict, group, interval, situation_of, summarise
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.running.finding import Finding
from plumbob.errors import BadInput, suggest
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
        Measure("leaking_columns", "columns whose verdict is exact, leak or order", math.inf),
        Measure("exact_columns", "columns whose verdict is exact", math.inf),
        Measure("max_label_accuracy", "share of the rows whose class the curious parties infer", 1.0),
        Measure("min_accuracy", "share of the rows that the model classifies correctly", 0.0, more_is_better=True),
    )
}
COLUMNS = ("max_gain", "leaking_columns", "exact_columns")  # measures of what attacks find in columns


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

    def check(self, findings: Sequence[Finding], summaries: Sequence[Summary] | None = None) -> list[Check]:
        """Every condition in every situation, in the order of the gate."""
        summed = group(summarise(findings) if summaries is None else summaries, lambda s: situation_of(s.setting))
        trials = group(attacked(findings), situation_of)
        return [
            _check(condition, situation, parts, trials[situation])
            for condition in self.conditions
            for situation, parts in summed.items()
        ]

    def outcome(
        self, findings: Sequence[Finding], summaries: Sequence[Summary] | None = None, untried: Sequence[Untried] = ()
    ) -> Outcome:
        """What it says of an audit. `untried` are the situations in which no attack of the plan applies."""
        return Outcome(self, tuple(self.check(findings, summaries)), tuple(untried))


@dataclass(frozen=True)
class Outcome:
    """What a gate says of an audit: every condition in every situation, and the situations that were not checked."""

    gate: Gate
    checks: tuple[Check, ...]
    untried: tuple[Untried, ...] = ()

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


def _check(condition: Condition, situation: Situation, parts: list[Summary], trials: list[Finding]) -> Check:
    check = _measured(condition, situation, parts, trials)
    if check.holds and condition.measure.name in COLUMNS and inconclusive(parts):
        return Check(condition, situation, False, None)  # not known is not safe
    return check


def _measured(condition: Condition, situation: Situation, parts: list[Summary], trials: list[Finding]) -> Check:
    name = condition.measure.name
    if name == "max_gain":
        return _largest(condition, situation, list(_columns(parts, condition).values()))
    if condition.measure.counts:
        least = Level.EXACT if name == "exact_columns" else Level.ORDER
        found = tuple(b for b in _worst_levels(parts).values() if _rank(b) >= least.rank)
        holds = COMPARISONS[condition.sign](len(found), condition.limit)
        return Check(condition, situation, holds, float(len(found)), () if holds else found)
    return _largest(condition, situation, _labels(trials) if name == "max_label_accuracy" else _accuracies(trials))


def _largest(condition: Condition, situation: Situation, found: Sequence[Breach]) -> Check:
    """A measure that is the worst of several values: each of them must pass."""
    if not found:
        return Check(condition, situation, False, None)
    worst = min if condition.measure.more_is_better else max
    broken = [one for one in found if not condition.allows(one.value, one.low, one.high)]
    ordered = sorted(broken, key=lambda one: one.value, reverse=not condition.measure.more_is_better)
    return Check(condition, situation, not broken, worst(one.value for one in found), tuple(ordered))


def _columns(parts: Sequence[Summary], condition: Condition) -> dict[str, Breach]:
    """Every column with its largest gain."""
    cases = [_of_column(summary, verdict) for summary in parts for verdict in summary.verdicts]
    return {
        column: max(found, key=lambda one: (one.value if condition.mean else one.high, one.value))
        for column, found in group(cases, lambda one: one.column).items()
    }


def _worst_levels(parts: Sequence[Summary]) -> dict[str, Breach]:
    """Every column with its worst verdict."""
    cases = [_of_column(summary, verdict) for summary in parts for verdict in summary.verdicts]
    columns = group(cases, lambda one: one.column)
    return {column: max(found, key=lambda one: (_rank(one), one.value)) for column, found in columns.items()}


def _rank(breach: Breach) -> int:
    return 0 if breach.level is None else breach.level.rank


def _of_column(summary: Summary, verdict: Verdict) -> Breach:
    """A gain below 0 (an attack worse than guessing) counts as 0, however wide its interval is."""
    low, high = max(0.0, verdict.gain - verdict.margin), min(1.0, verdict.gain + verdict.margin)
    value = max(0.0, verdict.gain)
    if verdict.gain <= 0:
        low = high = 0.0
    where = (summary.setting.attack, summary.setting.unknown, verdict.column, verdict.level)
    return Breach(*where, value, low, max(value, high), verdict.two_values)


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
