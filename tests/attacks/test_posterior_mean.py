"""The posterior mean: inside what is known, exact where it can be, and better than ESA on real data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from plumbob.attacks import attacks
from plumbob.attacks.box import condition, cut_normal, nearest_in_box, propagate, reduce
from plumbob.attacks.equation_solving import equations
from plumbob.scoring.score import truth_of
from plumbob.threats import LUO2021, THREATS, cut
from tests.worlds import built_in, made_table, world


def guess(view, name: str = "posterior_mean") -> np.ndarray:
    values = attacks()[name].run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


@pytest.mark.parametrize("unknown", [3, 5, 7])
def test_the_guess_fits_the_scores_and_the_ranges(unknown: int) -> None:
    view = cut(world(unknown=unknown), LUO2021)
    values, system = guess(view), equations(view)
    assert values.min() >= 0
    assert values.max() <= 1
    assert np.abs(values @ system.left.T - system.right).max() < 1e-6


@pytest.mark.parametrize("unknown", [1, 2])
def test_exact_up_to_the_threshold(unknown: int) -> None:
    log = world(unknown=unknown)
    view = cut(log, LUO2021)
    assert guess(view) == pytest.approx(truth_of(log, view).values, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_the_nearest_point_is_the_one_a_general_solver_finds(equations_: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, targets = reduce(rng.normal(size=(equations_, columns)), np.zeros((1, equations_)))
    truth, start = rng.random((1, columns)), rng.random((1, columns))
    targets = truth @ matrix.T
    found = nearest_in_box(matrix, targets, start)[0]
    assert np.abs(matrix @ found - targets[0]).max() < 1e-6
    solved = minimize(
        lambda x: ((x - start[0]) ** 2).sum(),
        truth[0],
        jac=lambda x: 2 * (x - start[0]),
        bounds=[(0, 1)] * columns,
        constraints={"type": "eq", "fun": lambda x: matrix @ x - targets[0], "jac": lambda x: matrix},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert ((found - start[0]) ** 2).sum() <= solved.fun + 1e-6


def test_equations_that_no_point_fits_get_least_squares() -> None:
    rng = np.random.default_rng(0)
    matrix, _ = reduce(rng.normal(size=(2, 4)), np.zeros((1, 2)))
    targets = np.array([[9.0, -7.0], [5.0, 5.0]])
    found = nearest_in_box(matrix, targets, rng.random((2, 4)))
    for row in range(2):
        best = lsq_linear(matrix, targets[row], bounds=(0, 1)).x
        ours, theirs = (np.linalg.norm(matrix @ x - targets[row]) for x in (found[row], best))
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_the_moments_of_a_cut_normal_are_scipys() -> None:
    from scipy.stats import truncnorm

    centre, spread, mean, variance = (np.array([[v]]) for v in (0.8, 0.09, 0.3, 0.25))
    joint = spread * variance / (spread + variance)
    middle, sd = (centre * variance + mean * spread) / (spread + variance), np.sqrt(joint)
    expected = truncnorm((0 - middle) / sd, (1 - middle) / sd, middle, sd)
    got_mean, got_variance = cut_normal(centre, spread)(mean, variance)
    assert got_mean == pytest.approx(expected.mean())
    assert got_variance == pytest.approx(expected.var())


def test_conditioning_is_the_gaussian_formula() -> None:
    rng = np.random.default_rng(3)
    matrix, mean, variance = rng.normal(size=(2, 4)), rng.random((1, 4)), rng.random((1, 4)) + 0.1
    targets = rng.normal(size=(1, 2))
    covariance = np.diag(variance[0])
    gain = covariance @ matrix.T @ np.linalg.inv(matrix @ covariance @ matrix.T)
    joint, left = condition(matrix, targets, mean, variance)
    assert joint[0] == pytest.approx(mean[0] + gain @ (targets[0] - matrix @ mean[0]))
    assert left[0] == pytest.approx(np.diag(covariance - gain @ matrix @ covariance))


def test_propagation_is_close_to_the_sampled_posterior_mean() -> None:
    """Uniform prior on the unit square (a wide normal, cut), one equation x + y = 0.5: the mean is (0.25, 0.25)."""
    matrix = np.array([[1.0, 1.0]]) / np.sqrt(2)
    wide = np.full((1, 2), 100.0)
    mean, _ = propagate(
        matrix, np.array([[0.5 / np.sqrt(2)]]), np.full((1, 2), 0.5), wide, cut_normal(np.full((1, 2), 0.5), wide), 60
    )
    assert mean[0] == pytest.approx([0.25, 0.25], abs=1e-3)


@pytest.mark.parametrize("unknown", [0.3, 0.5])
def test_at_most_two_thirds_of_esas_error_on_digits(unknown: float) -> None:
    ratios = []
    for seed in range(3):
        log = world(table=built_in("digits"), unknown=unknown, seed=seed)
        view = cut(log, LUO2021)
        truth = truth_of(log, view).values
        ours, theirs = (np.mean((guess(view, name) - truth) ** 2) for name in ("posterior_mean", "equation_solving"))
        ratios.append(ours / theirs)
    assert np.mean(ratios) < 0.67


def test_auxiliary_rows_help() -> None:
    log = world(table=built_in("breast"), unknown=0.5)
    truth = truth_of(log, cut(log, LUO2021)).values
    without, having = (
        np.mean((guess(cut(log, THREATS[threat])) - truth) ** 2) for threat in ("active", "active-auxiliary")
    )
    assert having < 0.5 * without


def test_no_known_spread_is_survived() -> None:
    table = made_table()
    table.values[:, :] = np.round(table.values)
    view = cut(world(table=table, unknown=7), LUO2021)
    assert np.isfinite(guess(view)).all()
