"""The benchmark of gradient inversion: all records at once against one by one, at equal error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.timing import Measured, best, result
from plumbob.attacks.scores.gradient_inversion import GradientInversion
from plumbob.data import registry
from plumbob.federation import FloatArray, halves, split_at_random
from plumbob.protocols import predict
from plumbob.protocols.base import column_positions
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.threats import LUO2021, View, cut

RECORDS = 100


def gia_against_one_by_one() -> Iterator[Measured]:
    """The paper's search on 100 records of satellite, two hidden layers, 18 of 36 columns unknown.

    One by one ten records are timed and counted ten times; their guesses must be those of the batch.
    """
    view = _view()
    attack = GradientInversion.preset("fast", rate=0.001, steps=200, finish=0)
    ours, together = best(lambda: attack.run(view, np.random.default_rng(0)).values, 5)
    timed = 10
    loop, alone = best(lambda: np.vstack([_guess(attack, _row(view, i)) for i in range(timed)]), 2)
    assert np.allclose(together[:timed], alone, atol=1e-5)
    size = f"{RECORDS} records of satellite, 18 of 36 columns, {attack.steps} rounds"
    yield result("GIA at once against one by one", loop * RECORDS / timed / ours, 20, size, ours)


def _view() -> View:
    rng = np.random.default_rng(0)
    federation = split_at_random(registry.load("satellite"), 18, rng)
    train, rows = halves(federation.label, rng)
    trainer, protocol = federation.rows(train), SplitModels(layers=2, epochs=5)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(trainer.values, trainer.label, len(federation.classes), rng, blocks)
    return cut(predict(protocol, model, federation.rows(rows[:RECORDS]), trainer), LUO2021)


def _row(view: View, row: int) -> View:
    """The same view of one record."""
    scores = next(message for message in view.messages if message.name == "scores")
    one = slice(row, row + 1)
    return replace(view, own=view.own[one], messages=(replace(scores, payload=scores.payload[one]),))


def _guess(attack: GradientInversion, view: View) -> FloatArray:
    values = attack.run(view, np.random.default_rng(0)).values
    assert values is not None
    return values
