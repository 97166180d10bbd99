"""Active model completion (fu2022, Section 4.2): a passive party makes the top model rely on it, then completes its bottom model.

Needs a passive party that trains its part at rates of its own, and a few labels. In each round it scales each gradient of its own
parameters by how it compares with the round before,
    g_t <- g_t clip(1 + gamma g_t / g_(t-1), 1, 5)
so steps that go on in one direction grow up to fivefold. Its bottom model learns faster than the others', and the top model leans
on its outputs. After training a head on these is learnt from the labels (`_model_completion`), as in passive completion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._cut_gradients import labels_only
from plumbob.attacks.labels._model_completion import completed
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.federation import FloatArray
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.conduct import KIND, OwnOptimiser, Steps
from plumbob.setting_sources import authors, ours
from plumbob.setting_types import Count, NotNegative
from plumbob.threats import KnownLabels, OwnSteps, View

FEW = "fewer than two classes have a known label, so a head cannot be learnt"
SILENT = "this view holds no outputs of a curious party for all rows"
CONSTANT = "the party's own outputs are the same for all rows"
HONEST = "the party's steps were those of everybody in this run"


class ActiveCompletion(PassiveLabelAttack):
    """Scaled steps in training, then a head learnt in `steps` steps of `batch` rows."""

    name = "active_completion"
    identity = "ActiveCompletion(gamma, most, steps, batch)"
    summary = (
        "active model completion: own steps are scaled so that the top model relies on the party; a head tells labels"
    )
    paper = "fu2022"
    requires = (KnownLabels, OwnSteps)
    presets = {"small": {"steps": 20}}
    sources = {
        "gamma": authors("my_optimizers.py"),
        "most": authors("my_optimizers.py"),
        "steps": ours("5 epochs of 1,024 steps in model_completion.py take minutes and find the same on tables"),
        "batch": authors("model_completion.py"),
    }

    def __init__(
        self, *, gamma: NotNegative = 1.0, most: NotNegative = 5.0, steps: Count = 1_000, batch: Count = 16
    ) -> None:
        self.gamma, self.most, self.steps, self.batch = gamma, max(1.0, most), max(1, steps), max(2, batch)

    def sends(self) -> ScaledSteps:
        return ScaledSteps(gamma=self.gamma, most=self.most)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if KIND not in view.notes:
            return nothing(view, HONEST)
        return complete(view, self.steps, self.batch, rng)


def complete(view: View, steps: int, batch: int, rng: np.random.Generator) -> Guess:
    """Labels of all rows by a head on the curious party's own outputs."""
    cells, known = own_outputs(view), view.known_labels
    if cells is None or np.ptp(cells, axis=0).max(initial=0.0) <= 0:
        return nothing(view, SILENT if cells is None else CONSTANT)
    if len(np.unique(known[known >= 0])) < 2:
        return nothing(view, FEW)
    found = completed(cells, known, len(view.classes), steps, batch, int(rng.integers(2**62)))
    return labels_only(view, found)


def own_outputs(view: View) -> FloatArray | None:
    """What the curious party itself sent of all rows, with the parameters after the last round; None where it did not."""
    parts = [m.payload for m in view.messages if m.name == "embeddings" and m.sender in view.curious]
    cells = np.concatenate(parts).astype(np.float64) if parts else np.zeros((0, 0))
    return cells if len(cells) == len(view.own) and np.isfinite(cells).all() else None


class ScaledSteps(OwnOptimiser):
    """What the party does with its steps."""

    name = "scaled_steps"
    kind = "steps scaled by a malicious optimiser"

    def __init__(self, *, gamma: float = 1.0, most: float = 5.0) -> None:
        self.gamma, self.most = gamma, most

    def begin(self) -> Steps:
        return _Scaled(self.gamma, self.most)


class _Scaled(Steps):
    """One training; remembers the gradients of the round before."""

    def __init__(self, gamma: float, most: float) -> None:
        self.gamma, self.most = gamma, most
        self.before: list[torch.Tensor] = []

    def change(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        grads = [part.grad for part in parameters if part.grad is not None]
        for grad, last in zip(grads, self.before, strict=False):
            grad.mul_(torch.clamp(1 + self.gamma * grad / (last + 1e-7), 1.0, self.most))
        self.before = [grad.clone() for grad in grads]
