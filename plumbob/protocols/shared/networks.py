"""Networks by name: what a worker of split training computes, rebuilt by anyone who is told its name and sizes.

A network is made by a function of the input's shape and the number of outputs that gives a `torch.nn.Module`: one of the
built-in names, or `package.module:function` for one's own. So a message, a saved view or a plan can say which network is
meant in a line of text, and nothing is unpickled. One's own is code, and is run only where the caller's `Trust` allows it.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput, Unfit, boolean, suggest, whole
from plumbob.files import parse_json
from plumbob.lazy_imports import nn, torch, when_loaded
from plumbob.trust import NO_CODE, Trust

MOST_OUTPUTS, MOST_WIDTH = 10_000, 4_096  # that a plan or a view may ask for
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

    def build(self, trust: Trust = NO_CODE) -> torch.nn.Module:
        """The module, with parameters that mean nothing yet."""

        factory = _factory(self.network, trust)
        with _in_words(self, "expected a function of the inputs' shape and the number of outputs"):
            module: object = factory(self.shape, self.outputs, **_width(self))
        if not isinstance(module, nn.Module):
            raise BadInput(f"{_called(self)}: expected a torch.nn.Module, got {type(module).__name__}")
        return module.to(_dtype(self.double))

    def tried(self, trust: Trust = NO_CODE) -> torch.nn.Module:
        """The same after two rows went through it, forwards and backwards: what does not fit is refused before any work."""
        module = self.build(trust)
        _try(self, module)
        return module

    @property
    def inputs(self) -> int:
        return math.prod(self.shape)

    def to_array(self) -> Array:
        return np.frombuffer(json.dumps(asdict(self)).encode(), dtype=np.uint8)

    @classmethod
    def from_array(cls, array: Array) -> NetworkPlan:
        try:
            raw = parse_json(array.astype(np.uint8).tobytes())
            plan = cls(**(raw | {"shape": tuple(raw["shape"])}))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("this view's message 'network' does not describe a network") from error
        where = "this view's message 'network'"
        if not isinstance(plan.party, str) or not isinstance(plan.network, str) or not 1 <= len(plan.shape) <= 3:
            raise BadInput(f"{where}: expected the names of a party and a network, and a shape of 1 to 3 numbers")
        for number in plan.shape:
            whole(f"{where}: shape", number, 1)
        whole(f"{where}: outputs", plan.outputs, 1, MOST_OUTPUTS)
        whole(f"{where}: width", plan.width, 1, MOST_WIDTH)
        boolean(f"{where}: double", plan.double)
        return plan


def _dtype(double: bool) -> torch.dtype:

    return torch.float64 if double else torch.float32


def _width(plan: NetworkPlan) -> dict[str, int]:
    return {"width": plan.width} if plan.network in NETWORKS else {}


def _try(plan: NetworkPlan, module: torch.nn.Module) -> None:
    """Two rows forwards and backwards: outputs of the right shape, and every parameter with a gradient, or one sentence."""

    rows = torch.full((2, *plan.shape), 0.5, dtype=_dtype(plan.double))
    with evaluating(module), torch.enable_grad(), _in_words(plan, f"it does not accept inputs of shape {plan.shape}"):
        outputs: object = module(rows)
    if not isinstance(outputs, torch.Tensor) or outputs.shape != (2, plan.outputs) or outputs.dtype != rows.dtype:
        got = f"shape {tuple(outputs.shape)}" if isinstance(outputs, torch.Tensor) else type(outputs).__name__
        raise BadInput(
            f"{_called(plan)}: expected {plan.outputs:,} outputs of type {rows.dtype} for each row, "
            f"a tensor of shape {(2, plan.outputs)} for two, got {got}"
        )
    parameters = dict(module.named_parameters())
    if not parameters:
        raise BadInput(f"{_called(plan)}: it has no parameters, so there is nothing to train")
    learnt = {name: p for name, p in parameters.items() if p.requires_grad}
    grads: list[torch.Tensor | None] = []
    if learnt and outputs.requires_grad:
        with _in_words(plan, "it has no gradients"):
            grads = list(torch.autograd.grad(outputs.sum(), list(learnt.values()), allow_unused=True))
    used = {name for name, grad in zip(learnt, grads, strict=False) if grad is not None}
    for name in parameters:
        if name not in used:
            raise BadInput(f"{_called(plan)}: its outputs do not depend on parameter '{name}', so it has no gradient")


def _called(plan: NetworkPlan) -> str:
    return f"network '{plan.network}' of '{plan.party}'"


@contextmanager
def _in_words(plan: NetworkPlan, words: str) -> Iterator[None]:
    """What a network's code raises, whatever it is, as one sentence."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"{_called(plan)}: {words} ({type(error).__name__}: {error})") from error


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Without dropout and without statistics over the batch meanwhile; every part is as it was afterwards."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


