"""Unmixed columns: embeddings of a linear cut turned back into columns of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plumbob.attacks.base import Guess
from plumbob.attacks.embeddings._fast_ica import stable_components
from plumbob.attacks.embeddings.unmixed_columns import UnmixedColumns
from plumbob.federation import Column, Federation, FloatArray, Party
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import THREATS, cut

ROWS = 400


def attacked(values: FloatArray, **settings: Any) -> Guess:
    """What the attack says after a training in which one party holds these columns."""
    values = (values - values.min(axis=0)) / np.ptp(values, axis=0)
    columns = tuple(Column(f"c{j}") for j in range(values.shape[1]))
    label = (values.sum(axis=1) > np.median(values.sum(axis=1))).astype(np.int64)
    parties = Party("active", (Column("own"),), np.zeros((len(values), 1))), Party("p", columns, values)
    federation = Federation(parties, "active", label, ("0", "1"))
    protocol = SplitNetwork(**{"hidden": (24, 8), "epochs": 4, "batch_size": 50} | settings)
    log = protocol.train(federation, federation.rows(np.arange(10)), np.random.default_rng(1))
    return UnmixedColumns().run(cut(log, THREATS["active-training"]), np.random.default_rng(0))


def worst(guess: Guess, values: FloatArray) -> float:
    """The largest root mean square error of a column against the nearest vector."""
    values = (values - values.min(axis=0)) / np.ptp(values, axis=0)
    assert guess.vectors is not None
    errors = np.sqrt(((guess.vectors[:, :, None] - values[:, None]) ** 2).mean(axis=0))
    return float(errors.min(axis=0).max()) if guess.vectors.shape[1] else 1.0


@pytest.mark.parametrize("bias", [False, True])
def test_one_hidden_column_is_read_with_its_direction(bias: bool) -> None:
    values = np.random.default_rng(0).normal(size=(ROWS, 1))
    assert worst(attacked(values, bias=bias), values) < 1e-5


def test_one_hidden_column_is_read_up_to_its_direction_where_training_tells_nothing() -> None:
    values = np.random.default_rng(0).normal(size=(ROWS, 1))
    guess = attacked(values, optimizer="adam")
    assert guess.vectors is not None
    assert min(worst(guess, values), worst(guess, -values)) < 1e-5
    assert "its direction open" in guess.certificate


@pytest.mark.parametrize("bias", [False, True])
def test_a_few_columns_are_read_by_their_ranges_though_they_hang_together(bias: bool) -> None:
    rng = np.random.default_rng(2)
    values = rng.random((ROWS, 2)) + rng.random((ROWS, 1))
    guess = attacked(values, bias=bias)
    assert guess.vectors is not None
    assert guess.vectors.shape[1] == 2
    assert worst(guess, values) < 0.01


def test_independent_columns_are_found_without_training() -> None:
    rng = np.random.default_rng(3)
    values = rng.exponential(size=(2_000, 5))
    found = stable_components(values @ rng.normal(size=(5, 20)), rng)
    assert found.shape[1] == 5
    assert np.abs(np.corrcoef(found.T, values.T)[:5, 5:]).max(axis=1).min() > 0.98


def test_gaussian_columns_are_not_claimed() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert stable_components(rng.normal(size=(500, 5)) @ rng.normal(size=(5, 5)), rng).shape[1] == 0


def test_embeddings_narrower_than_the_columns_are_not_tried() -> None:
    values = np.random.default_rng(4).random((ROWS, 6))
    assert "narrower" in attacked(values, hidden=(4, 3)).untried


def test_a_deeper_cut_is_not_tried() -> None:
    values = np.random.default_rng(5).random((ROWS, 3))
    assert "linear cut" in attacked(values, cut=2).untried
