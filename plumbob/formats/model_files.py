"""Choose the reader of a model file by its suffix; any failure becomes one sentence that names the file.

Data formats are read as data. Pickles are programs: they run only if the user allows it on the command line.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
from pathlib import Path

from plumbob.errors import BadInput
from plumbob.formats.onnx_file import read_onnx
from plumbob.formats.own_model import OwnModel
from plumbob.formats.sklearn_estimators import read_pickle, read_skops
from plumbob.formats.torch_file import read_torch
from plumbob.formats.xgboost_file import read_xgboost
from plumbob.trust import NO_CODE, Trust

LARGEST = 200 * 2**20
PART = 2**24  # bytes read at a time: a file may grow, or say that it is smaller than it is
SUFFIXES = (".json", ".ubj", ".onnx", ".pt", ".pth", ".skops", ".pkl", ".pickle", ".joblib")
PICKLES = (".pkl", ".pickle", ".joblib")


def read_model(path: Path, *, trust: Trust = NO_CODE) -> OwnModel:
    """Read the model in a file, or refuse it with one sentence."""
    data = _bytes(path)
    suffix = path.suffix.lower()
    try:
        if suffix in (".json", ".ubj"):
            return read_xgboost(data, suffix)
        if suffix == ".onnx":
            return read_onnx(data)
        if suffix in (".pt", ".pth"):
            return read_torch(data, trust=trust)
        if suffix == ".skops":
            return read_skops(data)
        if suffix in PICKLES:
            return read_pickle(data, trust=trust)
    except BadInput as error:
        raise BadInput(f"model '{path.name}': {error}") from error
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        EOFError,
        OverflowError,
        RuntimeError,
        MemoryError,
        ImportError,
        struct.error,
        zipfile.BadZipFile,
    ) as error:
        raise BadInput(
            f"model '{path.name}': it cannot be read as a complete '{suffix}' model ({type(error).__name__}); "
            "is the file complete, and does its suffix match its format?"
        ) from error
    raise BadInput(f"model '{path.name}': expected a file that ends in {', '.join(SUFFIXES)}")


def digest_of(path: Path) -> str:
    """The SHA-256 of a model's file."""
    return hashlib.sha256(_bytes(path)).hexdigest()


def _bytes(path: Path) -> bytes:
    """All bytes of a regular file. Pipes and devices may never end, so they are opened without blocking, and refused."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            state = os.fstat(number)
            if not stat.S_ISREG(state.st_mode):
                raise BadInput(f"model '{path.name}': expected a file, got a folder, pipe or device")
            if state.st_size > LARGEST:
                raise _too_large(path)
            parts: list[bytes] = []
            while sum(map(len, parts)) <= LARGEST and (part := os.read(number, PART)):
                parts.append(part)
        finally:
            os.close(number)
    except FileNotFoundError as error:
        raise BadInput(f"no model file at {path}") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"model '{path.name}' cannot be read ({type(error).__name__})") from error
    data = b"".join(parts)
    if len(data) > LARGEST:
        raise _too_large(path)
    return data


def _too_large(path: Path) -> BadInput:
    return BadInput(f"model '{path.name}': larger than {LARGEST // 2**20} MB, the largest model that can be audited")
