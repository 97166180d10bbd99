"""Purifier (jiang2022, Section 6.1.3): scores pass through an autoencoder with a narrow bottleneck.

G(v) = relu(v A + a) B + b with half as many hidden units as classes, trained to reproduce its input (mean squared error
only; the paper leaves the second term of Eq 26 out). It learns on the scores of the training rows, or, before there are
any, on draws from the standard Gaussian. What comes out is cut at 0 and scaled to add up to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.defences.base import Defence, training_scores, watched
from plumbob.defences.scores.noise import as_scores
from plumbob.errors import BadInput
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownDefences, KnownPurifier
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.base import Model, PredictionProtocol, Protocol, Release
from plumbob.protocols.shared.adam import Adam
from plumbob.setting_sources import printed

MOST = 2_000  # scores learnt from
STEPS = 1_500


@dataclass(frozen=True)
class Autoencoder:
    """One hidden layer."""

    encode: FloatArray  # classes x hidden
    encode_bias: FloatArray
    decode: FloatArray  # hidden x classes
    decode_bias: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        hidden = np.maximum(scores @ self.encode + self.encode_bias, 0.0)
        return as_scores(hidden @ self.decode + self.decode_bias)


def train(scores: FloatArray, seed: int = 0) -> Autoencoder:
    """Adam on the mean squared error, all rows at once."""

    generator = torch.Generator().manual_seed(seed)
    classes = scores.shape[1]
    hidden = max(1, classes // 2)
    layers = nn.Linear(classes, hidden), nn.Linear(hidden, classes)
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        nn.init.zeros_(layer.bias)
    data = torch.tensor(scores[np.linspace(0, len(scores) - 1, min(MOST, len(scores))).astype(int)])
    with torch.no_grad():  # units start switched on: one that is dead for all rows would never learn
        layers[0].bias.fill_(1.0)
        layers[1].bias.copy_(data.mean(dim=0))
    parameters = [p for layer in layers for p in layer.parameters()]
    optimiser = Adam(parameters, lr=1e-2)
    inputs = data.float()
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = ((layers[1](torch.relu(layers[0](inputs))) - inputs) ** 2).mean()
        loss.backward()
        optimiser.step()
    weights = [p.detach().double().numpy().T.copy() for p in parameters]
    return Autoencoder(*weights)


class Purifier(Defence):
    """Scores passed through an autoencoder, trained on `real` scores of the training rows or on `random` ones."""

    name = "purifier"
    identity = "Purifier(trained_on)"
    summary = "scores pass through an autoencoder with half as many hidden units as classes"
    point = "scores"
    paper = "jiang2022"
    sources = {
        "trained_on": printed("Section 6.1.3.3: real and random"),
    }

    _autoencoder: Autoencoder | None = None

    def __init__(self, *, trained_on: str = "real") -> None:
        if trained_on not in ("real", "random"):
            raise BadInput(f"purifier: expected to be trained on 'real' or 'random' scores, got '{trained_on}'")
        self.trained_on = trained_on

    def protect(self, protocol: Protocol) -> Protocol:
        return watched(protocol) if self.trained_on == "real" else protocol

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        if self.trained_on == "real":
            examples = training_scores(self.name, model)
        else:
            examples = np.random.default_rng(0).standard_normal((MOST, len(federation.classes)))
        purify = self._autoencoder = train(examples)
        return lambda scores, _: purify(scores)

    def known(self) -> KnownDefences:
        trained = {} if self._autoencoder is None else vars(self._autoencoder)
        return KnownDefences.of(KnownPurifier(**trained))