def mixing(module: torch.nn.Module) -> str:
    """The kind of the first part that mixes the rows of a batch, so that no row has a gradient of its own; empty for none."""

    return next(
        (type(part).__name__ for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)),
        "",
    )


def drawing(module: torch.nn.Module) -> str:
    """The kind of the first part that draws at random in training, so that a row has another gradient in every round."""

    return next(
        (
            type(part).__name__
            for part in module.modules()
            if isinstance(part, torch.nn.modules.dropout._DropoutNd) and part.p > 0
        ),
        "",
    )


def _cafe(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """jin2021's worker: two convolutions of 5 x 5 with pooling, then fully connected layers, all with ReLU."""

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

    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs))


def _top(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """One layer over all workers' outputs."""

    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), outputs))


def _sum(shape: Shape, outputs: int, width: int) -> torch.nn.Module:
    """The sum of the workers' outputs, with a common bias."""

    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(_zeros(outputs))

        def forward(self, joined: torch.Tensor) -> torch.Tensor:
            return joined.reshape(len(joined), -1, outputs).sum(1) + self.bias

    return Sum()


def _zeros(count: int) -> torch.Tensor:

    return torch.zeros(count)


def bottom_layers(inputs: int, outputs: int, layers: int, bias: bool) -> torch.nn.Module:
    """A party's part below the cut: one linear map, or several with ReLU between them; none after the last."""

    if layers == 1:
        return nn.Linear(inputs, outputs, bias=bias)
    parts: list[nn.Module] = [nn.Linear(inputs, outputs, bias=bias)]
    for _ in range(layers - 1):
        parts += [nn.ReLU(), nn.Linear(outputs, outputs, bias=bias)]
    return nn.Sequential(*parts)


def top_layers(sizes: Sequence[int]) -> torch.nn.Module:
    """The part above the cut: ReLU and a fully connected layer in turn, from the cut's width to the classes."""

    steps = [(nn.ReLU(), nn.Linear(before, after)) for before, after in pairwise(sizes)]
    return nn.Sequential(*(part for step in steps for part in step))


NETWORKS: dict[str, Callable[..., torch.nn.Module]] = {
    "cafe": _cafe,
    "mlp": _mlp,
    "logistic": _logistic,
    "linear": _top,
    "sum": _sum,
}


def _factory(name: str, trust: Trust) -> Callable[..., torch.nn.Module]:
    if name in NETWORKS:
        return NETWORKS[name]
    module, _, function = name.partition(":")
    trust.ask(f"network '{name}' is code of another package")
    try:
        made: Callable[..., torch.nn.Module] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"network '{name}': {error}") from error
    return made


def known_network(what: str, name: object) -> str:
    """The name of a built-in network, or of a function of another package, which is not loaded here; else one sentence.

    >>> known_network("top", "torch.nn:Linear")
    'torch.nn:Linear'
    """
    if not isinstance(name, str):
        raise BadInput(f"{what}: expected the name of a network, got {name!r}")
    if name not in NETWORKS and not name.partition(":")[2]:
        raise BadInput(
            f"no network '{name}'{suggest(name, list(NETWORKS))}; your own is named 'package.module:function'"
        )
    return name


def check_networks(names: Iterable[str], trust: Trust) -> None:
    """Refuse, before any work, networks that may not be loaded or are not there."""
    for name in names:
        _factory(name, trust)


def first_linear(module: torch.nn.Module, inputs: torch.Tensor) -> tuple[str, torch.nn.Linear]:
    """The fully connected layer that is reached first on the way from input to output, by name: found, not assumed."""

    names = {id(part): name for name, part in module.named_modules()}
    reached: list[nn.Linear] = []
    hooks = [
        part.register_forward_pre_hook(lambda part, _: reached.append(part))
        for part in module.modules()
        if isinstance(part, nn.Linear)
    ]
    try:
        with evaluating(module):
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

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread meanwhile: sums in one order, so the same bits on every machine's number of cores.

    It is not loaded for that; where somebody loads it in here, it has one thread from the start.
    """
    before: list[int] = []

    def limit() -> None:
        before.append(torch.get_num_threads())
        torch.set_num_threads(1)

    try:
        with when_loaded("torch", limit):
            yield
    finally:
        if before:
            torch.set_num_threads(before[0])


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Draws of torch in here come from a seed of `rng`, and leave torch's own generator as it was."""

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63 - 1)))
        yield
