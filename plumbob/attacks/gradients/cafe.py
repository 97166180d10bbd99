"""CAFE (jin2021, Algorithm 3): the server's gradients inverted in three steps, each by descent over all batches.

    I    V: the rows' gradients at the first fully connected layer's outputs.  F1 = |sum of v_n in the batch - bias gradient|^2
    II   H: what the rows put into that layer.                     F2 = |sum of v_n h_n' in the batch - weight gradient|^2
    III  Data and labels.   F3 = alpha |gradient - made-up gradient|^2 + beta TV + gamma sum of |h*_n - h(x_n)|^2
TV is the pictures' total variation, and counts only while its mean over workers is above xi. In a network that begins with its
fully connected layer h is the row itself, so there Step III looks for the labels only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Self, get_args

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients._gradient_matching import (
    Dummies,
    MadeUpBatch,
    MatchingServer,
    Reporter,
    RowAdam,
    ServerAttack,
    move,
    seed_of,
    squared,
    variation,
)
from plumbob.attacks.gradients._table_nine import TABLE_9, Rates
from plumbob.attacks.gradients._worker_uploads import Worker
from plumbob.errors import BadInput, Unfit, not_negative, one_of, positive, whole
from plumbob.lazy_imports import Tensor, torch
from plumbob.protocols.shared.networks import first_linear, representation
from plumbob.setting_sources import authors, ours, printed
from plumbob.setting_types import NotNegative, Whole

CafeOptimizer = Literal["sgd", "adam"]
START_V, START_H = 8e-4, 8e-2  # V starts in U(-8e-4, 8e-4), H in U(0, 8e-2)
# Xi where rates are given and it is not, per pair of neighbouring pixels: what Table 9's is for CIFAR-10 and MNIST
DEFAULT_XI_PER_PAIR = 1 / 16
FAST = {"iterations": 300, "rates": (1e-2, 1e-2, 1e-2)}  # ours, and without a row of Table 9


class Cafe(ServerAttack):
    """Nested loops: all iterations of one step before the next begins. Where no rates are given, the row of Table 9 that fits."""

    name = "cafe"
    aliases = ("CAFE",)
    identity = "Cafe(iterations, report_every, earlier, rates, first_step, alpha, beta, gamma, xi)"
    summary = "jin2021: recovers gradients, then layer inputs, then data and labels by descent (nested loops)"
    nested: ClassVar[bool] = True
    presets = {"fast": FAST, "small": FAST | {"iterations": 20}}
    sources = {
        "iterations": printed("Table 5, for the data that fit"),
        "earlier": printed("Table 5: as many of each step"),
        "rates": printed("Table 9, for the data that fit"),
        "first_step": authors("cafe.py"),
        "alpha": printed("Table 9"),
        "beta": printed("Table 9"),
        "gamma": printed("Table 9"),
        "xi": printed("Table 9, for the data that fit; in proportion to the pixels of a tile"),
        "report_every": ours("how often the guess so far is kept; it changes no guess"),
    }

    def __init__(
        self,
        *,
        iterations: Whole | None = None,
        earlier: Whole | None = None,
        rates: Rates | None = None,
        first_step: CafeOptimizer = "sgd",
        alpha: NotNegative = 1e-2,
        beta: NotNegative = 1e-4,
        gamma: NotNegative = 1e-3,
        xi: NotNegative | None = None,
        report_every: Whole | None = None,
    ) -> None:
        self._store_length(iterations, report_every)
        if earlier is not None and not self.nested:
            raise BadInput("earlier: expected no value for a single loop, where all steps run together")
        self.earlier = None if earlier is None else whole("earlier", earlier, 1)  # iterations of Steps I and II
        if rates is not None and len(rates) != 3:
            raise BadInput(f"rates: expected one for each of three steps, got {len(rates)}")
        self.rates = (
            None
            if rates is None
            else (positive("rates", rates[0]), positive("rates", rates[1]), positive("rates", rates[2]))
        )
        one_of("first_step", first_step, get_args(CafeOptimizer))
        self.first_step = first_step
        self.alpha, self.beta = not_negative("alpha", alpha), not_negative("beta", beta)
        self.gamma = not_negative("gamma", gamma)
        self.xi = None if xi is None else not_negative("xi", xi)

    @classmethod
    def for_data(cls, name: str, *, iterations: int | None = None, earlier: int | None = None) -> Self:
        """With the rates and xi that jin2021 took for one of its data sets, whatever the shape of the data.

        >>> Cafe.for_data("cifar10", iterations=8_000).rates
        (0.005, 0.008, 0.02)
        """
        one_of("data", name, list(TABLE_9))
        return cls(iterations=iterations, earlier=earlier, rates=TABLE_9[name].rates, xi=TABLE_9[name].xi)

    def descend(self, server: MatchingServer, rng: np.random.Generator) -> Guess:
        state = CafeState(self, server, seed_of(rng))
        reporter = Reporter(server, self)
        for iteration in self._steps(state):
            state.third(iteration)
            reporter.after(iteration, state.parts)
        return reporter.guess(state.parts(), state.dummies.logits.values)

    def _steps(self, state: CafeState) -> Iterator[int]:
        """The iterations of Step III, with Steps I and II taken where the algorithm has them."""
        for step in (state.first, state.second):
            for iteration in range(self.earlier or state.length):
                step(iteration)
        yield from range(state.length)


class CafeState:
    """An attack under way."""

    def __init__(self, attack: Cafe, server: MatchingServer, generator: torch.Generator) -> None:
        self.attack, self.server = attack, server
        self.layers = {worker.name: FirstLayerDescent(server, worker, generator) for worker in server.uploads.attacked}
        hidden = [w for w in server.uploads.attacked if not self.layers[w.name].is_input]
        self.dummies = Dummies.drawn(server, generator, hidden)
        self.tiles = [w.name for w in hidden if w.name in server.pictures]
        pairs = [c * (h * (w - 1) + w * (h - 1)) for c, h, w in (server.pictures[name] for name in self.tiles)]
        row = server.published
        self.length, self.rates = attack.length(server), attack.rates or row.rates
        per_pair = row.xi_per_pair if attack.rates is None else DEFAULT_XI_PER_PAIR
        self.xi = attack.xi if attack.xi is not None else per_pair * float(np.mean(pairs)) if pairs else 0.0

    def first(self, iteration: int) -> float:
        """Step I on one batch; the largest F1 of a worker before it."""
        rate, kind = self.rates[0], self.attack.first_step
        return max(layer.descend_v(iteration, rate, kind) for layer in self.layers.values())

    def second(self, iteration: int) -> float:
        """Step II on one batch; the largest F2 of a worker before it."""
        return max(layer.descend_h(iteration, self.rates[1]) for layer in self.layers.values())

    def third(self, iteration: int) -> float:
        """Step III on one batch; F3 before it."""
        fixed = {name: layer.as_input() for name, layer in self.layers.items() if layer.is_input}
        return move(self.server, self.dummies, self.objective, self.rates[2], iteration, fixed)

    def objective(self, batch: MadeUpBatch) -> Tensor:
        """F3."""
        attack = self.attack
        terms = [torch.zeros(())]
        if attack.alpha > 0:
            terms.append(attack.alpha * squared(batch.pairs()))
        if attack.beta > 0 and self.tiles:
            rough = torch.stack([variation(batch.inputs[name]) for name in self.tiles])
            if float(rough.detach().mean()) > self.xi:
                terms.append(attack.beta * rough.sum())
        if attack.gamma > 0:
            for name in self.dummies.data:
                off = batch.caught[name][0].flatten(1) - self.layers[name].h.values[batch.rows]
                terms.append(attack.gamma * off.square().sum())
        return torch.stack(terms).sum()

    def parts(self) -> dict[str, Tensor]:
        """The workers' columns as they stand."""
        found = {name: part.values for name, part in self.dummies.data.items()}
        return found | {name: layer.h.values for name, layer in self.layers.items() if layer.is_input}


