"""FSHA, the feature-space hijacking attack (pasquini2021, Section 3): bottom models are taught the attacker's own encoder.

Needs an active party that sends any gradient, and complete rows of other people. It has a pilot F, its inverse G and a critic D.
In each round of training, with Z the outputs that a party sent and X' rows of other people:
    pilot and inverse   |X' - G(F(X'))|^2                     critic   mean D(F(X')) - mean D(Z) + gp (|grad D| - 1)^2
    sent to the party   the gradient of mean D(Z) at Z, in place of the loss's                       guess = G(Z)
The party's bottom model so learns to send what the pilot would. The gradient is as long as the loss's first one; the
paper's clients run Adam, where lengths do not matter. Parties are hijacked one by one; of masked outputs the sum is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.conduct import SENT, ChosenGradients, GradientChoice, Standing
from plumbob.setting_sources import authors, ours
from plumbob.setting_types import Count, Positive
from plumbob.threats import AnyGradient, AuxiliaryRows, View

DECODER, HELD = "decoder", "columns"  # notes, by party
HONEST = "no bottom model was hijacked in this run"


class Fsha(Attack):
    """Feature-space hijacking. Rates and weights are those of the authors' code; `width` is that of pilot, inverse and critic."""

    name = "fsha"
    identity = "FSHA(pilot_rate, critic_rate, penalty, width)"
    summary = "FSHA: a malicious active party teaches bottom models an encoder of its own, by the gradients it sends"
    paper = "pasquini2021"
    protocols = ("split_network",)
    requires = (AuxiliaryRows, AnyGradient)
    cost_terms = ("1", "n")
    presets = {
        "fast": {"pilot_rate": 1e-3, "critic_rate": 1e-3, "penalty": 10.0},
        "small": {"pilot_rate": 1e-3, "critic_rate": 1e-3, "penalty": 10.0, "width": 8},
    }
    sources = {
        "pilot_rate": authors("FSHA.ipynb"),
        "critic_rate": authors("FSHA.ipynb"),
        "penalty": authors("FSHA.ipynb"),
        "width": ours("the paper's networks are convolutions of pictures"),
    }

    def __init__(
        self,
        *,
        pilot_rate: Positive = 1e-5,
        critic_rate: Positive = 1e-4,
        penalty: Positive = 500.0,
        width: Count = 64,
    ) -> None:
        self.pilot_rate, self.critic_rate, self.penalty, self.width = pilot_rate, critic_rate, penalty, max(1, width)

    def sends(self) -> Hijack:
        return Hijack(pilot_rate=self.pilot_rate, critic_rate=self.critic_rate, penalty=self.penalty, width=self.width)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        senders = [name.removeprefix(f"{SENT}{HELD}/") for name in view.notes if name.startswith(f"{SENT}{HELD}/")]
        if not senders:
            return nothing(view, HONEST)
        values = np.full((len(view.own), len(view.unknown)), 0.5)
        for sender in senders:
            told = _embeddings(view, sender)
            places = np.flatnonzero(np.isin(view.unknown, view.notes[f"{SENT}{HELD}/{sender}"]))
            decoder = _Mlp.of(view.notes, f"{SENT}{DECODER}/{sender}/")
            if told is None or not len(places) or decoder is None:
                continue
            with torch.no_grad():
                made = torch.sigmoid(decoder(torch.tensor(told, dtype=torch.float32))).numpy()
            held = np.isin(view.notes[f"{SENT}{HELD}/{sender}"], view.unknown)  # not those of accomplices
            values[:, places] = made[:, held]
        return Guess(view.unknown_names, values)


class Hijack(ChosenGradients):
    """What FSHA's party sends."""

    name = "hijack"
    kind = "gradients of a feature space of its own"

    def __init__(
        self,
        *,
        pilot_rate: float = 1e-5,
        critic_rate: float = 1e-4,
        penalty: float = 500.0,
        width: int = 64,
        auxiliary: int = 0,
    ) -> None:
        self.pilot_rate, self.critic_rate, self.penalty, self.width = pilot_rate, critic_rate, penalty, width
        self.auxiliary = auxiliary

    def begin(self, standing: Standing, rng: np.random.Generator) -> GradientChoice:
        if standing.others is None:
            raise BadInput("fsha: expected a threat that grants complete rows of other people, got none")
        return _Hijacking(self, standing, standing.others, rng)


