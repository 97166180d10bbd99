"""Inversion network (ours): the map from embeddings back to columns, learnt from rows whose embeddings are known.

    x_target = N(x_own, z) + L(x_own, z),   z half-whitened; N two hidden layers with GELU, L linear
Needs people of the federation who are known in full, or others who were predicted as well. It is UIFV's InverNet (2406.12588 on
arXiv) for tables, made for a hundred rows: each of five networks is fitted without a fifth of them, and these held-out rows
choose, column by column, between the networks' mean, ridge regression and own columns alone.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.auxiliary._held_out_learners import Features, Learnt, at_grid, better, learn, lower
from plumbob.attacks.auxiliary._lessons import Lesson, lesson
from plumbob.attacks.auxiliary._told_embeddings import CONSTANT, SILENT, half_whitened, told
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.errors import whole
from plumbob.federation import FloatArray
from plumbob.lazy_imports import nn, torch
from plumbob.threats import AuxiliaryRows, KnownPeople, Threat, View

RATE, DECAY = 3e-3, 1e-2  # of AdamW; the rate falls to 0 along a cosine
FOLDS = 5


class InversionNetwork(Attack):
    """Five networks of two hidden layers of `width` units, each fitted in `steps` steps on all rows but a fifth."""

    name = "inversion_network"
    identity = "InversionNetwork(steps, width)"
    summary = "ours: networks from embeddings back to columns, learnt from rows that are known in full"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("split_network",)
    cost_terms = ("1", "n", "n d", "n u")
    presets = {"small": {"steps": 8, "width": 8}}

    def __init__(self, *, steps: int = 600, width: int = 128) -> None:
        self.steps = whole("inversion network: steps", steps, 1, 100_000)
        self.width = whole("inversion network: width", width, 1, 4_096)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Rows whose embeddings were seen: people of the federation, or others who were predicted."""
        why = super().why_not(protocol, threat, sent)
        rows = threat.grant(AuxiliaryRows)
        asked = isinstance(rows, AuxiliaryRows) and rows.predicted
        if why is None and threat.grant(KnownPeople) is None and not asked:
            return "needs complete rows of people whose embeddings it gets"
        return why

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        seen, rows = told(view), lesson(view, told=False)
        if seen is None or seen.constant:
            return nothing(view, SILENT if seen is None else CONSTANT)
        if view.people is None and seen.others is None:
            return nothing(view, "no embedding of a person who is known in full was seen")
        taught = seen.asked[view.people] if view.people is not None else seen.others
        assert taught is not None
        found = self._learnt(rows, taught, seen.asked, rng)
        values = np.clip(at_grid(found, view.steps), 0.0, 1.0)
        if view.people is not None and view.people_rows is not None:
            values[view.people] = view.people_rows[:, view.unknown]
        return Guess(view.unknown_names, values)

    def _learnt(self, rows: Lesson, taught: FloatArray, asked: FloatArray, rng: np.random.Generator) -> Learnt:
        """Own columns alone, unless held-out rows say that embeddings tell more."""
        seen, own = _whitened(taught, asked), Features(rows.own_taught, rows.own_asked)
        both = _whitened(rows.own_taught, rows.own_asked).beside(seen)  # a picture has many own columns
        alone = learn([[own.with_products(), own]], rows.hidden, 0)
        ridge = learn([[seen, both]], rows.hidden, 0)
        return better(alone, lower(ridge, self._networks(both, rows.hidden, rng)))

    def _networks(self, features: Features, targets: FloatArray, rng: np.random.Generator) -> Learnt:
        """The mean of networks that were each fitted without one fold, and each row's error by the one that did not see it."""
        folds = rng.permutation(len(targets)) % min(FOLDS, len(targets))
        centre, spread = targets.mean(axis=0), targets.std(axis=0) + 1e-9
        inputs, asked = (torch.tensor(part, dtype=torch.float32) for part in (features.taught, features.asked))
        wanted = torch.tensor((targets - centre) / spread, dtype=torch.float32)
        values, errors = np.zeros((len(asked), targets.shape[1])), np.empty_like(targets)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        low, high = targets.min(axis=0), targets.max(axis=0)
        for fold in np.unique(folds):
            out = torch.tensor(folds == fold)
            network = self._fitted(inputs[~out], wanted[~out], generator)
            with torch.no_grad():
                held, made = network(inputs[out]).numpy(), network(asked).numpy()
            errors[folds == fold] = (np.clip(held * spread + centre, low, high) - targets[folds == fold]) ** 2
            values += np.clip(made * spread + centre, low, high)
        return Learnt(values / len(np.unique(folds)), errors)

    def _fitted(self, inputs: torch.Tensor, wanted: torch.Tensor, generator: torch.Generator) -> torch.nn.Module:
        sizes = inputs.shape[1], self.width, self.width, wanted.shape[1]
        network = _skipped(sizes, generator)
        optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.steps)
        for _ in range(self.steps):
            optimiser.zero_grad()
            ((network(inputs) - wanted) ** 2).mean().backward()
            optimiser.step()
            falling.step()
        return network


def _whitened(taught: FloatArray, asked: FloatArray) -> Features:
    wide, short = half_whitened(asked, taught)
    return Features(short, wide)


def _skipped(sizes: tuple[int, int, int, int], generator: torch.Generator) -> torch.nn.Module:
    """Two hidden layers and a linear map beside them, drawn from `generator`."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            inputs, first, second, outputs = sizes
            self.deep = nn.Sequential(
                *(nn.Linear(inputs, first), nn.GELU(), nn.Linear(first, second), nn.GELU(), nn.Linear(second, outputs))
            )
            self.linear = nn.Linear(inputs, outputs)
            for parameter in self.parameters():
                bound = float(parameter.shape[-1]) ** -0.5
                nn.init.uniform_(parameter, -bound, bound, generator=generator)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.deep(rows) + self.linear(rows)
            return made

    return Network()
