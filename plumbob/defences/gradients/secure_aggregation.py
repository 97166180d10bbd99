"""Secure aggregation (bonawitz2017) of the workers' gradients: the server learns their sum and nothing else.

Every pair of workers shares a seed. An upload is the gradient in fixed point, plus the masks shared with workers that come later,
minus those shared with earlier ones, modulo 2^64: one alone is uniform, in the sum over all workers the masks cancel.

The workers' networks must have the same shape. They are different networks, though, on different columns, and a sum of their
gradients is no gradient of any of them: where the server takes steps, all workers take the mean. The top network belongs to one
party, so there is nothing to add its gradients to; they are sent as they are.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from plumbob.crypto.masking import fixed_point, from_generator, opened_sum, pairwise_masks
from plumbob.defences.gradients._gradient_guards import GradientDefence
from plumbob.errors import BadInput, whole
from plumbob.federation import IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.gradients.split_training import TOP
from plumbob.protocols.shared.guards import Arrived, GradientGuard, GradientOutline, Upload


class SecureAggregation(GradientDefence):
    """Masked uploads, in fixed point with `bits` fractional bits."""

    name = "secure_aggregation"
    identity = "SecureAggregation(bits)"
    summary = "workers mask their uploads so that the server learns only the sum over workers"
    paper = "bonawitz2017"
    last = True

    def __init__(self, *, bits: int = 32) -> None:
        self.bits = whole("secure_aggregation: bits", bits, 8, 48)

    def begin(self, outline: GradientOutline) -> GradientGuard[SecureAggregation]:
        shapes = {name: dict(parts) for name, parts in outline.shapes.items() if name != TOP}
        if len(shapes) < 2:
            raise BadInput(f"secure_aggregation: expected at least 2 workers, got {len(shapes)}")
        for (one, first), (two, second) in pairwise(shapes.items()):
            if first != second:
                raise BadInput(
                    f"secure_aggregation: the networks of '{one}' and '{two}' differ in shape, so their gradients do not add "
                    "up; give every worker the same number of columns"
                )
        return _Masked(self, list(shapes))


class _Masked(GradientGuard[SecureAggregation]):
    def __init__(self, defence: SecureAggregation, workers: list[str]) -> None:
        super().__init__(defence)
        self.workers = workers
        self._round, self._masks = -1, dict[str, dict[str, IntArray]]()

    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:

        if upload.party == TOP:
            return upload.gradients
        if upload.round != self._round:
            self._round, self._masks = upload.round, self._drawn(upload, rng)
        refusal = f"secure_aggregation: a gradient of round {upload.round} does not fit into 64 bits; use fewer bits"
        sent = {}
        for key, gradient in upload.gradients.items():
            fixed = fixed_point(gradient.numpy(), self.defence.bits, refusal)
            sent[key] = torch.from_numpy(fixed + self._masks[key][upload.party])
        return sent

    def _drawn(self, upload: Upload, rng: np.random.Generator) -> dict[str, dict[str, IntArray]]:
        """By parameter and worker, the masks of one round."""
        draw = from_generator(rng)
        return {key: pairwise_masks(self.workers, tuple(g.shape), draw) for key, g in upload.gradients.items()}

    def received(self, arrived: Arrived) -> Arrived:
        parts = [arrived[name] for name in self.workers]
        mean = {key: opened_sum([part[key] for part in parts], self.defence.bits) / len(parts) for key in parts[0]}
        return arrived | dict.fromkeys(self.workers, mean)
