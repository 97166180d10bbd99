"""Training before the server looks: attacks on a model that is trained already (jin2021, Section 4.3).

Whole epochs of Adam over all parties' networks, in batches of the protocol's size, with true gradients and without defence: what
crosses meanwhile is in nobody's view. Draws are of a stream of their own, so the rounds that follow have the batches they
have without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plumbob.errors import BadInput
from plumbob.lazy_imports import torch


@dataclass(frozen=True)
class WarmUp:
    """How long, and in what steps."""

    epochs: int
    batch: int
    rate: float


def warm_up(
    how: WarmUp,
    modules: Mapping[str, torch.nn.Module],
    inputs: Mapping[str, torch.Tensor],
    label: torch.Tensor,
    rng: np.random.Generator,
) -> None:
    """Train the networks in place. The module that `inputs` does not name is the one above the others."""
    (top,) = (module for name, module in modules.items() if name not in inputs)
    optimizer = torch.optim.Adam([p for module in modules.values() for p in module.parameters()], lr=how.rate)
    for epoch in range(how.epochs):
        order = torch.from_numpy(rng.permutation(len(label)))
        for rows in order[: len(order) - len(order) % how.batch].view(-1, how.batch):
            joined = torch.stack([modules[name](part[rows]) for name, part in inputs.items()], dim=1)
            loss = torch.nn.functional.cross_entropy(top(joined), label[rows])
            if not bool(loss.isfinite()):
                raise BadInput(
                    f"warm_up: training diverged in epoch {epoch + 1:,}: the loss is not finite; a learning_rate smaller than "
                    f"{how.rate:g} may help"
                )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's has no types
            optimizer.step()
    optimizer.zero_grad(set_to_none=True)
