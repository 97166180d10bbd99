"""Small worlds to test in: tables, federations and transcripts made from a seed."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plumbob.data import registry
from plumbob.federation import Column, Federation, Table, halves, split_at_random, split_into_tiles
from plumbob.protocols import PROTOCOLS, PredictionProtocol, TrainingProtocol, predict
from plumbob.protocols.base import column_positions, opened
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.protocols.scores.boosted_trees import BoostedTrees
from plumbob.protocols.scores.neural_network import NeuralNetwork
from plumbob.protocols.scores.random_forest import RandomForest
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.protocols.sums.hidden_codes import MagicNumbers
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.targets.xgboost.xgboost_columns import MISSING, XgboostColumns, installed
from plumbob.transcript import COORDINATOR, Transcript

needs_data = pytest.mark.skipif(
    not Path(os.environ.get("PLUMBOB_DATA", "nowhere")).is_dir(), reason="PLUMBOB_DATA names no folder of data files"
)

needs_xgboost = pytest.mark.skipif(not installed(), reason=MISSING)


def small(name: str) -> PredictionProtocol:
    """A protocol at a size for tests."""
    if name == "neural_network":
        return NeuralNetwork(hidden=(16, 8), epochs=3)
    if name == "split_models":
        return SplitModels(epochs=10)
    if name == "boosted_trees":
        return BoostedTrees(trees=8)
    return RandomForest(trees=15) if name == "random_forest" else PROTOCOLS[name]()


def small_training(name: str) -> TrainingProtocol:
    """A training protocol at a size for tests, without encryption."""
    if name == "encrypted_logistic_regression":
        return EncryptedLogisticRegression(key_bits=0, batch_size=40, epochs=8, learning_rate=0.3)
    if name == "secure_boost":
        code = MagicNumbers(base=2, supergroups=2, identifier_bits=200, random_bits=30)
        return SecureBoost(key_bits=0, trees=2, depth=2, loss="squared", code=code)
    if name == "split_training":
        return SplitTraining(width=16, outputs=4, batch_size=20)
    if name == "split_network":
        return SplitNetwork(hidden=(16, 8), epochs=4, batch_size=40)
    if name == "xgboost_columns":
        return XgboostColumns(trees=4, depth=2)
    return PROTOCOLS[name]()


def made_table(rows: int = 400, columns: int = 8, classes: int = 3, seed: int = 0) -> Table:
    """Columns that hang together, in [0, 1], and a label that follows from them."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))
    values = (raw - raw.min(axis=0)) / np.ptp(raw, axis=0)
    linear = raw @ rng.normal(size=(columns, classes)) / np.sqrt(columns)
    label = np.argmax(linear + rng.gumbel(size=linear.shape), axis=1)
    label[:classes] = np.arange(classes)
    named = tuple(Column(f"c{i}") for i in range(columns))
    return Table("made", named, values, label.astype(np.int64), tuple("abcdefghijklmnop"[:classes]))


@cache
def built_in(name: str) -> Table:
    return registry.load(name)


def world(
    protocol: str = "logistic_regression", table: Table | None = None, unknown: float | int = 0.4, seed: int = 0
) -> Transcript:
    """The transcript of one prediction, or of the training where the protocol is one."""
    if PROTOCOLS[protocol].phase == "training":
        return training_world(protocol, table, unknown, seed)
    rng = np.random.default_rng(seed)
    federation = split_at_random(table if table is not None else made_table(seed=seed), unknown, rng)
    return transcript(small(protocol), federation, seed)


def training_world(name: str, table: Table | None = None, unknown: float | int = 0.4, seed: int = 0) -> Transcript:
    """The transcript of one training on half of the rows."""
    if name == "xgboost_columns":
        if not installed():
            pytest.skip(MISSING)
        if table is None:
            return boosted_world(unknown, seed)
    return _trained(name, table, unknown, seed)


@cache
def boosted_world(unknown: float | int = 0.4, seed: int = 0) -> Transcript:
    """Made once: its processes take a second to start, whatever they do."""
    return _trained("xgboost_columns", None, unknown, seed)


def _trained(name: str, table: Table | None, unknown: float | int, seed: int) -> Transcript:
    rng = np.random.default_rng(seed)
    federation = split_at_random(table if table is not None else made_table(seed=seed), unknown, rng)
    train, rows = halves(federation.label, rng)
    return small_training(name).train(federation.rows(train), federation.rows(rows), rng)


def transcript(protocol: PredictionProtocol, federation: Federation, seed: int = 0) -> Transcript:
    rng = np.random.default_rng([seed, 1])
    train, rows = halves(federation.label, rng)
    trainer = federation.rows(train)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(trainer.values, trainer.label, len(federation.classes), rng, blocks)
    return predict(protocol, model, federation.rows(rows), trainer)


def with_truth(log: Transcript, party: str, columns: np.ndarray) -> Transcript:
    """The same messages and states, but other columns sealed for one party: what is true there is changed, nothing else."""
    return resealed(log, party, {"columns": columns})


def with_truth_permuted(log: Transcript, party: str, rng: np.random.Generator) -> Transcript:
    """The same with that party's rows in another order: its columns, and the bins it put them in."""
    state = log.sealed(party)
    order = rng.permutation(len(state["columns"]))
    return resealed(log, party, {name: state[name][order] for name in ("columns", "bins") if name in state})


def resealed(log: Transcript, party: str, changed: dict[str, np.ndarray]) -> Transcript:
    other = Transcript(log.protocol, log.active, log.parties, log.features, log.classes)
    for message in log.messages:
        other.send(**message.header, payload=message.payload)
    for name in (*log.parties, COORDINATOR):
        for key, array in log.sealed(name).items():
            other.seal(name, key, changed.get(key, array) if name == party else array)
    return other


def made_pictures(rows: int = 60, channels: int = 1, side: int = 8, classes: int = 3, seed: int = 0) -> Table:
    """Smooth pictures in 256 grey levels, brighter at another edge for every class."""
    rng = np.random.default_rng(seed)
    label = np.arange(rows) % classes
    ramp = np.linspace(0, 1, side)
    slopes = np.stack([np.add.outer(np.cos(c) * ramp, np.sin(c) * ramp) for c in range(classes)])
    raw = slopes[label][:, None] + 0.3 * rng.normal(size=(rows, channels, side, side))
    levels = np.rint(255 * (raw - raw.min()) / np.ptp(raw)).astype(np.uint8)
    return replace(registry.pictures_as_table("made pictures", levels.transpose(0, 2, 3, 1), label), public=False)


def picture_world(tiles: int = 4, losses: np.ndarray | None = None, **shape: int) -> Transcript:
    """A transcript of pictures dealt out as tiles: the truth is sealed, no message was sent."""
    federation = split_into_tiles(made_pictures(**shape), tiles)
    log = opened("made", federation, federation.rows(np.arange(6)))
    if losses is not None:
        log.seal(COORDINATOR, "training loss", losses)
    return log
