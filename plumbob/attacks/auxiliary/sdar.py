"""SDAR (zhu2025, Section III): a simulator of the others' bottom models that the top model accepts, and a decoder of it.

Needs complete rows of other people and their labels, not their embeddings. With X' and y' of theirs, Z and y of the federation:
    simulator E   cross-entropy(y', top(E(X')))  +  l1 (Z and E(X') look alike to a discriminator)
    decoder   D   |X' - D(E(X'), y')|^2          +  l2 (D(Z, y) and X' look alike to a discriminator)       guess = D(Z, y)
Discriminators are told the label and learn at l1 and l2 times the rates of what they judge. The paper takes its steps while the
victim trains; here all are taken against the trained model. It has pictures and convolutions, here are columns and layers
as the active party's own part has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from plumbob.attacks.auxiliary._told_embeddings import CONSTANT, SILENT, labels_of, other_people, told
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.bundle import Array
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.networks import bottom_layers
from plumbob.setting_sources import authors
from plumbob.setting_types import Count, NotNegative, Positive
from plumbob.threats import AuxiliaryRows, View

DROPOUT, SLOPE = 0.4, 0.2  # of discriminators, as in the authors' code
LABELLED = 50  # numbers that stand for a label
OTHER_TOP = "this top model is not one of layers with ReLU between them, so no simulator can be held against it"
NO_LABEL = "this view has no label of the auxiliary rows"


class Sdar(Attack):
    """Simulator decoding with adversarial regularisation, for `iterations` steps of `batch` rows."""

    name = "sdar"
    identity = "SDAR(iterations, batch, simulator_rate, decoder_rate, simulator_weight, decoder_weight)"
    summary = "SDAR: trains a simulator of the bottom models on other people's rows, and a decoder of its embeddings"
    paper = "zhu2025"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("split_network",)
    requires = (AuxiliaryRows,)
    cost_terms = ("1", "n", "u")
    by_default = False
    presets = {"fast": {"iterations": 2_000}, "small": {"iterations": 20, "batch": 32}}
    sources = {
        "iterations": authors("scripts/run_sdar.py"),
        "batch": authors("scripts/run_sdar.py"),
        "simulator_rate": authors("src/util/util.py"),
        "decoder_rate": authors("src/util/util.py"),
        "simulator_weight": authors("src/util/util.py"),
        "decoder_weight": authors("src/util/util.py"),
    }

    def __init__(
        self,
        *,
        iterations: Count = 20_000,
        batch: Count = 128,
        simulator_rate: Positive = 1e-3,
        decoder_rate: Positive = 5e-4,
        simulator_weight: NotNegative = 0.02,
        decoder_weight: NotNegative = 1e-5,
    ) -> None:
        self.iterations, self.batch = iterations, max(2, batch)
        self.simulator_rate, self.decoder_rate = simulator_rate, decoder_rate
        self.simulator_weight = simulator_weight  # lambda_1
        self.decoder_weight = decoder_weight  # lambda_2

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        rows, seen, labels = other_people(view, "sdar"), told(view), labels_of(view)
        if seen is None or seen.constant:
            return nothing(view, SILENT if seen is None else CONSTANT)
        top = layers_of(view.notes, "top/")
        if labels is None or not top or seen.asked.shape[1] % top[0][0].shape[1]:
            return nothing(view, NO_LABEL if labels is None else OTHER_TOP)
        # The top model gets the sum over all parties.
        cells = seen.asked.reshape(len(seen.asked), -1, top[0][0].shape[1]).sum(axis=1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**62)))
            world = _World(self, view, rows, cells, labels)
            for _ in range(self.iterations):
                world.step()
            return Guess(view.unknown_names, np.clip(world.decoded(), 0.0, 1.0))


class _World:
    """Simulator, decoder and the two that judge them, and what they are trained on."""

    def __init__(
        self, attack: Sdar, view: View, rows: FloatArray, cells: FloatArray, labels: tuple[IntArray, IntArray]
    ) -> None:
        own, top = layers_of(view.notes, "own bottom/"), layers_of(view.notes, "top/")
        layers = max(1, len(own))  # as deep as the own part
        self.attack, self._top = attack, top
        self.cells, self.labels = _tensor(cells), torch.tensor(labels[0])
        self.hidden, self.others = _tensor(rows[:, view.unknown]), torch.tensor(labels[1])
        self.known = through(own, _tensor(rows[:, view.known])) if own else torch.zeros(len(rows), cells.shape[1])
        columns, width, classes = len(view.unknown), cells.shape[1], len(view.classes)
        self.simulator = bottom_layers(columns, width, layers, bias=True)
        self.decoder = _Judge(classes, width, (max(width, columns),) * layers, columns, decodes=True)
        self.alike = _Judge(classes, width, (2 * width, 2 * width), 1)
        self.real = _Judge(classes, columns, (2 * width, 2 * width), 1)
        rates = (attack.simulator_rate, attack.decoder_rate)
        self.steps = [_adam(self.simulator, rates[0]), _adam(self.alike, rates[0] * attack.simulator_weight)]
        self.steps += [_adam(self.decoder, rates[1]), _adam(self.real, rates[1] * attack.decoder_weight)]

    def top(self, joined: torch.Tensor) -> torch.Tensor:
        """What the active party's top model makes of the sum of all embeddings."""
        return through(self._top, nn.functional.relu(joined))

    def step(self) -> None:
        """One of each: simulator, its judge, decoder, its judge."""
        attack = self.attack
        mine, theirs = _drawn(len(self.cells), attack.batch), _drawn(len(self.hidden), attack.batch)
        z, y, x, label = self.cells[mine], self.labels[mine], self.hidden[theirs], self.others[theirs]
        simulated = self.simulator(x)
        fits = nn.functional.cross_entropy(self.top(simulated + self.known[theirs]), label)
        judged = self.alike(simulated, label)
        self._take(0, fits + attack.simulator_weight * _said(judged, True))
        if attack.simulator_weight:
            fake = self.alike(simulated.detach(), label)
            self._take(1, _said(self.alike(z, y), True) + _said(fake, False))
        with torch.no_grad():
            simulated = self.simulator(x)
        decoded = self.decoder(z, y)
        loss = ((self.decoder(simulated, label) - x) ** 2).mean()
        self._take(2, loss + attack.decoder_weight * _said(self.real(decoded, y), True))
        if attack.decoder_weight:
            self._take(3, _said(self.real(x, label), True) + _said(self.real(decoded.detach(), y), False))

    def _take(self, which: int, loss: torch.Tensor) -> None:
        self.steps[which].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.steps[which].step()

    def decoded(self) -> FloatArray:
        with torch.no_grad():
            return np.asarray(self.decoder(self.cells, self.labels).numpy(), dtype=np.float64)


