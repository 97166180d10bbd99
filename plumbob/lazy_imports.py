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
        module = importlib.import_module(self.__name__)
        if not hasattr(module, name):  # a part that is loaded by its own name
            importlib.import_module(f"{self.__name__}.{name}")
        value = getattr(module, name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import dp_accounting as dp_accounting
    import flint as flint
    import mpyc as mpyc
    import opacus as opacus
    import sklearn as sklearn
    import torch as torch
    import xgboost as xgboost
    from scipy import stats as stats
    from torch import Tensor as Tensor
    from torch import nn as nn
    from torch.nn import functional as functional
else:
    dp_accounting, flint, mpyc, opacus = map(Later, ("dp_accounting", "flint", "mpyc", "opacus"))
    sklearn, stats, xgboost = map(Later, ("sklearn", "scipy.stats", "xgboost"))
    torch, nn, functional = map(Later, ("torch", "torch.nn", "torch.nn.functional"))
    Tensor = Any
