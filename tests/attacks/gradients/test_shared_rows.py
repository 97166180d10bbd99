"""Rows found where the spans of their batches meet: whoever is claimed is right, and who stands in enough batches is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.gradients._row_gradients import Inputs
from plumbob.attacks.gradients._shared_rows import RoundSpan, crossings, met
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.data import registry
from plumbob.federation import split_at_random
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut

ROWS, UNITS = 24, 30


def spans(
    rng: np.random.Generator, x: np.ndarray, batch: int, rounds: int, dead: float = 0.0, dtype: type = np.float32
) -> list[RoundSpan]:
    """Rounds of a layer whose parameters are new in each; a share of the rows sends nothing up."""
    made = []
    for _ in range(rounds):
        rows = np.sort(rng.permutation(len(x))[:batch])
        above = rng.standard_normal((batch, UNITS)) * (rng.random((batch, 1)) >= dead)
        made.append(RoundSpan.of(rows, (above.T @ x[rows]).astype(dtype), above.sum(axis=0).astype(dtype)))
    return [span for span in made if span is not None]


def off(found: Inputs, x: np.ndarray) -> float:
    return float(np.abs(found.values - x)[found.found].max(initial=0.0))


@settings(max_examples=25, deadline=None)
@given(
    columns=st.integers(2, 20), batch=st.integers(1, 12), dead=st.sampled_from([0.0, 0.2]), seed=st.integers(0, 10**6)
)
def test_whoever_is_claimed_is_right(columns: int, batch: int, dead: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((ROWS, columns))
    assert off(met(spans(rng, x, batch, 40, dead), ROWS, columns), x) < 1e-3


@pytest.mark.parametrize("dead", [0.0, 0.2])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_everybody_in_enough_batches_is_found(dead: float, dtype: type, error: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((ROWS, 16))
    found = met(spans(rng, x, 6, 60, dead, dtype), ROWS, 16)
    assert found.found.all()
    assert off(found, x) < error


def test_one_in_a_batch_alone_is_found_at_once() -> None:
    x = np.random.default_rng(2).random((ROWS, 5))
    found = met(spans(np.random.default_rng(3), x, 1, 1), ROWS, 5)
    assert found.found.sum() == 1
    assert off(found, x) < 1e-5


def test_rows_that_always_come_together_are_not_told_apart() -> None:
    rng = np.random.default_rng(4)
    x = rng.random((6, 12))
    made = []
    for _ in range(30):
        rows = np.array([0, 1, *(2 + rng.permutation(4)[:2])]) if rng.random() < 0.5 else 2 + rng.permutation(4)[:2]
        above = rng.standard_normal((len(rows), UNITS))
        made.append(RoundSpan.of(rows, (above.T @ x[rows]).astype(np.float32), above.sum(axis=0).astype(np.float32)))
    found = met([span for span in made if span is not None], 6, 12)
    np.testing.assert_array_equal(found.found, [False, False, True, True, True, True])
    assert off(found, x) < 1e-4


def test_batches_larger_than_the_columns_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    assert spans(rng, rng.random((ROWS, 5)), 10, 20) == []


@settings(max_examples=20, deadline=None)
@given(columns=st.integers(4, 24), batch=st.integers(1, 10), seed=st.integers(0, 10**6))
def test_where_two_rounds_cross_someone_is(columns: int, batch: int, seed: int) -> None:
    """Every crossing is somebody's direction, though nobody said who is in which batch."""
    rng = np.random.default_rng(seed)
    x = rng.random((ROWS, columns))
    made = []
    for _ in range(20):
        rows = rng.permutation(ROWS)[:batch]
        made.append((rng.standard_normal((UNITS, batch)) @ x[rows]).astype(np.float32))
    found = crossings(np.array(made))
    cosines = found @ (x / np.linalg.norm(x, axis=1, keepdims=True)).T
    assert (1 - cosines.max(axis=1, initial=-1.0) < 1e-5).all()


def test_crossings_find_everybody_in_small_batches() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((ROWS, 20))
    made = [(rng.standard_normal((UNITS, 4)) @ x[rng.permutation(ROWS)[:4]]).astype(np.float32) for _ in range(60)]
    cosines = crossings(np.array(made)) @ (x / np.linalg.norm(x, axis=1, keepdims=True)).T
    assert set(cosines.argmax(axis=1)) == set(range(ROWS))


@pytest.mark.parametrize(("rate", "share"), [(0.1, 0.7), (1.0, 0.3)])
def test_training_does_not_hide_a_table(rate: float, share: float) -> None:
    """Where one linear system over all rounds is wrong, rows still come out whole; at a large rate units die."""
    federation = split_at_random(registry.load("breast"), 15, np.random.default_rng(0))
    protocol = SplitTraining(
        network="mlp", width=32, outputs=4, batch_size=5, rounds=80, optimizer="sgd", learning_rate=rate
    )
    parts = federation.rows(np.arange(25)), federation.rows(np.arange(25, 125))
    log = protocol.train(*parts, np.random.default_rng(1))
    view = cut(log, THREATS["coordinator"])
    guess = GradientPeeling(grid=False).run(view, np.random.default_rng(0))
    assert guess.values is not None
    wrong = np.abs(guess.values - truth_of(log, view).values).max(axis=1)
    assert (wrong < 1e-3).mean() > share
