"""What the parties of a recorded run hold, as a federation: columns scaled to [0, 1] and a label of class numbers.

Only the sealed truth is scaled. Messages stay as they were: an embedding of raw, standardised or scaled columns spans
the same, up to a constant, and a column of two values is the same column on any scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from plumbob.bundle import Array
from plumbob.data.prepare import Rules, prepare
from plumbob.data.recognise import FEW_DISTINCT
from plumbob.errors import BadInput, suggest
from plumbob.federation import Dropped, Federation, IntArray, Party


def array_of(values: Any) -> Array:
    """Numbers from an array, a tensor on any device, a series or a list."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def frame_of(values: Any, where: str) -> pd.DataFrame:
    """A party's table; columns without names are numbered from 1."""
    if isinstance(values, pd.DataFrame):
        return values.reset_index(drop=True)
    cells = array_of(values)
    if cells.ndim == 0 or cells.dtype.kind not in "biuf":
        raise BadInput(f"{where}: expected a table of numbers or a DataFrame, got {_kind(values, cells)}")
    flat = cells.reshape(len(cells), -1)
    return pd.DataFrame(flat, columns=[f"column_{i + 1}" for i in range(flat.shape[1])])


def _kind(values: object, cells: Array) -> str:
    return "one value" if cells.ndim == 0 else f"{type(values).__name__} of {cells.dtype}"


def federation_of(active: str, columns: Mapping[str, Any], label: Any, rules: Rules | None = None) -> Federation:
    """The parties in the order given, the active one first if it has no columns."""
    rules = rules or Rules()
    if rules.missing == "drop_rows":
        raise BadInput("rule 'missing': rows of a recorded run cannot be dropped; fill the cells or drop the column")
    codes, classes = classes_of(label)
    parties: list[Party] = []
    notes: list[str] = []
    dropped: list[Dropped] = []
    if active not in columns:
        parties.append(Party(active, (), np.zeros((len(codes), 0))))
    for name, values in columns.items():
        table = prepare(frame_of(values, f"party '{name}'"), name=name, rules=rules, where=f"party '{name}'")
        parties.append(Party.holding(name, table))
        notes += table.notes
        dropped += [replace(one, party=name) for one in table.dropped]
    return Federation(tuple(parties), active, codes, classes, tuple(notes), tuple(dropped))


def classes_of(label: Any) -> tuple[IntArray, tuple[str, ...]]:
    """Class numbers and names.

    >>> classes_of(["yes", "no", "yes"])
    (array([1, 0, 1]), ('no', 'yes'))
    """
    values = array_of(label)
    values = values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        raise BadInput(f"label: expected one class per row, got shape {values.shape}")
    if pd.isna(values).any():
        raise BadInput(f"label: {int(pd.isna(values).sum()):,} rows have no class")
    names, codes = np.unique(values if values.dtype.kind in "biuf" else values.astype(str), return_inverse=True)
    if len(names) < 2:
        raise BadInput("label: it has only one value; a model needs at least two classes")
    if len(names) > max(FEW_DISTINCT, len(values) // 20):
        raise BadInput(
            f"label: {len(names):,} distinct values are too many for classes; bin them, for example into quartiles"
        )
    return codes.astype(np.int64), tuple(_class_name(name) for name in names)


def _class_name(value: Any) -> str:
    return (
        str(int(value)) if isinstance(value, np.floating) and np.isfinite(value) and value == int(value) else str(value)
    )


def checked_parties(active: str, passive: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Check that every passive party, and no other, has a module and columns."""
    if not passive:
        raise BadInput("passive: expected at least one party and its module, got none")
    if active in passive:
        raise BadInput(f"'{active}' is named as both the active and a passive party; the active party sends no outputs")
    for name in passive:
        if name not in columns:
            raise BadInput(f"party '{name}' has a module but no columns{suggest(name, list(columns))}")
    for name in columns:
        if name != active and name not in passive:
            raise BadInput(f"party '{name}' has columns but no module{suggest(name, list(passive))}")
