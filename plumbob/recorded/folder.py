"""A recorded run as plain files: `manifest.json` and `.npy` arrays, written by any framework in any language.

docs/recorded.md describes the format. Nothing in it is trusted: every array's header and size are checked before a byte of
it is loaded, nothing is unpickled, no path leads out of the folder, and every error is one sentence.
"""

from __future__ import annotations

import math
import os
import re
import tokenize
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from plumbob import bundle, memory
from plumbob.bundle import Array
from plumbob.data.prepare import Rules
from plumbob.errors import BadInput, suggest
from plumbob.federation import Federation
from plumbob.files import open_regular, parse_json, read_text, real, shown
from plumbob.protocols.base import note, opened
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.recorded.seals import seal_accuracy, seal_defence, seal_dropped, seal_remarks
from plumbob.recorded.tables import federation_of
from plumbob.transcript import COORDINATOR, Transcript

KIND, VERSION = "recording", 1
MOST_MESSAGES = 50_000  # and notes, each of which is a file
MOST_PARTIES = 1_000
PHASES = ("align", "setup", "train", "predict")
NEEDED = {"kind": str, "version": int, "protocol": str, "active": str, "parties": list, "features": list}
NEEDED |= {"classes": list, "columns": dict, "label": str, "messages": list}
OPTIONAL = {"accuracy": (int, float), "defence": dict, "notes": dict}
PARTS = {"sender": str, "receiver": str, "phase": str, "round": int, "name": str, "file": str}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.npy")


def is_recording(path: Path) -> bool:
    """Whether a folder contains a recording in plain files, rather than a Plumbob bundle."""
    manifest = path / "manifest.json"
    return path.is_dir() and manifest.is_file() and "arrays" not in _manifest(path)


def read_recording(path: Path, limit: int = memory.LIMIT) -> Transcript:
    """Read the transcript from the files of a folder."""
    manifest = _manifest(path)
    _check_count(path, manifest)
    files = _Files(path, limit)
    federation = _federation(path, manifest, files)
    log = opened(SplitNetwork.name, federation, federation.rows(np.zeros(0, dtype=np.int64)))
    known = (*(party.name for party in federation.parties), COORDINATOR)
    for number, entry in enumerate(manifest["messages"]):
        where = f"{path}: message {number}"
        _checked_keys(where, entry, PARTS, {})
        for end in (entry["sender"], entry["receiver"]):
            _one_of(where, end, known)
        _one_of(f"{where}, phase", entry["phase"], PHASES)
        if entry["round"] < 0:
            raise BadInput(f"{where}: expected a round of 0 or more, got {entry['round']}")
        header = {key: entry[key] for key in PARTS if key != "file"}
        log.send(**header, payload=files.numbers(where, entry["file"]))
    for party, notes in manifest.get("notes", {}).items():
        _one_of(f"{path}: notes", party, known)
        if not isinstance(notes, dict):
            raise BadInput(f"{path}: notes of '{party}': expected files by name, got {type(notes).__name__}")
        for name, file in notes.items():
            note(log, party, name, files.numbers(f"{path}: note '{name}' of '{party}'", file))
    try:
        seal_defence(log, manifest.get("defence", {}))
        if "accuracy" in manifest:
            seal_accuracy(log, manifest["accuracy"])
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    seal_remarks(log, federation.notes)
    seal_dropped(log, federation.dropped)
    return log


def _check_count(path: Path, manifest: dict[str, Any]) -> None:
    """Before a file is opened: how many there are."""
    messages, notes = manifest.get("messages"), manifest.get("notes")
    count = len(messages) if isinstance(messages, list) else 0
    count += sum(len(part) for part in notes.values() if isinstance(part, dict)) if isinstance(notes, dict) else 0
    if count > MOST_MESSAGES:
        raise BadInput(
            f"{path}: {count:,} messages and notes, at most {MOST_MESSAGES:,} are read; record fewer rounds, or only the last"
        )


def _manifest(path: Path) -> dict[str, Any]:
    file = path / "manifest.json"
    try:
        text = read_text(file, f"{shown(path)}: manifest.json", most=bundle.MANIFEST_LIMIT)
        manifest = parse_json(text, parse_constant=_no_number)
    except OSError as error:
        raise BadInput(f"{path}: manifest.json is missing or cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: its manifest is not JSON") from error
    if not isinstance(manifest, dict):
        raise BadInput(f"{path}: its manifest is not a JSON object")
    return manifest


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not valid JSON")