class _Judge:
    """Layers with leaky ReLU of a row and its label; a decoder ends in values from 0 to 1, a discriminator has dropout."""

    def __init__(self, classes: int, inputs: int, widths: tuple[int, ...], outputs: int, decodes: bool = False) -> None:
        sizes = (inputs + LABELLED, *widths)
        parts: list[torch.nn.Module] = []
        for before, after in pairwise(sizes):
            parts += [nn.Linear(before, after), nn.LeakyReLU(SLOPE)]
        parts += [] if decodes else [nn.Dropout(DROPOUT)]
        self.label = nn.Embedding(classes, LABELLED)
        parts += [nn.Linear(sizes[-1], outputs), *([nn.Sigmoid()] if decodes else [])]
        self.layers = nn.Sequential(*parts)

    def __call__(self, rows: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layers(torch.hstack([rows, self.label(label)]))
        return made

    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.label.parameters(), *self.layers.parameters()]


def layers_of(notes: Mapping[str, Array], prefix: str) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Weights and biases of noted layers in their order; nothing where they are no fully connected layers in a chain."""
    names = [name.removeprefix(prefix) for name in notes if name.startswith(prefix)]
    weights = [name for name in names if name.endswith("weight")]
    biases = {name: name.removesuffix("weight") + "bias" for name in weights}
    if {*weights, *biases.values()} < set(names) or any(notes[prefix + name].ndim != 2 for name in weights):
        return []
    shapes = [notes[prefix + name].shape for name in weights]
    if any(one[0] != other[1] for one, other in pairwise(shapes)):
        return []
    return [
        (_tensor(notes[prefix + name]), _tensor(notes[prefix + bias]) if bias in names else None)
        for name, bias in biases.items()
    ]


def through(layers: Sequence[tuple[torch.Tensor, torch.Tensor | None]], rows: torch.Tensor) -> torch.Tensor:
    """The rows after these layers, with ReLU between them."""
    for place, (weight, bias) in enumerate(layers):
        rows = nn.functional.linear(nn.functional.relu(rows) if place else rows, weight, bias)
    return rows


def _tensor(array: Array) -> torch.Tensor:
    return torch.tensor(array, dtype=torch.float32)


def _adam(module: torch.nn.Module | _Judge, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(module.parameters(), lr=rate or 1.0)  # a rate of 0 is never used


def _drawn(count: int, batch: int) -> torch.Tensor:
    return torch.randint(count, (min(batch, count),))


def _said(judged: torch.Tensor, real: bool) -> torch.Tensor:
    """The loss of what a discriminator says, where it should say that the rows are real, or not."""
    wanted = torch.full_like(judged, float(real))
    return nn.functional.binary_cross_entropy_with_logits(judged, wanted)