class FirstLayerDescent:
    """A worker's first fully connected layer: V and H, and the descent on F1 and F2."""

    def __init__(self, server: MatchingServer, worker: Worker, generator: torch.Generator) -> None:
        self.server, self.worker, self.name = server, worker, worker.name
        module = server.modules[worker.name]
        probe = torch.rand(2, *worker.plan.shape, generator=generator)
        with torch.no_grad():
            key, layer = first_linear(module, probe)
            inner = representation(module, layer, probe).flatten(1)
        if layer.bias is None:
            raise Unfit(f"the first fully connected layer of '{worker.name}' has no bias")
        self.weight, self.bias = f"{key}.weight", f"{key}.bias"
        self.is_input = inner.shape == probe.flatten(1).shape and bool(torch.equal(inner, probe.flatten(1)))
        self.rounds = server.rounds(worker.name, self.bias), server.rounds(worker.name, self.weight)
        if not all(self.rounds):
            raise BadInput(f"this attack needs gradients of '{worker.name}', and the view holds none of '{key}'")
        outputs, inputs = layer.weight.shape
        self.v = RowAdam(START_V * (2 * torch.rand(server.rows, outputs, generator=generator) - 1))
        self.h = RowAdam(START_H * torch.rand(server.rows, inputs, generator=generator))
        server.catch_inputs(worker.name, layer)

    def descend_v(self, iteration: int, rate: float, kind: CafeOptimizer) -> float:
        """F1 on one batch, and a step down. Beyond a rate of 1 / (2 K) descent would overshoot, so it stops there."""
        number = self.rounds[0][iteration % len(self.rounds[0])]
        rows = self.server.batches[number]
        off = self.v.values[rows].sum(0) - self.server.gradient(self.name, self.bias, number)
        if kind == "adam":
            self.v.step(rows, (2 * off).expand(len(rows), -1), rate, iteration)
        else:
            self.v.values[rows] -= min(rate, 0.5 / len(rows)) * 2 * off
        return float(off.square().sum())

    def descend_h(self, iteration: int, rate: float) -> float:
        """F2 on one batch, and a step of Adam down."""
        number = self.rounds[1][iteration % len(self.rounds[1])]
        rows = self.server.batches[number]
        v = self.v.values[rows]
        real = self.server.gradient(self.name, self.weight, number).view(self.v.values.shape[1], -1)
        off = torch.addmm(real, v.T, self.h.values[rows], beta=-1)
        self.h.step(rows, 2 * v @ off, rate, iteration)
        return float(off.square().sum())

    def as_input(self) -> Tensor:
        return self.h.values.reshape(-1, *self.worker.plan.shape)
