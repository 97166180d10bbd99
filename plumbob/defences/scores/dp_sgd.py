"""Differentially private training (jiang2022, Section 6.1.2): DP-SGD with Opacus.

Each step draws rows at random (rate q), clips every row's gradient to length `clip` and adds Gaussian noise of
scale `noise x clip` to their sum; the noise is the least that keeps all steps together within (epsilon, delta). That protects
the rows that train. The rows that are predicted get no noise at all: what their scores tell of them is another matter.
Models per party are trained together: a row's gradient is that of all parties' parameters, clipped as one.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from plumbob.defences.base import Defence, OtherwiseTrained
from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import dp_accounting, nn, opacus, torch
from plumbob.protocols.base import Model, Protocol, all_classes
from plumbob.protocols.scores.logistic_regression import LinearModel, LogisticRegression
from plumbob.protocols.scores.neural_network import Network, NeuralNetwork
from plumbob.protocols.scores.split_models import SplitModel, SplitModels, first_scale, local_model
from plumbob.setting_sources import ours, printed

BATCH = 256  # rows per step on average
# Renyi orders. Opacus's own list ends at 63, too low for small epsilons: at 0.1 and 20,000 rows it books 27 % too much.
ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 80, 96, 128, 192, 256, 512, 1024)
RATE = 0.05  # learning rate of Adam for the linear model, whose own trainer has none


@contextmanager
def _quiet() -> Iterator[None]:
    """Opacus warns of hooks and of its random numbers; both are as intended here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache  # the search takes most of a second, and trials and splits ask the same
def noise_for(epsilon: float, delta: float, rate: float, steps: int, what: str = "dp_sgd") -> float:
    """The least noise multiplier that keeps within epsilon, by Opacus's accountant."""
    with _quiet():
        try:
            found = opacus.accountants.utils.get_noise_multiplier(
                target_epsilon=epsilon,
                target_delta=delta,
                sample_rate=rate,
                steps=steps,
                accountant="rdp",
                epsilon_tolerance=0.01 * epsilon,
                alphas=list(ORDERS),
            )
        except ValueError as error:
            raise BadInput(
                f"{what}: expected an epsilon that is reachable with some noise level, got {epsilon}"
            ) from error
    return float(found)


def spent(noise: float, delta: float, rate: float, steps: int) -> tuple[float, float]:
    """Epsilon after that many steps, by Opacus and by dp-accounting: two accountants that must agree."""
    with _quiet():
        ours = opacus.accountants.RDPAccountant()
        ours.history = [(noise, rate, steps)]
        event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
        theirs = dp_accounting.rdp.RdpAccountant(list(ORDERS)).compose(event, steps)
        return float(ours.get_epsilon(delta, alphas=list(ORDERS))), float(theirs.get_epsilon(delta))


def sizes_of(rows: int, batch: int, epochs: int) -> tuple[float, int]:
    """Sampling rate and number of steps."""
    rate = min(1.0, batch / rows)
    return rate, max(1, round(epochs / rate))


