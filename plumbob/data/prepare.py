"""Turn raw columns into features: every column a number in [0, 1], every decision recorded in a note.

`recognise` determines what a column is; the rules say what is done with it. No message or note contains a cell's value:
tables are private, error logs are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from plumbob.data.label import label_of, used_classes
from plumbob.data.recognise import DISTINCT, RecognisedColumn, count, recognise
from plumbob.errors import BadInput, suggest
from plumbob.federation import BoolArray, Column, Dropped, FloatArray, Table

IGNORED = "ignored by the plan"
CHOICES: dict[str, tuple[str, ...]] = {
    "categories": ("ordinal", "onehot", "drop"),
    "missing": ("refuse", "median", "drop_rows", "drop_column"),
    "constant": ("drop", "keep"),
    "dates": ("days", "drop"),
    "duplicates": ("first", "last", "refuse"),
}


@dataclass(frozen=True)
class Rules:
    """What to do with columns that are not plain numbers.

    categories: `ordinal` codes in sorted order, `onehot` one indicator a value, or `drop`; two-valued columns always
        stay one binary column.
    missing: `refuse`, fill with the `median` (the most frequent value where a median means nothing), `drop_rows`,
        or `drop_column`.
    constant: `drop` columns of one value, or `keep` them as zeros.
    dates: `days` since the earliest date, or `drop`.
    duplicates: of several rows with one id keep the `first` or the `last`, or `refuse`.

    >>> Rules(categories="onehot").categories
    'onehot'
    """

    categories: str = "ordinal"
    missing: str = "refuse"
    constant: str = "drop"
    dates: str = "days"
    duplicates: str = "first"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            word = getattr(self, name)
            if word not in known:
                raise BadInput(f"rule '{name}': expected {_either(known)}, got '{word}'{_closest(str(word), known)}")


@dataclass
class _Notes:
    """Decisions in order; columns with the same decision share one sentence."""

    where: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)  # columns, and why

    def column(self, decision: str, name: str) -> None:
        self.columns.setdefault(decision, []).append(f"'{name}'")

    def sentence(self, text: str) -> None:
        self.sentences.append(f"{self.where}: {text}")

    def all(self) -> tuple[str, ...]:
        grouped = [f"{self.where}: {decision}: {', '.join(names)}" for decision, names in self.columns.items()]
        return (*grouped, *self.sentences)


def prepare(
    frame: pd.DataFrame,
    *,
    name: str,
    label: str | None = None,
    ignore: Sequence[str] = (),
    rules: Rules | None = None,
    where: str,
    label_bins: int | None = None,
    label_alone: bool = False,
) -> Table:
    """Turn a raw frame into a table of features in [0, 1] and class indices.

    `where` begins every message, such as `party 'bank'`. `label_bins` cuts a label of many numbers into that many
    classes by quantiles. `label_alone`: a frame with nothing but its label will do. Rows are kept in order; only the rule
    `drop_rows` removes some (see `complete_rows`).
    """
    rules = rules or Rules()
    frame = _checked_frame(frame, label, ignore, where)
    notes = _Notes(where)
    for column in ignore:
        notes.column("ignored as requested", column)
        notes.dropped[column] = IGNORED
    target = None if label is None else label_of(frame[label], label, label_bins, where, notes.sentence)
    cells = _usable(_features(frame, label, ignore, where), rules, notes)
    cells = _without_gaps(cells, rules, where, notes)
    if rules.missing == "drop_rows":
        cells, target = _drop_rows(cells, target, len(frame), where, notes)
    columns, values, filled = _encode(cells, rules, notes)
    if not columns and (cells or notes.dropped.keys() - set(ignore) or not label_alone):
        raise BadInput(f"{where} has no columns usable as features; {_why_none(notes)}")
    if not columns and target is not None:
        values = np.zeros((len(target.values), 0))
    _check_names(columns, where)
    classes = () if target is None else target.words
    codes = None if target is None else target.values.astype(np.int64)
    dropped = tuple(Dropped("", column, notes.dropped[column]) for column in frame.columns if column in notes.dropped)
    return Table(
        name,
        tuple(columns),
        values,
        codes,
        classes,
        notes.all(),
        words=_spelt(cells, rules),
        filled=filled,
        dropped=dropped,
    )


def complete_rows(
    frame: pd.DataFrame,
    *,
    label: str | None = None,
    ignore: Sequence[str] = (),
    rules: Rules | None = None,
    where: str,
) -> BoolArray:
    """Which rows have no missing features: those that the rule `drop_rows` keeps.

    Aligned parties must drop the same rows, so a federation intersects these masks before it prepares any table.
    """
    frame = _checked_frame(frame, label, ignore, where)
    cells = _usable(_features(frame, label, ignore, where), rules or Rules(), _Notes(where))
    return _complete([one for one in cells if not one.missing.all()], len(frame))


def _checked_frame(frame: pd.DataFrame, label: str | None, ignore: Sequence[str], where: str) -> pd.DataFrame:
    """The frame with its column names as text, checked for the columns that were named."""
    known = [str(column) for column in frame.columns]
    if label is not None and label in ignore:
        raise BadInput(f"{where}: 'ignore' names the label '{label}'; remove it from 'ignore' or name another label")
    frame = frame.set_axis(known, axis=1)
    if frame.shape[1] == 0:
        raise BadInput(f"{where} has no columns; expected a header row")
    if len(frame) == 0:
        raise BadInput(f"{where} has no rows")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise BadInput(f"{where}: duplicate column '{twice[0]}'; column names must be unique")
    if label is not None and label not in known:
        raise BadInput(f"{where}: no label column '{label}'{suggest(label, known)}")
    for column in ignore:
        if column not in known:
            raise BadInput(f"{where}: no column '{column}' to ignore{suggest(column, known)}")
    return frame


def _features(frame: pd.DataFrame, label: str | None, ignore: Sequence[str], where: str) -> list[RecognisedColumn]:
    """Every column but the label and the ignored ones, recognised."""
    skipped = {label, *ignore}
    return [recognise(frame[name], name, where) for name in frame.columns if name not in skipped]


def _usable(cells: Iterable[RecognisedColumn], rules: Rules, notes: _Notes) -> list[RecognisedColumn]:
    """Columns that may become features; the others are dropped with a note."""
    kept = []
    for one in cells:
        reason, why = _unusable(one, rules)
        if reason:
            notes.column(reason, one.name)
            notes.dropped[one.name] = why
        else:
            kept.append(one)
            if one.remark:
                notes.column(one.remark, one.name)
    return kept


def _unusable(cells: RecognisedColumn, rules: Rules) -> tuple[str, str]:
    """Why a column cannot be a feature: for the notes, and in short; empty if it can."""
    if cells.kind == "identifier":
        return "dropped as identifiers", "an identifier"
    if cells.kind == "text":
        distinct, rows = len(cells.words), int((~cells.missing).sum())
        why = "free text or a key" if distinct >= DISTINCT * rows else f"too many categories ({distinct:,})"
        return "dropped as free text or keys: too many distinct values for categories", why
    if cells.kind == "category" and rules.categories == "drop":
        return "dropped as categories, by the rule 'categories'", "a category, by the rule 'categories'"
    if cells.kind == "date" and rules.dates == "drop":
        return "dropped as dates, by the rule 'dates'", "a date, by the rule 'dates'"
    return "", ""


# missing cells


def _without_gaps(cells: list[RecognisedColumn], rules: Rules, where: str, notes: _Notes) -> list[RecognisedColumn]:
    """Columns with their missing cells refused, filled, or dropped; `drop_rows` leaves them for later."""
    return [whole for one in cells if (whole := _without_gap(one, rules, where, notes)) is not None]


def _without_gap(cells: RecognisedColumn, rules: Rules, where: str, notes: _Notes) -> RecognisedColumn | None:
    gaps = int(cells.missing.sum())
    if not gaps:
        return cells
    if rules.missing == "refuse":
        cells.refuse_infinite(where)
        raise BadInput(
            f"{where}: column '{cells.name}' has {count(gaps, 'missing value')}; "
            "fill them or set 'missing' to median, drop_rows or drop_column"
        )
    if gaps == len(cells.values):
        notes.column("dropped as empty", cells.name)
        notes.dropped[cells.name] = "empty"
        return None
    if rules.missing == "drop_column":
        notes.sentence(f"column '{cells.name}' dropped for {count(gaps, 'missing value')}")
        notes.dropped[cells.name] = "missing values, by the rule 'missing'"
        return None
    if rules.missing == "drop_rows":
        return cells
    how = "the median" if cells.kind in ("number", "date") else "the most frequent value"
    notes.sentence(f"column '{cells.name}': {count(gaps, 'missing value')} filled with {how}")
    return replace(cells, values=np.where(cells.missing, _middle(cells), cells.values), filled=cells.missing)


def _middle(cells: RecognisedColumn) -> float:
    """Median of an ordered column; the most frequent value where values have no order."""
    present = cells.values[~cells.missing]
    if cells.kind in ("number", "date"):
        return float(np.median(present))
    values, counts = np.unique(present, return_counts=True)
    return float(values[np.argmax(counts)])


def _complete(cells: Iterable[RecognisedColumn], rows: int) -> BoolArray:
    keep = np.ones(rows, dtype=np.bool_)
    for one in cells:
        keep &= ~one.missing
    return keep


def _drop_rows(
    cells: list[RecognisedColumn], target: RecognisedColumn | None, rows: int, where: str, notes: _Notes
) -> tuple[list[RecognisedColumn], RecognisedColumn | None]:
    keep = _complete(cells, rows)
    if keep.all():
        return cells, target
    if not keep.any():
        raise BadInput(f"{where}: every row has a missing value; fill them or set 'missing' to median or drop_column")
    notes.sentence(f"{rows - int(keep.sum()):,} of {rows:,} rows dropped for missing values")
    return [one.rows(keep) for one in cells], None if target is None else used_classes(target.rows(keep), where)


# encoding


def _encode(
    cells: list[RecognisedColumn], rules: Rules, notes: _Notes
) -> tuple[list[Column], FloatArray, BoolArray | None]:
    """The final columns, their values in one array, and which of these were filled."""
    cells = [_compact(one) for one in cells]
    kept = [one for one in cells if not _dropped_as_constant(one, rules, notes)]
    columns = [column for one in kept for column in _columns(one, rules, notes)]
    values = np.empty((len(cells[0].values) if cells else 0, len(columns)))
    filled = np.zeros(values.shape, dtype=np.bool_) if any(one.filled is not None for one in kept) else None
    at = 0
    for one in kept:
        width = len(one.words) if _is_onehot(one, rules) else 1
        if _is_onehot(one, rules):
            for code in range(width):
                values[:, at + code] = one.values == code
        else:
            values[:, at] = scale(one.values, columns[at].low, columns[at].high)
        if filled is not None and one.filled is not None:
            filled[:, at : at + width] = one.filled[:, None]
        at += width
    return columns, values, filled


def _spelt(cells: Sequence[RecognisedColumn], rules: Rules) -> dict[str, str]:
    """Names that models give to indicators, `city=Oslo` or `city_Oslo`, and ours, which do not reveal the value."""
    onehot = [_compact(one) for one in cells if _is_onehot(one, rules)]
    places = [(one.name, word, i) for one in onehot for i, word in enumerate(one.words, 1)]
    return {f"{name}{sign}{word}": f"{name}={i}" for name, word, i in places for sign in "=_"}


def _check_names(columns: Sequence[Column], where: str) -> None:
    """Refuse an indicator whose name is that of another column."""
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            source = column.source or column.name
            raise BadInput(f"{where}: an indicator of '{source}' has the name of another column; rename that column")
        seen.add(column.name)


def _compact(cells: RecognisedColumn) -> RecognisedColumn:
    """Remove the codes of values that no row has any more, since their rows were dropped."""
    if not cells.words:
        return cells
    used, codes = np.unique(cells.values.astype(np.int64), return_inverse=True)
    if len(used) == len(cells.words):
        return cells
    return replace(cells, words=tuple(cells.words[i] for i in used), values=codes.astype(np.float64))


def _dropped_as_constant(cells: RecognisedColumn, rules: Rules, notes: _Notes) -> bool:
    if cells.values.min() < cells.values.max():
        return False
    if rules.constant == "keep":
        notes.column("kept although constant", cells.name)
        return False
    notes.column("dropped as constant", cells.name)
    notes.dropped[cells.name] = "constant"
    return True


def _is_onehot(cells: RecognisedColumn, rules: Rules) -> bool:
    return cells.kind == "category" and rules.categories == "onehot"


def _columns(cells: RecognisedColumn, rules: Rules, notes: _Notes) -> list[Column]:
    low, high = float(cells.values.min()), float(cells.values.max())
    if _is_onehot(cells, rules):
        notes.column("categories turned into one indicator per value", cells.name)
        # Numbered, not named: column names stand in reports, and a category's words are values.
        return [Column(f"{cells.name}={i}", "indicator", cells.name, step=1.0) for i in range(1, len(cells.words) + 1)]
    if cells.kind == "category":
        notes.column("categories coded in sorted order", cells.name)
    elif cells.kind == "date":
        notes.column("dates turned into days since the earliest", cells.name)
    elif cells.words:
        notes.column("two words coded as 0 and 1 in sorted order", cells.name)
    return [Column(cells.name, cells.kind, "", low, high, spacing(cells.values))]


def spacing(values: FloatArray) -> float:
    """1 for integers; 0.1, 0.01, 0.001 or 0.0001 for one to four decimals; 0 for more.

    >>> spacing(np.array([1.25, 3.5]))
    0.01
    """
    if not np.abs(values).max(initial=0.0) < 2.0**50:
        return 0.0  # not even whole numbers can be told apart there
    span = float(np.ptp(values))
    for decimals in range(5):
        scaled, step = values * 10.0**decimals, 10.0**-decimals
        exact = np.abs(scaled).max(initial=0.0) < 2.0**50 and np.abs(scaled - np.rint(scaled)).max(initial=0.0) < 1e-6
        if exact and step <= span:
            return step
    return 0.0


def scale(values: FloatArray, low: float, high: float) -> FloatArray:
    """Min-max to [0, 1]; zeros for a constant. A range too wide for a float is halved first.

    >>> scale(np.array([2.0, 3.0, 4.0]), 2.0, 4.0)
    array([0. , 0.5, 1. ])
    """
    if low == high:
        return np.zeros(len(values))
    if not np.isfinite(high - low):
        return scale(values / 2, low / 2, high / 2)
    return np.clip((values - low) / (high - low), 0.0, 1.0)


# words for messages


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _closest(word: str, known: tuple[str, ...]) -> str:
    """Only a close match: the sentence lists all known words already."""
    hint = suggest(word, known)
    return hint if "did you mean" in hint else ""


def _why_none(notes: _Notes) -> str:
    told = [note.partition(": ")[2] for note in notes.all() if "dropped" in note]
    return "; ".join(told) if told else "it has only its label and ignored columns"
