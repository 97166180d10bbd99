"""Parquet files, read without trusting what they say of themselves.

A few megabytes of Parquet can stand for terabytes: runs and dictionaries repeat values, pages are compressed. So before columns
are read as a whole,
    1  the sizes in the metadata are compared with the headers of the pages, which are what a reader allocates by
    2  rows x columns of the metadata give the need of numbers
    3  texts are read batch by batch as codes into a dictionary, and their lengths added up
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from plumbob import memory
from plumbob.errors import BadInput
from plumbob.files import open_regular, shown

BYTES_PER_CELL = 12.0  # of memory for a cell, at the peak of reading and preparing
BYTES_PER_STORED_BYTE = 4.0  # for a byte of columns as they are stored before compression
BYTES_PER_TEXT_BYTE = 5.0  # for a byte of texts, once each cell has its own
MOST_COLUMNS = 100_000  # of a table
BYTES_PER_ID = 150.0  # for a row's id as text, while rows are matched
_MOST_PAGES = 300_000
_ROWS_AT_ONCE = 4_096  # of texts, while their lengths are added up
_HEADER, _LARGEST_HEADER = 2**12, 2**24  # bytes in which the header of a page usually ends, and always
_CODED = {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"}  # what can be read as codes
_TEXT, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[pyarrow.parquet.ParquetFile]:
    """An open file; what the library says of a broken one becomes one sentence."""
    with open_regular(path) as file:
        try:
            yield pyarrow.parquet.ParquetFile(file, **options)
        except BadInput:
            raise
        except Exception as error:  # pyarrow's own errors, of many kinds, name offsets and values
            raise _broken(path) from error


def _broken(path: Path, why: str = "") -> BadInput:
    return BadInput(f"'{shown(path)}' is not a readable Parquet file{why}")


def need(path: Path) -> int:
    """Bytes of memory to read the file as a table; where that is more than is free, they are not counted to the end."""
    room = memory.available()
    _check_chunks(path)
    with opened(path) as stored:
        found = _need_of_metadata(path, stored.metadata)
        if found <= room:
            _check_pages(path, stored.metadata)
        texts = _texts(stored.metadata)
    return int(found if found > room or not texts.all else found + _texts_need(path, texts, room - found))


def _check_chunks(path: Path) -> None:
    """Refuse metadata that contradict themselves, before anyone asks for those of one column: there the library's error would
    end the process. A reader looks at all of them, and of batches of no rows it reads no page."""
    with opened(path, buffer_size=_HEADER) as stored:
        columns = stored.metadata.num_columns
        if columns > MOST_COLUMNS:
            raise BadInput(f"'{shown(path)}' has {columns:,} columns; a table has at most {MOST_COLUMNS:,}")
        for i in range(stored.num_row_groups):
            next(stored.reader.iter_batches(0, [i], range(columns), use_threads=False), None)


def _need_of_metadata(path: Path, about: Any) -> float:
    """Bytes of memory for numbers and for what is stored; how long texts are, no metadata tell."""
    kinds = [about.schema.column(j) for j in range(about.num_columns)]
    found: float = BYTES_PER_ID * about.num_rows
    widths = [kind.length if kind.physical_type == _FIXED else 0 for kind in kinds]
    for i in range(about.num_row_groups):
        group = about.row_group(i)
        for j, width in enumerate(widths):
            chunk = group.column(j)
            values = max(chunk.num_values, group.num_rows)
            found += values * (BYTES_PER_CELL + BYTES_PER_STORED_BYTE * width)
            found += BYTES_PER_STORED_BYTE * chunk.total_uncompressed_size
    return float(found)


@dataclass(frozen=True)
class _Texts:
    """The columns of texts, and those of them that can be read as codes into a dictionary."""

    all: list[str]
    coded: list[str]


def _texts(about: Any, columns: list[str] | None = None) -> _Texts:
    kinds = [about.schema.column(j) for j in range(about.num_columns)]
    places = [j for j, kind in enumerate(kinds) if kind.physical_type == _TEXT]
    places = [j for j in places if columns is None or kinds[j].path.split(".")[0] in columns]
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    coded = [j for j in places if all(_CODED.issuperset(group.column(j).encodings) for group in groups)]
    return _Texts([kinds[j].path for j in places], [kinds[j].path for j in coded])


def _texts_need(path: Path, texts: _Texts, room: float) -> float:
    """Bytes of memory for texts once each cell has its own; counted until there is no room, and then extrapolated."""
    found, rows = 0.0, 0
    with opened(path, read_dictionary=texts.coded) as stored:
        for i in range(stored.num_row_groups):
            for batch in _small(stored, i, _ROWS_AT_ONCE, texts.all):
                found += BYTES_PER_TEXT_BYTE * sum(map(_length, batch.columns))
                rows += batch.num_rows
                if found > room:
                    return float(found * stored.metadata.num_rows / max(1, rows))
    return found


def _small(
    stored: pyarrow.parquet.ParquetFile, group: int, rows: int, texts: list[str]
) -> Iterator[pyarrow.RecordBatch]:
    """The texts of a row group in batches so small that they fit in memory even if each text is all that is stored."""
    about = stored.metadata.row_group(group)
    largest = max(about.column(j).total_uncompressed_size for j in range(about.num_columns))
    few = min(rows, max(16, 16 * memory.PART // max(1, largest)))
    yield from stored.iter_batches(few, row_groups=[group], columns=texts)


def _length(texts: pyarrow.Array) -> int:
    """Bytes of a column of texts, once each cell has its own."""
    kind = texts.type
    if pyarrow.types.is_dictionary(kind):
        lengths = pyarrow.compute.binary_length(texts.dictionary).cast(pyarrow.int64())
        return int(pyarrow.compute.sum(lengths.take(texts.indices)).as_py() or 0)
    if pyarrow.types.is_map(kind):
        return _length(texts.keys) + _length(texts.items)
    if pyarrow.types.is_nested(kind):
        return sum(map(_length, texts.flatten() if pyarrow.types.is_struct(kind) else [texts.flatten()]))
    return int(texts.nbytes)


def read(path: Path) -> pd.DataFrame:
    """The whole table; a named index becomes a column again."""
    with opened(path) as stored:
        return stored.read().to_pandas()


def header(path: Path) -> list[str]:
    """The names of the columns."""
    with opened(path) as stored:
        return [str(name) for name in stored.schema_arrow.names]


def rows(path: Path) -> int:
    """How many rows the file says it has."""
    with opened(path) as stored:
        return int(stored.metadata.num_rows)


def batches(path: Path, rows: int, columns: list[str] | None) -> Iterator[pd.DataFrame]:
    """The table in batches of so many rows, each of which must fit in memory."""
    room = memory.available()
    _check_chunks(path)
    with opened(path) as stored:
        _check_pages(path, stored.metadata)
        texts = _texts(stored.metadata, columns)
    with opened(path) as stored, opened(path, read_dictionary=texts.coded) as coded:
        for i in range(stored.num_row_groups):
            need = BYTES_PER_TEXT_BYTE * _largest_batch(coded, i, rows, texts.all)
            memory.check(f"a part of '{shown(path)}'", need, room=room)
            for batch in stored.iter_batches(rows, row_groups=[i], columns=columns):
                yield batch.to_pandas()


def _largest_batch(coded: pyarrow.parquet.ParquetFile, group: int, rows: int, texts: list[str]) -> int:
    """Bytes of texts in the largest batch of so many rows."""
    sizes: dict[int, int] = {0: 0}
    at = 0
    for batch in _small(coded, group, rows, texts) if texts else ():
        size = sum(map(_length, batch.columns))
        for place in {at // rows, max(at, at + batch.num_rows - 1) // rows}:
            sizes[place] = sizes.get(place, 0) + size
        at += batch.num_rows
    return max(sizes.values())


# Headers of pages, in Thrift's compact protocol: PageHeader(1: type, 2: uncompressed size, 3: compressed size, ...)


def _check_pages(path: Path, about: Any) -> None:
    """Refuse a file with pages larger than the metadata say: a reader allocates by the pages."""
    pages = 0
    with open_regular(path) as file:
        for i in range(about.num_row_groups):
            group = about.row_group(i)
            for chunk in map(group.column, range(group.num_columns)):
                starts = [chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else None]
                at = min(start for start in starts if start is not None)
                end, unpacked = at + chunk.total_compressed_size, 0
                while 0 <= at < end:
                    size, head, packed = _page(path, file, at)
                    unpacked, at, pages = unpacked + size + head, at + head + packed, pages + 1
                    if unpacked > max(chunk.total_uncompressed_size, chunk.total_compressed_size):
                        raise _broken(path, ": its pages are larger than its metadata say")
                    if pages > _MOST_PAGES:
                        raise BadInput(
                            f"'{shown(path)}' has more than {_MOST_PAGES:,} pages; write it with larger ones"
                        )


def _page(path: Path, file: BinaryIO, at: int) -> tuple[int, int, int]:
    """The unpacked size of the page at a place, the length of its header, and its packed size."""
    length = _HEADER
    while True:
        file.seek(at)
        head = io.BytesIO(file.read(length))
        try:
            found = _numbers(head)
        except EOFError:
            if len(head.getvalue()) == length < _LARGEST_HEADER:
                length *= 16
                continue
            found = {}
        sizes = [found.get(2, -1), found.get(3, -1)]
        if min(sizes) < 0:
            raise _broken(path)
        return sizes[0], head.tell(), sizes[1]


def _numbers(head: io.BytesIO) -> dict[int, int]:
    """The whole numbers among the fields of a struct; everything else is passed over. The struct ends where reading stops."""
    found: dict[int, int] = {}
    field = 0
    while (mark := _byte(head)) & 15:
        kind = mark & 15
        field = field + (mark >> 4) if mark >> 4 else _zigzag(_varint(head))
        value = _value(head, kind, 0)
        if kind in (4, 5, 6):
            found[field] = value
    return found


def _value(head: io.BytesIO, kind: int, deep: int) -> int:
    """A whole number, or 0 after anything else."""
    if deep > 8:
        raise EOFError
    if kind in (4, 5, 6):
        return _zigzag(_varint(head))
    if kind in (3, 7, 8):
        size = {3: 1, 7: 8}.get(kind) or _varint(head)
        if len(head.read(size)) < size:
            raise EOFError
    elif kind in (9, 10):
        mark = _byte(head)
        count = mark >> 4 if mark >> 4 < 15 else _varint(head)
        if count > len(head.getbuffer()):
            raise EOFError
        for _ in range(count):
            _value(head, mark & 15, deep + 1)
    elif kind == 12:
        while mark := _byte(head):
            if not mark >> 4:
                _varint(head)
            _value(head, mark & 15, deep + 1)
    elif kind not in (1, 2):
        raise EOFError
    return 0


def _byte(head: io.BytesIO) -> int:
    one = head.read(1)
    if not one:
        raise EOFError
    return one[0]


def _varint(head: io.BytesIO) -> int:
    value = shift = 0
    while shift < 70:
        byte = _byte(head)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
    raise EOFError


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
