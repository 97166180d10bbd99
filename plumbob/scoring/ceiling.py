"""The ceiling of what could be learnt of a column from the messages."""

from __future__ import annotations

from dataclasses import dataclass

CEILING = "ceiling"


@dataclass(frozen=True)
class ColumnCeiling:
    """What learners that have everybody else's complete rows learn of one column, or of the label."""

    name: str
    own: float
    full: float
    gain: float
    low: float
    high: float
    learner: str = ""
    rows: int = 0
    bits: float | None = None
    least: float | None = None
    open_: int | None = None
    proven: float | None = None
    target: str = "column"
    covers: bool = True
