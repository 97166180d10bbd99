"""Align the rows of all parties, by private set intersection or by revealing the ids.

By `psi` the active party learns which of its rows each other party shares and sends them the list; the others learn
the shared ids and the number of the active party's ids. By `ids` the others reveal all their ids to the active party. All
messages pass through `send`, so that a transcript records them.

The active party asks the second passive party only for the ids that the first shares, and so on: no party learns more
about unused rows than the intersection with the parties before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from plumbob.crypto.psi import Send, intersect, to_bytes
from plumbob.data.matched import Matched
from plumbob.data.prepare import Rules
from plumbob.errors import BadInput, suggest
from plumbob.federation import ByteArray

HOW = ("psi", "ids")
FEWEST_SHARED_ROWS = 20  # shared rows below which no model and no audit means anything

_WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0+")


@dataclass(frozen=True)
class Aligned:
    """The parties' shared rows, sorted by id, without the id column; notes on what was done; and what that told whom."""

    frames: dict[str, pd.DataFrame]
    notes: tuple[str, ...]
    matched: tuple[Matched, ...]


def pass_on(sender: str, receiver: str, name: str, payload: ByteArray) -> ByteArray:
    """The simplest channel: the receiver gets what was sent, and nothing is recorded."""
    return payload


def align(
    frames: Mapping[str, pd.DataFrame],
    *,
    id_column: str | Mapping[str, str],
    active: str,
    how: str = "psi",
    rules: Rules | None = None,
    send: Send = pass_on,
) -> Aligned:
    """Match the rows of all parties; every message goes through `send`."""
    _check(frames, active, how)
    columns = {party: id_column if isinstance(id_column, str) else id_column.get(party, "") for party in frames}
    notes: list[str] = []
    unique = {
        party: _unique(party, _ids(party, frame, columns[party]), (rules or Rules()).duplicates, notes)
        for party, frame in frames.items()
    }
    left, told = _shared(unique, columns, active, how, send)
    shared, asked = sorted(left), {one.about[0]: one.rows for one in told}
    aligned = {}
    for party, frame in frames.items():
        ids = shared
        if party != active:
            ids = _unpack(send(active, party, "shared ids", _pack(shared)))
            others = (active, *(other for other in frames if other not in (active, party)))
            seen = asked[party] if how == "psi" else len(shared)
            told.append(Matched(party, others, len(unique[party]), len(shared), seen))
        aligned[party] = _take(frame, unique[party], ids, columns[party])
        notes.append(f"party '{party}': {len(shared):,} of {len(frame):,} rows are shared by all, sorted by id")
    return Aligned(aligned, tuple(notes), tuple(told))


def canonical(ids: pd.Series) -> list[str]:
    """Ids as text that compares equal across files: 7, 7.0, "7" and " 7 " are the same id; "" is a missing one.

    >>> canonical(pd.Series([7.0, None])), canonical(pd.Series([" 7", "007"]))
    (['7', ''], ['7', '007'])
    """
    return [
        "" if missing else _canonical(cell) for cell, missing in zip(ids.tolist(), ids.isna().tolist(), strict=True)
    ]


