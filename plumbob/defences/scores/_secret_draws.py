"""Draws of a defence that the attacker must not repeat: from the defender's seed, and anew for every model."""

from __future__ import annotations

import hashlib

import numpy as np

from plumbob import bundle
from plumbob.protocols.base import Model

MOST_REPEATS = 10_000  # questions about one row


def secret_generator(seed: int, model: Model) -> np.random.Generator:
    """Mixed with the model, so that every trial of an audit has noise of its own."""
    marks = [bundle.digest(array) for array in model.arrays().values()]
    words = hashlib.sha256(bundle.canonical([seed, marks]).encode()).digest()
    return np.random.default_rng(np.frombuffer(words, dtype=np.uint32))
