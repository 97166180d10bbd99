"""Secure aggregation (bonawitz2017) of the workers' gradients: the server opens their sum and nothing else.

Every pair of workers shares a seed. An upload is the gradient in fixed point, plus the masks shared with workers that come later,
minus those shared with earlier ones, modulo 2^64: one alone is uniform, in the sum over all workers the masks cancel.

The workers' networks must have the same shape. They are different networks, though, on different columns, and a sum of their
gradients is no gradient of any of them: where the server takes steps, all workers take the mean. The top network belongs to one
party, so there is nothing to add its gradients to; they are sent as they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from plumbob.bundle import Array
from plumbob.defences.gradients import GradientDefence
from plumbob.errors import BadInput, whole
from plumbob.protocols.split_training import TOP, Arrived, Guard, Outline, Upload

if TYPE_CHECKING:
    import torch


class SecureAggregation(GradientDefence):
    """Masked uploads, in fixed point with so many `bits` after the point."""

    name = "secure_aggregation"
    summary = "workers mask their uploads so that the server learns only the sum over workers"
    paper = "bonawitz2017"
    last = True

    def __init__(self, *, bits: int = 32) -> None:
        self.bits = whole("secure_aggregation: bits", bits, 8, 48)

    def begin(self, outline: Outline) -> Guard:
        shapes = {name: dict(parts) for name, parts in outline.shapes.items() if name != TOP}
        if len(shapes) < 2:
            raise BadInput(f"secure_aggregation: expected at least 2 workers, got {len(shapes)}")
        for (one, first), (two, second) in pairwise(shapes.items()):
            if first != second:
                raise BadInput(
                    f"secure_aggregation: the networks of '{one}' and '{two}' differ in shape, so their gradients do not add "
                    "up; deal out as many columns to each"
                )
        return _Masked(self, list(shapes))


class _Masked(Guard):
    def __init__(self, defence: SecureAggregation, workers: list[str]) -> None:
        self.defence, self.workers = defence, workers
        self._round, self._masks = -1, dict[str, dict[str, Array]]()

    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        import torch

        if upload.party == TOP:
            return upload.gradients
        if upload.round != self._round:
            self._round, self._masks = upload.round, self._drawn(upload, rng)
        sent = {}
        for key, gradient in upload.gradients.items():
            fixed = np.rint(np.ldexp(gradient.numpy().astype(np.float64), self.defence.bits))
            if not np.abs(fixed).max(initial=0.0) < 2.0**60:
                raise BadInput(
                    f"secure_aggregation: a gradient of round {upload.round} does not fit into 64 bits; lower bits"
                )
            sent[key] = torch.from_numpy(fixed.astype(np.int64) + self._masks[upload.party][key])
        return sent

    def _drawn(self, upload: Upload, rng: np.random.Generator) -> dict[str, dict[str, Array]]:
        """For every worker the sum of its pairs' masks: added by the earlier of the two, taken away by the later."""
        shapes = {key: tuple(g.shape) for key, g in upload.gradients.items()}
        masks = {name: {key: np.zeros(shape, dtype=np.int64) for key, shape in shapes.items()} for name in self.workers}
        for place, one in enumerate(self.workers):
            for two in self.workers[place + 1 :]:
                for key, shape in shapes.items():
                    mask = rng.integers(-(2**63), 2**63 - 1, shape, dtype=np.int64, endpoint=True)
                    masks[one][key] = masks[one][key] + mask
                    masks[two][key] = masks[two][key] - mask
        return masks

    def received(self, arrived: Arrived) -> Arrived:
        parts = [arrived[name] for name in self.workers]
        mean = {
            key: np.ldexp(np.sum([part[key] for part in parts], axis=0).astype(np.float64), -self.defence.bits)
            / len(parts)
            for key in parts[0]
        }
        return arrived | dict.fromkeys(self.workers, mean)

    def known(self) -> dict[str, Array]:
        return self.defence.known()
