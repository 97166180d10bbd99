"""The batch normalisation prior (GradInversion's), a baseline of jin2021: feature maps must have typical statistics.

    D = alpha |gradient - uploaded gradient|^2 + gamma sum over layers of |mean - mean0|^2 + |variance - variance0|^2
Mean and variance are those of the made-up batch's feature maps, channel by channel, at every convolution's output; in a network
without convolutions, at the first fully connected layer's. The original compares them with the running statistics of batch
normalisation, but jin2021's networks have no such layer, and the paper does not say what it took in their place. Taking them
from the true rows would be asking the answer. So mean0 and variance0 are the same network's on rows that the server may have:
auxiliary rows where the threat grants them, else rows drawn from U(0, 1). The second is a weak prior, and is known to be.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients._gradient_matching import (
    RIVAL_SOURCES,
    Dummies,
    MadeUpBatch,
    MatchingServer,
    Rival,
    search,
    seed_of,
    squared,
)
from plumbob.attacks.gradients._worker_uploads import Worker
from plumbob.errors import not_negative, positive
from plumbob.lazy_imports import Tensor, nn, torch
from plumbob.protocols.shared.networks import first_linear
from plumbob.setting_sources import ours, printed
from plumbob.setting_types import NotNegative, Positive, Whole
from plumbob.threats import View

STAND_IN_ROWS = 256  # rows of U(0, 1) that stand in for others
Moments = tuple[Tensor, Tensor]


class BatchNormPrior(Rival):
    """Gradient matching, with feature maps kept close to the statistics of other rows."""

    name = "batch_norm_prior"
    identity = "BatchNormPrior(iterations, report_every, rate, alpha, gamma)"
    summary = "jin2021's baseline: matches gradients and typical statistics of feature maps (GradInversion)"
    sources = RIVAL_SOURCES | {
        "alpha": printed("Section 4.1: that of CAFE, in Table 9"),
        "gamma": ours("the paper names none; that of CAFE's last term in Table 9"),
    }

    def __init__(
        self,
        *,
        iterations: Whole | None = None,
        rate: Positive | None = None,
        alpha: Positive = 1e-2,
        gamma: NotNegative = 1e-3,
        report_every: Whole | None = None,
    ) -> None:
        self._store_length(iterations, report_every)
        self._store_rate(rate)
        self.alpha, self.gamma = positive("alpha", alpha), not_negative("gamma", gamma)

    def descend(self, server: MatchingServer, rng: np.random.Generator) -> Guess:
        generator = seed_of(rng)
        dummies = Dummies.drawn(server, generator)
        prior = BatchNormStatistics(server, server.uploads.view, generator)

        def objective(batch: MadeUpBatch) -> Tensor:
            return self.alpha * squared(batch.pairs()) + self.gamma * prior.misfit(batch)

        return search(self, server, dummies, objective)


class BatchNormStatistics:
    """The usual statistics of every unknown worker's feature maps, under the parameters that are loaded."""

    def __init__(self, server: MatchingServer, view: View, generator: torch.Generator) -> None:
        self.server = server
        self.usual: dict[str, list[Moments]] = {}
        self.checkpoint = -1
        self.rows: dict[str, Tensor] = {}
        for worker in server.uploads.attacked:
            self.rows[worker.name] = _others(worker, view, generator)
            for layer in layers_of(server.modules[worker.name], self.rows[worker.name]):
                server.catch_outputs(worker.name, layer)

    def misfit(self, batch: MadeUpBatch) -> Tensor:
        checkpoint = self.server.load(batch.round)
        if checkpoint != self.checkpoint:
            self.usual, self.checkpoint = {name: self._usual(name) for name in self.rows}, checkpoint
        off = [torch.zeros(())]
        for name, usual in self.usual.items():
            for maps, (mean, variance) in zip(batch.caught[name], usual, strict=True):
                own = moments(maps)
                off += [(own[0] - mean).square().sum(), (own[1] - variance).square().sum()]
        return torch.stack(off).sum()

    def _usual(self, name: str) -> list[Moments]:
        caught = self.server.caught[name]
        caught.clear()
        with torch.no_grad():
            self.server.modules[name](self.rows[name])
        return [moments(maps) for maps in caught]


def _others(worker: Worker, view: View, generator: torch.Generator) -> Tensor:
    """Rows of other people where the view has them, else rows at random."""
    if view.auxiliary is not None:
        rows = torch.from_numpy(view.auxiliary[:, worker.columns]).float()
        return rows.reshape(len(rows), *worker.plan.shape)
    return torch.rand(STAND_IN_ROWS, *worker.plan.shape, generator=generator)


def layers_of(module: nn.Module, rows: Tensor) -> list[nn.Module]:
    """Where feature maps are compared."""
    found: list[nn.Module] = [part for part in module.modules() if isinstance(part, nn.Conv2d)]
    return found or [first_linear(module, rows[:1])[1]]


def moments(maps: Tensor) -> Moments:
    """Mean and variance of every channel, over rows and places."""
    axes = (0, *range(2, maps.dim()))
    return maps.mean(axes), maps.var(axes, unbiased=False)
