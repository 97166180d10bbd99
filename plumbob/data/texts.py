"""Files of text, plain or gzipped: how much memory they take as tables, and their bytes, counted and checked as they come.

A gzip file can unpack to a thousand times its size, and says nothing reliable of it. So it is unpacked twice: once to count,
keeping nothing, and again where what was counted fits.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from plumbob import memory
from plumbob.data.parquet import BYTES_PER_CELL, BYTES_PER_ID
from plumbob.errors import BadInput
from plumbob.files import open_regular, parts_of

HEAD = 2**20  # bytes that are looked at in a plain file
BYTES_PER_TEXT_BYTE = 10.0  # of memory, at the peak of reading and preparing
BYTES_PER_ROW = 40.0  # of which only a hash is kept
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS = (b",", b";", b"\t", b"|")


@contextmanager
def opened(path: Path, *, packed: bool) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The text, unpacked where it is packed, and the file it comes from; what can go wrong on the way becomes one sentence."""
    try:
        with open_regular(path) as raw:
            if not packed:
                yield raw, raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield cast(BinaryIO, unpacked), raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"'{path}' is not a complete gzip file; copy it again") from error
    except OSError as error:
        raise BadInput(f"cannot read '{path}': {error.strerror}") from error


def need(path: Path, *, packed: bool, sampled: bool = False) -> int:
    """Bytes of memory to read a text file as a table, or to choose a sample of its rows.

    Where that is more than is free, it is not counted to the end but extrapolated from what was unpacked so far.
    """
    measure = _need_of_rows if sampled else _need_of
    room, found, done = max(memory.available(), memory.NEVER_REFUSED_BYTES), 0.0, 0
    with opened(path, packed=packed) as (text, file):
        size = os.fstat(file.fileno()).st_size
        if not packed:
            head = text.read(HEAD)
            return int(size * measure(head) / max(1, len(head)))
        for part in parts_of(text):
            found, done = found + measure(part), file.tell()
            if found * size / done > room or b"\n" not in part:  # a line of this length is refused when it is read
                break
    return int(found * size / max(1, done))


def _need_of(part: bytes) -> float:
    """Bytes of memory for a part of a text."""
    rows = part.count(b"\n")
    cells = max(map(part.count, _MARKS)) + rows
    return BYTES_PER_TEXT_BYTE * len(part) + BYTES_PER_CELL * cells + BYTES_PER_ID * rows


def _need_of_rows(part: bytes) -> float:
    """The same while only the hashes of its rows are kept."""
    return BYTES_PER_ROW * part.count(b"\n")


def checked(path: Path, parts: Iterable[bytes]) -> bytes:
    """All of a text: UTF-8 without a byte-order mark, lines ending in `\\n`, no blank end."""
    decoder, lines, kept = codecs.getincrementaldecoder("utf-8")(), 1, []
    for part in chain(parts, (b"",)):
        try:
            decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            line = lines + error.object.count(b"\n", 0, error.start)
            raise BadInput(f"'{path}' is not UTF-8 text (line {line}); save it as UTF-8") from error
        if b"\0" in part:
            raise BadInput(f"'{path}' is not a text file: it contains NUL bytes")
        lines += part.count(b"\n")
        kept.append(part)
    data = b"".join(kept).removeprefix(BYTE_ORDER_MARK)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    data = data.lstrip(b"\n").rstrip(b"\n")
    if not data.strip():
        raise BadInput(f"'{path}' is empty; expected a header row and rows below it")
    return data
