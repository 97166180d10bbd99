"""Recognise columns: what the cells of a raw column are, whatever type the file format gave them.

    number    cells that are numbers, also when a file holds them as text
    binary    exactly two distinct values
    category  text with few distinct values
    date      date types, or text in one of the common date formats
    text      nearly all cells distinct, or too many words for a category: names, remarks, keys; never a feature

Text is parsed once per distinct value and numbers as whole arrays, so that half a million rows take a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from plumbob.errors import BadInput
from plumbob.federation import BoolArray, FloatArray, IntArray

IDENTIFIERS = frozenset({"id", "url", "uuid", "", "unnamed: 0"})  # the last two: a row index saved without a name
FEW_DISTINCT = 50  # distinct values that make a category or a class, however small the table
SHARE = 0.05  # or this share of the rows
MOST_CATEGORIES = 1_000  # but never more than these
DISTINCT = 0.9  # share of distinct texts that makes a key of a column
MOSTLY = 0.8  # share of number cells above which the other cells are mistakes
SMALL_TABLE_ROWS = 20  # rows below which "nearly all distinct" says nothing

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_WITH_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?")  # 8.435,44 as well
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# Missing in a column of numbers or dates, a word elsewhere.
_NO_NUMBER = frozenset({"na", "n/a", "null", "none", "<na>", "-", "--", "?", "."})
_DATE_FORMATS = (
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%d %B %Y",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
_ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([ T]\d{2}:\d{2}.*)?)?")


@dataclass(frozen=True)
class RecognisedColumn:
    """One recognised column: its numbers (codes for words), and where they are missing (NaN)."""

    name: str
    kind: str
    values: FloatArray
    words: tuple[str, ...] = ()  # sorted; a value is an index into them
    remark: str = ""  # how it was recognised, where that is not plain
    filled: BoolArray | None = None  # cells that were missing and have a value now; None if none have
    infinite: tuple[int, ...] = ()  # rows of cells that are infinite or too large for a number, which are missing too

    @property
    def missing(self) -> BoolArray:
        return np.isnan(self.values)

    def refuse_infinite(self, where: str) -> None:
        """For whom no rule says what to do with missing cells."""
        if self.infinite:
            raise BadInput(
                f"{where}: column '{self.name}' has {count(len(self.infinite), 'infinite value')} (such as inf or 1e400), "
                f"the first in row {self.infinite[0] + 1:,}; replace them or leave the cells empty"
            )

    def rows(self, keep: BoolArray) -> RecognisedColumn:
        return replace(self, values=self.values[keep], filled=None if self.filled is None else self.filled[keep])


def recognise(series: pd.Series, name: str, where: str, *, is_label: bool = False) -> RecognisedColumn:
    """What kind of column this is, and its cells as numbers or codes."""
    if name.lower() in IDENTIFIERS and not is_label:
        return RecognisedColumn(name, "identifier", np.zeros(len(series)))
    series = _plain(series, name, where)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _dates(series, name, "")
    if pd.api.types.is_numeric_dtype(series.dtype):
        return _numbers(series.to_numpy(dtype=np.float64, na_value=np.nan), name)
    return _words(series, name, where, is_label)


def _plain(series: pd.Series, name: str, where: str) -> pd.Series:
    """Numbers, dates or text in pandas' basic types, from whatever type a file or caller used."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.dtype.categories.dtype)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return series / pd.Timedelta(days=1)
    if series.dtype != object:
        if pd.api.types.is_complex_dtype(series.dtype):
            raise BadInput(
                f"{where}: column '{name}' contains complex numbers; split them into real and imaginary columns"
            )
        return series
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("date", "datetime", "datetime64"):
        return pd.to_datetime(series, utc=True)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "boolean"):
        try:
            return series.astype("float64")
        except OverflowError as error:
            raise BadInput(f"{where}: column '{name}' contains numbers beyond 1e308; put it under 'ignore'") from error
    if kind in ("string", "empty", "mixed-integer") or series.dropna().map(_is_word).all():
        return series.where(series.isna(), series.astype(str))
    raise BadInput(
        f"{where}: column '{name}' contains cells that are not numbers, text or dates; put it under 'ignore'"
    )


def _is_word(cell: object) -> bool:
    return bool(np.isscalar(cell)) and not isinstance(cell, bytes)


def _numbers(values: FloatArray, name: str, remark: str = "", marked: int = 0) -> RecognisedColumn:
    """A column of numbers. Infinite cells are missing, and so are those `marked` in words; the remark counts both."""
    infinite = tuple(np.flatnonzero(np.isinf(values)).tolist())
    remarks = [remark] if remark else []
    if marked:
        remarks.append(_marked(marked))
    if infinite:
        values = np.where(np.isinf(values), np.nan, values)
        verb = "is" if len(infinite) == 1 else "are"
        remarks.append(
            f"{count(len(infinite), 'cell')} {verb} infinite or too large for a number and counted as missing"
        )
    return RecognisedColumn(
        name, "binary" if two_valued(values) else "number", values, (), "; ".join(remarks), infinite=infinite
    )


def _marked(cells: int) -> str:
    verb = "is" if cells == 1 else "are"
    return f"{count(cells, 'cell')} {verb} marked (such as nan, NA or ?) and counted as missing"


def two_valued(values: FloatArray) -> bool:
    present = values[~np.isnan(values)]
    if not len(present):
        return False
    low, high = present.min(), present.max()
    return bool(low < high and np.all((present == low) | (present == high)))


