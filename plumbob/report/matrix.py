"""Who could learn what, and how: the matrix of threats in words, for the report and the terminal.

In a report every cell says which attacks were run and what they found, which fit but were not run, or why none fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import Summary, group
from plumbob.auditing.planning.matrix import Block, Row
from plumbob.report.answer import LEVEL_WORDS, label, sentence_list, short
from plumbob.scoring.leak_levels import Level, worst

RUN, FITS, NONE = "run", "fits, not run", "none fits"
READ = (
    "Every threat that Plumbob knows, not only those of this plan. An attack that was run is named with the worst it "
    "found on any column or the label, under any defence of the plan. One that fits and was not run may find more: name "
    "its threat or the attack in the plan. Where no attack fits, Plumbob has none; that is no proof of safety."
)


@dataclass(frozen=True)
class Attempt:
    """One attack that was run: the worst level it reached."""

    attack: str
    level: Level
    of_label: bool = False  # whether it did worse to the label than to any column

    @property
    def words(self) -> str:
        return f"{label(self.attack)}: {LEVEL_WORDS[self.level]}{' (the label)' if self.of_label else ''}"


@dataclass(frozen=True)
class Cell:
    """One threat against one protocol, as a report shows it."""

    threat: str
    role: str
    knows: str
    state: str  # run, fits but not run, or none fits
    attempts: tuple[Attempt, ...]
    others: str  # attacks that fit and were not run
    reasons: str


@dataclass(frozen=True)
class Grid:
    heading: str
    cells: tuple[Cell, ...]


def grids(blocks: Sequence[Block], summaries: Sequence[Summary]) -> list[Grid]:
    """The matrix joined with what was found."""
    found = group(summaries, lambda s: (s.setting.protocol, s.setting.threat, s.setting.attack))
    attempts = {key: _attempt(key[-1], parts) for key, parts in found.items()}
    return [
        Grid(
            f"{label(block.protocol)}, attacked in {block.phase}",
            tuple(
                _cell(row, [made for (p, t, _), made in attempts.items() if (p, t) == (block.protocol, row.threat)])
                for row in block.rows
            ),
        )
        for block in blocks
    ]


def _attempt(attack: str, summaries: Sequence[Summary]) -> Attempt:
    column = worst(s.level for s in summaries)
    told = worst(s.label.level for s in summaries if s.label)
    return Attempt(attack, worst((column, told)), told.rank > column.rank)


def _cell(row: Row, attempts: Sequence[Attempt]) -> Cell:
    others = [label(name) for name in row.fits if name not in {made.attack for made in attempts}]
    return Cell(
        threat=short(row.threat),
        role=row.role,
        knows=row.knows,
        state=RUN if attempts else FITS if row.fits else NONE,
        attempts=tuple(attempts),
        others=sentence_list(others),
        reasons=_reasons(row),
    )


def _reasons(row: Row) -> str:
    if not row.fits and not row.reasons:
        return "no attack of Plumbob works on this protocol"
    return "; ".join(f"{sentence_list([label(name) for name in names])}: {why}" for why, names in row.reasons)


def lines(blocks: Sequence[Block]) -> list[str]:
    """The matrix for a terminal of any width: a line for each threat, its reasons below it."""
    said = []
    for block in blocks:
        said.append(f"{label(block.protocol)} (attacked in {block.phase})")
        for row in block.rows:
            said.append(f"  {row.threat}: {', '.join(row.fits) or 'no attack fits'}")
            said += [f"      not {', '.join(names)}: {why}" for why, names in row.reasons]
            if row.fits and row.blind:
                said.append(f"      no attack here addresses: {', '.join(row.blind)}")
    return said