def _federation(path: Path, manifest: dict[str, Any], files: _Files) -> Federation:
    if manifest.get("kind") != KIND or manifest.get("version") != VERSION:
        told = f"{manifest.get('kind')!r} of version {manifest.get('version')!r}"
        raise BadInput(f"{path}: expected a manifest of kind '{KIND}' and version {VERSION}, got {told}")
    _checked_keys(str(path), manifest, NEEDED, OPTIONAL)
    _one_of(f"{path}: protocol", manifest["protocol"], (SplitNetwork.name,))
    parties, classes = manifest["parties"], manifest["classes"]
    for what, names in (("parties", parties), ("classes", classes)):
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < max(2, len(names)):
            raise BadInput(f"{path}: {what}: expected at least two different names, got {names!r}"[:300])
    _one_of(f"{path}: active", manifest["active"], parties)
    for name in manifest["columns"]:
        _one_of(f"{path}: columns", name, parties)
    if len(parties) > MOST_PARTIES:
        raise BadInput(f"{path}: {len(parties):,} parties, at most {MOST_PARTIES:,} are read")
    frames, features = {}, _features(path, manifest["features"], parties)
    for name in parties:
        names = features[name]
        if not names and name == manifest["active"]:
            continue
        if name not in manifest["columns"]:
            raise BadInput(f"{path}: party '{name}' has features but no file of columns")
        frames[name] = _frame(f"{path}: columns of '{name}'", files, manifest["columns"][name], names)
    label = files.numbers(f"{path}: label", manifest["label"])
    right = label.ndim == 1 and label.dtype.kind in "iu" and np.isin(label, np.arange(len(classes))).all()
    if not right:
        raise BadInput(f"{path}: label: expected one whole number from 0 to {len(classes) - 1} for every row")
    try:
        federation = federation_of(manifest["active"], frames, label, Rules(constant="keep"))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    return replace(federation, label=label.astype(np.int64), classes=tuple(classes))


def _features(path: Path, features: list[Any], parties: list[str]) -> dict[str, list[str]]:
    """The names of each party's columns, in order."""
    found: dict[str, list[str]] = {name: [] for name in parties}
    for number, entry in enumerate(features):
        _checked_keys(f"{path}: feature {number}", entry, {"party": str, "name": str}, {})
        _one_of(f"{path}: feature {number}", entry["party"], found)
        found[entry["party"]].append(entry["name"])
    return found


def _frame(where: str, files: _Files, file: Any, names: list[str]) -> pd.DataFrame:
    cells = files.numbers(where, file)
    if cells.ndim != 2 or cells.shape[1] != len(names):
        raise BadInput(f"{where}: expected a table of {len(names)} columns, got shape {cells.shape}")
    return pd.DataFrame(cells, columns=names)


def _checked_keys(where: str, entry: Any, needed: Mapping[str, Any], optional: Mapping[str, Any]) -> None:
    """Check that all required keys exist, none is unknown, and each value has the right type."""
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: expected keys and values, got {type(entry).__name__}")
    for key in needed:
        if key not in entry:
            raise BadInput(f"{where}: '{key}' is missing")
    kinds = {**needed, **optional}
    for key, value in entry.items():
        if key not in kinds:
            raise BadInput(f"{where}: '{key}' is not a key{suggest(key, list(kinds))}")
        if isinstance(value, bool) or not isinstance(value, kinds[key]):
            raise BadInput(f"{where}: '{key}' has the wrong type, {type(value).__name__}")


def _one_of(where: str, word: object, known: Any) -> None:
    if word not in known:
        raise BadInput(f"{where}: expected one of {', '.join(known)}, got '{word}'")


class _Files:
    """The arrays of one folder, up to a limit in bytes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit, self._left = real(folder), limit, limit
        self._room = 0  # bytes of memory that were free when the first large array came

    def numbers(self, where: str, name: Any) -> Array:
        """One array of finite numbers."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(f"{where}: expected the name of a .npy file in the folder, got {name!r}"[:300])
        path = self._folder / name
        if not real(path).is_relative_to(self._folder):
            raise BadInput(f"{where}: '{name}' leads out of the folder")
        try:
            with open_regular(path, f"{where}: '{name}'") as file:
                self._check(where, name, file, os.fstat(file.fileno()).st_size)
                array = np.lib.format.read_array(file, allow_pickle=False)
        except OSError as error:
            raise BadInput(f"{where}: '{name}' is missing or cannot be read") from error
        except (ValueError, SyntaxError, EOFError, tokenize.TokenError) as error:
            raise BadInput(f"{where}: '{name}' is not a NumPy array file") from error
        if not np.isfinite(array).all():
            raise BadInput(f"{where}: '{name}' contains NaN or infinity; expected a number in every cell")
        return array

    def _check(self, where: str, name: str, file: BinaryIO, size: int) -> None:
        """Check the header before anything is read: numbers, as many as there are bytes, within the limit."""
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise BadInput(f"{where}: '{name}' has version {version} of NumPy's format, expected 1.0 or 2.0")
        shape, _, kind = readers[version](file)
        if kind.kind not in "biuf":
            raise BadInput(f"{where}: '{name}' contains {kind}, expected numbers")
        announced = math.prod(shape) * kind.itemsize
        if announced != size - file.tell():
            raise BadInput(f"{where}: '{name}' declares {announced:,} bytes but has {size - file.tell():,}")
        self._left -= announced
        if self._left < 0:
            raise BadInput(f"{where}: the arrays take more than the limit of {self._limit:,} bytes")
        need = self._limit - self._left + bundle.COPIES * math.prod(shape) * max(8, kind.itemsize)
        if need > memory.NEVER_REFUSED_BYTES:
            self._room = self._room or memory.available()
            memory.check(f"{where}: the recording up to '{name}'", need, room=self._room)
        file.seek(0)