class PrivateTraining(OtherwiseTrained):
    """Logistic regression, a neural network or models per party, trained with DP-SGD."""

    def __init__(
        self,
        inner: LogisticRegression | NeuralNetwork | SplitModels,
        epsilon: float,
        delta: float | None,
        clip: float,
        epochs: int,
    ) -> None:
        super().__init__(inner)
        self.epsilon, self.delta, self.clip, self.epochs = epsilon, delta, clip, epochs

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Model:
        if getattr(self.inner, "dropout", 0.0):
            raise BadInput("dp_sgd: expected a network without dropout, got one with dropout; use one of the two")
        all_classes("dp_sgd", label, classes)
        delta = self.delta if self.delta is not None else 1.0 / len(values)
        rate, steps = sizes_of(len(values), BATCH, self.epochs)
        private = PrivateSteps(rate, steps, noise_for(self.epsilon, delta, rate, steps), self.clip)
        if isinstance(self.inner, SplitModels):
            places = [np.sort(block) for block in blocks] or [np.arange(values.shape[1])]
            return train_by_party(self.inner, values, label, classes, places, private, rng)
        network = isinstance(self.inner, NeuralNetwork)
        hidden = self.inner.hidden if isinstance(self.inner, NeuralNetwork) else ()
        speed = self.inner.rate if isinstance(self.inner, NeuralNetwork) else RATE
        layers = train(values, label, (values.shape[1], *hidden, classes), speed, private, rng)
        if network:
            return Network(tuple(w for w, _ in layers), tuple(b for _, b in layers))
        weights, bias = layers[0]
        return LinearModel(weights - weights.mean(axis=1, keepdims=True), bias - bias.mean())

    def __repr__(self) -> str:
        return f"PrivateTraining({self.inner!r}, {self.epsilon}, {self.delta}, {self.clip}, {self.epochs})"


@dataclass(frozen=True)
class PrivateSteps:
    """Sampling rate, number of steps, noise multiplier and the length to which a row's gradient is clipped."""

    rate: float
    steps: int
    noise: float
    clip: float


