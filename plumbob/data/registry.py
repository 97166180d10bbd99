"""Data sets by name: what each is, where its file is, whether the file is valid, and its table.

Files are in the folder that PLUMBOB_DATA names, else in the user's cache, where `plumbob data fetch` puts them. A
file is valid if its bytes or its content have the known checksum: the same cells may be packed differently.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from plumbob import memory
from plumbob.data.catalogue import DATA_SETS, DataSet
from plumbob.data.files import read_frame
from plumbob.data.prepare import Rules, prepare
from plumbob.errors import BadInput, suggest
from plumbob.federation import Column, Table
from plumbob.files import open_regular, parts_of
from plumbob.lazy_imports import sklearn


def find(name: str) -> DataSet:
    """The entry of that name."""
    if name not in DATA_SETS:
        known = list(DATA_SETS)
        raise BadInput(f"no data set '{name}'{suggest(name, known) or '; known: ' + ', '.join(known)}")
    return DATA_SETS[name]


def load(name: str, *, rules: Rules | None = None) -> Table:
    """A data set as a prepared table; `rules` replaces the entry's own.

    >>> load("breast").values.shape
    (569, 30)
    """
    entry = find(name)
    if entry.kind == "image":
        return pictures_as_table(name, *images(name))
    frame = _built_in_frame(name) if entry.file is None else read_frame(checked_file(entry))
    table = prepare(
        _variant(frame, entry),
        name=name,
        label=entry.label,
        ignore=entry.drop,
        rules=rules or entry.rules,
        where=f"data set '{name}'",
        label_bins=entry.label_bins,
    )
    # What the published table has besides its features is none of a federation's columns.
    return replace(table, public=True, dropped=tuple(one for one in table.dropped if one.column not in entry.drop))


def pictures_as_table(name: str, pictures: NDArray[np.uint8], labels: NDArray[np.int64]) -> Table:
    """Every pixel is a column, channel by channel and row by row, so that any rectangle of them is an image again."""
    deep = pictures if pictures.ndim == 4 else pictures[..., None]
    height, width, channels = deep.shape[1:]
    places = [(c, y, x) for c in range(channels) for y in range(height) for x in range(width)]
    letters = "rgb" if channels == 3 else "abcdefgh"
    columns = tuple(
        Column(f"{letters[c] if channels > 1 else 'p'}_{y}_{x}", low=0.0, high=255.0, step=1.0, place=(c, y, x))
        for c, y, x in places
    )
    values = deep.transpose(0, 3, 1, 2).reshape(len(deep), -1).astype(np.float64) / 255.0
    classes, label = np.unique(labels, return_inverse=True)
    return Table(name, columns, values, label.astype(np.int64), tuple(str(c) for c in classes), public=True)


def images(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (rows first, values 0 to 255) and their labels."""
    entry = find(name)
    if entry.kind != "image":
        known = [other.name for other in DATA_SETS.values() if other.kind == "image"]
        raise BadInput(f"data set '{name}' is a table, not images; name one of {', '.join(known)}")
    return read_images(checked_file(entry))


def verify(name: str) -> str:
    """`ok`, `missing` or `changed`; a built-in data set is always ok."""
    entry = find(name)
    if entry.file is None:
        return "ok"
    folder = data_folder()
    path = None if folder is None else folder / entry.file
    if path is None or not path.is_file():
        return "missing"
    return "ok" if is_intact(path, entry) else "changed"


def data_folder() -> Path | None:
    """Where data files are: PLUMBOB_DATA, else the user's cache if it exists."""
    named = os.environ.get("PLUMBOB_DATA")
    if named:
        return Path(named).expanduser()
    return cache_folder() if cache_folder().is_dir() else None


def cache_folder() -> Path:
    """Where fetched files go when PLUMBOB_DATA is not set."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "plumbob" / "data"


def checked_file(entry: DataSet) -> Path:
    """The path of an entry's file, once the file is known to be valid."""
    folder, state = data_folder(), verify(entry.name)
    if state == "ok" and folder is not None and entry.file is not None:
        return folder / entry.file
    if state == "changed":
        raise BadInput(
            f"data set '{entry.name}': '{entry.file}' in '{folder}' is not the expected file: its checksum differs; "
            + ("copy it again" if entry.unfetchable else f"replace it with `plumbob data fetch {entry.name}`")
        )
    place = f"set PLUMBOB_DATA to the folder that holds '{entry.file}'"
    if folder is not None:
        place = f"'{entry.file}' is not in '{folder}'; {place}"
    fetch = f"; it cannot be fetched: {entry.unfetchable}" if entry.unfetchable else ""
    raise BadInput(f"data set '{entry.name}': {place}{fetch or f' or run `plumbob data fetch {entry.name}`'}")


