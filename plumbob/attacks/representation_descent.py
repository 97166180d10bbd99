"""A network's input from what its first fully connected layer gets, for any module: Adam on the distance, row by row.

The fallback where a network is no chain of blocks that can be undone: it needs the module to be differentiable, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbob.later import torch
from plumbob.protocols.networks import representation

if TYPE_CHECKING:
    from torch import Tensor, nn

CHUNK = 256


def descend(
    module: nn.Module, layer: nn.Module, shape: tuple[int, ...], target: Tensor, steps: int = 400, rate: float = 0.02
) -> Tensor:
    """Inputs in [0, 1] whose representation comes near the target; the rate falls to a hundredth along a cosine."""
    found = [torch.zeros(0, *shape, dtype=target.dtype)]
    for start in range(0, len(target), CHUNK):
        wanted = target[start : start + CHUNK]
        scale = wanted.std().clamp_min(1e-12)
        x = torch.full((len(wanted), *shape), 0.5, dtype=target.dtype, requires_grad=True)
        optimizer = torch.optim.Adam([x], lr=rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=rate / 100)
        for _ in range(steps):
            optimizer.zero_grad()
            off = (representation(module, layer, x).flatten(1) - wanted) / scale
            off.pow(2).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                x.clamp_(0.0, 1.0)
        found.append(x.detach())
    return torch.cat(found)
