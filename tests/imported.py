"""What an audit loads while it runs, loaded at once: see `tests.commands`."""

import joblib  # noqa: F401
import pandas  # noqa: F401
import torch  # noqa: F401

import plumbob.app
import plumbob.cli
import plumbob.papers.claims
import plumbob.report.page  # noqa: F401
from plumbob.attacks import attacks

attacks()
