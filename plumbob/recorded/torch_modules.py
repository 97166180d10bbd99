"""The user's own modules, as a tap sees them: their inputs, their outputs, and whether they are linear."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import Federation
from plumbob.lazy_imports import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKED_AT = 2_000  # rows by which it is told whether a bottom model is linear
ROUNDING = 1e-3  # share of the outputs that may be left unexplained if it is


def checked_modules(passive: Mapping[str, torch.nn.Module]) -> dict[str, torch.nn.Module]:
    for name, module in passive.items():
        if not isinstance(module, torch.nn.Module):
            raise BadInput(f"party '{name}': expected a torch.nn.Module, got {type(module).__name__}")
    if len({id(module) for module in passive.values()}) < len(passive):
        raise BadInput("passive: two parties share one module, so the sender is ambiguous; give each party its own")
    return dict(passive)


def table_of(party: str, columns: Mapping[str, Any], inputs: Mapping[str, Any], federation: Federation) -> Array:
    """The inputs of a party's module, one row per person."""
    values = inputs.get(party, columns[party])
    if isinstance(values, pd.DataFrame):
        wordy = [str(c) for c in values.columns if values[c].dtype.kind not in "biuf"]
        if wordy:
            raise BadInput(
                f"party '{party}': column '{wordy[0]}' is not numeric, so it cannot be an input of the module; "
                "pass the module's inputs ('inputs')"
            )
        values = values.astype(np.result_type(*values.dtypes))  # one type for all: truths among numbers become 0 and 1
    table = plain(values)
    if table.dtype.kind not in "biuf" or len(table) != len(federation):
        raise BadInput(
            f"inputs of '{party}': expected numbers for {len(federation):,} rows, got {table.dtype} of shape {table.shape}"
        )
    return table


def plain(values: Any) -> Array:
    """Numbers as an array; 16-bit types that NumPy lacks become 32-bit ones."""
    if isinstance(values, torch.Tensor):
        values = values.detach()
        values = (values.float() if values.dtype == torch.bfloat16 else values).cpu().numpy()
    return np.asarray(values)


def numbers_of(tensor: torch.Tensor) -> Array:
    """A copy of a tensor, one row per person."""
    return np.array(plain(tensor)).reshape(len(tensor), -1)


def linear(inputs: Array, outputs: Array) -> bool:
    """Whether outputs are an affine function of the inputs, tested on some rows."""
    some = np.linspace(0, len(inputs) - 1, min(len(inputs), LOOKED_AT)).astype(np.int64)
    given, sent = (part[some].reshape(len(some), -1).astype(np.float64) for part in (inputs, outputs))
    if given.shape[1] + 1 >= len(some):
        return True  # as many columns as rows: everything would fit
    given, sent = given - given.mean(axis=0), sent - sent.mean(axis=0)
    scale = np.abs(given).max(axis=0)
    given = given / np.where(scale > 0, scale, 1)
    left = sent - given @ np.linalg.lstsq(given, sent, rcond=None)[0]
    return bool(np.linalg.norm(left) <= ROUNDING * np.linalg.norm(sent))


def version_of(module: torch.nn.Module) -> int:
    """A number that changes with any parameter or running mean. Torch's own counters miss writes to `.data`."""
    version = 0
    for tensor in (*module.parameters(), *module.buffers()):
        cells = tensor.detach().cpu().contiguous().reshape(-1)
        version = zlib.crc32(cells.view(torch.uint8).numpy().tobytes(), version)
    return version


@contextmanager
def predicting(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every submodule is back in its previous mode."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode
