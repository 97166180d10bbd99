"""The levels of a verdict, from no leak to recovered. Their values are the words of findings, gates and style sheets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Level(StrEnum):
    """What was learnt about a column or the label; harmless first, in the order of severity."""

    NONE = "none"
    ORDER = "order"
    LEAK = "leak"
    EXACT = "exact"

    @property
    def rank(self) -> int:
        """How severe it is: 0 for none."""
        return _RANKS[self]

    @property
    def leaks(self) -> bool:
        return self is not Level.NONE


_RANKS = {level: rank for rank, level in enumerate(Level)}


def worst(levels: Iterable[Level]) -> Level:
    """The most severe of some levels; of none of them, no leak.

    >>> worst([Level.ORDER, Level.EXACT, Level.NONE]).value, worst([]).value
    ('exact', 'none')
    """
    return max(levels, key=lambda level: level.rank, default=Level.NONE)