def _canonical(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    whole = _WHOLE_NUMBER.fullmatch(text)
    return whole[1] if whole else text


def _check(frames: Mapping[str, pd.DataFrame], active: str, how: str) -> None:
    if how not in HOW:
        raise BadInput(f"alignment: expected {' or '.join(HOW)}, got '{how}'")
    if len(frames) < 2:
        raise BadInput(f"alignment needs at least two parties, got {len(frames)}")
    if active not in frames:
        raise BadInput(f"the active party '{active}' is not among the parties{suggest(active, list(frames))}")


def _ids(party: str, frame: pd.DataFrame, column: str) -> list[str]:
    """A party's ids in row order; every row must have one."""
    known = [str(name) for name in frame.columns]
    if not column:
        raise BadInput(f"party '{party}': no id column was named; name one of its columns")
    if column not in known:
        raise BadInput(f"party '{party}': no id column '{column}'{suggest(column, known)}")
    ids = canonical(frame.iloc[:, known.index(column)])
    missing = [row for row, one in enumerate(ids, start=1) if not one]
    if missing:
        raise BadInput(
            f"party '{party}': id column '{column}' has {len(missing):,} missing values, "
            f"the first in row {missing[0]:,}; every row needs an id"
        )
    return ids


def _unique(party: str, ids: Sequence[str], rule: str, notes: list[str]) -> dict[str, int]:
    """Each id with the row kept for it."""
    rows = {one: row for row, one in enumerate(ids)}  # a later row replaces an earlier one
    doubled = len(ids) - len(rows)
    if not doubled:
        return rows
    if rule == "refuse":
        raise BadInput(f"party '{party}': {doubled:,} rows have duplicate ids; set 'duplicates' to first or last")
    if rule == "first":
        rows = {one: len(ids) - 1 - row for row, one in enumerate(reversed(ids))}
    notes.append(
        f"party '{party}': {doubled:,} rows with duplicate ids were dropped; the {rule} row of each id was kept"
    )
    return rows


def _shared(
    unique: Mapping[str, Mapping[str, int]], columns: Mapping[str, str], active: str, how: str, send: Send
) -> tuple[list[str], list[Matched]]:
    """Ids that every party has, as the active party learns them, and what it learns on the way."""
    shared, asked = list(unique[active]), [active]
    told: list[Matched] = []
    for party, theirs in unique.items():
        if party == active:
            continue
        before = shared
        if how == "psi":
            index = intersect(send, active, shared, party, list(theirs))
            shared = [shared[i] for i in index]
        else:
            shown = set(_unpack(send(party, active, "ids", _pack(list(theirs)))))
            shared = [one for one in shared if one in shown]
        asked.append(party)
        _check_overlap(len(shared), before, theirs, asked, columns)
        told.append(Matched(active, (party,), len(before), len(shared), len(theirs), how == "ids"))
    return shared, told


def _check_overlap(
    shared: int, ours: Sequence[str], theirs: Iterable[str], asked: Sequence[str], columns: Mapping[str, str]
) -> None:
    """Refuse too small an overlap and name the likely reason; both files are local, so nothing is revealed."""
    if shared >= FEWEST_SHARED_ROWS:
        return
    theirs = list(theirs)
    names = f"{', '.join(repr(party) for party in asked[:-1])} and {asked[-1]!r}"
    kinds = sorted({columns[party] for party in asked})
    check = f"check the id column{'s' if len(kinds) > 1 else ''} {' and '.join(repr(kind) for kind in kinds)}"
    if len({one.lstrip("0") for one in ours} & {one.lstrip("0") for one in theirs}) >= FEWEST_SHARED_ROWS:
        check += "; some files have leading zeros in their ids, others do not"
    counts = f"{shared:,} of {len(ours):,} and {len(theirs):,} rows shared"
    if shared == 0:
        raise BadInput(f"ids of {names} do not overlap: {counts}; {check}")
    raise BadInput(f"ids of {names} overlap too little: {counts}, expected at least {FEWEST_SHARED_ROWS}; {check}")


def _take(frame: pd.DataFrame, rows: Mapping[str, int], shared: Sequence[str], column: str) -> pd.DataFrame:
    index = np.array([rows[one] for one in shared], dtype=np.int64)
    kept = [i for i, name in enumerate(frame.columns) if str(name) != column]
    return frame.iloc[index, kept].reset_index(drop=True)


def _pack(ids: Sequence[str]) -> ByteArray:
    return to_bytes(json.dumps(list(ids), ensure_ascii=False).encode())


def _unpack(payload: ByteArray) -> list[str]:
    return [str(one) for one in json.loads(np.asarray(payload, dtype=np.uint8).tobytes())]