def is_intact(path: Path, entry: DataSet) -> bool:
    """Whether a file has the entry's bytes, or the same content packed differently."""
    stat = path.stat()
    return _is_intact(path, stat.st_mtime_ns, stat.st_size, entry.sha256, entry.content_sha256)


@lru_cache(maxsize=256)
def _is_intact(path: Path, _modified: int, _size: int, sha256: str, content: str) -> bool:
    """Cached while the file's time and size stay the same: audits load a data set many times."""
    with open_regular(path) as stream:
        found = hashlib.sha256()
        for part in parts_of(stream):
            found.update(part)
        if found.hexdigest() == sha256:
            return True
    try:
        return content_digest(path) == content
    except BadInput:
        return False


def content_digest(path: Path) -> str:
    """Hash of a file's content, whatever its compression, quoting, separator or number format."""
    return _digest_images(*read_images(path)) if path.suffix == ".npz" else _digest_frame(read_frame(path))


def _digest_frame(frame: pd.DataFrame) -> str:
    """Column names, then column by column: numbers as 64-bit floats, text as a JSON list."""
    digest = hashlib.sha256(json.dumps([str(name) for name in frame.columns]).encode())
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if pd.api.types.is_numeric_dtype(column.dtype):
            numbers = column.to_numpy(dtype="<f8") + 0.0  # makes -0.0 a 0.0
            digest.update(b"numbers" + numbers.tobytes())
        else:
            cells = [None if missing else str(cell) for cell, missing in zip(column, column.isna(), strict=True)]
            digest.update(b"text" + json.dumps(cells).encode())
    return digest.hexdigest()


def _digest_images(pictures: NDArray[np.uint8], labels: NDArray[np.int64]) -> str:
    digest = hashlib.sha256(json.dumps(pictures.shape).encode())
    digest.update(np.ascontiguousarray(pictures).tobytes())
    digest.update(labels.astype("<i8").tobytes())
    return digest.hexdigest()


def read_images(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as arrays:
            sizes = [info.file_size for info in arrays.zip.infolist()]
            memory.check(f"'{path}'", 2 * sum(sizes))
            return arrays["images"].astype(np.uint8, copy=False), arrays["labels"].astype(np.int64, copy=False)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"'{path}' is not a file of images and labels") from error


def _variant(frame: pd.DataFrame, entry: DataSet) -> pd.DataFrame:
    """The rows and classes of an entry's variant."""
    if entry.drop_rows_with:
        frame = frame[~(frame == entry.drop_rows_with).any(axis=1)].reset_index(drop=True)
    if entry.label_cut:
        cut = entry.label_cut
        classes = np.where(frame[entry.label].to_numpy() < cut.at, cut.below, cut.above)
        frame = frame.assign(**{entry.label: classes})
    return frame


def _built_in_frame(name: str) -> pd.DataFrame:
    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "breast": _breast,
        "digits": _digits,
        "synthetic-1": lambda: _synthetic(features=25, informative=10, classes=10, seed=1),
        "synthetic-2": lambda: _synthetic(features=50, informative=20, classes=5, seed=2),
    }
    return makers[name]()


def _breast() -> pd.DataFrame:

    raw = sklearn.datasets.load_breast_cancer()
    frame = pd.DataFrame(raw.data, columns=list(raw.feature_names))
    return frame.assign(target=np.asarray(raw.target_names)[raw.target].astype(object))


def _digits() -> pd.DataFrame:

    raw = sklearn.datasets.load_digits()
    return pd.DataFrame(raw.data, columns=list(raw.feature_names)).assign(target=raw.target)


def _synthetic(*, features: int, informative: int, classes: int, seed: int) -> pd.DataFrame:
    """Columns that are mixtures of others, as the generative attack needs correlations to show anything."""

    values, target = sklearn.datasets.make_classification(
        n_samples=100_000,
        n_features=features,
        n_informative=informative,
        n_redundant=features - informative,
        n_classes=classes,
        random_state=seed,
    )
    return pd.DataFrame(values, columns=[f"x{i + 1}" for i in range(features)]).assign(target=target)
