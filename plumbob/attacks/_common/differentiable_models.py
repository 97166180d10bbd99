"""Joint models as torch functions, for attacks that need gradients through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.lazy_imports import Tensor, torch
from plumbob.protocols.scores.split_models import LocalModel, SplitModel

Logits = Callable[[Tensor], Tensor]
SQUASH = ("sigmoid", "tanh", "relu")


def logits_of(protocol: str, arrays: Mapping[str, Array], dtype: torch.dtype | None = None) -> Logits:
    """Rows (all columns of the joint model) to unnormalised log scores; softmax gives the scores."""
    dtype = dtype or torch.float32
    tensors = (
        {} if protocol == "split_models" else {name: torch.tensor(array, dtype=dtype) for name, array in arrays.items()}
    )
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
    if protocol == "split_models":
        parts = [local_outputs(local, dtype) for local in SplitModel.from_arrays(arrays).locals]
        columns = [torch.tensor(local.columns) for local in SplitModel.from_arrays(arrays).locals]
        return lambda x: torch.stack([part(x[:, c]) for part, c in zip(parts, columns, strict=True)]).sum(dim=0)
    raise BadInput(f"'{protocol}' has no gradients; a surrogate of it has")


def local_outputs(local: LocalModel, dtype: torch.dtype | None = None) -> Logits:
    """One party's model of its own columns, in the order it holds them."""
    dtype = dtype or torch.float32
    weights = [torch.tensor(array, dtype=dtype) for array in local.weights]
    biases = [torch.tensor(array, dtype=dtype) for array in local.biases]
    return lambda x: layered(x, weights, biases, local.activation)


def layered(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str) -> Tensor:
    """Fully connected layers with an activation between them and none on the output."""
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = torch.addmm(bias, getattr(torch, activation)(x) if i else x, weight)
    return x
