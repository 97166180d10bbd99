"""Choose the reader of a model file by its suffix; any failure becomes one sentence that names the file.

Data formats are read as data. Pickles are programs: they run only if the user allows it on the command line.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from pathlib import Path

from plumbob.errors import BadInput
from plumbob.files import read_regular, reading, shown
from plumbob.formats.onnx_file import read_onnx
from plumbob.formats.own_model import OwnModel
from plumbob.formats.sklearn_estimators import read_pickle, read_skops
from plumbob.formats.torch_file import read_torch
from plumbob.formats.xgboost_file import read_xgboost
from plumbob.trust import NO_CODE, Trust

LARGEST = 200 * 2**20
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
    """All bytes of a regular file of the size that a model may have."""
    what = f"model '{shown(path.name)}'"
    with reading(what, f"no model file at {shown(path)}"):
        return read_regular(path, what, most=LARGEST)
