"""MID (zou2023): a variational bottleneck at the active party keeps little of what the passive parties send.

    T = m(z) + s(z) n,   n ~ N(0, 1),   loss + strength x KL(N(m, s^2) || N(0, 1)) / width,   z: what was received
The top model sees T in place of z: what the loss tells about z passes through the bottleneck, whose noise is drawn anew in every
round. In prediction T is m(z).
"""

from __future__ import annotations

from typing import Any

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import positive
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class Mid(LabelDefence):
    """A bottleneck with this `strength`."""

    name = "mid"
    identity = "Mid(strength)"
    aliases = ("MID",)
    summary = "the active party puts a variational bottleneck between what it receives and its model"
    paper = "zou2023"
    sources = {
        "strength": ours("the paper compares many; here it weighs a mean over cells"),
    }
    sweep_settings = ({"strength": 0.1}, {"strength": 3.0})

    def __init__(self, *, strength: float = 0.1) -> None:
        self.strength = positive("mid: strength", strength)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[Mid]:
        return _Narrow(self)


class _Narrow(LabelGuard[Mid]):
    def __init__(self, defence: Mid) -> None:
        super().__init__(defence)
        self._bottleneck: Any = None

    def entry(self, width: int, dtype: torch.dtype) -> torch.nn.Module:
        self._bottleneck = bottleneck(width).to(dtype)
        made: torch.nn.Module = self._bottleneck
        return made

    def burden(self, received: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        kept: torch.Tensor = self.defence.strength * self._bottleneck.kept
        return kept


def bottleneck(width: int) -> torch.nn.Module:
    """One layer to means and logarithms of variances; `kept` is the divergence of the last rows, as a mean over cells."""

    class Bottleneck(nn.Module):
        kept: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.mean, self.log = nn.Linear(width, width), nn.Linear(width, width)
            nn.init.eye_(self.mean.weight)  # it starts from what was received, with little noise
            nn.init.zeros_(self.log.weight)
            nn.init.constant_(self.log.bias, -4.0)

        def forward(self, received: torch.Tensor) -> torch.Tensor:
            mean, log = self.mean(received), self.log(received).clamp(-10.0, 10.0)
            self.kept = 0.5 * (mean.pow(2) + log.exp() - 1 - log).mean()
            drawn: torch.Tensor = mean + (0.5 * log).exp() * torch.randn_like(mean) if self.training else mean
            return drawn

    return Bottleneck()
