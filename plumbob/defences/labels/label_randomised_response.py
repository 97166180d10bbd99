"""Label randomised response: the active party trains on labels of which some were replaced by chance, once, before training.

    told = y with the chance e^epsilon / (e^epsilon + K - 1), else one of the other K - 1 classes, all as likely
All that passive parties ever get follows from the labels told, so every message of every round together is epsilon-private. The
most that anybody can learn from them is the label told: `most_accurate` says how often that, weighed with what is expected of a
row anyway, is the true one.
"""

from __future__ import annotations

import math

import numpy as np

from plumbob.defences.guarantee import Guarantee
from plumbob.defences.labels._label_guards import LabelDefence, label_privacy
from plumbob.errors import positive
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class LabelRandomisedResponse(LabelDefence):
    """Labels with label differential privacy of this `epsilon`."""

    name = "label_randomised_response"
    identity = "LabelRandomisedResponse(epsilon)"
    summary = "the active party replaces some labels by chance before training, for label differential privacy"
    paper = "ghazi2021"
    sources = {
        "epsilon": ours("the paper compares several"),
    }
    sweep_settings = ({"epsilon": 3.0}, {"epsilon": 1.0})

    def __init__(self, *, epsilon: float = 2.0) -> None:
        self.epsilon = positive("label_randomised_response: epsilon", epsilon)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[LabelRandomisedResponse]:
        return _Told(self)

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            label_privacy(
                self.epsilon,
                "0",
                "randomised response on every label, before training",
                "all messages of the training: they follow from the labels told, which are drawn once",
            ),
        )


class _Told(LabelGuard[LabelRandomisedResponse]):
    def __init__(self, defence: LabelRandomisedResponse) -> None:
        super().__init__(defence)
        self._told: torch.Tensor | None = None

    def targets(self, epoch: int, targets: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        if self._told is None:
            classes = targets.shape[1]
            told = responses(targets.argmax(dim=1).numpy(), np.full(targets.shape, True), self.defence.epsilon, rng)
            self._told = torch.eye(classes)[torch.from_numpy(told)]
        return self._told


def kept(epsilon: float, classes: int) -> float:
    """The chance with which the true one of so many classes is told.

    >>> round(kept(math.log(3), 2), 6), kept(5.0, 1)
    (0.75, 1.0)
    """
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))


def responses(label: IntArray, allowed: np.ndarray, epsilon: float, rng: np.random.Generator) -> IntArray:
    """A class for every row, among those allowed for it; where the true one is not, each of them with the same chance."""
    counts = allowed.sum(axis=1)
    inside = allowed[np.arange(len(label)), label]
    stays = inside & (rng.random(len(label)) < 1 / (1 + (counts - 1) * np.exp(-epsilon)))
    others = allowed.copy()
    others[np.arange(len(label)), label] = False
    lots = np.where(others, rng.random(allowed.shape), -1.0)
    return np.where(stays | (counts == inside), label, lots.argmax(axis=1)).astype(np.int64)


def most_accurate(prior: FloatArray, epsilon: float) -> float:
    """The share of true labels that the best guess from the labels told has, where nothing else is known but class shares.

    >>> most_accurate(np.array([0.5, 0.5]), math.log(3)), most_accurate(np.array([0.9, 0.1]), math.log(3))
    (0.75, 0.9)
    """
    right = kept(epsilon, len(prior))
    wrong = (1 - right) / max(1, len(prior) - 1)
    told = np.where(np.eye(len(prior), dtype=bool), right, wrong)  # true x told
    return float((prior[:, None] * told).max(axis=0).sum())
