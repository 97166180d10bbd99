"""Who could learn what, and how: the matrix of threats in words, for the report and the terminal.

In a report every cell says which attacks were run and what they found, which fit but were not run, or why none fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbob.attacks import name_of
from plumbob.auditing.concluding.conclusion import Conclusion
from plumbob.auditing.concluding.summarise import Summary, group
from plumbob.auditing.planning.matrix import Block, Row, Status
from plumbob.kinds import COLUMNS, Kind
from plumbob.report.answer import LEVEL_ICONS, LEVEL_WORDS
from plumbob.report.phrases import label, sentence_list, short
from plumbob.scoring.leak_levels import Level, worst

RUN, FITS, NONE, NOT_APPLICABLE = "run", "fits, not run", "none fits", "not applicable"
NAMED = 3  # columns that are named of a kind
KINDS = {
    Kind.TWO_VALUED: "two-valued columns",
    Kind.WHOLE: "whole numbers",
    Kind.NUMBER: "other numbers",
    Kind.LABEL: "the label",
}
READ = (
    "Every threat that Plumbob knows, not only those of this plan. An attack that was run is named with the worst it "
    "found on any column or the label, under any defence of the plan. One that fits and was not run may find more: name "
    "its threat or the attack in the plan. Where no attack fits, Plumbob has none; that is no proof of safety. Not applicable is "
    "a party that gets no message about other parties' rows: the reason names the messages that it lacks. Some attacks "
    "look for some kinds of columns only: that they find nothing says nothing of the others."
)


@dataclass(frozen=True)
class Attempt:
    """One attack that was run: the worst level it reached."""

    attack: str
    level: Level
    of_label: bool = False  # whether it did worse to the label than to any column

    @property
    def words(self) -> str:
        said = LEVEL_WORDS[self.level] if self.level.leaks else "found nothing"
        return f"{label(self.attack)}: {said}{' (the label)' if self.of_label else ''}"

    @property
    def icon(self) -> str:
        """Of a leak; that one attack found nothing is no verdict."""
        return LEVEL_ICONS[self.level] if self.level.leaks else "–"


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
    narrow: tuple[str, ...]  # attacks that look for some kinds of columns only, and for which
    blind: str  # kinds of hidden columns that no attack which fits addresses


@dataclass(frozen=True)
class Grid:
    heading: str
    cells: tuple[Cell, ...]


def grids(blocks: Sequence[Block], conclusion: Conclusion) -> list[Grid]:
    """The matrix joined with what was found, and with the kinds of columns that the data have."""
    found = group(conclusion.summaries, lambda s: (s.setting.protocol, s.setting.threat, s.setting.attack))
    attempts = {key: _attempt(key[-1], parts) for key, parts in found.items()}
    hidden = _hidden(conclusion)
    return [
        Grid(
            f"{label(block.protocol)}, attacked in {block.phase}",
            tuple(
                _cell(
                    row,
                    [made for (p, t, _), made in attempts.items() if (p, t) == (block.protocol, row.threat)],
                    hidden,
                )
                for row in block.rows
            ),
        )
        for block in blocks
    ]


def _attempt(attack: str, summaries: Sequence[Summary]) -> Attempt:
    column = worst(s.level for s in summaries)
    told = max((s.label.level for s in summaries if s.label), key=lambda level: level.rank, default=column)
    return Attempt(attack, worst((column, told)), told.leaks and told.rank > column.rank)


def _hidden(conclusion: Conclusion) -> dict[str, tuple[str, ...]]:
    """The hidden columns of the data by kind; nothing of findings that do not say it."""
    told = [verdict for summary in conclusion.summaries for verdict in summary.verdicts if verdict.kind]
    return {
        kind: tuple(dict.fromkeys(v.column for v in parts)) for kind, parts in group(told, lambda v: v.kind).items()
    }


def _cell(row: Row, attempts: Sequence[Attempt], hidden: Mapping[str, Sequence[str]]) -> Cell:
    others = [label(name) for name in row.fits if name not in {name_of(made.attack) for made in attempts}]
    return Cell(
        threat=short(row.threat),
        role=row.role,
        knows=row.knows,
        state=RUN if attempts else FITS if row.fits else NOT_APPLICABLE if row.lacks else NONE,
        attempts=tuple(attempts),
        others=sentence_list(others),
        reasons=_reasons(row),
        narrow=tuple(
            f"{label(name)} sees a leak in {sentence_list([KINDS[kind] for kind in kinds])} only"
            for name, kinds in row.addressed.items()
            if not set(COLUMNS) <= set(kinds)
        ),
        blind=_blind(row, hidden),
    )


def _blind(row: Row, hidden: Mapping[str, Sequence[str]]) -> str:
    """What is hidden and no attack here would see a leak in, with the columns' names."""
    if not row.fits:
        return ""
    there = [kind for kind in row.blind if kind is Kind.LABEL or not hidden or kind in hidden]
    return sentence_list([f"{KINDS[kind]}{_such(hidden.get(kind, ()))}" for kind in there])


def _such(names: Sequence[str]) -> str:
    """Columns in brackets, of many the first few."""
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED + 1 else []
    shown = [short(name) for name in (names[:NAMED] if more else names)]
    return f" ({sentence_list([*shown, *more])})" if shown else ""


def _reasons(row: Row) -> str:
    if row.status is Status.NOT_APPLICABLE:
        return row.lacks
    if not row.fits and not row.reasons:
        return "no attack of Plumbob works on this protocol"
    return "; ".join(f"{sentence_list([label(name) for name in names])}: {why}" for why, names in row.reasons)


def lines(blocks: Sequence[Block]) -> list[str]:
    """The matrix for a terminal of any width: a line for each threat, its reasons below it."""
    said = []
    for block in blocks:
        said.append(f"{label(block.protocol)} (attacked in {block.phase})")
        for row in block.rows:
            if row.status is Status.NOT_APPLICABLE:
                said.append(f"  {row.threat}: {row.status}: {row.lacks}")
                continue
            said.append(f"  {row.threat}: {', '.join(row.fits) or 'no attack fits'}")
            said += [f"      not {', '.join(names)}: {why}" for why, names in row.reasons]
            if row.fits and row.blind:
                said.append(f"      no attack here addresses: {', '.join(row.blind)}")
    return said
