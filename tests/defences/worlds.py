"""Defended predictions at a size for tests."""

from __future__ import annotations

import numpy as np

from plumbob.defences import Defence
from plumbob.federation import Table, halves, split_at_random
from plumbob.protocols.base import PredictionProtocol, column_positions, predict
from plumbob.threats import LUO2021, Threat, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, small


def defended(
    defence: Defence,
    protocol: str | PredictionProtocol = "logistic_regression",
    table: Table | None = None,
    unknown: float = 0.5,
    seed: int = 0,
    rows: int = 200,
) -> Transcript:
    """One prediction under a defence, made as an audit makes it."""
    rng = np.random.default_rng(seed)
    federation = split_at_random(table if table is not None else made_table(seed=seed), unknown, rng)
    train, rest = halves(federation.label, rng)
    guarded = defence.protect(small(protocol) if isinstance(protocol, str) else protocol)
    trainer, target = federation.rows(train), federation.rows(rest[:rows])
    fit_rng, blocks = np.random.default_rng([seed, 1]), list(column_positions(federation).values())
    model = guarded.fit(trainer.values, trainer.label, len(federation.classes), fit_rng, blocks)
    release = defence.release(guarded, model, target)
    return predict(guarded, model, target, trainer, release=release, defence=defence.known())


def released(log: Transcript) -> np.ndarray:
    """The scores as the active party got them."""
    return np.concatenate([m.payload for m in log.messages if m.name == "scores"])


def view_of(log: Transcript, defence: Defence, threat: Threat = LUO2021) -> View:
    return cut(log, defence.threat(threat))
