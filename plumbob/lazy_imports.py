"""Large libraries, loaded when they are first used: a command that needs none of them starts in a third of the time.

To a type checker these are the libraries themselves. `Tensor` is for annotations only.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any


@contextmanager
def loading() -> Iterator[None]:
    """While libraries are loaded: looking for garbage, of which there is hardly any, would take a fifth of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


class Later(ModuleType):
    """Stands for a module until one of its names is asked for; every name is looked up once.

    >>> Later("colorsys").rgb_to_hls(0, 0, 0)
    (0.0, 0.0, 0.0)
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # who looks into modules is not to load them
            raise AttributeError(name)
        with loading():
            module = importlib.import_module(self.__name__)
            if not hasattr(module, name):  # a part that is loaded by its own name
                importlib.import_module(f"{self.__name__}.{name}")
        value = getattr(module, name)
        setattr(self, name, value)
        return value


@contextmanager
def when_loaded(name: str, act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as a module is there: now, or when somebody loads it in here."""
    if name in sys.modules:
        act()
        yield
        return
    watch = _Watch(name, act)
    sys.meta_path.insert(0, watch)
    try:
        yield
    finally:
        watch.over = True
        sys.meta_path.remove(watch)


class _Watch:
    """Finds a module as the others do, and acts after it was run."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name, self._act = name, act
        self._asking = self.over = False

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is None or spec.loader is None:
            return None
        run: Callable[[ModuleType], None] = spec.loader.exec_module

        def run_and_act(module: ModuleType) -> None:
            run(module)
            if not self.over:
                self._act()

        spec.loader.exec_module = run_and_act  # type: ignore[method-assign]  # this loader is of this module alone
        return spec


if TYPE_CHECKING:
    import dp_accounting as dp_accounting
    import flint as flint
    import mpyc as mpyc
    import opacus as opacus
    import sklearn as sklearn
    import torch as torch
    import xgboost as xgboost
    from scipy import optimize as optimize
    from scipy import stats as stats
    from torch import Tensor as Tensor
    from torch import nn as nn
    from torch.nn import functional as functional
else:
    dp_accounting, flint, mpyc, opacus = map(Later, ("dp_accounting", "flint", "mpyc", "opacus"))
    sklearn, xgboost = map(Later, ("sklearn", "xgboost"))
    optimize, stats = map(Later, ("scipy.optimize", "scipy.stats"))
    torch, nn, functional = map(Later, ("torch", "torch.nn", "torch.nn.functional"))
    Tensor = Any
