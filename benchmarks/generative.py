"""Benchmark of generative regression: how much sooner the preset `sharp` reaches the error of the published training loop."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from statistics import median

import numpy as np

from benchmarks.timing import Measured
from plumbob.attacks.scores.generative_regression import GenerativeRegression
from plumbob.data import registry
from plumbob.federation import FloatArray, halves, split_at_random
from plumbob.protocols import predict
from plumbob.protocols.scores.neural_network import NeuralNetwork
from plumbob.protocols.shared.networks import one_thread
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut

SPLITS = 5
ROWS = 11_701  # a fifth of drive, as for equation solving
EPOCHS = 20


def grna_against_plain_loop() -> Iterator[Measured]:
    """Seconds of the plain loop (batches of 64, Adam at 1e-4, 20 epochs) over ours to the same error, worst of five splits.

    Seconds of the processor on one thread, without those that measuring the error takes. A split on which we never
    reach the plain loop's error counts as 0.
    """
    ratios, ours = [], []
    for view, truth in _views():
        plain = _errors(GenerativeRegression(epochs=EPOCHS), view, truth, last_only=True)
        target, long = plain[-1]
        short = next(
            (s for error, s in _errors(GenerativeRegression.preset("sharp"), view, truth) if error <= target), None
        )
        ratios.append(0.0 if short is None else long / short)
        ours += [] if short is None else [short]
    size = (
        f"drive, {ROWS:,} rows, 20 of 48 columns, {SPLITS} splits, worst; "
        f"all: {' '.join(f'{ratio:.1f}' for ratio in ratios)}"
    )
    yield {
        "name": "GRNA against the plain loop, time to its error",
        "ratio": min(ratios),
        "goal": 3,
        "size": size,
        "seconds": median(ours) if ours else 0.0,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _views() -> Iterator[tuple[View, FloatArray]]:
    """One network, five random splits of its columns; the rows are none of those it was trained on."""
    table, protocol, rng = registry.load("drive"), NeuralNetwork(), np.random.default_rng(0)
    assert table.label is not None
    train, others = halves(table.label, rng)
    with one_thread():
        model = protocol.fit(table.values[train], table.label[train], len(table.classes), rng)
    for _ in range(SPLITS):
        federation = split_at_random(table, 20, rng)
        order = np.array([table.names.index(feature.column.name) for feature in federation.features])
        target = federation.rows(others[:ROWS])
        log = predict(protocol, model.reordered(order), target, target.rows(np.arange(1)))
        view = cut(log, LUO2021)
        yield view, truth_of(log, view).values


def _errors(
    attack: GenerativeRegression, view: View, truth: FloatArray, last_only: bool = False
) -> list[tuple[float, float]]:
    """Mean squared error and seconds of training after each pass over the rows."""
    found, seconds = [], 0.0
    with one_thread():
        started = time.process_time()
        for guess in attack.progress(view, np.random.default_rng(0)):
            seconds += time.process_time() - started
            found.append((0.0 if last_only else _error(guess(), truth), seconds))
            started = time.process_time()
        if last_only:
            found[-1] = (_error(guess(), truth), seconds)
    return found


def _error(guess: FloatArray, truth: FloatArray) -> float:
    return float(np.mean((guess - truth) ** 2))
