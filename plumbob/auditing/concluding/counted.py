"""How many columns ended how, each counted once at its worst over several threats: as the headline counts them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plumbob.auditing.concluding.conclusion import Standing, worst_per_column
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level


@dataclass(frozen=True)
class Counted:
    """Columns by what is known of them; the parts add up to all."""

    leaking: int
    undecided: int
    untested: int
    clear: int
    held: int = 0  # by the curious side already

    @property
    def columns(self) -> int:
        return self.leaking + self.undecided + self.untested + self.clear + self.held


def counted(found: Iterable[Standing]) -> Counted:
    """A column that leaks to one attacker leaks, and one that is undecided for any other is not clear."""
    levels = [one.level for one in worst_per_column(found) if one.verdict.column != LABEL]
    return Counted(
        leaking=sum(level.leaks for level in levels),
        undecided=levels.count(Level.UNDECIDED),
        untested=levels.count(Level.NOT_TESTED),
        clear=levels.count(Level.NONE),
        held=levels.count(Level.HELD),
    )
