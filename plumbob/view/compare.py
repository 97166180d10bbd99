"""Two audits side by side: which settings differ, and what each learnt about every column. Differences are in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plumbob.report.answer import LEVEL_WORDS, Answer, ColumnAnswer
from plumbob.report.phrases import count, label, percent, plain, short
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level
from plumbob.view.runs import Opened

DECISIVE = ("data", "protocols", "threats", "defences")  # settings that ought to make a difference
ALIKE = 0.005  # gains that differ by less are called the same: a point of a percent is what is shown
OF_A_FILE = ("file", "recorded")  # folders of this machine, of which only the name is shown


@dataclass(frozen=True)
class Row:
    """One thing of both audits. `change` is empty where they agree."""

    name: str
    first: str
    second: str
    change: str = ""
    levels: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Comparison:
    differ: tuple[Row, ...]  # settings
    agree: tuple[Row, ...]
    situations: tuple[Row, ...]
    columns: tuple[Row, ...]

    @property
    def headline(self) -> str:
        """The difference in one sentence."""
        changed = [row for row in self.columns if row.change]
        of = count(sum(row.name != LABEL for row in self.columns), "column")
        of += " and the label" if any(row.name == LABEL for row in self.columns) else ""
        if not self.columns:
            return "Neither audit has findings about a column"
        if not changed:
            other = [row.name for row in self.differ if row.name in DECISIVE]
            return f"No difference in {of}" + (f", though the {' and the '.join(other)} differ" if other else "")
        worse, better = (sum(row.change.startswith(way) for row in changed) for way in ("worse", "better"))
        unclear = sum(row.change.startswith("unclear") for row in changed)
        apart = len(changed) - worse - better - unclear
        parts = [f"{worse} worse in the second", f"{better} better"]
        parts += ([f"{unclear} unclear"] if unclear else []) + ([f"{apart} in one only"] if apart else [])
        return f"Of {of}, {', '.join(parts)}"


def compare(one: Opened, other: Opened) -> Comparison:
    """Everything that can be said of two audits at once."""
    settings = _settings(one, other)
    return Comparison(
        differ=tuple(row for row in settings if row.change),
        agree=tuple(row for row in settings if not row.change),
        situations=_situations(one, other),
        columns=_columns(one.columns, other.columns),
    )


def _settings(one: Opened, other: Opened) -> list[Row]:
    first, second = (_facts(opened) for opened in (one, other))
    rows = []
    for name in dict.fromkeys((*first, *second)):
        a, b = first.get(name, "–"), second.get(name, "–")
        rows.append(Row(name, a, b, "" if a == b else "differs"))
    return rows


def _facts(opened: Opened) -> dict[str, str]:
    """The settings of an audit in words: from its plan, else from its findings."""
    run = opened.run
    facts = {"data": ", ".join(map(short, run.data)) or "–"}
    facts |= {part: ", ".join(map(short, getattr(run, part))) or "–" for part in ("protocols", "threats", "defences")}
    facts |= {"attacks": ", ".join(map(short, run.attacks)) or "–", "seed": "–" if run.seed is None else str(run.seed)}
    if opened.plan is not None:
        raw = opened.plan.model_dump(mode="json", exclude_none=True)
        told = {key: value for key, value in raw.items() if key not in (*facts, "data")}
        facts |= {key.replace("_", " "): _words(value) for key, value in told.items()}
        facts |= {f"data: {key}": _words(_bare(key, value)) for key, value in raw["data"].items() if value}
    return facts


def _bare(key: str, value: Any) -> Any:
    """A path as the name of its file, at any depth."""
    if isinstance(value, Mapping):
        return {inner: _bare(inner, part) for inner, part in value.items() if part}
    return str(value).replace("\\", "/").rsplit("/", 1)[-1] if key in OF_A_FILE else value


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{plain(str(key))} {_words(part)}".strip() for key, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value)) or "none"
    return short(f"{value:g}" if isinstance(value, float) else str(value))


def _situations(one: Opened, other: Opened) -> tuple[Row, ...]:
    """How many columns leak on every protocol, to every threat, under every defence."""
    first, second = ({_place(answer): answer for answer in opened.answers} for opened in (one, other))
    rows = []
    for place in dict.fromkeys((*first, *second)):
        a, b = first.get(place), second.get(place)
        said = (_tally(a), _tally(b))
        rows.append(Row(", ".join(map(label, place)), *said, "" if said[0] == said[1] else "differs", _levels(a, b)))
    return tuple(rows)


def _place(answer: Answer) -> tuple[str, str, str]:
    return answer.situation.protocol, answer.situation.threat, answer.situation.defence


def _tally(answer: Answer | None) -> str:
    if answer is None:
        return "not asked for"
    if answer.untested:
        return answer.untested[:1].lower() + answer.untested[1:]
    exact = f", {answer.counts[Level.EXACT]} recovered" if answer.counts[Level.EXACT] else ""
    unknown = sum(not column.level.known for column in answer.columns)
    rest = f", {unknown} not known" if unknown else ""
    return f"{answer.leaking} of {count(len(answer.columns), answer.noun)} leaking{exact}{rest}"


def _columns(first: Mapping[str, ColumnAnswer], second: Mapping[str, ColumnAnswer]) -> tuple[Row, ...]:
    rows = []
    for name in dict.fromkeys((*first, *second)):
        a, b = first.get(name), second.get(name)
        rows.append((_step(a, b), Row(short(name), _verdict(a), _verdict(b), _change(a, b), _levels(a, b))))
    ordered = sorted(rows, key=lambda pair: (-abs(pair[0]), pair[1].name.casefold()))
    return tuple(row for _, row in ordered)


def _verdict(column: ColumnAnswer | None) -> str:
    if column is None:
        return "not among its columns"
    if not column.level.leaks:
        return column.words
    return f"{LEVEL_WORDS[column.level]}, gain {percent(column.verdict.gain)} ({label(column.attack)})"


def _levels(a: ColumnAnswer | Answer | None, b: ColumnAnswer | Answer | None) -> tuple[str, str]:
    return (a.level if a is not None else "", b.level if b is not None else "")


def _step(a: ColumnAnswer | None, b: ColumnAnswer | None) -> float:
    """How far apart two columns are, for the order of the table: levels first, then gains."""
    if a is None or b is None:
        return 10.0
    gains = [max(-1.0, column.verdict.gain) for column in (a, b)]
    return 2.0 * (b.level.rank - a.level.rank) + gains[1] - gains[0]


def _change(a: ColumnAnswer | None, b: ColumnAnswer | None) -> str:
    if a is None or b is None:
        return "only in the second" if a is None else "only in the first"
    if not (a.level.known and b.level.known):
        return "" if a.level is b.level else f"unclear: {LEVEL_WORDS[a.level]} became {LEVEL_WORDS[b.level]}"
    step = max(-1.0, b.verdict.gain) - max(-1.0, a.verdict.gain)
    points = f"gain {'+' if step > 0 else '−'}{abs(100 * step):.0f} points" if abs(step) >= ALIKE else "the same gain"
    if a.level != b.level:
        way = "worse" if b.level.rank > a.level.rank else "better"
        return f"{way}: {LEVEL_WORDS[a.level]} became {LEVEL_WORDS[b.level]}, {points}"
    if abs(step) < ALIKE or not a.level.leaks:  # of no leak at all the gain is noise
        return ""
    return f"{'worse' if step > 0 else 'better'}: {points}"
