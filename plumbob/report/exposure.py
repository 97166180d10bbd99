"""What could be learnt where no attack was run: the ceiling is then the only number, and it is said.

A ceiling is what learners with everybody else's complete rows explain of a column. Where no attack fits, it is no proof that
somebody learns as much, but proof that the messages hold as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbob.auditing.concluding.conclusion import Standing
from plumbob.auditing.concluding.judging import LIMIT
from plumbob.auditing.concluding.summarise import group
from plumbob.report.phrases import percent, short
from plumbob.scoring.column_ceiling import LABEL

ASSUME = "treat it as leaking"
LARGELY = 0.5  # share of the variance from which values are largely known beforehand


def most(found: Iterable[Standing]) -> Standing | None:
    """The column that learners find most of, among those that no attack was run on; none where messages add nothing."""
    return max((one for one in found if one.exposed > 0), key=lambda one: one.exposed, default=None)


def clause(one: Standing) -> str:
    """What learners explain of one column, from its messages and without."""
    assert one.ceiling is not None
    name = "the label" if one.verdict.column == LABEL else short(one.verdict.column)
    what = "mistakes of naming the most frequent class" if one.verdict.column == LABEL else "variance"
    told = f"explain {percent(one.ceiling.full)} of the {what} of {name} with the messages"
    return f"learners with complete rows of other people {told} (own columns alone {percent(one.ceiling.own)})"


def of_column(one: Standing) -> str:
    """The same of one column, where its name stands already."""
    if one.exposed <= 0 or one.ceiling is None:
        return ""
    told = f"yet learners explain {percent(one.ceiling.full)} of it with the messages and {percent(one.ceiling.own)} without"
    return f"{told}{f'; {ASSUME}' if one.exposed > LIMIT else ''}"


def of_situation(found: Sequence[Standing]) -> str:
    """Of a situation in which no attack was run: what the messages hold all the same; empty without a ceiling."""
    worst = most(found)
    if worst is None:
        return ""
    return f"yet {clause(worst)}{f'; {ASSUME}' if worst.exposed > LIMIT else ''}"


def as_without(found: Sequence[Standing]) -> str:
    """Of a situation whose defence changes nothing: what was found without one holds."""
    said = of_situation(found)
    return f"same messages as without defence{f', {said}' if said else f': {ASSUME}'}"


def figures(one: Standing) -> str:
    """The ceiling's numbers beside a bar; empty without one."""
    if one.ceiling is None:
        return ""
    told = (
        f"ceiling {percent(one.ceiling.full)}"
        if one.ceiling.covers
        else f"ceiling at least {percent(one.ceiling.full)}"
    )
    return f"{told}, own columns {percent(one.ceiling.own)}"


def known_before(one: Standing) -> str:
    """That the curious side has good values of a column without any message; empty where it has not."""
    if one.beforehand < LARGELY:
        return ""
    return f"largely known to this party without any message ({percent(one.beforehand)} of the variance)"


def known_before_all(found: Sequence[Standing], noun: str) -> str:
    """The same of a situation, in one sentence."""
    known = [one for one in found if known_before(one)]
    if not known:
        return ""
    return (
        f"In {len(known)} of {len(found)} {noun}s this party explains at least half of the variance before any message: their "
        "values are largely known to it already, and the verdict is about what messages add."
    )


def by_learner(found: Iterable[tuple[str, Sequence[Standing]]]) -> list[tuple[str, Standing]]:
    """For everybody who was not attacked somewhere, the column that learners find most of there."""
    worst = []
    for who, parts in group(found, lambda pair: pair[0]).items():
        one = most(column for _, columns in parts for column in columns)
        if one is not None:
            worst.append((who, one))
    return sorted(worst, key=lambda pair: pair[1].exposed, reverse=True)
