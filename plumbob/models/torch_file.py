"""PyTorch files: a state_dict of fully connected layers is data; a whole module is code and needs to be allowed.

A state_dict does not say what stands between its layers: ReLU is taken for granted there, and softmax (or a sigmoid, where
there is one output) at the end.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.models.estimators import layered
from plumbob.models.own import OwnModel
from plumbob.protocols import LinearModel

HARMLESS = ("Dropout", "Flatten", "Identity")
LAST = ("Softmax", "Sigmoid")


def read_torch(data: bytes, *, trust_code: bool) -> OwnModel:
    """The network of such a file."""
    import torch

    try:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if data[:2] != b"PK":
            raise BadInput("it is no file of torch.save, or not whole") from error
        if not trust_code:
            raise BadInput(
                "it holds more than weights, and reading that runs code; save model.state_dict(), or say --trust-code "
                "if you trust it"
            ) from error
        loaded = _module(torch.load(io.BytesIO(data), map_location="cpu", weights_only=False))
    except (RuntimeError, AssertionError) as error:
        raise BadInput("it is no file of torch.save, or not whole") from error
    return _own(loaded)


def _module(module: Any) -> Any:
    """The state_dict of a chain of layers that Plumbob knows."""
    from torch import nn

    if not isinstance(module, nn.Module):
        return module
    parts = [part for part in module.modules() if not list(part.children())]
    kinds = [type(part).__name__ for part in parts if type(part).__name__ not in HARMLESS]
    kinds = kinds[:-1] if kinds and kinds[-1] in LAST else kinds
    wanted = ["Linear", "ReLU"] * len(kinds)
    if kinds != wanted[: len(kinds)] or not kinds or kinds[-1] != "Linear":
        raise BadInput(f"expected Linear and ReLU in turn, with Linear last, got {', '.join(kinds[:8]) or 'no layers'}")
    return module.state_dict()


def _own(loaded: Any) -> OwnModel:
    state = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(state, Mapping) or not state:
        raise BadInput(f"expected a state_dict of fully connected layers, got {type(loaded).__name__}")
    arrays = {str(name): np.asarray(tensor.detach().double().numpy()) for name, tensor in state.items()}
    names = [name.removesuffix("weight") for name, array in arrays.items() if name.endswith("weight")]
    known = {f"{name}{part}" for name in names for part in ("weight", "bias")}
    strange = [name for name in arrays if name not in known or arrays[name].ndim > 2]
    strange += [f"{name}weight" for name in names if arrays[f"{name}weight"].ndim != 2]
    if strange:
        raise BadInput(f"expected fully connected layers only (weight and bias), got '{strange[0]}'")
    weights = [arrays[f"{name}weight"].T.copy() for name in names]
    biases = [arrays.get(f"{name}bias", np.zeros(w.shape[1])) for name, w in zip(names, weights, strict=True)]
    for before, after in pairwise(weights):
        if before.shape[1] != after.shape[0]:
            raise BadInput("its layers do not follow one another: the outputs of one are not the inputs of the next")
    network = layered(weights, biases)
    if len(weights) == 1:
        return OwnModel("logistic_regression", LinearModel(network.weights[0], network.biases[0]), len(weights[0]))
    return OwnModel("neural_network", network, len(weights[0]))
