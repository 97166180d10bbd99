"""Seconds and memory of one attack: what the plan says, else what no attack of Plumbob's comes near."""

from __future__ import annotations

import os
from dataclasses import dataclass

from plumbob.os_specific import memory_mb
from plumbob.scoring.score import LIMITED

SECONDS = 3_600.0  # the longest attack of the committed audits took 613
SECONDS_PER_ROW = 0.036  # and an hour more for every 100,000 rows: the dearest attack needs a third of that
SHARE = 0.75  # of the machine's memory, for the attacks of all workers together


@dataclass(frozen=True)
class Limits:
    """What one attack may take."""

    seconds: float
    memory_mb: int

    @property
    def too_long(self) -> str:
        return f"{LIMITED[0]}{self.seconds:,.6g} s"

    @property
    def too_large(self) -> str:
        return f"{LIMITED[1]}{self.memory_mb:,} MB"


@dataclass(frozen=True)
class Allowance:
    """What the plan allows each attack; None: the defaults, which depend on the rows attacked and on the machine."""

    seconds: float | None = None
    memory_mb: int | None = None
    workers: int = 1  # that share the machine; 0 where that is not known: one for each core

    def limits(self, rows: int) -> Limits:
        """For an attack on so many rows on this machine."""
        share = SHARE * memory_mb() / (self.workers or os.cpu_count() or 1)
        return Limits(
            SECONDS + SECONDS_PER_ROW * rows if self.seconds is None else self.seconds,
            max(1, int(share)) if self.memory_mb is None else self.memory_mb,
        )
