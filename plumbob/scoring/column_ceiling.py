"""What a ceiling says of one column: how much of it could be learnt, by learners, by counting and by proof."""

from __future__ import annotations

from dataclasses import dataclass

CEILING = "ceiling"  # what cases and findings of it are called, where others name an attack
LABEL = "the label"


@dataclass(frozen=True)
class ColumnCeiling:
    """The ceiling of one column, or of the label. Shares are of the column's variance, or of the most frequent class's errors."""

    name: str
    own: float  # explained from own columns alone
    full: float  # from own columns and messages
    gain: float  # full - own
    low: float  # 95 % interval of the gain
    high: float
    learner: str  # the one that `full` is of; empty where no message says anything row by row
    rows: int
    target: str = "column"  # or "label"
    covers: bool = True  # whether learners saw every message that was received
    uncovered: tuple[str, ...] = ()  # names of those they did not
    bits: float | None = None  # that a row's release carries beyond own columns, where releases take few values
    least: float | None = None  # share of the variance that is left at least with so many bits
    open_: int | None = None  # dimensions of a row that exact equations leave open
    proven: float | None = None  # differential privacy: most rows that can be guessed to within 10 % of the range
    room: float | None = None  # of the label: the largest gain over what some known labels and own columns alone tell


def ceiling_words(ceiling: ColumnCeiling) -> str:
    r"""The ceiling in one line.

    >>> print(ceiling_words(ColumnCeiling("age", 0.12, 0.44, 0.32, 0.28, 0.36, "ridge", 1_000)).replace("; ", ";\n"))
    own columns alone explain 12 %;
    with the messages at most about 44 % (of what learners with everybody else's complete rows find)
    """
    alone = f"own columns alone explain {_percent(ceiling.own)}"
    if ceiling.target == "label":
        alone = f"own columns alone avoid {_percent(ceiling.own)} of the errors of naming the most frequent class"
    if not ceiling.learner:
        return f"{alone}; no message says anything row by row, so learners cannot tell what messages add"
    missed = "" if ceiling.covers else f"; they do not see: {', '.join(ceiling.uncovered)}"
    whose = "of what learners with everybody else's complete rows find"
    some = (
        ""
        if ceiling.room is None
        else f"; who knows some labels avoids up to {_percent(ceiling.room)} of the errors left"
    )
    return f"{alone}; with the messages at most about {_percent(ceiling.full)} ({whose}{missed}){some}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
