"""Rows at risk in words: how many people, never which. Counts that could point at a person are not told exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping

from plumbob.auditing.concluding.judging import Verdict
from plumbob.auditing.concluding.summarise import Summary
from plumbob.report.answer import Answer, label, percent

FEWEST = 5  # a smaller count of people, other than none, is not told


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
    dealt = counts[f"{share}_1_chance"]
    return counts[f"{share}_1"] > dealt + 2 * math.sqrt(dealt)


def sentence(answer: Answer) -> str:
    """How many people have all, half or any of their hidden columns recovered, and guessing not; empty if nobody counted."""
    found = worst(answer)
    if found is None:
        return ""
    counts, of, one = found.rows_at_risk, f"of {found.rows:,} people", found.unknown_columns == 1
    if not answer.leaking:
        hit, dealt = few(counts["any_1"]), few(counts["any_1_chance"])
        return (
            f"{hit[0].upper()}{hit[1:]} {of} have a hidden column hit to within 1 % that guessing misses; the same guesses "
            f"dealt to other people hit {dealt}, and no column leaks: that is chance."
        )
    hidden = "their one hidden column" if one else f"all {found.unknown_columns} hidden columns"
    said = f"{_start(_hit(counts, 'all_1'))} {of} have {hidden} recovered to within 1 %"
    said += _missed(counts, one)
    if not one:
        shares = {"half": "at least half of them", "any": "at least one"}
        parts = [f"{words} {few(_hit(counts, f'{s}_1'))}{_beyond(counts, f'{s}_1')}" for s, words in shares.items()]
        said += f"; {', '.join(parts)}"
    chance = [few(counts[f"{share}_1_chance"]) for share in (("all",) if one else ("all", "half", "any"))]
    mean = f", mean of {found.trials} trials" if found.trials > 1 else ""
    dealt = f"the same guesses dealt to other people, beyond guessing: {', '.join(chance)}"
    wide = ""
    if _hit(counts, "all_5") > _hit(counts, "all_1"):
        wide = f" Within 5 %: {few(_hit(counts, 'all_5'))} have all."
    by = f"{label(found.setting.attack)}, {percent(found.setting.unknown)} of the columns unknown"
    return f"{said} ({by}{mean}; {dealt}).{wide}"


def short_sentence(answer: Answer) -> str:
    """The same for a terminal; empty where nobody is at risk beyond chance or nobody counted."""
    found = worst(answer)
    if found is None or not answer.leaking:
        return ""
    counts, of, one = found.rows_at_risk, f"of {found.rows:,} people", found.unknown_columns == 1
    if not any(above_chance(counts, share) for share in ("all", "half", "any")):
        return ""
    hidden = "their hidden column" if one else f"all {found.unknown_columns} hidden columns"
    some = "" if one else f"; at least one {few(_hit(counts, 'any_1'))}{_beyond(counts, 'any_1')}"
    all_ = f"{_start(_hit(counts, 'all_1'))} {of} have {hidden} recovered to within 1 %{_beyond(counts, 'all_1')}"
    return f"{all_}{some}."


def of_column(verdict: Verdict, rows: int) -> str:
    """How many rows of one column are recovered, and how many of these guessing misses; empty where nobody counted."""
    if verdict.rows_1 is None or verdict.rows_exact is None:
        return ""
    if not verdict.rows_1:
        return "no row recovered that guessing misses"
    hit = max(verdict.within_1 * rows, verdict.rows_1)
    share = f" ({percent(hit / rows)})" if round(hit) >= FEWEST else ""
    exactly = max(verdict.exact * rows, verdict.rows_exact)
    exact = "all of them exactly" if round(exactly) >= round(hit) else f"{few(exactly)} exactly"
    chance = f"by chance {few(verdict.rows_1_chance or 0.0)}"
    return f"within 1 % for {few(hit)} of {rows:,} rows{share}, {exact}; guessing misses {few(verdict.rows_1)} of these, {chance}"


def _hit(counts: Mapping[str, float], name: str) -> float:
    """People whose cells are hit, whether guessing hits them too or not; findings of older versions count the others only."""
    return counts.get(f"{name}_hit", counts[name])


def _missed(counts: Mapping[str, float], one: bool) -> str:
    """For how many of the people with all columns recovered guessing would not have done."""
    what = "it" if one else "at least one"
    if "all_1_hit" not in counts:
        return f" where guessing misses {what}"
    hit, beyond = counts["all_1_hit"], counts["all_1"]
    if not hit:
        return ""
    whom = "each" if beyond == hit else few(beyond)
    return f", and for {whom} of them guessing would have missed {what}"


def _beyond(counts: Mapping[str, float], name: str) -> str:
    """How many of the people hit are beyond guessing, in brackets."""
    if f"{name}_hit" not in counts:
        return " beyond guessing"
    return f" ({few(counts[name])} beyond guessing)" if counts[f"{name}_hit"] else ""


def _start(number: float) -> str:
    said = few(number)
    return said[0].upper() + said[1:]