def train(
    values: FloatArray,
    label: IntArray,
    sizes: Sequence[int],
    speed: float,
    private: PrivateSteps,
    rng: np.random.Generator,
) -> list[tuple[FloatArray, FloatArray]]:
    """Weights and biases of each layer after that many private steps."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    layers = [nn.Linear(before, after) for before, after in pairwise(sizes)]
    for layer in layers:
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
        nn.init.zeros_(layer.bias)
    if len(layers) == 1:
        nn.init.zeros_(layers[0].weight)
    network = nn.Sequential(*[s for one in layers for s in (one, nn.ReLU())][:-1])
    descend(network, values, label, speed, private, generator)
    return [_arrays(one) for one in layers]


def train_by_party(
    protocol: SplitModels,
    values: FloatArray,
    label: IntArray,
    classes: int,
    places: Sequence[IntArray],
    private: PrivateSteps,
    rng: np.random.Generator,
) -> SplitModel:
    """All parties' models after that many private steps; a linear part has no bias, as without the defence."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    widths = (*[protocol.width] * protocol.layers, 1 if classes == 2 else classes)
    squash = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU}[protocol.activation]
    parts: list[list[torch.nn.Linear]] = []
    for place in places:
        layers = [nn.Linear(a, b, bias=protocol.layers > 0) for a, b in pairwise((len(place), *widths))]
        for i, layer in enumerate(layers):
            gain = first_scale(protocol.activation, hidden=i < len(layers) - 1) if protocol.layers else 0.0
            nn.init.xavier_uniform_(layer.weight, gain=gain, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        parts.append(layers)

    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(
                nn.Sequential(*[s for layer in layers for s in (layer, squash())][:-1]) for layers in parts
            )

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            outputs = [part(rows[:, place]) for part, place in zip(self.parts, places, strict=True)]
            total = torch.stack(outputs).sum(dim=0)
            return torch.cat([-total, total], dim=1) / 2 if classes == 2 else total

    descend(Sum(), values, label, protocol.rate if protocol.layers else RATE, private, generator)
    trained = [[_arrays(layer) for layer in layers] for layers in parts]
    return SplitModel(
        tuple(
            local_model(
                place, [_centred(w, protocol.layers) for w, _ in layers], [b for _, b in layers], protocol.activation
            )
            for place, layers in zip(places, trained, strict=True)
        )
    )


def _centred(weights: FloatArray, layers: int) -> FloatArray:
    """Linear parts without the shift that softmax hides, as the usual trainer leaves them."""
    return weights if layers or weights.shape[1] == 1 else weights - weights.mean(axis=1, keepdims=True)


def _arrays(layer: torch.nn.Linear) -> tuple[FloatArray, FloatArray]:
    weights = layer.weight.detach().double().numpy().T.copy()
    return weights, np.zeros(weights.shape[1]) if layer.bias is None else layer.bias.detach().double().numpy().copy()


def descend(
    module: torch.nn.Module,
    values: FloatArray,
    label: IntArray,
    speed: float,
    private: PrivateSteps,
    generator: torch.Generator,
) -> None:
    """The private steps: rows at random, each row's gradient clipped, noise on their sum, Adam."""
    with _quiet():
        network: Any = opacus.GradSampleModule(module)
        optimiser: Any = opacus.optimizers.DPOptimizer(
            torch.optim.Adam(network.parameters(), lr=speed),
            noise_multiplier=private.noise,
            max_grad_norm=private.clip,
            expected_batch_size=max(1, round(private.rate * len(values))),
            generator=generator,
        )
        inputs, targets = torch.tensor(values, dtype=torch.float32), torch.tensor(label)
        for _ in range(private.steps):
            rows = torch.nonzero(torch.rand(len(inputs), generator=generator) < private.rate)[:, 0]
            if (
                len(rows) == 0
            ):  # has a chance of e^-256 where there are more rows than a batch, and none where there are not
                continue
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(inputs[rows]), targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimiser.step()


class DpSgd(Defence):
    """Models trained with DP-SGD to (`epsilon`, `delta`); `delta: null` is one over the number of training rows."""

    name = "dp_sgd"
    identity = "DpSgd(epsilon, delta, clip, epochs)"
    summary = (
        "logistic regression, networks and models per party are trained with DP-SGD; other protocols are unchanged"
    )
    point = "training"
    paper = "jiang2022"
    sources = {
        "epsilon": printed("Section 6.1.2: 0.1, 1 and 10"),
        "delta": ours("one over the rows; Section 6.1.2 names none"),
        "clip": printed("Section 6.1.2: gamma = 1"),
        "epochs": ours("Section 6.1.2 names none"),
    }
    sweep_settings = ({"epsilon": 10.0}, {"epsilon": 1.0}, {"epsilon": 0.1})
    presets = {"small": {"epochs": 2}}

    def __init__(
        self, *, epsilon: float = 1.0, delta: float | None = None, clip: float = 1.0, epochs: int = 20
    ) -> None:
        if not epsilon > 0:
            raise BadInput(f"dp_sgd: expected an epsilon above 0, got {epsilon}")
        if delta is not None and not 0 < delta < 1:
            raise BadInput(f"dp_sgd: expected a delta above 0 and below 1, got {delta}")
        if not clip > 0:
            raise BadInput(f"dp_sgd: expected a clip above 0, got {clip}")
        if epochs < 1:
            raise BadInput(f"dp_sgd: expected at least 1 epoch, got {epochs}")
        self.epsilon = epsilon
        self.delta = delta
        self.clip = clip
        self.epochs = epochs

    def protect(self, protocol: Protocol) -> Protocol:
        if not isinstance(protocol, LogisticRegression | NeuralNetwork | SplitModels):
            return protocol
        return PrivateTraining(copy.copy(protocol), self.epsilon, self.delta, self.clip, self.epochs)

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            Guarantee(
                unit="one row of the training data with all its columns and its label: one person, if each has one row",
                neighbours="one training row is added or left out",
                epsilon=self.epsilon,
                delta="one over the number of training rows" if self.delta is None else f"{self.delta:g}",
                trust="central: whoever trains the model sees all columns of all parties in the clear",
                mechanism=f"Gaussian noise on sums of gradients, each clipped to length {self.clip:g}",
                composition="all steps of one training together, with batches drawn at random, by a Rényi accountant",
                hazards=(
                    "It protects the people whose rows train the model. Rows that are predicted, and what is exchanged about "
                    "them, get no noise.",
                    *SHARED_HAZARDS,
                ),
            ),
        )
