"""What may stand where a file is expected and is none (pipes, devices, sockets, links), and files that unpack to gigabytes.

They take the place of one file in a few of a target's cases. A bomb is made once, in a fraction of a second, and is of a few
megabytes at most.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

NOT_OPENED = ("options.json", "gate")  # read by the harness itself
SHARE, BOMBS = 0.04, 0.01  # of a target's cases


@dataclass(frozen=True)
class Special:
    """Something that has no bytes of its own."""

    kind: str
    size: int = 0  # bytes of a file that is mostly a hole
    head: bytes = b""  # with which that file begins


KINDS = ("pipe", "socket", "device", "full", "loop", "nowhere", "folder", "process", "memory")
DEVICES = {"device": "/dev/zero", "full": "/dev/full", "nowhere": "not-there", "process": "/proc/self/environ"}
DEVICES["memory"] = "/proc/self/mem"

Content = bytes | Special


def put(path: Path, content: Content) -> None:
    """Make what a case has in this place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content.kind == "pipe":
        os.mkfifo(path)
    elif content.kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif content.kind == "folder":
        path.mkdir()
    elif content.kind == "loop":
        path.symlink_to(path.name)
    elif content.kind == "sparse":
        path.write_bytes(content.head)
        os.truncate(path, content.size)
    else:
        path.symlink_to(DEVICES[content.kind])


def spoilt(make: Callable[[random.Random], Mapping[str, Content]]) -> Callable[[random.Random], Mapping[str, Content]]:
    """The same cases; in a few of them one file is none, or unpacks to gigabytes."""

    def made(rng: random.Random) -> Mapping[str, Content]:
        files = dict(make(rng))
        names = sorted(name for name in files if name not in NOT_OPENED)
        chance = rng.random()
        if names and chance > 1 - SHARE - BOMBS:
            name = rng.choice(names)
            own = bombs(name) if chance > 1 - BOMBS else ()
            files[name] = rng.choice(own) if own else Special(rng.choice(KINDS))
        return files

    return made


@cache
def bombs(name: str) -> tuple[Content, ...]:
    """Files of a name's ending that would take gigabytes."""
    for ending, made in _BOMBS.items():
        if name.endswith(ending):
            return made()
    return ()


@cache
def gzips() -> tuple[Content, ...]:
    """1.7 GB each: nothing, short rows, and one line that does not end."""
    parts = (b"\0" * 2**24, b"1,2,3\n" * 2**21, b"x" * 2**24)
    heads = (b"", b"id,a,label\n", b"id,a,label\n1,")
    return tuple(
        gzip.compress(h, 1, mtime=0) + gzip.compress(p, 9, mtime=0) * 100 for h, p in zip(heads, parts, strict=True)
    )


@cache
def parquets() -> tuple[Content, ...]:
    """One long text that a hundred thousand rows share, alone and in lists; one number in many rows."""
    rows = 100_000
    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int32)), pyarrow.array(["x" * 2**20]))
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(np.arange(rows + 1, dtype=np.int32)), text)
    number = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(10**6, np.int32)), pyarrow.array([1.5]))
    made = []
    for column, times in ((text, 1), (lists, 1), (number, 30)):
        file = io.BytesIO()
        table = pyarrow.table({"id": column, "label": column})
        with pyarrow.parquet.ParquetWriter(file, table.schema, store_schema=False) as writer:
            for _ in range(times):
                writer.write_table(table)
        made.append(file.getvalue())
    return tuple(made)


@cache
def arrays() -> tuple[Content, ...]:
    """Eight gigabytes of zeros that take no room on the disk."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (250_000_000, 4)})
    return (Special("sparse", len(head.getvalue()) + 8 * 10**9, head.getvalue()),)


@cache
def zips() -> tuple[Content, ...]:
    """A member that unpacks to more than its entry says, one that is large, and a manifest of empty brackets."""
    large = {"file": "000000.npy", "dtype": "<f8", "shape": [2**29], "sha256": ""}
    small = large | {"shape": [4]}
    zeros = b"\0" * 2**27
    made = []
    told = [json.dumps({"format": 1, "meta": {}, "arrays": {"own": entry}}).encode() for entry in (large, small)]
    for manifest, array in ((told[0], zeros), (told[1], zeros), (brackets(), b"")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("000000.npy", array)
            archive.writestr("manifest.json", manifest)
        made.append(file.getvalue())
    lie = made[1].replace((2**27).to_bytes(4, "little"), (160).to_bytes(4, "little"))  # what its entry says of its size
    return (*made, lie)


@cache
def brackets() -> bytes:
    """Thirty megabytes of JSON that are gigabytes in memory."""
    return b"[" + b"{}," * 10**7 + b"0]"


_BOMBS: dict[str, Callable[[], tuple[Content, ...]]] = {
    ".csv.gz": gzips,
    ".tsv.gz": gzips,
    ".parquet": parquets,
    ".npy": arrays,
    ".zip": zips,
    ".pt": zips,
    ".json": lambda: (brackets(), Special("sparse", 2**33)),
    ".jsonl": lambda: (brackets() + b"\n", Special("sparse", 2**33)),
    "": lambda: (Special("sparse", 2**33),),
}
