"""Metrics and baselines against independent implementations and exact algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from plumbob.scoring import baselines, metrics
from plumbob.scoring.intervals import mean_and_margin

UNIT = st.floats(0, 1, width=32)
TABLE = arrays(np.float64, (12, 3), elements=UNIT)


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(1)
    truth, guess = rng.integers(0, 5, (60, 3)).astype(float), rng.random((60, 3))
    expected = [stats.spearmanr(truth[:, j], guess[:, j]).statistic for j in range(3)]
    assert metrics.rank_correlation(guess, truth) == pytest.approx(expected)


def test_constant_columns_have_no_correlation() -> None:
    constant, varied = np.ones((9, 1)), np.linspace(0, 1, 9)[:, None]
    assert metrics.rank_correlation(constant, varied) == [0.0]
    assert metrics.mean_correlation(varied, constant) == [0.0]


def test_mean_correlation_is_the_papers_equation_16() -> None:
    rng = np.random.default_rng(2)
    own = rng.random((80, 3))
    truth = np.column_stack([own[:, 0] + rng.random(80), rng.random(80)])
    expected = [np.mean([abs(np.corrcoef(own[:, j], truth[:, i])[0, 1]) for j in range(3)]) for i in range(2)]
    assert metrics.mean_correlation(own, truth) == pytest.approx(expected)


def test_shares_within_a_tolerance() -> None:
    truth = np.zeros((4, 1))
    guess = np.array([[0.0], [0.005], [0.04], [0.5]])
    assert [metrics.within(guess, truth, t)[0] for t in (1e-6, 0.01, 0.05, 0.1)] == [0.25, 0.5, 0.75, 0.75]


@settings(max_examples=30, deadline=None)
@given(TABLE)
def test_the_random_baselines_are_exact_expectations(truth: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    errors = baselines.squared_errors(truth, np.zeros((12, 0)))
    for name, draws in (("uniform", rng.random((20_000, 1, 1))), ("normal", rng.normal(0.5, 0.25, (20_000, 1, 1)))):
        seen = ((draws - truth) ** 2).mean(axis=0)
        assert np.abs(seen - errors[name]).max() < 0.02


@settings(max_examples=50, deadline=None)
@given(TABLE, TABLE)
def test_no_constant_beats_the_best_constant(truth: np.ndarray, own: np.ndarray) -> None:
    errors = {name: cells.mean() for name, cells in baselines.squared_errors(truth, own).items()}
    for name in ("uniform", "normal", "own_mean"):
        assert errors["best_constant"] <= errors[name] + 1e-12


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_sharp_bound_holds_for_every_projection(equations: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, truth = rng.normal(size=(equations, columns)), rng.random((20, columns))
    guess = (truth @ left.T) @ np.linalg.pinv(left).T
    assert np.mean((guess - truth) ** 2) <= metrics.sharp_bound(truth) * (1 + 1e-9)
    assert metrics.sharp_bound(truth) == metrics.norm_bound(truth) / 2


def test_attack_accuracy_is_one_for_the_truth_and_less_for_noise() -> None:
    rng = np.random.default_rng(4)
    rows = rng.random((400, 5))
    label = (rows[:, 0] + rows[:, 1] > 1).astype(np.int64)
    truth, other, other_label = rows[:200], rows[200:], label[200:]
    assert metrics.attack_accuracy(truth, truth, other, other_label, np.random.default_rng(0)) == 1.0
    noise = rng.random(truth.shape)
    assert metrics.attack_accuracy(noise, truth, other, other_label, np.random.default_rng(0)) < 0.8


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(2_000):
        mean, margin = mean_and_margin(rng.normal(3, 2, 6).tolist())
        hits += abs(mean - 3) <= margin
    assert 0.935 < hits / 2_000 < 0.965


def test_one_trial_has_the_rows_interval_only() -> None:
    assert mean_and_margin([0.5], 0.1)[1] == pytest.approx(0.196, abs=1e-3)


CELLS = st.sampled_from([0.0, 0.5, 1.0, -2.0, np.nan])


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=CELLS))
def test_ranks_are_scipys(values: np.ndarray) -> None:
    assert np.array_equal(metrics.ranks(values), stats.rankdata(values, axis=0), equal_nan=True)
