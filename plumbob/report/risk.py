"""Rows at risk in words: how many people, never which. Counts that could point at a person are not told exactly."""

from __future__ import annotations

from plumbob.audit.judge import Summary, Verdict
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


def sentence(answer: Answer) -> str:
    """How many of the people have all, half or any of their hidden columns recovered; empty where nobody counted."""
    found = worst(answer)
    if found is None:
        return ""
    counts, of = found.rows_at_risk, f"of {found.rows:,} people"
    hidden = "their one hidden column" if found.unknown_columns == 1 else f"all {found.unknown_columns} hidden columns"
    if not answer.leaking:
        hit, dealt = few(counts["any_1"]), few(counts["any_1_chance"])
        return (
            f"{hit[0].upper()}{hit[1:]} {of} have a hidden column hit to within 1 % that guessing misses; the same guesses "
            f"dealt to other people hit {dealt}, and no column leaks: that is chance."
        )
    said = f"{_start(counts['all_1'])} {of} have {hidden} recovered to within 1 %"
    if found.unknown_columns > 1:
        said += (
            f", {few(counts['half_1'])} at least half of them, {few(counts['any_1'])} at least one that guessing misses"
        )
    chance = [few(counts[f"{share}_1_chance"]) for share in ("all", "half", "any")]
    shown = chance[:1] if found.unknown_columns == 1 else chance
    mean = f", mean of {found.trials} trials" if found.trials > 1 else ""
    dealt = f"the same guesses dealt to other people: {', '.join(shown)}"
    wide = ""
    if counts["all_5"] > counts["all_1"]:
        wide = f" Within 5 %: {few(counts['all_5'])} have all."
    by = f"{label(found.setting.attack)}, {percent(found.setting.unknown)} of the columns unknown"
    return f"{said} ({by}{mean}; {dealt}).{wide}"


def short_sentence(answer: Answer) -> str:
    """The same for a terminal; empty where nobody is at risk or nobody counted."""
    found = worst(answer)
    if found is None or not answer.leaking or not found.rows_at_risk["any_1"]:
        return ""
    counts, of = found.rows_at_risk, f"of {found.rows:,} people"
    hidden = "their hidden column" if found.unknown_columns == 1 else f"all {found.unknown_columns} hidden columns"
    some = "" if found.unknown_columns == 1 else f", {few(counts['any_1'])} at least one"
    return f"{_start(counts['all_1'])} {of} have {hidden} recovered to within 1 %{some}."


def of_column(verdict: Verdict, rows: int) -> str:
    """How many rows of one column are recovered beyond the best baseline; empty where nobody counted."""
    if verdict.rows_1 is None or verdict.rows_exact is None:
        return ""
    if not verdict.rows_1:
        return "no row recovered beyond guessing"
    share = f" ({percent(verdict.rows_1 / rows)})" if round(verdict.rows_1) >= FEWEST else ""
    exact = "all of them exactly" if verdict.rows_exact >= verdict.rows_1 else f"{few(verdict.rows_exact)} exactly"
    chance = f"; by chance {few(verdict.rows_1_chance or 0.0)}"
    return f"{few(verdict.rows_1)} of {rows:,} rows{share} within 1 % beyond guessing, {exact}{chance}"


def _start(number: float) -> str:
    said = few(number)
    return said[0].upper() + said[1:]
