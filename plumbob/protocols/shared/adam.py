"""Adam without torch's compiler: `torch.optim.Adam` loads it into every process that trains, which takes a second.

The steps are those of `torch.optim.Adam`, by the function that it calls, so the parameters are the same to the last bit.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from plumbob.lazy_imports import Tensor, torch


class Adam:
    """Adam with torch's defaults; `lr` may be changed between steps."""

    def __init__(self, parameters: Iterable[Tensor], *, lr: float, fused: bool | None = None) -> None:
        self.parameters, self.lr, self._fused = list(parameters), lr, fused
        self._step = importlib.import_module("torch.optim.adam").adam
        self._first, self._second = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        self._count = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """One step along the gradients that `backward` left; all parameters must have one."""
        with torch.no_grad():
            self._step(
                self.parameters,
                [parameter.grad for parameter in self.parameters],
                self._first,
                self._second,
                [],
                self._count,
                fused=self._fused,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.lr,
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
