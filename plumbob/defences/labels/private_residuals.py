"""Private residuals (ours): noise on what the model got wrong, before anything is computed from it.

    r_i = softmax(logits_i) - y_i + e_i,   e_i ~ N(0, 2 noise^2) in every cell, fresh for every round
A label of another class changes r_i by sqrt(2). The active party's own step and the gradients it sends follow from r, so all of
training is (epsilon, delta)-private in the labels; `noise` is the least for one round in each epoch, by the accountant of DP-SGD.
Noise on the gradients that are sent alone promises nothing: the top model would have learnt from the true labels.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.guarantee import Guarantee
from plumbob.defences.labels._label_guards import LabelDefence, label_privacy, normal
from plumbob.defences.scores.dp_sgd import noise_for
from plumbob.errors import BadInput, positive
from plumbob.known_defences import KnownDefences
from plumbob.known_label_defences import KnownPrivateResiduals
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard

APART = 2.0**0.5  # of the residuals of a row with two labels


class PrivateResiduals(LabelDefence):
    """Training that is (`epsilon`, `delta`)-private in every label, all rounds together."""

    name = "private_residuals"
    identity = "PrivateResiduals(epsilon, delta)"
    summary = "ours: noise on what the model got wrong, from which all gradients follow, for label differential privacy"
    paper = "plumbob"
    sweep_settings = ({"epsilon": 10.0},)  # less lets training run away where there are many epochs

    def __init__(self, *, epsilon: float = 3.0, delta: float = 1e-5) -> None:
        self.epsilon = positive("private_residuals: epsilon", epsilon)
        self.delta = positive("private_residuals: delta", delta)
        if delta >= 1:
            raise BadInput(f"private_residuals: delta: expected a number below 1, got {delta!r}")

    def known(self, noise: float | None = None) -> KnownDefences:
        """The settings, and the noise multiplier of a training."""
        return KnownDefences.of(KnownPrivateResiduals(self.epsilon, self.delta, noise))

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[PrivateResiduals]:
        return _Private(self, noise_for(self.epsilon, self.delta, 1.0, outline.epochs, self.name))

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            label_privacy(
                self.epsilon,
                f"{self.delta:g}",
                "Gaussian noise on every row's scores less its label, from which all gradients follow",
                "all rounds, each row once in every epoch at its full cost, by a Rényi accountant",
            ),
        )


class _Private(LabelGuard[PrivateResiduals]):
    def __init__(self, defence: PrivateResiduals, noise: float) -> None:
        super().__init__(defence)
        self.noise = noise

    def residuals(self, gradients: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        return gradients + self.noise * APART / len(gradients) * normal(gradients, rng)

    def known(self) -> KnownDefences:
        return self.defence.known(self.noise)
