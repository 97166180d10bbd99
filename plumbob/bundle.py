"""Bundles: a JSON manifest and named arrays, as a folder or a zip file, read without trusting either.

Transcripts and views are both kept this way. Arrays are `.npy` without pickle; the manifest names each array's file,
type, shape and SHA-256, so nothing is decompressed, allocated or used before it has been declared and checked.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from plumbob import memory
from plumbob.errors import BadInput
from plumbob.files import open_regular, parse_json, private_file, shown, users_paths, write_whole

Array = NDArray[Any]
MANIFEST_LIMIT = 64 * 2**20
COPIES = 3  # of an array in memory at once, while it is checked and scaled
_FILE_NAME = re.compile(r"[0-9]{6}\.npy")
_KINDS = "biuf"  # booleans, integers, floats: all a payload ever is


def digest(array: Array) -> str:
    """SHA-256 of an array's type, shape and bytes."""
    array = np.asarray(array, order="C")
    head = f"{array.dtype.str} {array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()


def canonical(value: object) -> str:
    """The canonical JSON text of a value, for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def save(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a bundle; a path ending in `.zip` gives one file. Existing files are never overwritten."""
    if path.exists():
        raise BadInput(f"{path} already exists; choose another path")
    entries = {}
    for index, (name, array) in enumerate(arrays.items()):
        if array.dtype.kind not in _KINDS:
            raise BadInput(f"array '{name}': expected numbers, got {array.dtype}")
        file = f"{index:06d}.npy"
        entries[name] = {"file": file, "dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest(array)}
    manifest = json.dumps({"format": 1, "meta": dict(meta), "arrays": entries}, indent=1).encode()
    with _writer(path) as write:
        for array, entry in zip(arrays.values(), entries.values(), strict=True):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
            write(str(entry["file"]), buffer.getvalue())
        write("manifest.json", manifest)


@contextmanager
def _writer(path: Path) -> Iterator[Any]:
    """Write to a temporary path and rename at the end, so that a half-written bundle never appears; for its owner alone."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    if path.suffix == ".zip":
        with private_file(part) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            yield archive.writestr
    else:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(mode=0o700)
        yield lambda name, data: write_whole(part / name, data, private=True)
    part.replace(path)


def load(path: Path, limit: int = memory.LIMIT) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a bundle; refuse members that are missing, changed, oversized or outside it."""
    with users_paths(), _reader(path) as (open_member, size_of):
        manifest = _manifest(path, open_member, size_of)
        sizes = [_announced(path, name, entry) for name, entry in manifest["arrays"].items()]
        announced = sum(sizes)
        if announced > limit:
            raise BadInput(f"{path} declares {announced:,} bytes of arrays, more than the limit of {limit:,}")
        memory.check(path, announced + COPIES * max(sizes, default=0))
        arrays = {
            name: _read_array(path, name, entry, open_member, size_of) for name, entry in manifest["arrays"].items()
        }
    return manifest["meta"], arrays


@contextmanager
def _reader(path: Path) -> Iterator[tuple[Any, Any]]:
    if path.is_dir():

        def open_member(name: str) -> BinaryIO:
            member = path / name
            if member.is_symlink():
                raise BadInput(f"{path}: '{name}' is a link; a bundle must hold its own files")
            return open_regular(member, f"{path}: '{name}'", follow=False)

        yield open_member, lambda name: (path / name).lstat().st_size
        return
    try:
        file = open_regular(path)
    except FileNotFoundError as error:
        raise BadInput(f"{shown(path)} does not exist") from error
    with file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
            raise BadInput(f"{path} is not a bundle: neither a folder nor a zip file") from error
        with archive:
            yield archive.open, lambda name: archive.getinfo(name).file_size


def _manifest(path: Path, open_member: Any, size_of: Any) -> dict[str, Any]:
    raw = _read_member(path, "manifest.json", open_member, size_of, MANIFEST_LIMIT)
    try:
        manifest = parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: its manifest is not JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != 1:
        raise BadInput(f"{path}: expected a manifest of format 1")
    if not isinstance(manifest.get("meta"), dict) or not isinstance(manifest.get("arrays"), dict):
        raise BadInput(f"{path}: its manifest has no 'meta' or no 'arrays'")
    return manifest


def _announced(path: Path, name: str, entry: Any) -> int:
    """The declared size of an entry in bytes, once the entry is known to be valid."""
    try:
        file, shape, dtype = entry["file"], entry["shape"], np.dtype(str(entry["dtype"]))
        if not (isinstance(shape, list) and all(type(length) is int and 0 <= length < 2**40 for length in shape)):
            raise ValueError
        if dtype.kind not in _KINDS or not isinstance(entry["sha256"], str):
            raise ValueError
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise BadInput(f"{path}: array {name!r} has an invalid entry in the manifest") from error
    if not isinstance(file, str) or not _FILE_NAME.fullmatch(file):
        raise BadInput(f"{path}: array {name!r} points outside the bundle")
    return math.prod(shape) * dtype.itemsize


def _read_array(path: Path, name: str, entry: dict[str, Any], open_member: Any, size_of: Any) -> Array:
    size = _announced(path, name, entry)
    raw = _read_member(path, entry["file"], open_member, size_of, size + 4096)
    shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    body = raw.removeprefix(head.getvalue())  # the header is compared, not parsed: it can only say one thing
    if len(body) != size or len(raw) != size + len(head.getvalue()):
        raise BadInput(f"{path}: {entry['file']} does not match the array described in the manifest")
    array = np.frombuffer(body, dtype).reshape(shape)
    if digest(array) != entry["sha256"]:
        raise BadInput(f"{path}: {entry['file']} was changed after it was written (its checksum differs)")
    return array


def _read_member(path: Path, name: str, open_member: Any, size_of: Any, limit: int) -> bytes:
    try:
        if size_of(name) > limit:
            raise BadInput(f"{path}: {name} is {size_of(name):,} bytes, expected at most {limit:,}")
        with open_member(name) as member:
            data: bytes = member.read(limit + 1)  # what a member says of its size is not believed either
    except (KeyError, FileNotFoundError) as error:
        raise BadInput(f"{path}: {name} is missing") from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, ValueError, RuntimeError, EOFError) as error:
        raise BadInput(f"{path}: {name} cannot be read ({type(error).__name__}); is the bundle damaged?") from error
    if len(data) > limit:
        raise BadInput(f"{path}: {name} unpacks to more than the declared {limit:,} bytes")
    return data
