"""PyTorch files: a state_dict of fully connected layers is data; a whole module is code and must be allowed.

A state_dict does not contain its activations: ReLU is assumed between layers, and softmax (or a sigmoid, where
there is one output) at the end; the report says so. A tensor that declares more numbers than it stores is refused.
"""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.formats.own_model import OwnModel
from plumbob.formats.sklearn_estimators import layered
from plumbob.lazy_imports import torch
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.trust import Trust

HARMLESS = ("Dropout", "Flatten", "Identity")
LAST = ("Softmax", "Sigmoid")
MOST = 50_000_000  # numbers in all tensors together


def read_torch(data: bytes, *, trust: Trust) -> OwnModel:
    """The network in a PyTorch file. What torch warns of is refused here, or does not matter."""
    _checked_sizes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _read(data, trust)


def _read(data: bytes, trust: Trust) -> OwnModel:
    try:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if data[:2] != b"PK":
            raise BadInput("it was not written by torch.save, or is incomplete") from error
        if not trust.code:
            raise BadInput(
                "it contains more than weights, and loading it runs code; save model.state_dict(), or pass --trust-code "
                "if you trust it"
            ) from error
        return _of_code(data)
    except (RuntimeError, AssertionError) as error:
        raise BadInput("it was not written by torch.save, or is incomplete") from error
    return _own(loaded)


def _checked_sizes(data: bytes) -> None:
    """torch.save does not compress: compressed members are an attempt to exhaust memory."""
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > len(data):
                raise BadInput("its members are compressed, which torch.save never does; save it again with torch.save")


def _of_code(data: bytes) -> OwnModel:
    """A whole module, which includes its activations, or whatever object the code creates."""
    try:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)
    except Exception as error:  # whatever a foreign program raises
        raise BadInput(f"it cannot be unpickled ({type(error).__name__}); is its library installed?") from error
    if isinstance(loaded, torch.nn.Module):
        return replace(_own(_state(loaded)), notes=())
    return _own(loaded)


def _state(module: Any) -> Any:
    """The state_dict of a chain of layers that Plumbob knows."""
    parts = [part for part in module.modules() if not list(part.children())]
    kinds = [type(part).__name__ for part in parts if type(part).__name__ not in HARMLESS]
    kinds = kinds[:-1] if kinds and kinds[-1] in LAST else kinds
    wanted = ["Linear", "ReLU"] * len(kinds)
    if kinds != wanted[: len(kinds)] or not kinds or kinds[-1] != "Linear":
        raise BadInput(
            f"expected alternating Linear and ReLU layers ending with Linear, got {', '.join(kinds[:8]) or 'no layers'}"
        )
    return module.state_dict()


def _own(loaded: Any) -> OwnModel:
    state = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(state, Mapping) or not state:
        raise BadInput(f"expected a state_dict of fully connected layers, got {type(loaded).__name__}")
    if sum(_held(str(name), tensor) for name, tensor in state.items()) > MOST:
        raise BadInput(f"expected at most {MOST:,} numbers in all layers together, got more")
    arrays = {str(name): np.asarray(tensor.detach().double().numpy()) for name, tensor in state.items()}
    names = [name.removesuffix("weight") for name, array in arrays.items() if name.endswith("weight")]
    known = {f"{name}{part}" for name in names for part in ("weight", "bias")}
    strange = [name for name in arrays if name not in known or arrays[name].ndim > 2]
    strange += [f"{name}weight" for name in names if arrays[f"{name}weight"].ndim != 2]
    if strange:
        raise BadInput(f"expected fully connected layers only (weight and bias), got '{strange[0]}'")
    weights = [arrays[f"{name}weight"].T.copy() for name in names]
    biases = [arrays.get(f"{name}bias", np.zeros(w.shape[1])) for name, w in zip(names, weights, strict=True)]
    bare = [f"{name}weight" for name in names if f"{name}bias" not in arrays]
    for before, after in pairwise(weights):
        if before.shape[1] != after.shape[0]:
            hint = (
                f"; '{bare[0]}' has no bias: Embedding layers are not supported, supply their columns as indicators"
                if bare
                else ""
            )
            raise BadInput(f"its layers do not match: the outputs of one are not the inputs of the next{hint}")
    notes = ["ReLU is assumed between layers: a state_dict does not contain activations"] if len(names) > 1 else []
    notes += [f"'{bare[0]}' has no bias and is assumed to be a Linear layer without one"] if bare else []
    network = layered(weights, biases)
    if len(weights) == 1:
        linear = LinearModel(network.weights[0], network.biases[0])
        return OwnModel("logistic_regression", linear, len(weights[0]), notes=tuple(notes))
    return OwnModel("neural_network", network, len(weights[0]), notes=tuple(notes))


def _held(name: str, tensor: Any) -> int:
    """How many numbers a tensor has, all of them in its storage: with stride 0, one number could stand for billions."""
    plain = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.is_complex() or tensor.is_quantized or tensor.is_nested:
        raise BadInput(f"'{name}': expected a plain tensor of real numbers, got another kind")
    count = int(tensor.numel())
    if count * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise BadInput(f"'{name}' declares {count:,} numbers but stores fewer; save it again with torch.save")
    return count
