"""Not known is not safe: where no leak found means nothing, for reports, frontiers and gates alike."""

from __future__ import annotations

from collections.abc import Iterable

from plumbob.attacks import attacks
from plumbob.auditing.concluding.summarise import Summary, group


def inconclusive(summaries: Iterable[Summary]) -> bool:
    """Whether every attack that could show a leak does not cover some trial, so that no leak found means nothing.

    Attacks that no plan runs by itself are weaker rivals of others: where those are untried, a null result is inconclusive.
    """
    tried = group(summaries, lambda summary: summary.setting.attack)
    limited = [name for name, parts in tried.items() if any(summary.untried for summary in parts)]
    rest = [name for name in tried if name not in limited]
    if any(map(_tells, limited)):
        rest = [name for name in rest if _tells(name)]
    return bool(limited) and not rest


def _tells(attack: str) -> bool:
    return attack not in attacks() or attacks()[attack].by_default