def _words(series: pd.Series, name: str, where: str, is_label: bool) -> RecognisedColumn:
    """A text column: numbers or dates stored as text, categories, or free text."""
    codes, raw = pd.factorize(series)
    written = [str(word).strip() for word in raw]
    nan = int(np.isin(codes, [i for i, word in enumerate(written) if word.lower() == "nan"]).sum())
    words, codes = _merged(codes, written)
    if not words:
        return RecognisedColumn(name, "number", np.full(len(series), np.nan))
    numbers = _numbers_in_text(codes, words, name, where, is_label, nan)
    if numbers is not None:
        return numbers
    dates = _dates_in_text(codes, words, name)
    if dates is not None:
        return dates
    values = np.where(codes < 0, np.nan, codes.astype(np.float64))
    kind = _kind_of_words(len(words), int(np.sum(codes >= 0)))
    return RecognisedColumn(name, kind, values, words, _marked(nan) if nan else "")


def _merged(codes: IntArray, raw: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Distinct words in sorted order and codes into them; -1 for a missing cell (empty, blank or NaN)."""
    words = tuple(sorted({word for word in raw if word and word.lower() != "nan"}))
    place = {word: i for i, word in enumerate(words)}
    renamed = np.array([place.get(word, -1) for word in raw] + [-1], dtype=np.int64)
    return words, renamed[codes]  # a code of -1 finds the last entry, which is -1


def _kind_of_words(distinct: int, rows: int) -> str:
    if distinct == 2:
        return "binary"
    key_like = rows >= SMALL_TABLE_ROWS and distinct >= DISTINCT * rows
    return "category" if distinct <= most_words(rows) and not key_like else "text"


def most_words(rows: int) -> int:
    return max(FEW_DISTINCT, min(MOST_CATEGORIES, int(SHARE * rows)))


def _numbers_in_text(
    codes: IntArray, words: Sequence[str], name: str, where: str, is_label: bool, nan: int
) -> RecognisedColumn | None:
    """Numbers stored as text; numbers mixed with words are an error for the owner to fix."""
    parsed = np.array([_number(word) for word in words] + [np.nan])
    gaps = np.array([word.lower() in _NO_NUMBER for word in words] + [True])
    cells = parsed[codes]
    strange = np.isnan(cells) & ~gaps[codes]
    numeric = int(np.sum(~np.isnan(cells)))
    marked = nan + int(np.sum(gaps[:-1][codes[codes >= 0]]))
    if numeric and not strange.any():
        return _numbers(cells, name, "read as numbers stored as text", marked)
    spelt = [word for word, gap in zip(words, gaps, strict=False) if not gap]
    if any("," in word for word in spelt) and all(map(_WITH_COMMA.fullmatch, spelt)):
        if all(_THOUSANDS.fullmatch(word) for word in spelt if "," in word):
            raise BadInput(
                f"{where}: column '{name}' writes numbers with commas before three digits, which may be decimals or "
                "thousands; write them with a decimal point or without commas"
            )
        # A point in such a column parts thousands.
        pointed = np.array([_number(word.replace(".", "").replace(",", ".")) for word in words] + [np.nan])
        return _numbers(pointed[codes], name, "read as numbers with decimal commas", marked)
    if is_label:
        return None
    if numeric and numeric >= MOSTLY * (numeric + strange.sum()):
        raise BadInput(
            f"{where}: column '{name}' is numeric, but {count(int(strange.sum()), 'cell')} cannot be read as a number, "
            f"the first in row {int(np.argmax(strange)) + 1:,}; fix the cells or put the column under 'ignore'"
        )
    return None


def _number(word: str) -> float:
    if _NUMBER.fullmatch(word):
        return float(word)
    return float(word) if _INFINITE.fullmatch(word) else np.nan


def _dates_in_text(codes: IntArray, words: Sequence[str], name: str) -> RecognisedColumn | None:
    """Text in which every value is a date of the same format, except for markers of missing ones."""
    told = [i for i, word in enumerate(words) if word.lower() not in _NO_NUMBER]
    real = [words[i] for i in told]
    if not real or not any(character.isdigit() for character in real[0]):
        return None
    listed = pd.Series(real, dtype="str", index=told)
    for form in (*(["ISO8601"] if all(map(_ISO_DATE.fullmatch, real)) else []), *_DATE_FORMATS):
        parse = _parser(form)
        if parse(listed[:1]).isna().any():
            continue
        dates = parse(listed)
        if not dates.isna().any():
            spread = dates.reindex([*range(len(words)), -1])  # a code of -1 finds the last entry, which is none
            return _dates(spread.iloc[codes], name, f"read as dates written as {_spelt(form)}")
    return None


def _parser(form: str) -> Callable[[pd.Series], pd.Series]:
    return lambda texts: pd.to_datetime(texts, format=form, errors="coerce", utc=True)


def _spelt(form: str) -> str:
    if form == "ISO8601":
        return "year-month-day"
    words = {"%Y": "year", "%m": "month", "%d": "day", "%b": "month", "%B": "month", " %H:%M": "", ":%S": ""}
    for code, word in words.items():
        form = form.replace(code, word)
    return form


def _dates(series: pd.Series, name: str, remark: str) -> RecognisedColumn:
    """Days since the column's earliest date."""
    days = (series - series.min()) / pd.Timedelta(days=1)
    return RecognisedColumn(name, "date", days.to_numpy(dtype=np.float64, na_value=np.nan), (), remark)


def count(number: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
