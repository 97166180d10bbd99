"""LP-MST (ghazi2021): randomised response among the classes that the model of the stage before holds likely.

    rows are dealt to `stages` parts; in stage t the labels of part t are told by RRWithPrior and all parts up to t are trained on
    RRWithPrior: the k likeliest classes of a row, k with the largest  w_k x sum of their chances,  w_k = e^eps / (e^eps + k - 1),
    told = y with the chance w_k if it is among the k, else one of the others of them
In the first stage all classes are as likely, so it is randomised response. Every row's label is told once, so all messages of all
rounds together are epsilon-private. The chances are the scores of the last round in which a row was asked about: a row of a later
stage is asked about in every epoch, and gets a gradient of zeros.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.guarantee import Guarantee
from plumbob.defences.labels._label_guards import LabelDefence, label_privacy
from plumbob.defences.labels.label_randomised_response import responses
from plumbob.errors import BadInput, positive, whole
from plumbob.federation import FloatArray
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class LpMst(LabelDefence):
    """Labels told in so many `stages`, with label differential privacy of this `epsilon`."""

    name = "lp_mst"
    identity = "LpMst(epsilon, stages)"
    aliases = ("LP-MST",)
    summary = "labels are told in stages, by chance among the classes that the model holds likely, for label differential privacy"
    paper = "ghazi2021"
    sources = {
        "epsilon": ours("the paper compares several"),
        "stages": ours("two, the least that has a prior"),
    }
    sweep_settings = ({"epsilon": 3.0}, {"epsilon": 1.0})

    def __init__(self, *, epsilon: float = 2.0, stages: int = 2) -> None:
        self.epsilon = positive("lp_mst: epsilon", epsilon)
        self.stages = whole("lp_mst: stages", stages, 1, 100)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[LpMst]:
        if outline.epochs < self.stages:
            raise BadInput(
                f"lp_mst: stages: expected at most the {outline.epochs} epochs of training, got {self.stages}"
            )
        return _Staged(self, outline)

    def guarantees(self) -> tuple[Guarantee, ...]:
        return (
            label_privacy(
                self.epsilon,
                "0",
                f"randomised response among likely classes, in {self.stages} stages",
                "all messages of the training: each row's label is told once, in one stage",
            ),
        )


class _Staged(LabelGuard[LpMst]):
    def __init__(self, defence: LpMst, outline: EmbeddingOutline) -> None:
        super().__init__(defence)
        self._epochs = outline.epochs
        self._likely = np.full((outline.rows, outline.classes), 1 / outline.classes)
        self._part: np.ndarray | None = None  # the stage of every row
        self._told = torch.zeros(outline.rows, outline.classes)
        self._stage = -1

    def targets(self, epoch: int, targets: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        if self._part is None:
            self._part = rng.permutation(len(targets)) % self.defence.stages
        stage = epoch * self.defence.stages // self._epochs
        if stage > self._stage:
            self._stage, rows = stage, np.flatnonzero(self._part == stage)
            told = responses(
                targets[rows].argmax(dim=1).numpy(),
                among(self._likely[rows], self.defence.epsilon),
                self.defence.epsilon,
                rng,
            )
            self._told = self._told.clone()
            self._told[rows] = torch.eye(targets.shape[1])[torch.from_numpy(told)]
        return self._told

    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        self._likely[backward.rows] = torch.softmax(backward.logits.double(), dim=1).numpy()
        return backward.gradients


def among(likely: FloatArray, epsilon: float) -> np.ndarray:
    """The classes among which RRWithPrior tells one, rows x classes.

    >>> among(np.array([[0.9, 0.06, 0.04], [1/3, 1/3, 1/3]]), 1.0).sum(axis=1).tolist()
    [1, 3]
    """
    order = np.argsort(-likely, axis=1, kind="stable")
    sizes = np.arange(1, likely.shape[1] + 1)
    gained = np.cumsum(np.take_along_axis(likely, order, axis=1), axis=1) / (1 + (sizes - 1) * np.exp(-epsilon))
    # Of equals the larger set: where all classes are as likely it is randomised response among all.
    best = likely.shape[1] - gained.round(12)[:, ::-1].argmax(axis=1)
    allowed = np.zeros(likely.shape, dtype=bool)
    np.put_along_axis(allowed, order, sizes[None, :] <= best[:, None], axis=1)
    return allowed
