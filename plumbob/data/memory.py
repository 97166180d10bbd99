"""How much memory a table needs and how much is free: a table that does not fit is refused before it is read.

Free is the least of the system's available memory, the rest of the container's limit, and PLUMBOB_MEMORY (in MB). What is
needed is measured on the first rows of the file and scaled to its size: an estimate on the safe side.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from plumbob.errors import BadInput

VARIABLE = "PLUMBOB_MEMORY"
HEAD = 2**20  # bytes that are looked at
# Bytes of memory for a byte of text, and for a cell, at the peak of reading and preparing
BYTES_PER_TEXT_BYTE, BYTES_PER_CELL = 10.0, 12.0
PARQUET = 4.0  # for a byte of columns as they are stored before compression
NEVER_REFUSED_BYTES = 2**24  # bytes of need that are never refused: everything else takes more

_LIMITS = (  # of a container: the limit, what is used, and how its statistics call files that can be let go
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available() -> int:
    """Bytes that are free to use."""
    found = [_free(), *(room for place in _LIMITS if (room := _room(*place)) is not None)]
    own = os.environ.get(VARIABLE, "")
    if own:
        if not own.isdecimal() or not int(own):
            raise BadInput(f"{VARIABLE}: expected the memory to use in MB, such as 2000, got '{own}'")
        found.append(int(own) * 2**20)
    return min(found)


def _free() -> int:
    """Memory available without swapping, as the system reports it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _room(limit: str, used: str, cached: str) -> int | None:
    """What a container's limit leaves, page cache not counted; None if there is no limit."""
    try:
        most, taken = (Path(name).read_text(encoding="ascii").strip() for name in (limit, used))
        told = dict(line.split() for line in Path(used).with_name("memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - int(taken) + int(told.get(cached, 0))) if most.isdecimal() else None


def text_need(path: Path) -> int:
    """Bytes of memory to read a text file, plain or gzipped, as a table."""
    size = path.stat().st_size
    with path.open("rb") as raw:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile(fileobj=raw) as packed:
                head = packed.read(HEAD)
            size = len(head) if len(head) < HEAD else int(size * len(head) / max(1, raw.tell()))
        else:
            head = raw.read(HEAD)
    separators = max(head.count(mark) for mark in (b",", b";", b"\t", b"|")) + head.count(b"\n")
    return int(size * (BYTES_PER_TEXT_BYTE + BYTES_PER_CELL * separators / max(1, len(head))))


def parquet_need(path: Path) -> int:
    """The same for a Parquet file, from its metadata."""
    import pyarrow.parquet

    about = pyarrow.parquet.ParquetFile(path).metadata
    stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    return int(PARQUET * stored + BYTES_PER_CELL * about.num_rows * about.num_columns)


def check(path: Path, need: int) -> None:
    """Refuse a table that does not fit."""
    room = available()
    if need > max(room, NEVER_REFUSED_BYTES):
        raise BadInput(
            f"'{path}' needs about {in_words(need)} of memory and {in_words(room)} are free; "
            "read a part of its rows ('sample' in the plan's data, --sample of init) or use a larger machine"
        )


def in_words(size: int) -> str:
    """A size in MB or GB.

    >>> in_words(3_500_000), in_words(12_345_678_901)
    ('4 MB', '12.3 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
