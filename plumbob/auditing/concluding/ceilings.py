"""Ceilings over trials: what learners with everybody else's complete rows could learn of a column from the same messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import Situation, group, situation_of
from plumbob.auditing.running.finding import Finding
from plumbob.scoring.column_ceiling import CEILING, ColumnCeiling


@dataclass(frozen=True)
class Ceiling:
    """Of one column, or the label, in one situation: the highest over trials and shares of unknown columns."""

    column: str
    own: float  # share of the variance that own columns alone explain
    full: float  # the same with the messages
    low: float  # 95 % interval of what the messages add
    high: float
    unknown: float = 0.0
    rows: int = 0
    covers: bool = True  # whether the learners could read what was sent
    learner: str = ""
    room: float = 0.0  # of the label: the largest gain over what some known labels and own columns alone tell

    @property
    def gain(self) -> float:
        """What the messages add."""
        return self.full - self.own

    @property
    def possible(self) -> float:
        """The largest gain that a better attack could have."""
        return max(self.high, self.room)


def ceilings_of(findings: Iterable[Finding]) -> dict[tuple[Situation, str], Ceiling]:
    """The ceiling of every column and situation: where most could be learnt; one trial that no learner covers is enough."""
    told = [(f, one) for f in findings if f.score.metric == CEILING for one in f.score.ceilings]
    places = group(told, lambda pair: (situation_of(pair[0]), pair[1].name))
    return {place: _highest(parts) for place, parts in places.items()}


def _highest(parts: Sequence[tuple[Finding, ColumnCeiling]]) -> Ceiling:
    finding, top = max(parts, key=lambda pair: max(pair[1].high, pair[1].room or 0.0))
    return Ceiling(
        column=top.name,
        own=top.own,
        full=top.full,
        low=top.low,
        high=top.high,
        unknown=finding.unknown,
        rows=top.rows,
        covers=all(one.covers for _, one in parts),
        learner=top.learner,
        room=top.room or 0.0,
    )
