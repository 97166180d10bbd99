"""Networks by name: what a worker of split training computes, rebuilt by anyone who is told its name and sizes.

A network is made by a function of the input's shape and the number of outputs that gives a `torch.nn.Module`: one of the
built-in names, or `package.module:function` for one's own. So a message, a saved view or a plan can say which network is
meant in a line of text, and nothing is unpickled. One's own is code, and is run only where that was allowed (`trusting`).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput, Unfit, suggest
from plumbob.files import parse_json

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]  # of one row's input: (columns,) or (channels, height, width)


@dataclass(frozen=True)
class NetworkPlan:
    """One party's network, as text says it."""

    party: str
    network: str
    shape: Shape
    outputs: int
    width: int
    double: bool = False  # 64-bit numbers in place of 32-bit ones

    def build(self) -> torch.nn.Module:
        """The module, with parameters that mean nothing yet."""
        return _factory(self.network)(self.shape, self.outputs, **_width(self)).to(_dtype(self.double))

    @property
    def inputs(self) -> int:
        return int(np.prod(self.shape))

    def to_array(self) -> Array:
        return np.frombuffer(json.dumps(asdict(self)).encode(), dtype=np.uint8)

    @classmethod
    def from_array(cls, array: Array) -> NetworkPlan:
        try:
            raw = parse_json(array.astype(np.uint8).tobytes())
            return cls(**(raw | {"shape": tuple(raw["shape"])}))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("this view's message 'network' does not describe a network") from error


def _dtype(double: bool) -> torch.dtype:
    import torch

    return torch.float64 if double else torch.float32


def _width(plan: NetworkPlan) -> dict[str, int]:
    return {"width": plan.width} if plan.network in NETWORKS else {}


def _cafe(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """jin2021's worker: two convolutions of 5 x 5 with pooling, then fully connected layers, all with ReLU."""
    from torch import nn

    if len(shape) != 3:
        raise BadInput(f"network 'cafe': expected pictures (channels, height, width), got inputs of shape {shape}")
    channels, height, width_ = shape
    side = -(-height // 2), -(-width_ // 2)
    cells = -(-side[0] // 2) * -(-side[1] // 2)
    return nn.Sequential(
        nn.Conv2d(channels, width, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(width, 2 * width, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(2 * width * cells, 4 * width),
        nn.ReLU(),
        nn.Linear(4 * width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
        nn.ReLU(),
    )


def _mlp(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """Two hidden layers, for tables."""
    from torch import nn

    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(int(np.prod(shape)), width),
        nn.ReLU(),
        nn.Linear(width, max(1, width // 2)),
        nn.ReLU(),
        nn.Linear(max(1, width // 2), outputs),
    )


def _logistic(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """One layer: with a top that adds up, the whole is a logistic regression."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs))


def _top(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """One layer over all workers' outputs."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs))


def _sum(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """The sum of the workers' outputs, with a common bias."""
    from torch import nn

    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(_zeros(outputs))

        def forward(self, joined: torch.Tensor) -> torch.Tensor:
            return joined.reshape(len(joined), -1, outputs).sum(1) + self.bias

    return Sum()


def _zeros(count: int) -> torch.Tensor:
    import torch

    return torch.zeros(count)


def bottom_layers(inputs: int, outputs: int, layers: int, bias: bool) -> torch.nn.Module:
    """A party's part below the cut: one linear map, or several with ReLU between them; none after the last."""
    from torch import nn

    if layers == 1:
        return nn.Linear(inputs, outputs, bias=bias)
    parts: list[nn.Module] = [nn.Linear(inputs, outputs, bias=bias)]
    for _ in range(layers - 1):
        parts += [nn.ReLU(), nn.Linear(outputs, outputs, bias=bias)]
    return nn.Sequential(*parts)


def top_layers(sizes: Sequence[int]) -> torch.nn.Module:
    """The part above the cut: ReLU and a fully connected layer in turn, from the cut's width to the classes."""
    from torch import nn

    steps = [(nn.ReLU(), nn.Linear(before, after)) for before, after in pairwise(sizes)]
    return nn.Sequential(*(part for step in steps for part in step))


NETWORKS: dict[str, Callable[..., torch.nn.Module]] = {
    "cafe": _cafe,
    "mlp": _mlp,
    "logistic": _logistic,
    "linear": _top,
    "sum": _sum,
}


_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=False)


@contextmanager
def trusting(code: bool) -> Iterator[None]:
    """Whether networks may be code of other packages, named by a plan, a recorded run or a view. Unless said so, none may.

    >>> with trusting(True):
    ...     known_network("top", "torch.nn:Linear")
    'torch.nn:Linear'
    """
    before = _TRUSTED.set(code)
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def _factory(name: str) -> Callable[..., torch.nn.Module]:
    if name in NETWORKS:
        return NETWORKS[name]
    module, _, function = name.partition(":")
    if not function:
        raise BadInput(
            f"no network '{name}'{suggest(name, list(NETWORKS))}; your own is named 'package.module:function'"
        )
    if not _TRUSTED.get():
        raise BadInput(f"network '{name}' is code of another package; say --trust-code if you trust it")
    try:
        made: Callable[..., torch.nn.Module] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"network '{name}': {error}") from error
    return made


def known_network(what: str, name: object) -> str:
    """The name of a network that can be made, or one sentence."""
    if not isinstance(name, str):
        raise BadInput(f"{what}: expected the name of a network, got {name!r}")
    _factory(name)
    return name


def first_linear(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[str, torch.nn.Linear]:
    """The fully connected layer that is reached first on the way from input to output, by name: found, not assumed."""
    from torch import nn

    names = {id(part): name for name, part in module.named_modules()}
    reached: list[nn.Linear] = []
    hooks = [
        part.register_forward_pre_hook(lambda part, _: reached.append(part))
        for part in module.modules()
        if isinstance(part, nn.Linear)
    ]
    try:
        module(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if not reached:
        raise Unfit(
            "this network has no fully connected layer (torch.nn.Linear), so its gradients do not open this way"
        )
    return names[id(reached[0])], reached[0]


class _Reached(Exception):
    """Stops a forward pass once the wanted layer has its input."""


def representation(module: torch.nn.Module, layer: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """What the given layer gets as its input, one row per row: jin2021's internal representation h."""
    caught: list[torch.Tensor] = []

    def catch(_part: object, arguments: tuple[torch.Tensor, ...]) -> None:
        caught.append(arguments[0])
        raise _Reached

    hook = layer.register_forward_pre_hook(catch)
    try:
        module(inputs)
    except _Reached:
        pass
    finally:
        hook.remove()
    return caught[0]


@contextmanager
def precision(dtype: torch.dtype) -> Iterator[None]:
    """New tensors in here are of this type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread meanwhile: sums in one order, so the same bits on every machine's number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Draws of torch in here come from a seed of `rng`, and leave torch's own generator as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63 - 1)))
        yield
