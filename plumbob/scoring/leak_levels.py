"""The levels of a verdict, from no leak to recovered. Their values are the words of findings, gates and style sheets.

`held already` are columns that the curious parties can work out from their own, whatever is sent. Below `order` nothing was
found. Only `none` says that something would have been: an attack that addresses this kind of column was run, and neither it nor
the ceiling leaves room for more than the limit. `undecided` and `not tested` are not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Level(StrEnum):
    """What was learnt about a column or the label; harmless first, in the order of severity."""

    HELD = "held already"
    NONE = "none"
    NOT_TESTED = "not tested"
    UNDECIDED = "undecided"
    ORDER = "order"
    LEAK = "leak"
    EXACT_FOR_SOME = "exact for some"
    EXACT = "exact"

    @property
    def rank(self) -> int:
        """How severe it is: 0 for none."""
        return _RANKS[self]

    @property
    def leaks(self) -> bool:
        return self.rank >= _RANKS[Level.ORDER]

    @property
    def known(self) -> bool:
        """Whether it is an answer: a leak that was found, or none that was looked for with the power to find it."""
        return self not in (Level.NOT_TESTED, Level.UNDECIDED)

    @property
    def css(self) -> str:
        """As style sheets call it."""
        return self.value.replace(" ", "-")


_RANKS = {level: rank for rank, level in enumerate(Level)}


def worst(levels: Iterable[Level]) -> Level:
    """The most severe of some levels, of what is not held already; of none of them, not tested.

    >>> worst([Level.ORDER, Level.EXACT, Level.NONE]).value, worst([]).value
    ('exact', 'not tested')
    """
    every = list(levels)
    if every and all(level is Level.HELD for level in every):
        return Level.NONE  # there is nothing that they could learn
    return max(every, key=lambda level: level.rank, default=Level.NOT_TESTED)
