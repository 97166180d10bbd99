"""The label of a table: class indices and class names, from text, few numbers, or many numbers binned into classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from plumbob.data.recognise import FEW_DISTINCT, RecognisedColumn, count, recognise
from plumbob.errors import BadInput


def label_of(
    series: pd.Series, name: str, bins: int | None, where: str, note: Callable[[str], None]
) -> RecognisedColumn:
    """The label as class indices (values) and class names (words)."""
    cells = recognise(series, name, where, is_label=True)
    cells.refuse_infinite(where)
    gaps = int(cells.missing.sum())
    if gaps:
        raise BadInput(f"{where}: label '{name}' has {count(gaps, 'missing value')}; every row needs a class")
    if bins is not None:
        return _binned(cells, bins, where, note)
    distinct = len(np.unique(cells.values))
    if cells.kind == "date" or cells.kind == "text" or (not cells.words and distinct > FEW_DISTINCT):
        kind = {"date": "dates", "text": "distinct texts"}.get(cells.kind, "distinct numbers")
        mend = "bin it: set 'label_bins'" if kind == "distinct numbers" else "name another label"
        raise BadInput(f"{where}: label '{name}' has {distinct:,} {kind}, too many for classes; {mend}")
    if pd.api.types.is_bool_dtype(series.dtype):
        cells = replace(cells, words=("False", "True"))
    return used_classes(cells, where)


def used_classes(cells: RecognisedColumn, where: str) -> RecognisedColumn:
    """Renumber the classes that occur; at least two must."""
    used, codes = np.unique(cells.values, return_inverse=True)
    if len(used) < 2:
        raise BadInput(f"{where}: label '{cells.name}' has only one value; a model needs at least two classes")
    words = tuple(cells.words[int(i)] for i in used) if cells.words else tuple(_class_name(value) for value in used)
    return replace(cells, values=codes.astype(np.float64), words=words)


def _class_name(value: float) -> str:
    return str(int(value)) if value == int(value) else str(float(value))


def _binned(cells: RecognisedColumn, bins: int, where: str, note: Callable[[str], None]) -> RecognisedColumn:
    """Classes of about equal size, `q1` the lowest; a value on a boundary belongs to the lower class."""
    if cells.words or cells.kind == "date":
        raise BadInput(f"{where}: label '{cells.name}' is not numeric, so it cannot be split into {bins} bins")
    if bins < 2:
        raise BadInput(f"{where}: label_bins: expected 2 or more, got {bins}")
    edges = np.quantile(cells.values, np.arange(1, bins) / bins)
    codes = np.searchsorted(edges, cells.values, side="left")
    if len(np.unique(codes)) < bins:
        raise BadInput(f"{where}: label '{cells.name}' has too few distinct values for {bins} bins; ask for fewer")
    note(f"label '{cells.name}' split into {bins} classes by quantiles")
    return replace(cells, values=codes.astype(np.float64), words=tuple(f"q{i + 1}" for i in range(bins)))
