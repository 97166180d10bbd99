"""Local differential privacy of scores (luo2021, Section VII, which calls it unsuitable): Laplace noise for any two rows.

    r = v + Laplace(2 / epsilon) on every score,    P(r | x) <= e^epsilon P(r | x')
for any two values x, x' of the passive columns, the active party's own being what they are: scores are 0 or more and add up
to 1, so |v - v'|_1 <= 2. A row's answer is drawn once and kept by its id. With `repeats` = k it is drawn anew for every
question, a party that asks k times has the mean of k answers, and the budgets add up to k epsilon.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.base import Defence
from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.defences.scores._secret_draws import MOST_REPEATS, secret_generator
from plumbob.errors import positive, whole
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownDefences, KnownDpScores
from plumbob.protocols.base import Model, PredictionProtocol, Release
from plumbob.setting_sources import ours

SCORE_SENSITIVITY = 2.0  # the largest L1 distance of two score vectors
LOCAL_NEIGHBOURS = "any two values of the passive parties' columns of a row; the active party's columns of it are fixed"
LOCAL_HAZARDS = (
    SHARED_HAZARDS[0],
    "Answers about one person add up: of other models, and of the same model where an answer is not kept.",
    "The promise is about the answers of a trained model, not about its training and not about a model that is shown.",
)


class DpScores(Defence):
    """Scores that are `epsilon`-private for every row's passive columns. `seed` is the defender's secret."""

    name = "dp_scores"
    identity = "DpScores(epsilon, seed, repeats)"
    summary = "Laplace noise on every score, for local differential privacy of the passive columns"
    point = "scores"
    paper = "luo2021"
    sources = {
        "epsilon": ours("Section VII sets no mechanism up"),
        "seed": ours("draws are repeatable"),
        "repeats": ours("the answer is kept by id, or drawn anew"),
    }
    sweep_settings = ({"epsilon": 10.0},)

    def __init__(self, *, epsilon: float = 1.0, seed: int = 0, repeats: int = 1) -> None:
        self.epsilon = positive("dp_scores: epsilon", epsilon)
        self.seed = whole("dp_scores: seed", seed, 0, 2**62)
        self.repeats = whole("dp_scores: repeats", repeats, 1, MOST_REPEATS)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        rng, width = secret_generator(self.seed, model), SCORE_SENSITIVITY / self.epsilon

        def answer(scores: FloatArray, _: Federation) -> FloatArray:
            noise = sum(rng.laplace(scale=width, size=scores.shape) for _ in range(self.repeats))
            return np.asarray(scores + noise / self.repeats)

        return answer

    def known(self) -> KnownDefences:
        """All settings but the seed."""
        return KnownDefences.of(KnownDpScores(epsilon=self.epsilon, repeats=self.repeats))

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (local_guarantee(self.epsilon, self.repeats, "Laplace noise of scale 2 / epsilon on every score"),)


def local_guarantee(epsilon: float, repeats: int, mechanism: str) -> Guarantee:
    """What a release with local differential privacy promises: the budget of a row, whoever asks how often."""
    return Guarantee(
        unit="the answer about one row: one person, if each has one row",
        neighbours=LOCAL_NEIGHBOURS,
        epsilon=epsilon * repeats,
        delta="0",
        trust="whoever combines the answers draws the noise and is trusted with the scores",
        mechanism=mechanism,
        composition=f"{repeats:,} answers about the same row, whose budgets add up"
        if repeats > 1
        else "one answer, kept by the row's id: whoever asks again gets the same",
        hazards=LOCAL_HAZARDS,
    )
