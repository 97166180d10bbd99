"""Large libraries, loaded when they are first used: a command that needs none of them starts in a third of the time.

To a type checker these are the libraries themselves. `Tensor` is for annotations only.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Later(ModuleType):
    """Stands for a module until one of its names is asked for; every name is looked up once.

    >>> Later("colorsys").rgb_to_hls(0, 0, 0)
    (0.0, 0.0, 0.0)
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # who looks into modules is not to load them
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import torch as torch
    from scipy import stats as stats
    from torch import Tensor as Tensor
    from torch import nn as nn
    from torch.nn import functional as functional
else:
    torch, nn, functional, stats = map(Later, ("torch", "torch.nn", "torch.nn.functional", "scipy.stats"))
    Tensor = Any
