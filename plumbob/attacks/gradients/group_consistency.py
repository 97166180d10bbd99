"""Group consistency (GradInversion's), a baseline of jin2021: several starts, each kept close to the mean of all.

    D_s = alpha |gradient(x_s, y_s) - uploaded gradient|^2 + gamma |x_s - mean over starts of x|^2
Every start gets all iterations. The guess is the mean. Pictures are not registered to one another, because tiles do not move.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients._gradient_matching import (
    RIVAL_SOURCES,
    Dummies,
    MadeUpBatch,
    MatchingServer,
    Reporter,
    Rival,
    move,
    seed_of,
    squared,
)
from plumbob.errors import not_negative, positive, whole
from plumbob.lazy_imports import Tensor, torch
from plumbob.setting_sources import ours, printed
from plumbob.setting_types import NotNegative, Positive, Range, Whole


class GroupConsistency(Rival):
    """Gradients matched from several starts that attract each other."""

    name = "group_consistency"
    identity = "GroupConsistency(iterations, report_every, rate, starts, alpha, gamma)"
    summary = "jin2021's baseline: matches gradients from several starts, kept close to their mean (GradInversion)"
    sources = RIVAL_SOURCES | {
        "starts": ours("the paper names no number"),
        "alpha": printed("Section 4.1: that of CAFE, in Table 9"),
        "gamma": ours("the paper names none; that of CAFE's last term in Table 9"),
    }

    def __init__(
        self,
        *,
        iterations: Whole | None = None,
        rate: Positive | None = None,
        starts: Annotated[int, Range(2, 100)] = 3,
        alpha: Positive = 1e-2,
        gamma: NotNegative = 1e-3,
        report_every: Whole | None = None,
    ) -> None:
        self._store_length(iterations, report_every)
        self._store_rate(rate)
        self.starts = whole("starts", starts, 2, 100)
        self.alpha, self.gamma = positive("alpha", alpha), not_negative("gamma", gamma)

    def descend(self, server: MatchingServer, rng: np.random.Generator) -> Guess:
        generator = seed_of(rng)
        group = [Dummies.drawn(server, generator) for _ in range(self.starts)]
        reporter, rate = Reporter(server, self), self.pace(server)

        def middle() -> dict[str, Tensor]:
            names = group[0].data
            return {name: torch.stack([d.data[name].values for d in group]).mean(0) for name in names}

        for iteration in range(reporter.length):
            # Of the batch's rows only: the mean over all rows would cost more than the gradients.
            rows = server.batches[iteration % len(server.batches)]
            mean = {name: torch.stack([d.data[name].values[rows] for d in group]).mean(0) for name in group[0].data}

            def objective(batch: MadeUpBatch, mean: dict[str, Tensor] = mean) -> Tensor:
                off = [(batch.inputs[name] - near).square().sum() for name, near in mean.items()]
                return self.alpha * squared(batch.pairs()) + self.gamma * torch.stack(off).sum()

            for dummies in group:
                move(server, dummies, objective, rate, iteration)
            reporter.after(iteration, middle)
        chances = torch.stack([torch.softmax(d.logits.values, dim=1) for d in group]).mean(0)
        return reporter.guess(middle(), chances)
