"""A neural network over any number of parties: each holds its rows of the first layer, the coordinator all the rest.

First layer: h = relu(sum_p x_p W_p + b); each party sends x_p W_p, so only sums of many columns cross.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.special import softmax

from plumbob.bundle import Array
from plumbob.errors import BadInput, positive, whole
from plumbob.federation import FloatArray, IntArray, Party
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.base import Model, PredictionProtocol, all_classes, check_weights
from plumbob.protocols.shared.adam import Adam


@dataclass(frozen=True)
class Network(Model):
    """Fully connected layers with ReLU between them and softmax at the end."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    def arrays(self) -> dict[str, Array]:
        layers = enumerate(zip(self.weights, self.biases, strict=True))
        return {f"{kind}{i}": array for i, pair in layers for kind, array in zip("wb", pair, strict=True)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        depth = len(arrays) // 2
        return cls(
            tuple(np.asarray(arrays[f"w{i}"]) for i in range(depth)),
            tuple(np.asarray(arrays[f"b{i}"]) for i in range(depth)),
        )

    def scores(self, values: FloatArray) -> FloatArray:
        return self.above(values @ self.weights[0])

    def above(self, sums: FloatArray) -> FloatArray:
        """Scores from the parties' sums at the first layer."""
        hidden = sums + self.biases[0]
        for weights, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = np.maximum(hidden, 0) @ weights + bias
        return np.asarray(softmax(hidden, axis=1))

    def reordered(self, order: IntArray) -> Self:
        return type(self)((self.weights[0][order], *self.weights[1:]), self.biases)

    def part(self, columns: IntArray) -> dict[str, Array]:
        return {"weights": self.weights[0][columns]}


class NeuralNetwork(PredictionProtocol):
    """luo2021's network: three hidden layers of 600, 300 and 100 units."""

    name = "neural_network"
    identity = "NeuralNetwork(hidden, epochs, batch, rate, dropout)"
    summary = "neural network with hidden layers of 600, 300 and 100 units"
    cost_terms = ("1", "e N / batch", "e N w")  # each epoch each row meets each weight
    presets = {"small": {"hidden": (16, 8), "epochs": 3}}

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (600, 300, 100),
        epochs: int = 20,
        batch: int = 256,
        rate: float = 1e-3,
        dropout: float = 0.0,
    ) -> None:
        if not 0 <= dropout < 1:
            raise BadInput(f"neural network: expected a dropout of 0 or more and below 1, got {dropout}")
        self.hidden = tuple(whole("neural network: hidden layer", size, 1, 100_000) for size in hidden)
        check_weights("neural network: hidden", self.hidden)
        self.epochs = whole("neural network: epochs", epochs, 1)
        self.batch = whole("neural network: batch", batch, 1)
        self.rate = positive("neural network: rate", rate)
        self.dropout = dropout  # share of hidden units silenced at each step of training

    def fits(self, columns: int, classes: int) -> None:
        check_weights("neural network: hidden", (columns, *self.hidden, classes))

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Network:
        all_classes("neural network", label, classes)

        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        sizes = (values.shape[1], *self.hidden, classes)
        layers = [nn.Linear(before, after) for before, after in pairwise(sizes)]
        for layer in layers:  # He's initialisation, from our own generator
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(layer.bias)
        network = nn.ModuleList(layers)

        def logits(hidden: torch.Tensor) -> torch.Tensor:
            for layer in layers[:-1]:
                hidden = torch.relu(layer(hidden))
                if self.dropout:
                    kept = torch.rand(hidden.shape, generator=generator) >= self.dropout
                    hidden = hidden * kept / (1.0 - self.dropout)
            return torch.as_tensor(layers[-1](hidden))

        optimiser = Adam(network.parameters(), lr=self.rate)
        inputs, targets = torch.tensor(values, dtype=torch.float32), torch.tensor(label)
        for _ in range(self.epochs):
            for rows in torch.split(torch.randperm(len(inputs), generator=generator), self.batch):
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(logits(inputs[rows]), targets[rows])
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves this method untyped
                optimiser.step()
        return Network(
            tuple(layer.weight.detach().double().numpy().T.copy() for layer in layers),
            tuple(layer.bias.detach().double().numpy().copy() for layer in layers),
        )

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        return np.asarray(party.values[rows] @ part["weights"])

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        assert isinstance(model, Network)
        return model.above(np.asarray(sum(answers.values())))
