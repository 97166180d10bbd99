"""Confusional autoencoder (CAE and DCAE, zou2022): the model learns soft labels that confuse classes, which a decoder undoes.

    soft = encoder(y),   decoder(soft) ~ y,   trained before all else to lower   CE(decoder(soft), y) - confusion x entropy(soft)
The decoder turns the model's scores into classes. With `bins` (DCAE) gradients are rounded besides, to so many levels. All rows
of a class are encoded in the same way: whoever can tell the soft labels apart has the classes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.defences.labels.discrete_output_gradients import rounded
from plumbob.errors import not_negative, whole
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours

STEPS, RATE, ROWS = 300, 1e-2, 64


class ConfusionalAutoencoder(LabelDefence):
    """Soft labels of this `confusion`; `bins` above 0: gradients are rounded to as many levels (DCAE)."""

    name = "confusional_autoencoder"
    identity = "ConfusionalAutoencoder(confusion, bins)"
    aliases = ("CAE", "DCAE")
    summary = "the active party trains on soft labels from an autoencoder that confuses classes"
    paper = "zou2022"
    sources = {
        "confusion": ours("both parts of the loss weigh the same"),
        "bins": ours("0 is CAE; DCAE rounds gradients besides"),
    }
    presets = {"dcae": {"bins": 12}}
    sweep_settings = ({"confusion": 1.0}, {"confusion": 1.0, "bins": 12})

    def __init__(self, *, confusion: float = 1.0, bins: int = 0) -> None:
        self.confusion = not_negative("confusional_autoencoder: confusion", confusion)
        self.bins = whole("confusional_autoencoder: bins", bins, 0, 65_536)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[ConfusionalAutoencoder]:
        return _Confused(self)


class _Confused(LabelGuard[ConfusionalAutoencoder]):
    def __init__(self, defence: ConfusionalAutoencoder) -> None:
        super().__init__(defence)
        self._soft: torch.Tensor | None = None
        self._decode: torch.nn.Module | None = None

    def targets(self, epoch: int, targets: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        if self._soft is None:
            encode, self._decode = autoencoder(targets.shape[1], self.defence.confusion, rng)
            with torch.no_grad():
                self._soft = encode(targets.float())
        return self._soft

    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        return rounded(backward.gradients, self.defence.bins) if self.defence.bins else backward.gradients

    def decoded(self, scores: torch.Tensor) -> torch.Tensor:
        if self._decode is None:
            return scores
        with torch.no_grad():
            classes: torch.Tensor = self._decode(scores.float())
            return classes


def autoencoder(classes: int, confusion: float, rng: np.random.Generator) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Encoder and decoder of labels, trained on one-hot labels and on random ones between them."""
    draw = torch.Generator().manual_seed(int(rng.integers(2**62)))
    width = 6 * classes + 2
    encode, decode = _layers(classes, width, draw), _layers(classes, width, draw)
    optimiser = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=RATE)
    plain = torch.eye(classes)
    for _ in range(STEPS):
        between = torch.softmax(4 * torch.randn(ROWS, classes, generator=draw), dim=1)
        label = torch.cat([plain, between])
        soft = encode(label)
        back = decode(soft)
        wrong = -(label * back.clamp_min(1e-12).log()).sum(dim=1).mean()
        entropy = -(soft * soft.clamp_min(1e-12).log()).sum(dim=1).mean()
        optimiser.zero_grad()
        (wrong - confusion * entropy).backward()
        optimiser.step()
    return encode, decode


def _layers(classes: int, width: int, draw: torch.Generator) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for before, after in pairwise((classes, width, classes)):
        layer = nn.Linear(before, after)
        nn.init.kaiming_uniform_(layer.weight, generator=draw)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Softmax(dim=1))
