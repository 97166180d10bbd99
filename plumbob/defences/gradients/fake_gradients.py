"""Fake gradients (jin2021, Section 3.4 and Algorithm 5): a worker sends numbers that were drawn before it saw a gradient.

`count` candidates have entries from N(0, sigma^2), sorted in descending order layer by layer; psi is the one nearest to the true
gradient sorted the same way. The l-th largest true entry g of a layer is then sent as
    paired    psi_l                          what Section 3.4 says: the fake takes the true one's place, the order is kept
    literal   min(psi_l, max(g, -psi_l))     line 17 of Algorithm 5 as it is printed
Where psi_l > 0, in the upper half, the printed line keeps every g that is smaller than psi_l, and nearly all are. Where
psi_l < 0 it always gives psi_l. So it sends half of the gradient as it is.

Candidates are drawn once for a training and shared by workers of the same shape. No more of them are kept than `room_mb` holds:
the longer a sorted sample, the less one differs from the next (plumbob/P24 has what 2, 100 and 1,000 do). Keeping seeds in their
place would need no room, but every upload would draw and sort all candidates again: at the paper's size, a minute for each.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.errors import BadInput, boolean, not_negative, positive, whole
from plumbob.known_defences import KnownDefences
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline, Upload
from plumbob.setting_sources import ours, printed

BYTES = 4  # of a number of a candidate
REDRAWS = 20  # times that candidates are drawn again for one gradient


class FakeGradients(GradientDefence):
    """Sorted normal numbers in the places of the true ones; `tau` is the largest distance allowed, 0 for any."""

    name = "fake_gradients"
    identity = "FakeGradients(sigma, count, tau, literal)"
    summary = "workers send sorted random numbers in the order of their true gradients"
    paper = "jin2021"
    sources = {
        "sigma": printed("Section 4.4"),
        "count": printed("Section 4.4: nu = 1000"),
        "tau": ours("Algorithm 5 names no threshold; 0 draws once"),
        "literal": ours("line 17 as printed sends half of the gradient as it is; Section 3.4 says what is done"),
        "room_mb": ours("memory for candidates; the paper's network has 3,000 MB of them"),
    }

    def __init__(
        self, *, sigma: float = 1.1, count: int = 1_000, tau: float = 0.0, literal: bool = False, room_mb: int = 8
    ) -> None:
        self.sigma = positive("fake_gradients: sigma", sigma)
        self.count = whole("fake_gradients: count", count, 1, 1_000_000)
        self.tau = not_negative("fake_gradients: tau", tau)
        self.literal = boolean("fake_gradients: literal", literal)
        self.room_mb = whole("fake_gradients: room_mb", room_mb, 1, 1_000_000)  # for candidates of one shape of network

    def known(self) -> KnownDefences:
        """What decides the numbers that are sent; not how much memory the workers have."""
        told = ("sigma", "count", "tau", "literal")
        return KnownDefences.named(self.name, {key: np.asarray(getattr(self, key)) for key in told})

    def kept(self, parameters: int) -> int:
        """How many candidates of so many numbers there is room for."""
        return max(1, min(self.count, int(1e6 * self.room_mb) // (BYTES * parameters)))

    def begin(self, outline: GradientOutline) -> GradientGuard[FakeGradients]:
        return _Fakes(self)


class _Fakes(GradientGuard[FakeGradients]):
    def __init__(self, defence: FakeGradients) -> None:
        super().__init__(defence)
        self._candidates: dict[tuple[int, ...], tuple[list[torch.Tensor], torch.Tensor]] = {}

    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:

        orders = {k: torch.argsort(g.flatten(), descending=True, stable=True) for k, g in upload.gradients.items()}
        true = [g.flatten()[orders[key]] for key, g in upload.gradients.items()]
        fakes = self._nearest(true, rng)
        sent = {}
        for (key, gradient), real, fake in zip(upload.gradients.items(), true, fakes, strict=True):
            chosen = torch.minimum(fake, torch.maximum(real, -fake)) if self.defence.literal else fake
            sent[key] = torch.empty_like(chosen).scatter_(0, orders[key], chosen).view(gradient.shape)
        return sent

    def _nearest(self, true: list[torch.Tensor], rng: np.random.Generator) -> list[torch.Tensor]:
        """psi: the candidate at the least distance from the true gradient, sorted layer by layer."""

        sizes, tau = tuple(len(layer) for layer in true), self.defence.tau
        if sizes not in self._candidates:
            self._candidates[sizes] = self._drawn(sizes, rng)
        size = sum(float(layer @ layer) for layer in true)
        for _ in range(REDRAWS + 1):
            candidates, lengths = self._candidates[sizes]
            inner = torch.stack([c @ t for c, t in zip(candidates, true, strict=True)]).sum(dim=0)
            far = lengths - 2 * inner + size  # |psi - g|^2
            best = int(far.argmin())
            distance = max(float(far[best]), 0.0) ** 0.5
            if not tau or distance <= tau:
                return [layer[best] for layer in candidates]
            self._candidates[sizes] = self._drawn(sizes, rng)
        raise BadInput(
            f"fake_gradients: no candidate of {REDRAWS:,} draws is within tau {tau:g} of the true gradient, the last was at "
            f"{distance:.3g}; raise tau or change sigma"
        )

    def _drawn(self, sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Sorted candidates, layer by layer, and their squared lengths."""

        kept = self.defence.kept(sum(sizes))
        drawn = [rng.standard_normal((kept, size), dtype=np.float32) for size in sizes]
        layers = [self.defence.sigma * torch.from_numpy(-np.sort(-layer, axis=1)) for layer in drawn]
        return layers, torch.stack([layer.pow(2).sum(dim=1) for layer in layers]).sum(dim=0)
