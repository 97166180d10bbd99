"""The active party of a split network: its top model and its labels, and what defences change there.

    loss = cross entropy(top(entry(received) + own), targets) + what defences add
What the passive parties get back is the loss's gradient at `received`, as far as a defence lets it through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbob.federation import Federation, FloatArray, IntArray
from plumbob.lazy_imports import nn, stats, torch
from plumbob.protocols.shared.guards import Backward, EmbeddingGuard, LabelGuard


@dataclass
class ActiveSide:
    """The active party in one training."""

    top: torch.nn.Module
    label: torch.Tensor
    classes: int
    guards: list[LabelGuard[Any]]
    entries: list[torch.nn.Module]
    rng: np.random.Generator
    targets: torch.Tensor = field(init=False)  # classes, or rows x classes where a defence changes them

    @classmethod
    def of(
        cls,
        federation: Federation,
        top: torch.nn.Module,
        width: int,
        guards: Sequence[EmbeddingGuard[Any]],
        dtype: torch.dtype,
        rng: np.random.Generator,
    ) -> ActiveSide:
        able = [guard for guard in guards if isinstance(guard, LabelGuard)]
        entries = [entry for guard in able if (entry := guard.entry(width, dtype)) is not None]
        for guard in able:
            top = guard.top(top)
        return cls(top, torch.from_numpy(federation.label), len(federation.classes), able, entries, rng)

    @property
    def modules(self) -> tuple[torch.nn.Module, ...]:
        return (self.top, *self.entries)

    def begin(self, epoch: int) -> None:
        """What is trained on in this epoch: the classes themselves, as long as no defence changes them."""
        plain = told = torch.eye(self.classes)[self.label]
        for guard in self.guards:
            told = guard.targets(epoch, told, self.rng)
        self.targets = self.label if told is plain else told

    def logits(self, received: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        for entry in self.entries:
            received = entry(received)
        joined = received if own is None else received + own
        found: torch.Tensor = self.top(joined)
        return found

    def step(
        self, rows: IntArray, received: torch.Tensor, own: torch.Tensor | None
    ) -> tuple[float, torch.Tensor, torch.Tensor | None]:
        """Forwards and backwards: the loss, what the passive parties get, and the gradient at the active party's outputs."""
        received = received.requires_grad_()
        mine = None if own is None else own.detach().requires_grad_()
        logits = self.logits(received, mine)
        picked = torch.from_numpy(rows)
        targets = self.targets[picked]
        if self.guards:
            targets = targets if targets.ndim == 1 else targets.to(logits.dtype)
            logits.register_hook(self._residuals)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        loss = nn.functional.cross_entropy(logits, targets)
        burdens = [b for guard in self.guards if (b := guard.burden(received, targets)) is not None]
        total = loss + sum(burdens) if burdens else loss
        total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        above = received.grad
        assert above is not None
        for guard in self.guards:
            above = guard.back(Backward(rows, self.label[picked], logits.detach(), above), self.rng)
        return float(loss.detach()), above, None if mine is None else mine.grad

    def _residuals(self, gradients: torch.Tensor) -> torch.Tensor:
        for guard in self.guards:
            gradients = guard.residuals(gradients, self.rng)
        return gradients

    def predicted(self, received: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        """Scores of every class, with parameters that no longer change."""
        found = self.logits(received, own)
        if self.guards:
            found = torch.softmax(found, dim=1)
        for guard in reversed(self.guards):
            found = guard.decoded(found)
        return found


def area(scores: FloatArray, label: IntArray) -> float:
    """The area under the curve of a class against the others, as a mean over classes that some rows have and some have not.

    >>> area(np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1]))
    1.0
    """
    found = []
    for k, column in enumerate(scores.T[1:] if scores.shape[1] == 2 else scores.T, 1 if scores.shape[1] == 2 else 0):
        here = label == k
        if here.any() and not here.all():
            ranks = stats.rankdata(column)[here].sum() - here.sum() * (here.sum() + 1) / 2
            found.append(float(ranks / (here.sum() * (~here).sum())))
    return float(np.mean(found)) if found else 0.5
