"""What an audit loads while it runs, loaded at once: see `tests.commands`."""
# ruff: noqa: E402  # nothing of it is garbage

import gc

gc.disable()

import dp_accounting  # noqa: F401
import flint  # noqa: F401
import joblib  # noqa: F401
import opacus  # noqa: F401
import pandas  # noqa: F401
import pyarrow.pandas_compat  # noqa: F401
import scipy.stats  # noqa: F401
import sklearn.datasets
import sklearn.linear_model
import sklearn.tree  # noqa: F401
import torch._dynamo  # noqa: F401  # every optimiser of torch asks for it

import plumbob.app
import plumbob.cli
import plumbob.report.page  # noqa: F401
from plumbob.attacks import Attack
from plumbob.defences import Defence
from plumbob.protocols import Protocol
from plumbob.registry import classes_in

# Their modules only: the registries stay empty, for a command may see packages that add to them.
for room, base in (("attacks", Attack), ("defences", Defence), ("protocols", Protocol)):
    list(classes_in(f"plumbob.{room}", base))

gc.enable()
gc.collect()
gc.freeze()  # looking for garbage in a fork would copy every page that it shares
