"""Read files into frames: CSV (plain, gzipped, tab separated) and Parquet. Errors name the place, never a value.

What pandas accepts silently is checked here first: rows that are too short, duplicate column names, bytes that are not
UTF-8. Only an empty cell is missing; `?`, `NA` and `unknown` stay text, and `prepare` decides about them.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
from numpy.typing import NDArray

from plumbob import memory
from plumbob.data import parquet, texts
from plumbob.data.parquet import MOST_COLUMNS
from plumbob.errors import BadInput, suggest
from plumbob.files import parts_of, shown, users_paths

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = "read a part of its rows ('sample' in the plan's data, --sample of init) or use a larger machine"
FRAME = ".frame"  # ends the name under which a plan speaks of a table that was given in memory
ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def read_frame(path: Path | str, *, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table. Columns named in `text` keep their cells as written, so that ids such as `007` stay intact."""
    path, ending = Path(path), ending_of(Path(path))
    memory.check(f"'{path}'", memory_need(path), SAMPLE)
    frame = _read_parquet(path) if ending == ".parquet" else _read_csv(path, _read_bytes(path, ending), text)
    if len(frame) == 0:
        raise BadInput(f"'{path}' has no rows below its header")
    _check_header(path, frame)
    return frame


def _check_header(path: Path, frame: pd.DataFrame) -> None:
    """Refuse column names that are values: messages name columns, so a row of cells must not be taken for a header."""
    for place, name in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        if isinstance(cells.dtype, np.dtypes.ObjectDType):  # of Parquet, where a cell may be a list
            same = any(isinstance(cell, str) and cell == name for cell in cells)
        else:
            same = isinstance(cells.dtype, pd.StringDtype) and bool((cells == name).any())
        if same:
            raise BadInput(
                f"'{path}': the name of column {place + 1} is also a value in it, so the header row is missing or "
                "repeated; put one header row at the top"
            )


def ending_of(path: Path) -> str:
    """The kind of file, once it is known to exist."""
    ending = next((end for end in sorted(ENDINGS, key=len, reverse=True) if path.name.lower().endswith(end)), None)
    with users_paths():
        there = path.exists()
    if not there and path.name.endswith(FRAME):
        raise BadInput(
            f"'{shown(path)}' stands for a DataFrame, which is kept nowhere; call plumbob.audit with it again, or name a file"
        )
    if not there:
        raise BadInput(f"no file '{shown(path)}'{_neighbour(path)}")
    if path.is_dir():
        raise BadInput(f"'{path}' is a folder; name a file that ends in {', '.join(ENDINGS)}")
    if ending is None:
        raise BadInput(f"'{path}' has an unknown format; expected a file that ends in {', '.join(ENDINGS)}")
    return ending


def memory_need(path: Path) -> int:
    """Bytes of memory needed to read the file. What is packed is counted, until it is more than there is room for."""
    ending = ending_of(path)
    return parquet.need(path) if ending == ".parquet" else texts.need(path, packed=ending.endswith(".gz"))


def frame_of_text(path: Path, data: bytes, text: Sequence[str] = ()) -> pd.DataFrame:
    """A table from text in memory; `path` is for messages."""
    frame = _read_csv(path, texts.checked(path, [data]), text)
    _check_header(path, frame)
    return frame


def _neighbour(path: Path) -> str:
    """A file of a similar name in the same folder, in case of a typing error."""
    if not path.parent.is_dir():
        return f"; the folder '{path.parent}' does not exist"
    hint = suggest(path.name, [entry.name for entry in path.parent.iterdir()], cutoff=0.75)
    return hint if "did you mean" in hint else ""


def _read_bytes(path: Path, ending: str) -> bytes:
    with texts.opened(path, packed=ending.endswith(".gz")) as (text, _):
        return texts.checked(path, parts_of(text))


def _read_csv(path: Path, data: bytes, text: Sequence[str]) -> pd.DataFrame:
    first = data[: max(data.find(b"\n"), 0) or len(data)]
    if max(map(first.count, map(str.encode, SEPARATORS))) >= MOST_COLUMNS:
        raise BadInput(f"'{path}' has more than {MOST_COLUMNS:,} columns, the most that a table may have")
    separator = sniff(first.decode(), tab_first=path.name.lower().endswith((".tsv", ".tsv.gz")))
    header = [name.strip() for name in next(_rows(data, separator))]
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise BadInput(f"'{path}' has a duplicate column '{twice[0]}'; column names must be unique")
    _check_widths(path, data, separator, len(header))
    try:
        return pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            header=0,
            names=header,
            index_col=False,
            dtype={name: "str" for name in text if name in header},
            keep_default_na=False,
            na_values=[""],
            skipinitialspace=True,
            skip_blank_lines=len(header) > 1,  # in a file of one column a blank line is a missing value
            low_memory=False,  # one type for a whole column, whatever the size of the file
            float_precision="round_trip",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise BadInput(f"'{path}' cannot be read as a table separated by {_spelt(separator)}") from error


def sniff(header: str, *, tab_first: bool = False) -> str:
    """The separator that splits the header row into the most names; a comma if there is only one name.

    >>> sniff('age;"job, if any";y')
    ';'
    """
    order = ("\t", *SEPARATORS) if tab_first else SEPARATORS
    bare = re.sub(r'"[^"]*"', "", header)
    best = max(order, key=bare.count)
    return best if best in bare else ","


def _rows(data: bytes, separator: str) -> Iterator[list[str]]:
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(stream, delimiter=separator, skipinitialspace=True)


def _check_widths(path: Path, data: bytes, separator: str, width: int) -> None:
    """Check that every row is as wide as the header; pandas would silently fill short rows with missing values."""
    widths = _quoted_widths(path, data, separator) if b'"' in data else _plain_widths(data, separator)
    wrong = np.flatnonzero((widths != width) & (widths > 0))
    if len(wrong):
        ragged = "1 row differs" if len(wrong) == 1 else f"{len(wrong):,} rows differ"
        raise BadInput(
            f"'{path}': {ragged} in width from the header of {width} columns, "
            f"the first is row {wrong[0]} with {widths[wrong[0]]}"
        )


def _plain_widths(data: bytes, separator: str) -> NDArray[np.int64]:
    """Cells in each line of unquoted text, counted in one fast pass; 0 for a blank line."""
    cells = np.frombuffer(data, dtype=np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(cells == ord("\n")) + 1])
    ends = np.append(starts[1:] - 1, len(cells))
    counts = np.add.reduceat(cells == ord(separator), starts, dtype=np.int64)
    return np.where(ends == starts, 0, counts + 1)


def _quoted_widths(path: Path, data: bytes, separator: str) -> NDArray[np.int64]:
    """The same for text with quoted cells, which may contain separators and line breaks."""
    try:
        return np.array([len(row) for row in _rows(data, separator)], dtype=np.int64)
    except csv.Error as error:
        raise BadInput(f"'{path}' cannot be read as a table separated by {_spelt(separator)}") from error


def _spelt(separator: str) -> str:
    return {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[separator]


def _read_parquet(path: Path) -> pd.DataFrame:
    """Parquet by pyarrow; a named index becomes a column again."""
    frame = parquet.read(path)
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index() if named else frame.reset_index(drop=True)
    frame.columns = pd.Index([str(name) for name in frame.columns])
    for place, kind in enumerate(frame.dtypes, 1):
        if isinstance(kind, pd.StringDtype):
            try:
                pyarrow.array(frame.iloc[:, place - 1].array).validate(full=True)
            except pyarrow.ArrowInvalid as error:
                raise BadInput(f"'{path}': the text of column {place} is not UTF-8; write the file again") from error
    return frame
