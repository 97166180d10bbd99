"""The headline of one situation, or of many: every class of columns with its number, so that the numbers add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbob.auditing.concluding.conclusion import Standing
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report.phrases import count, sentence_list
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level


def headline(found: Sequence[Standing], noun: str, whom: str, where: str = "") -> str:
    """How many columns leak and whether the label does; else what is known instead."""
    columns = [one for one in found if not _is_label(one) and one.level is not Level.HELD]
    target = next((one for one in found if _is_label(one) and one.level is not Level.HELD), None)
    held = sum(one.level is Level.HELD for one in found)
    where += f"; {count(held, noun)} more {'is' if held == 1 else 'are'} held already" if held else ""
    leaking = sum(one.level.leaks for one in columns)
    label_leaks = target is not None and target.level.leaks
    unknown, clear = unknown_words(columns, target), clear_words(columns)
    rest = "".join(f"; {part}" for part in (unknown, clear) if part)
    if leaking:
        ordered = sum(one.level is Level.ORDER for one in columns)
        kind = f" ({f'{ordered} ' if ordered < leaking else ''}in order only)" if ordered else ""
        said = f"Yes: {leaking} of {count(len(columns), noun)} {'leaks' if leaking == 1 else 'leak'}{kind}{whom}"
        said += ", and the label" if label_leaks else ""
        return f"{said}{where}{rest}"
    if label_leaks:
        unknown = unknown_words(columns, None, noun)  # after the label "all 3" would be no columns
        rest = "".join(f"; {part}" for part in (unknown, clear) if part)
        if columns:
            rest = rest or f"; no leak above {limit(columns)} % was found in {count(len(columns), noun)}"
        return f"Yes: the label leaks{whom}{where}{rest}"
    if unknown:
        return f"Not known: no leak was found, but {unknown}{f'; {clear}' if clear else ''}"
    every = [*columns, *([target] if target else [])]
    if not every:
        return f"Nothing to learn: {'all' if held > 1 else 'the'} {count(held, noun)} {'are' if held > 1 else 'is'} held already"
    also = " and the label" if target and columns else ""
    what = f"{count(len(columns), noun)}{also}" if columns else "the label"
    return f"No leak above {limit(every)} % in {what}{where if held else ''}"


def brief(found: Sequence[Standing], noun: str) -> str:
    """How many columns leak and of how many it is not known, in a few words."""
    columns = [one for one in found if not _is_label(one)]
    leaking, unknown = sum(one.level.leaks for one in columns), sum(not one.level.known for one in columns)
    target = next((one for one in found if _is_label(one)), None)
    if not columns:  # the active party brings the label alone
        return f"the label {_standing(target)}" if target is not None else "nothing is hidden"
    clear = [one for one in columns if not one.level.leaks and one.level.known]
    parts = [f"{leaking} of {count(len(columns), noun)} {'leaks' if leaking == 1 else 'leak'}"]
    parts += ["the label leaks"] if target is not None and target.level.leaks else []
    parts += [f"{unknown} not known"] if unknown else []
    parts += [f"{len(clear)} without a leak above {limit(clear)} %"] if clear else []
    return ", ".join(parts)


def _standing(target: Standing) -> str:
    """What is known of the label, after its name."""
    if target.level.leaks:
        return "leaks"
    return f"shows no leak above {limit([target])} %" if target.level is Level.NONE else f"is {target.level.value}"


def unknown_words(columns: Sequence[Standing], target: Standing | None, noun: str = "") -> str:
    """How many of the targets are not known, by reason; of what, where a noun is given."""
    parts = []
    for level in (Level.UNDECIDED, Level.NOT_TESTED):
        number = sum(one.level is level for one in columns)
        verb = "is" if number == 1 else "are"
        if number:
            every = count(len(columns), noun) if noun else f"{len(columns)}"
            whom = f"all {every}" if number == len(columns) > 1 else f"{number} of {every}"
            parts.append(f"{whom} {verb} {level.value}")
        if target is not None and target.level is level:
            parts.append(f"the label is {level.value}")
    return sentence_list(parts)


def clear_words(columns: Sequence[Standing]) -> str:
    """Of a mixed lot, the columns in which nothing was found, with their limit."""
    number = sum(one.level is Level.NONE for one in columns)
    if not number or number == len(columns):
        return ""
    return f"no leak above {limit(columns)} % was found in the other {number if number > 1 else 'one'}"


def limit(found: Iterable[Standing]) -> int:
    """The largest detection limit of some columns, in percent."""
    return whole_percent(max((one.verdict.unseen or 0.0 for one in found if one.level is Level.NONE), default=0.0))


def _is_label(one: Standing) -> bool:
    return one.verdict.column == LABEL
