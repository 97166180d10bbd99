"""Scores of guesses whose quality is known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.base import Branches, Guess, nothing
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, cut
from tests.worlds import built_in, world

RNG = np.random.default_rng(0)


def setting(protocol: str = "logistic_regression"):
    log = world(protocol, built_in("breast"), 0.3)
    view = cut(log, LUO2021)
    return view, truth_of(log, view)


def test_the_truth_scores_perfectly() -> None:
    view, truth = setting()
    judged = score(Guess(truth.names, truth.values), truth, view, RNG)
    assert judged.error == 0
    assert judged.gain == judged.r2 == judged.attack_accuracy == 1
    assert all(c.exact == c.within_1 == c.gain == 1 and c.rank == pytest.approx(1) for c in judged.columns)


def test_the_true_mean_gains_nothing() -> None:
    view, truth = setting()
    constant = np.broadcast_to(truth.values.mean(axis=0), truth.values.shape)
    judged = score(Guess(truth.names, constant), truth, view, RNG)
    assert judged.r2 == pytest.approx(0)
    assert all(column.gain <= 1e-12 for column in judged.columns)
    assert judged.attack_accuracy == judged.constant_accuracy


def test_the_own_row_mean_gains_nothing() -> None:
    """What the curious party can guess from its own columns is no leak of the protocol."""
    view, truth = setting()
    own = np.broadcast_to(view.own.mean(axis=1, keepdims=True), truth.values.shape)
    judged = score(Guess(truth.names, own), truth, view, RNG)
    assert all(column.gain <= 1e-12 for column in judged.columns)
    assert all(abs(column.rank) == pytest.approx(column.own_rank) for column in judged.columns)


@pytest.mark.parametrize("threat", ["active", "active-auxiliary"])
def test_what_needs_no_message_gains_nothing(threat: str) -> None:
    """Correlation between the parties' columns, known from own or auxiliary rows, is no leak of the protocol."""
    log = world(table=built_in("breast"), unknown=0.3)
    view = cut(log, THREATS[threat])
    truth = truth_of(log, view)
    judged = score(Guess(truth.names, without_scores(view)), truth, view, RNG)
    assert all(column.gain <= 1e-12 for column in judged.columns)
    assert all(abs(column.rank) <= column.own_rank + 1e-12 for column in judged.columns)


def test_the_random_path_takes_every_path_equally_often() -> None:
    """Column x in (0, 1]: path 0 claims x <= 0.5, path 1 claims x > 0.5; nine of ten rows lie above."""
    view, truth = setting()
    rows = len(truth.values)
    values = np.where(np.arange(rows) % 10 == 0, 0.2, 0.8)[:, None]
    truth = replace(truth, names=("p.x",), values=values)
    paths = np.array([[1], [2]], dtype=np.int8)
    right = np.where(values[:, 0] <= 0.5, 0, 1)
    branches = Branches(np.array([0]), np.array([0.5]), paths, right, np.ones(rows, dtype=np.int64))
    judged = score(Guess(("p.x",), branches=branches), truth, view, np.random.default_rng(1))
    assert judged.error == 0
    assert judged.baselines["best_constant"] == pytest.approx(0.1, abs=0.01)
    assert judged.baselines["random_path"] == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(rows))


def test_the_standard_error_of_a_gain_is_that_of_resampled_rows() -> None:
    view, truth = setting()
    guess = truth.values + 0.05 * RNG.normal(size=truth.values.shape)
    columns = score(Guess(truth.names, guess), truth, view, RNG).columns
    j, column = next((j, c) for j, c in enumerate(columns) if c.best_baseline == "best_constant")
    x, g = truth.values[:, j], guess[:, j]
    gains = []
    for _ in range(2_000):
        rows = RNG.integers(len(x), size=len(x))
        gains.append(1 - ((g[rows] - x[rows]) ** 2).sum() / ((x[rows] - x.mean()) ** 2).sum())
    assert column.gain_error == pytest.approx(np.std(gains), rel=0.15)


def test_branches_by_hand() -> None:
    """Two thresholds on one column; four rows; the claimed sides are right in 5 of 7 cases."""
    view, truth = setting()
    truth = replace(truth, names=("p.x",), values=np.array([[0.1], [0.4], [0.6], [0.9]]))
    view = replace(view, own=view.own[:4], messages=tuple(replace(m, payload=m.payload[:4]) for m in view.messages))
    paths = np.array([[1, 1], [2, 1], [2, 2], [0, 1]], dtype=np.int8)
    branches = Branches(
        np.array([0, 0]), np.array([0.3, 0.5]), paths, np.array([0, 2, 3, 2]), np.ones(4, dtype=np.int64)
    )
    judged = score(Guess(("p.x",), branches=branches), truth, view, RNG)
    assert judged.metric == "branches"
    assert judged.columns[0].claims == 7
    assert 1 - judged.error == pytest.approx(5 / 7)


def test_a_guess_of_another_shape_is_refused() -> None:
    view, truth = setting()
    with pytest.raises(ValueError, match="expected a guess of shape"):
        score(Guess(truth.names, truth.values[:-1]), truth, view, RNG)


def test_the_order_of_columns_is_the_truths() -> None:
    view, truth = setting()
    assert truth.names == view.unknown_names


def test_what_an_attack_with_limits_finds_counts() -> None:
    view, truth = setting()
    judged = score(Guess(truth.names, truth.values, untried="a limit"), truth, view, RNG)
    assert judged.untried == "a limit"
    assert all(column.claims and column.gain == 1 for column in judged.columns)


def test_an_attack_with_limits_that_says_the_same_of_all_rows_claims_nothing() -> None:
    view, truth = setting()
    judged = score(nothing(view, "a limit"), truth, view, RNG)
    assert not any(column.claims for column in judged.columns)
    assert judged.label_accuracy is None


def test_numbers_that_are_none_are_not_known_and_the_others_count() -> None:
    view, truth = setting()
    broken = truth.values.copy()
    broken[:, 0] = np.nan
    judged = score(Guess(truth.names, broken), truth, view, RNG)
    assert "not finite" in judged.untried
    assert np.isfinite(judged.error)
    assert judged.columns[0].gain <= 0
    assert all(column.gain == 1 for column in judged.columns[1:])


def test_values_guessed_for_trees_are_judged_by_their_branches() -> None:
    """Node by node, whether or not the curious party knows the model."""
    log = world("random_forest", built_in("breast"), 0.3)
    view = cut(log, THREATS["active-black-box"])
    truth = truth_of(log, view)
    guess = np.clip(truth.values + 0.2 * np.random.default_rng(3).normal(size=truth.values.shape), 0, 1)
    told = score(Guess(truth.names, guess), truth, view, RNG).branching
    assert view.model is None
    forest = cut(log, LUO2021).model
    assert forest is not None
    sides = [
        (truth.values[:, j] > t, guess[:, j] > t)
        for f, t in zip(forest["feature"].flat, forest["threshold"].flat, strict=True)
        for j in np.flatnonzero(view.unknown == f)
    ]
    assert told["nodes"] == len(sides)
    assert told["right"] == pytest.approx(np.mean([one == other for one, other in sides]))
    assert told["usual"] == pytest.approx(np.mean([max(one.mean(), 1 - one.mean()) for one, _ in sides]))
    assert score(Guess(truth.names, truth.values), truth, view, RNG).branching["right"] == 1.0
    assert score(Guess(truth.names, guess), *reversed(setting()), RNG).branching == {}
