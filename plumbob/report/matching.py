"""What matching rows told whom, in sentences: certain by design, whatever the model and its defence."""

from __future__ import annotations

from collections.abc import Sequence

from plumbob.auditing.concluding.summarise import group
from plumbob.data.matched import Matched
from plumbob.report.phrases import count, percent, sentence_list, short

BY_DESIGN = "So each knows who was trained on. No defence of an audit changes that."


def sentences(matched: Sequence[Matched]) -> list[str]:
    """One sentence for each party and those it learns about."""
    return [_told(one) for one in matched]


def in_short(matched: Sequence[Matched]) -> str:
    """All of it for the answer: what each party learns about the membership of its people."""
    if not matched:
        return ""
    told = [_brief(learner, some) for learner, some in group(matched, lambda one: one.learner).items()]
    return f"Before training, matching tells {'; '.join(told)}. {BY_DESIGN}"


def _brief(learner: str, some: Sequence[Matched]) -> str:
    parts = [f"which of its {one.rows:,} people {_have(one)} ({one.shared:,})" for one in some]
    return f"{short(learner)} {sentence_list(parts)}"


def _told(one: Matched) -> str:
    apart = one.rows - one.shared
    counts = f"{one.shared:,} yes, {apart:,} no" if apart else "all yes"
    what = f"{short(one.learner)} learns of each of {count(one.rows, 'person')} whether {_have(one)} them: {counts}"
    what = what.replace(" persons", " people")
    sure = f"Certain for each; the more frequent answer for all would be right for {percent(one.guessed)}"
    return f"{what}. {sure}. It also sees {_seen(one)}."


def _have(one: Matched) -> str:
    others = [short(name) for name in one.about]
    return f"{sentence_list(others)} {'has' if len(others) == 1 else 'all have'}"


def _seen(one: Matched) -> str:
    """What else crossed about the others' people."""
    who = short(one.about[0])
    if one.ids_shown:
        return f"the ids of all {one.listed:,} people of {who}, also of those it does not have itself"
    return f"a list of {one.listed:,} people from {who}, of which it can read the shared ones only"
