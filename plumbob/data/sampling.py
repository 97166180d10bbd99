"""A sample of tables that may be too large to load: the same people from every party, and only these in memory.

A hash of the id and the seed selects the rows, so that all parties and all runs take the same people.
Two passes: one over the ids, keeping 8 bytes each, then one over the rows, keeping the sample. Rows with the same id
stay together. Without an id column (one file for all parties) the row number is used.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, islice
from itertools import count as counted
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbob import memory
from plumbob.data import parquet, texts
from plumbob.data.align import canonical
from plumbob.data.files import SAMPLE, ending_of, frame_of_text, memory_need, read_frame, sniff
from plumbob.errors import BadInput, suggest

Hashes = NDArray[np.uint64]
Mask = NDArray[np.bool_]
ROWS_SAMPLED_AT_ONCE = 20_000  # rows looked at together
LONGEST_LINE = 2**24  # characters of a row


def read_sample(
    paths: Mapping[str, Path], *, rows: int, seed: int, id_column: str | None = None
) -> tuple[dict[str, pd.DataFrame], tuple[str, ...]]:
    """From every file the rows of that many shared people, and a note; all shared people if there are fewer."""
    every = {name: _hashes(path, id_column, seed) for name, path in paths.items()}
    shared = reduce(np.intersect1d, [np.unique(found) for found in every.values()])
    told = len(shared) > rows
    notes = (f"{rows:,} of {len(shared):,} shared rows taken at random ('sample')",) if told else ()
    chosen = shared[:rows]  # the smallest hashes, which is a random choice
    frames = {}
    for name, path in paths.items():
        text = [] if id_column is None else [id_column]
        need, wanted = memory_need(path), np.isin(every[name], chosen)
        if not told and need <= memory.available():
            frames[name] = read_frame(path, text=text)
            continue
        memory.check(f"'{path}'", need * wanted.mean(), SAMPLE)
        read = _sampled_parquet if ending_of(path) == ".parquet" else _sampled_text
        frames[name] = read(path, wanted, text)
    return frames, notes


def _hashes(path: Path, id_column: str | None, seed: int) -> Hashes:
    """A hash for every row of a file; rows with the same id have the same hash."""
    ids = _parquet_ids if ending_of(path) == ".parquet" else _text_ids
    memory.check(f"to choose a sample, '{path}'", _need_of_rows(path))
    found = [_hashed(batch, seed) for batch in ids(path, id_column)]
    if not found:
        raise BadInput(f"'{path}' has no rows below its header")
    return np.concatenate(found)


def _need_of_rows(path: Path) -> float:
    """Bytes of memory for a hash of every row."""
    ending = ending_of(path)
    if ending == ".parquet":
        return texts.BYTES_PER_ROW * parquet.rows(path)
    return texts.need(path, packed=ending.endswith(".gz"), sampled=True)


def _hashed(ids: Sequence[str], seed: int) -> Hashes:
    key = str(seed).encode()
    digests = b"".join(hashlib.blake2b(one.encode(), digest_size=8, key=key).digest() for one in ids)
    return np.frombuffer(digests, dtype=np.uint64)


def _place(path: Path, header: Sequence[str], id_column: str) -> int:
    if id_column not in header:
        raise BadInput(f"'{path}' has no id column '{id_column}'{suggest(id_column, list(header))}")
    return header.index(id_column)


# text


def _text_rows(path: Path) -> Iterator[list[str]]:
    """The header, then the rows, one at a time."""
    try:
        with (
            texts.opened(path, packed=ending_of(path).endswith(".gz")) as (raw, _),
            io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file,
        ):
            lines = _lines(path, file)
            first = next((line for line in lines if line.strip()), "")
            separator = sniff(first, tab_first=".tsv" in path.name.lower())
            yield [separator]
            rows = csv.reader(chain([first], lines), delimiter=separator, skipinitialspace=True)
            header = next(rows, [])
            yield [name.strip() for name in header]
            number = 0
            for row in rows:
                number += bool(row)
                if row and len(row) != len(header):
                    raise BadInput(
                        f"'{path}': row {number:,} has {len(row)} columns, the header has {len(header)}; fix the row"
                    )
                if row:
                    yield row
    except UnicodeDecodeError as error:
        raise BadInput(f"'{path}' is not UTF-8 text; save it as UTF-8") from error
    except csv.Error as error:
        raise BadInput(f"'{path}' cannot be read as a table; copy it again or save it as CSV") from error


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    """A text line by line; one that is longer than any row would fill the memory before it ends."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"'{path}' has a line of more than {LONGEST_LINE:,} characters, which is no row of a table")
        yield line


def _text_ids(path: Path, id_column: str | None) -> Iterator[list[str]]:
    rows = _text_rows(path)
    _, header = next(rows), next(rows)
    place = None if id_column is None else _place(path, header, id_column)
    number = counted()
    while batch := list(islice(rows, ROWS_SAMPLED_AT_ONCE)):
        ids = [str(next(number)) for _ in batch] if place is None else [row[place] for row in batch]
        yield ids if place is None else canonical(pd.Series(ids, dtype=object))


def _sampled_text(path: Path, wanted: Mask, text: Sequence[str]) -> pd.DataFrame:
    rows = _text_rows(path)
    (separator,), header = next(rows), next(rows)
    kept = io.StringIO()
    writer = csv.writer(kept, delimiter=separator, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(row for row, take in zip(rows, wanted, strict=True) if take)
    return frame_of_text(path, kept.getvalue().encode(), text)


# Parquet


def _parquet_ids(path: Path, id_column: str | None) -> Iterator[list[str]]:
    number = counted()
    if id_column is not None:
        _place(path, parquet.header(path), id_column)
    for frame in parquet.batches(path, ROWS_SAMPLED_AT_ONCE, None if id_column is None else [id_column]):
        yield [str(next(number)) for _ in range(len(frame))] if id_column is None else canonical(frame[id_column])


def _sampled_parquet(path: Path, wanted: Mask, text: Sequence[str]) -> pd.DataFrame:
    kept, begin = [], 0
    for frame in parquet.batches(path, ROWS_SAMPLED_AT_ONCE, None):
        kept.append(frame.loc[wanted[begin : begin + len(frame)]])
        begin += len(frame)
    whole = pd.concat(kept, ignore_index=True)
    return whole.set_axis([str(name) for name in whole.columns], axis=1)
