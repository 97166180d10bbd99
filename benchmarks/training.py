"""Benchmark of private training: what DP-SGD costs beside plain training of the same model for the same epochs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.timing import Measured, best, result
from plumbob.data import registry
from plumbob.defences.scores.dp_sgd import DpSgd
from plumbob.federation import Table
from plumbob.protocols import Model, PredictionProtocol
from plumbob.protocols.base import predicting
from plumbob.protocols.scores.neural_network import NeuralNetwork
from plumbob.protocols.shared.networks import one_thread

EPOCHS = 5


def dp_sgd_against_plain_training() -> Iterator[Measured]:
    """Seconds of DP-SGD over those of plain training, a network of 600, 300, 100 on satellite; finding sigma included."""
    table, plain = registry.load("satellite"), NeuralNetwork(epochs=EPOCHS)
    private = predicting(DpSgd(epsilon=1.0, epochs=EPOCHS).protect(plain))
    seconds = {}
    with one_thread():
        for name, protocol in (("plain", plain), ("private", private)):
            seconds[name], _ = best(partial(_fit, protocol, table), 1)
    size = f"satellite, {len(table.values):,} rows, network of 600, 300, 100, {EPOCHS} epochs"
    yield result(
        "DP-SGD against plain training, seconds", seconds["private"] / seconds["plain"], None, size, seconds["private"]
    )


def _fit(protocol: PredictionProtocol, table: Table) -> Model:
    assert table.label is not None
    return protocol.fit(table.values, table.label, len(table.classes), np.random.default_rng(0))
