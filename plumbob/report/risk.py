"""Rows at risk in words: how many people, never which. Counts that could point at a person are not told exactly.

Chance is what the same guesses hit where the best guess without a message misses, when they are dealt to other people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from plumbob.auditing.concluding.judging import Verdict
from plumbob.auditing.concluding.summarise import Summary
from plumbob.report.answer import Answer
from plumbob.report.phrases import label, short
from plumbob.scoring.leak_levels import Level

FEWEST = 5  # a smaller count of people, other than none, is not told
NEAR = "to within 1 % of the range"


def few(number: float, none: str = "none") -> str:
    """A count of people that points at none of them.

    >>> few(0), few(0.3), few(4), few(41.2), few(1200)
    ('none', 'fewer than 5', 'fewer than 5', '41', '1,200')
    """
    if number == 0:
        return none
    return f"fewer than {FEWEST}" if round(number) < FEWEST else f"{round(number):,}"


def worst(answer: Answer) -> Summary | None:
    """The attack that puts most people at risk: by whole rows first, then by halves, then by single columns."""
    counted = [s for s in answer.summaries if s.rows_at_risk]
    order = ("all_1", "half_1", "any_1", "all_5", "half_5", "any_5")
    return max(counted, key=lambda s: [s.rows_at_risk[name] for name in order], default=None)


def above_chance(counts: Mapping[str, float], share: str) -> bool:
    """Whether more people are at risk than where the same guesses are dealt to others, by two standard errors of a count."""
    return counts[f"{share}_1"] > _clearly(counts[f"{share}_1_chance"])


def people(answer: Answer) -> str:
    """How many people have all, or any, of their hidden values recovered, beside chance; empty if nobody counted."""
    found = worst(answer)
    if found is None:
        return ""
    counts = found.rows_at_risk
    rows, columns = int(counts.get("rows", found.rows)), int(counts.get("columns", found.unknown_columns))
    whole = answer.leaking and above_chance(counts, "all") and _told(counts)
    said = _whole(answer, counts, rows, columns) if whole else ""
    everybody = said and round(counts.get("all_1_hit", counts["all_1"])) >= rows
    if columns == 1 or everybody:
        return said or _no_more(counts, rows)
    if answer.leaking:
        return f"{said} {_any_or_column(answer, rows)}".strip() or _no_more(counts, rows)
    return said or _no_more(counts, rows)


def _any_or_column(answer: Answer, rows: int) -> str:
    """The attack, or the one column in the trials in which it leaks, that hits most people beyond other guesses."""
    counted = [s for s in answer.summaries if s.rows_at_risk and above_chance(s.rows_at_risk, "any")]
    most = max(counted, key=lambda s: s.rows_at_risk["any_1"], default=None)
    leaking = [one for one in answer.columns if one.level.leaks and one.verdict.rows_1 is not None]
    column = max(leaking, key=lambda one: one.verdict.rows_1 or 0.0, default=None)
    if column is not None and (column.verdict.rows_1 or 0.0) > max(
        most.rows_at_risk["any_1"] if most else 0.0, _clearly(column.verdict.rows_1_chance or 0.0)
    ):
        by = f" ({label(column.attack)}, {_times(column.verdict)})" if column.attack else ""
        return f"By {short(column.verdict.column)} alone{by}: {of_column(column.verdict, column.rows)}."
    return "" if most is None else _any(most.rows_at_risk, int(most.rows_at_risk.get("rows", rows)))


def _clearly(chance: float) -> float:
    return chance + 2 * math.sqrt(chance)


def _times(verdict: Verdict) -> str:
    times = verdict.leaking or verdict.trials
    return f"in {times} of the {verdict.trials} trials that hid it" if verdict.trials > 1 else "one trial"


def _told(counts: Mapping[str, float]) -> bool:
    """Whether what is told of hits differs from what is told of chance: fewer than five are fewer than five."""
    return few(counts.get("all_1_hit", counts["all_1"])) != few(counts["all_1_chance"])


def _whole(answer: Answer, counts: Mapping[str, float], rows: int, columns: int) -> str:
    """The people of whom everything hidden is known."""
    hit = counts.get("all_1_hit", counts["all_1"])
    exact = all(column.level is Level.EXACT for column in answer.columns)
    what = "The one hidden value" if columns == 1 else f"All {columns} hidden values"
    verb = "was" if columns == 1 else "were"
    whom = f"all {rows:,} people tested" if round(hit) >= rows else f"{few(hit)} of {rows:,} people"
    how = "recovered" if exact else f"guessed {NEAR}"
    return f"{what} of {whom} {verb} {how}; chance: {few(counts['all_1_chance'])}."


def _any(counts: Mapping[str, float], rows: int) -> str:
    return (
        f"For {few(counts['any_1'])} of {rows:,} people at least one hidden value was guessed {NEAR} where the best "
        f"guess without a message misses; chance gives {few(counts['any_1_chance'])}."
    )


def _no_more(counts: Mapping[str, float], rows: int) -> str:
    """Hits that luck explains."""
    return (
        f"No more people are hit than by chance: for {few(counts['any_1'])} of {rows:,} a hidden value was guessed {NEAR} where "
        f"the best guess without a message misses; chance gives {few(counts['any_1_chance'])}."
    )


def of_column(verdict: Verdict, rows: int) -> str:
    """For how many people one column was guessed closely, beside a fixed guess, and how many of these no other guess hits,
    beside chance; empty where nobody counted.
    """
    if verdict.rows_1 is None or verdict.rows_exact is None:
        return ""
    hit, beyond = max(verdict.within_1 * rows, verdict.rows_1), few(verdict.rows_1)
    chance = few(verdict.rows_1_chance or 0.0)
    if not verdict.rows_1:
        return f"nobody was guessed {NEAR} whom the best guess without a message misses"
    if round(hit) >= rows and verdict.level is Level.EXACT:
        return ""  # which is said already
    whom = f"all {rows:,} people" if round(hit) >= rows else f"{few(hit)} of {rows:,} people"
    fixed = "" if verdict.fixed_1 is None else f" (a fixed guess: {few(verdict.fixed_1 * rows)})"
    close = f"for {whom} the guess was {NEAR.removeprefix('to ')}{fixed}"
    return f"{close}; where the best guess without a message misses for {beyond}, by chance {chance}"
