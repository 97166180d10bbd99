"""Noise (jiang2022, Section 6.1.3): Gaussian noise on every score.

The release is v + N(0, sigma^2), drawn once for a row and remembered: whoever asks again gets the same answer. With
`repeats` = k it is drawn anew for every question, and a party that asks k times has the mean of k answers, noise of
sigma / sqrt(k). The paper neither clips nor renormalises, so a release may be negative; `clip` makes scores of every answer
again (cut at 0, then scaled to add up to 1).
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.base import Defence
from plumbob.defences.scores._secret_draws import MOST_REPEATS, secret_generator
from plumbob.errors import BadInput, whole
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownDefences, KnownNoise
from plumbob.protocols.base import Model, PredictionProtocol, Release
from plumbob.setting_sources import ours, printed


def as_scores(values: FloatArray) -> FloatArray:
    """Cut at 0 and scaled to add up to 1; a row with nothing left is even."""
    cut = np.maximum(values, 0.0)
    total = cut.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total == 0, 1.0 / values.shape[1], cut / np.where(total == 0, 1.0, total)))


class Noise(Defence):
    """Gaussian noise of scale `sigma` on every score, `repeats` times anew. `seed` is the defender's secret."""

    name = "noise"
    identity = "Noise(sigma, clip, seed, repeats)"
    summary = "Gaussian noise is added to every score"
    point = "scores"
    paper = "jiang2022"
    sources = {
        "sigma": printed("Section 6.1.3.2: 1, 0.1 and 0.01"),
        "clip": printed("Section 6.1.3.2, which cuts nothing off"),
        "seed": ours("draws are repeatable"),
        "repeats": printed("Section 6.1.3.2: one answer"),
    }
    sweep_settings = ({"sigma": 0.01}, {"sigma": 0.1}, {"sigma": 1.0})

    def __init__(self, *, sigma: float = 0.1, clip: bool = False, seed: int = 0, repeats: int = 1) -> None:
        if not sigma > 0:
            raise BadInput(f"noise: expected a sigma above 0, got {sigma}")
        if seed < 0:
            raise BadInput(f"noise: expected a seed of 0 or more, got {seed}")
        self.sigma = sigma
        self.clip = clip
        self.seed = seed
        self.repeats = whole("noise: repeats", repeats, 1, MOST_REPEATS)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        rng = secret_generator(self.seed, model)

        def answer(scores: FloatArray) -> FloatArray:
            out = scores + self.sigma * rng.standard_normal(scores.shape)
            return as_scores(out) if self.clip else np.asarray(out)

        return lambda scores, _: np.asarray(sum(answer(scores) for _ in range(self.repeats)) / self.repeats)

    def known(self) -> KnownDefences:
        """All settings but the seed."""
        return KnownDefences.of(KnownNoise(sigma=self.sigma, clip=self.clip, repeats=self.repeats))
