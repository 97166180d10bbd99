"""Joint models as torch functions, for attacks that need gradients through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from plumbob.bundle import Array
from plumbob.errors import BadInput

Logits = Callable[[Tensor], Tensor]


def logits_of(protocol: str, arrays: Mapping[str, Array], dtype: torch.dtype = torch.float32) -> Logits:
    """Rows (all columns of the joint model) to unnormalised log scores; softmax gives the scores."""
    tensors = {name: torch.tensor(array, dtype=dtype) for name, array in arrays.items()}
    if protocol == "logistic_regression":
        return lambda x: x @ tensors["weights"] + tensors["bias"]
    if protocol == "neural_network":
        depth = len(tensors) // 2

        def network(x: Tensor) -> Tensor:
            for i in range(depth):
                x = x @ tensors[f"w{i}"] + tensors[f"b{i}"]
                x = torch.relu(x) if i < depth - 1 else x
            return x

        return network
    raise BadInput(f"'{protocol}' has no gradients; a surrogate of it has")
