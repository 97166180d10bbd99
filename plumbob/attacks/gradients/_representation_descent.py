"""A network's input from what its first fully connected layer gets, for any module: Adam on the distance, row by row.

The fallback where a network is no chain of blocks that can be undone: it needs the module to be differentiable, and no more.
"""

from __future__ import annotations

from collections.abc import Callable

from plumbob.lazy_imports import Tensor, torch

DESCENDED_TOGETHER = 256


def descend(
    forward: Callable[[Tensor], Tensor],
    shape: tuple[int, ...],
    target: Tensor,
    steps: int = 400,
    rate: float = 0.02,
    lengths_open: Tensor | None = None,
) -> Tensor:
    """Inputs in [0, 1] whose representation comes near the target; the rate falls to a hundredth along a cosine.

    Of rows whose lengths are open only the target's direction counts.
    """
    found = [torch.zeros(0, *shape, dtype=target.dtype)]
    for start in range(0, len(target), DESCENDED_TOGETHER):
        wanted = target[start : start + DESCENDED_TOGETHER]
        scale = wanted.std().clamp_min(1e-12)
        open_ = None if lengths_open is None else lengths_open[start : start + DESCENDED_TOGETHER]

        def loss(
            x: Tensor, _: int, wanted: Tensor = wanted, open_: Tensor | None = open_, scale: Tensor = scale
        ) -> Tensor:
            reached = forward(x).flatten(1)
            return ((reached - _as_long(wanted, reached.detach(), open_)) / scale).pow(2).sum()

        found.append(descended(torch.full((len(wanted), *shape), 0.5, dtype=target.dtype), loss, steps, rate))
    return torch.cat(found)


def descended(start: Tensor, loss: Callable[[Tensor, int], Tensor], steps: int, rate: float) -> Tensor:
    """Inputs in [0, 1] that Adam reaches from a start; the loss knows the step, the rate falls to a hundredth along a cosine."""
    x = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([x], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=rate / 100)
    for step in range(steps):
        optimizer.zero_grad()
        with torch.enable_grad():
            loss(x, step).backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            x.clamp_(0.0, 1.0)
    return x.detach()


def _as_long(wanted: Tensor, reached: Tensor, open_: Tensor | None) -> Tensor:
    """The target, as long as what is reached goes along it where its length is open."""
    if open_ is None:
        return wanted
    share = (reached * wanted).sum(dim=1) / wanted.pow(2).sum(dim=1).clamp_min(1e-30)
    return torch.where(open_[:, None], share[:, None] * wanted, wanted)
