"""Randomised response on the predicted class (Warner 1965, for c classes), beside luo2021's remark on differential privacy.

The class with the largest score is released with probability p = e^epsilon / (e^epsilon + c - 1), any other one with
q = 1 / (e^epsilon + c - 1) each: p / q = e^epsilon for any two rows. Of all mechanisms that release one of c classes it keeps
the true one most often. A row's answer is drawn once and kept by its id; with `repeats` = k it is drawn anew for every
question, the release holds how often each class was named, and the budgets add up.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from plumbob.defences.base import Defence
from plumbob.defences.guarantee import Guarantee
from plumbob.defences.scores._secret_draws import MOST_REPEATS, secret_generator
from plumbob.defences.scores.dp_scores import local_guarantee
from plumbob.defences.scores.label_only import one_hot
from plumbob.errors import positive, whole
from plumbob.federation import Federation, FloatArray
from plumbob.known_defences import KnownDefences, KnownRandomisedResponse
from plumbob.protocols.base import Model, PredictionProtocol, Release


class RandomisedResponse(Defence):
    """The predicted class, or by chance another one, `epsilon`-private for every row. `seed` is the defender's secret."""

    name = "randomised_response"
    identity = "RandomisedResponse(epsilon, seed, repeats)"
    summary = "only a class is released: the predicted one or, by chance, another, for local differential privacy"
    point = "scores"
    paper = "plumbob"
    sweep_settings = ({"epsilon": 3.0},)

    def __init__(self, *, epsilon: float = 1.0, seed: int = 0, repeats: int = 1) -> None:
        self.epsilon = positive("randomised_response: epsilon", epsilon)
        self.seed = whole("randomised_response: seed", seed, 0, 2**62)
        self.repeats = whole("randomised_response: repeats", repeats, 1, MOST_REPEATS)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        rng = secret_generator(self.seed, model)

        def answer(scores: FloatArray, _: Federation) -> FloatArray:
            named = one_hot(scores)
            told = ~np.isnan(named[:, 0])
            drawn = sum(
                respond(np.argmax(np.nan_to_num(named), axis=1), self.epsilon, scores.shape[1], rng)
                for _ in range(self.repeats)
            )
            return np.where(told[:, None], drawn / self.repeats, np.nan)

        return answer

    def known(self) -> KnownDefences:
        """All settings but the seed."""
        return KnownDefences.of(KnownRandomisedResponse(epsilon=self.epsilon, repeats=self.repeats))

    def guarantees(self) -> tuple[Guarantee, ...]:
        mechanism = "randomised response: the predicted class is e^epsilon times as likely to be named as any other"
        return (local_guarantee(self.epsilon, self.repeats, mechanism),)


def respond(label: FloatArray, epsilon: float, classes: int, rng: np.random.Generator) -> FloatArray:
    """One answer for each row, as 1 at the class that is named."""
    kept = rng.random(len(label)) < expit(epsilon - np.log(max(1, classes - 1)))
    step = rng.integers(1, max(2, classes), len(label))  # to any other class, each equally likely
    return np.asarray(np.eye(classes)[np.where(kept, label, (label + step) % classes)])
