"""What could be learnt at most: the ceiling of every group of columns in one line.

A group is what one party hides, or the label. The ceiling is of learners that are trained on everybody else's complete rows; an
attack that found more is counted beside it, and a column of which no ceiling is known is never passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report.answer import ColumnAnswer
from plumbob.report.phrases import count, sentence_list, short
from plumbob.report.residual import Side
from plumbob.report.subject import Subject
from plumbob.scoring.column_ceiling import LABEL

NO_CEILING = "not known, because no ceiling was computed"
BLIND = "not known, because the learners could not read the messages"
STRONGER = "An attacker stronger than those played, who has the complete rows of everybody else, could learn"


def lines(about: Subject, side: Side) -> list[str]:
    """One line for the columns of every party, and one for the label; nothing where no ceiling was computed at all."""
    every = [one for answer in side.answers if answer.judged.counts for one in answer.every]
    if all(one.ceiling is None for one in every):
        return []
    owners = {} if about.dealt else {name: member.name for member in about.members for name in member.columns}
    held = group(every, lambda one: LABEL if one.is_label else owners.get(one.verdict.column, ""))
    names = sorted(held, key=lambda name: (name == LABEL, name))
    return [f"{_group(name, held[name])}: {_bound(held[name])}." for name in names]


def in_short(sides: Sequence[Side]) -> str:
    """The same over all protocols in one sentence, for the motivated intruder."""
    every = [one for side in sides for answer in side.answers if answer.judged.counts for one in answer.every]
    if all(one.ceiling is None for one in every):
        return f"What an attacker could learn who has the complete rows of everybody else is {NO_CEILING}."
    parts = group(every, lambda one: one.is_label)
    told = [f"of {'the label' if kind else 'a hidden column'} {_bound(parts[kind])}" for kind in sorted(parts)]
    return f"{STRONGER}: {'; '.join(told)}. That is for the learners tried."


def _group(name: str, columns: Sequence[ColumnAnswer]) -> str:
    if name == LABEL:
        return "The label"
    number = count(len({one.verdict.column for one in columns}), "column")
    return f"{number} of {short(name)}" if name else f"{number} hidden"


def _bound(found: Sequence[ColumnAnswer]) -> str:
    """Up to how much, and for how many columns that is not the last word."""
    columns = group(found, lambda one: one.verdict.column).values()
    told = [(one.ceiling.possible, one) for one in found if one.ceiling is not None and one.ceiling.covers]
    if not told:
        return NO_CEILING if all(one.ceiling is None for one in found) else BLIND
    high, highest = max(told, key=lambda pair: pair[0])
    name = "" if highest.is_label else f" ({short(highest.verdict.column)})"
    missing = sum(any(one.ceiling is None for one in parts) for parts in columns)
    blind = sum(any(one.ceiling is not None and not one.ceiling.covers for one in parts) for parts in columns)
    more = sum(any(_found_more(one) for one in parts) for parts in columns)
    one_target = len(columns) == 1
    notes = [
        f"{reason}{'' if one_target else f' for {number}'}"
        for number, reason in (
            (more, "attacks found more"),
            (blind, "the learners could not read some messages"),
            (missing, "not computed in some situation"),
        )
        if number
    ]
    bound = f"up to {whole_percent(max(0.0, high))} %{name}"
    return f"{bound}; {sentence_list(notes)}" if notes else bound


def _found_more(one: ColumnAnswer) -> bool:
    """Whether the floor lies above the ceiling: algebra finds what learners do not."""
    return one.ceiling is not None and one.level.leaks and one.verdict.gain > one.ceiling.possible