class _Hijacking(GradientChoice):
    """One training: a captor for every sender."""

    def __init__(self, hijack: Hijack, standing: Standing, others: FloatArray, rng: np.random.Generator) -> None:
        self.captors = {}
        self.length = 0.0  # of a row's gradient, by the mean square of the first round
        self.hidden = standing.hidden
        with torch.random.fork_rng(devices=[]):
            for sender, places in standing.hidden.items():
                torch.manual_seed(int(rng.integers(2**62)))
                self.captors[sender] = _Captor(hijack, others[:, places], standing.width, int(rng.integers(2**62)))

    def gradients(self, party: str, rows: IntArray, told: Array, honest: Array) -> Array:
        made = self.captors[party].round(torch.tensor(told, dtype=torch.float32)).numpy()
        # Later ones vanish where the top model's units die of what hijacked parties send.
        self.length = self.length or float(np.linalg.norm(honest)) / np.sqrt(len(honest))
        return np.asarray(made * self.length * np.sqrt(len(made)) / max(float(np.linalg.norm(made)), 1e-30))

    def notes(self) -> Mapping[str, Array]:
        noted: dict[str, Array] = {}
        for sender, captor in self.captors.items():
            noted[f"{HELD}/{sender}"] = self.hidden[sender]
            noted |= {f"{DECODER}/{sender}/{place}": array for place, array in enumerate(captor.decoder.arrays())}
        return noted


class _Captor:
    """Pilot, inverse and critic of one sender."""

    def __init__(self, hijack: Hijack, rows: FloatArray, width: int, seed: int) -> None:
        self.rows, self.penalty = torch.tensor(rows, dtype=torch.float32), hijack.penalty
        self.generator = torch.Generator().manual_seed(seed)
        inner = hijack.width
        self.pilot = _Mlp.drawn((rows.shape[1], inner, width))
        self.decoder = _Mlp.drawn((width, inner, rows.shape[1]))
        self.critic = _Mlp.drawn((width, inner, inner, 1))
        self.pilot_step = torch.optim.Adam([*self.pilot.parts, *self.decoder.parts], lr=hijack.pilot_rate)
        self.critic_step = torch.optim.Adam(self.critic.parts, lr=hijack.critic_rate)

    def round(self, told: torch.Tensor) -> torch.Tensor:
        """The gradient to send for these outputs; then a step of each network."""
        told = told.requires_grad_()
        (sent,) = torch.autograd.grad(self.critic(told).mean(), told)
        told = told.detach()
        picked = self.rows[torch.randint(len(self.rows), (len(told),), generator=self.generator)]
        made = self.pilot(picked)
        _stepped(self.pilot_step, ((torch.sigmoid(self.decoder(made)) - picked) ** 2).mean())
        made = made.detach()
        share = torch.rand((len(told), 1), generator=self.generator)
        between = (share * told + (1 - share) * made).requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)
        far = ((slope.norm(dim=1) - 1) ** 2).mean()
        _stepped(self.critic_step, self.critic(made).mean() - self.critic(told).mean() + self.penalty * far)
        return sent


class _Mlp:
    """Fully connected layers with leaky ReLU between them, as tensors."""

    def __init__(self, parts: list[torch.Tensor]) -> None:
        self.parts = parts

    @classmethod
    def drawn(cls, sizes: tuple[int, ...]) -> _Mlp:
        layers = [nn.Linear(before, after) for before, after in pairwise(sizes)]
        return cls([part for layer in layers for part in (layer.weight, layer.bias)])

    @classmethod
    def of(cls, notes: Mapping[str, Array], prefix: str) -> _Mlp | None:
        names = sorted(
            (name for name in notes if name.startswith(prefix)), key=lambda name: int(name.rpartition("/")[2])
        )
        return cls([torch.tensor(notes[name]) for name in names]) if names else None

    def arrays(self) -> list[Array]:
        return [part.detach().numpy() for part in self.parts]

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        for place in range(0, len(self.parts), 2):
            rows = nn.functional.leaky_relu(rows, 0.2) if place else rows
            rows = nn.functional.linear(rows, self.parts[place], self.parts[place + 1])
        return rows


def _stepped(optimiser: Any, loss: torch.Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    optimiser.step()


def _embeddings(view: View, sender: str) -> FloatArray | None:
    """Of all rows, with the parameters after the last round."""
    if not sender:
        return view.notes.get("embeddings")
    parts = [m.payload for m in view.messages if m.name == "embeddings" and m.sender == sender]
    return np.concatenate(parts) if parts else None
