"""Differentially private gradients (jin2021, Appendix G.3): clipped row by row, with noise on every upload.

A row's gradient of all of a party's parameters together is scaled to length `clip` at most; the mean over the batch gets
N(0, (noise x clip / K)^2) on every entry. `noise` is the least for which all rounds of one party's uploads are (epsilon,
delta)-private by the accountant of DP-SGD. The server draws the batches, so every round that a row is in counts at q = 1.

`amplified: true` books as jin2021 and DP-SGD do, for secret batches drawn at the rate q = K / N; that is no promise against
this server.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.defences.guarantee import SHARED_HAZARDS, Guarantee
from plumbob.defences.scores.dp_sgd import noise_for
from plumbob.errors import BadInput, boolean, positive
from plumbob.known_defences import KnownDefences, KnownDpGradients
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import GradientGuard, GradientOutline, Upload
from plumbob.setting_sources import ours, printed


class DpGradients(GradientDefence):
    """Uploads that are (`epsilon`, `delta`)-private for every row, one party's rounds taken together."""

    name = "dp_gradients"
    identity = "DpGradients(epsilon, delta, clip, amplified)"
    summary = "every row's gradient is clipped and every upload gets Gaussian noise, for (epsilon, delta)-differential privacy"
    paper = "jin2021"
    sources = {
        "epsilon": ours("Section G.3 names none"),
        "delta": ours("Section G.3 names none"),
        "clip": printed("Section G.3"),
        "amplified": ours("Section G.3 does not say how steps add up; the safe way is the default"),
    }
    begins = "clips the rows' own gradients"
    sweep_settings = ({"epsilon": 10.0}, {"epsilon": 1.0})

    def __init__(
        self, *, epsilon: float = 10.0, delta: float = 1e-5, clip: float = 3.0, amplified: bool = False
    ) -> None:
        self.epsilon = positive("dp_gradients: epsilon", epsilon)
        self.delta = positive("dp_gradients: delta", delta)
        if delta >= 1:
            raise BadInput(f"dp_gradients: delta: expected a number below 1, got {delta!r}")
        self.clip = positive("dp_gradients: clip", clip)
        self.amplified = boolean("dp_gradients: amplified", amplified)

    def known(self, noise: float | None = None) -> KnownDefences:
        """The settings, and the noise multiplier of a training."""
        return KnownDefences.of(KnownDpGradients(self.epsilon, self.delta, self.clip, self.amplified, noise))

    def guarantees(self) -> tuple[Guarantee, ...]:
        trust = "each party adds its own noise before it uploads, so the server need not be trusted with the uploads"
        composition = "all rounds of one party's uploads, each round that a row is in at its full cost"
        amplified = (
            "The budget counts on secret random batches, but here the server draws them: no promise against the server."
        )
        if self.amplified:
            trust = "the server must not know which rows are in a batch"
            composition = "all rounds of one party's uploads, with batches drawn at random and kept secret"
        return (
            Guarantee(
                unit="one training row in the uploads of one party: one person, if each has one row",
                neighbours="one row's gradient is left out of its batches, which keep their size",
                epsilon=self.epsilon,
                delta=f"{self.delta:g}",
                trust=f"{trust}; the active party gets the networks' outputs as they are and is trusted",
                mechanism=f"Gaussian noise on mean gradients, each row's clipped to length {self.clip:g}",
                composition=f"{composition}, by a Rényi accountant",
                hazards=(
                    *((amplified,) if self.amplified else ()),
                    "A person's row shapes the uploads of every party and of the top network: their budgets add up.",
                    "Outputs and their gradients, which workers and the active party exchange, get no noise.",
                    *SHARED_HAZARDS,
                ),
            ),
        )

    def begin(self, outline: GradientOutline) -> GradientGuard[DpGradients]:
        rate, steps = outline.batch_size / outline.rows, outline.rounds
        if not self.amplified:
            rate, steps = 1.0, outline.most
        return _Noisy(self, noise_for(self.epsilon, self.delta, rate, steps, self.name))


class _Noisy(GradientGuard[DpGradients]):
    def __init__(self, defence: DpGradients, noise: float) -> None:
        super().__init__(defence)
        self.noise = noise

    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:

        by_row, clip = upload.by_row(), self.defence.clip
        rows = len(upload.inputs)
        norm = torch.stack([g.flatten(1).pow(2).sum(dim=1) for g in by_row.values()]).sum(dim=0).sqrt()
        scale = (clip / norm.clamp_min(1e-30)).clamp_max(1.0)
        width = self.noise * clip / rows
        sent = {}
        for key, own in by_row.items():
            clipped = (scale @ own.flatten(1)).view(own.shape[1:]) / rows
            sent[key] = clipped + width * torch.from_numpy(rng.standard_normal(clipped.shape, dtype=np.float32))
        return sent

    def known(self) -> KnownDefences:
        return self.defence.known(self.noise)
