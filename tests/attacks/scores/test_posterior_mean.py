"""The posterior mean: inside what is known, exact where it can be, and better than ESA on real data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize

from plumbob.attacks import attacks
from plumbob.attacks.scores import _box_equations, posterior_mean
from plumbob.attacks.scores._box_equations import (
    condition,
    cut_normal,
    nearest_in_box,
    propagate,
    propagate_together,
    reduce,
)
from plumbob.attacks.scores._column_prior import Places, cell_covariance, column_means
from plumbob.attacks.scores.equation_solving import equations
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, cut
from tests.worlds import built_in, made_table, world


def guess(view, name: str = "posterior_mean") -> np.ndarray:
    values = attacks("fast")[name].run(view, np.random.default_rng(0)).values
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


def test_together_is_the_mean_of_the_correlated_normal_that_rejection_sampling_finds() -> None:
    rng = np.random.default_rng(1)
    centre, covariance = (
        np.array([[0.9, 0.2, 0.4]]),
        0.1 * np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]]),
    )
    matrix = np.array([[1.0, 1.0, 1.0]]) / np.sqrt(3)
    target = np.array([[1.2]]) / np.sqrt(3)
    mean, left = propagate_together(matrix, target, centre, covariance, 60)
    gain = covariance @ matrix.T / (matrix @ covariance @ matrix.T)
    draws = rng.multivariate_normal(centre[0], covariance, 400_000)
    draws = draws + (target - draws @ matrix.T) @ gain.T  # exact draws given the equation
    inside = draws[((draws >= 0) & (draws <= 1)).all(axis=1)]
    assert mean[0] == pytest.approx(inside.mean(axis=0), abs=5e-3)
    assert left[0] == pytest.approx(inside.var(axis=0), rel=0.1)


def test_together_without_correlation_is_the_independent_one() -> None:
    rng = np.random.default_rng(2)
    matrix, _ = reduce(rng.normal(size=(2, 6)), np.zeros((1, 2)))
    truth, spread = rng.random((20, 6)), rng.uniform(0.02, 0.2, 6)
    centre = rng.random((20, 6))
    one, _ = propagate_together(matrix, truth @ matrix.T, centre, np.diag(spread), 60)
    tilt = cut_normal(centre, np.broadcast_to(spread, centre.shape))
    two, _ = propagate(matrix, truth @ matrix.T, centre, np.broadcast_to(spread, centre.shape), tilt, 60)
    assert one == pytest.approx(two, abs=5e-3)


def smooth_rows(rng: np.random.Generator, width: int, reach: float) -> np.ndarray:
    """Rows and column means that change slowly from column to column."""
    fading = np.exp(-np.abs(np.subtract.outer(np.arange(width), np.arange(width))) / reach)
    means = 0.5 + rng.multivariate_normal(np.zeros(width), 0.02 * fading)
    return np.clip(means + rng.multivariate_normal(np.zeros(width), 0.01 * fading, 500), 0.0, 1.0)


def test_neighbours_tell_of_the_means_where_columns_are_ordered() -> None:
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = smooth_rows(rng, 20, 6.0)
        order = np.concatenate([np.sort(part) for part in np.split(rng.permutation(20), [8])])
        places = Places(order[:8], order[8:])
        matrix, _ = reduce(rng.normal(size=(6, 12)), np.zeros((1, 6)))
        own, unknown = rows[:, order[:8]], rows[:, order[8:]]
        told = (unknown @ matrix.T).mean(axis=0)
        shuffled = Places(*np.split(rng.permutation(20), [8]))
        errors = [
            np.mean((column_means(matrix, told, own.mean(axis=0), where)[0] - unknown.mean(axis=0)) ** 2)
            for where in (places, shuffled)
        ]
        ratios.append(errors)
    right, wrong = np.mean(ratios, axis=0)
    assert right < 0.7 * wrong


def test_the_fitted_covariance_follows_the_columns() -> None:
    rng = np.random.default_rng(0)
    rows = smooth_rows(rng, 16, 4.0)
    places = Places(np.arange(0, 8), np.arange(8, 16))
    own, unknown = rows[:, places.known], rows[:, places.unknown]
    matrix, _ = reduce(rng.normal(size=(3, 8)), np.zeros((1, 3)))
    fitted = cell_covariance(matrix, unknown @ matrix.T, own, unknown.mean(axis=0), places)
    real = np.corrcoef(np.hstack([own, unknown]).T)
    deviations = np.sqrt(np.diag(fitted))
    assert np.abs(fitted / np.outer(deviations, deviations) - real).mean() < 0.15


@pytest.mark.parametrize("unknown", [0.3, 0.5])
def test_at_most_two_thirds_of_esas_error_on_digits(unknown: float) -> None:
    ratios = []
    for seed in range(2):
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


def test_nothing_known_and_nothing_told_is_survived() -> None:
    empty = np.empty((4, 0))
    mean, left = column_means(np.empty((0, 3)), np.empty(0), np.empty(0), Places(np.arange(0), np.arange(3)))
    assert mean == pytest.approx(np.full(3, 0.5), abs=0.02)
    assert (left > 0).all()
    fitted = cell_covariance(np.empty((0, 3)), empty, empty, mean, Places(np.arange(0), np.arange(3)))
    assert np.isfinite(fitted).all()


def uniform(rows: int, known: int, unknown: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Places]:
    """Equations, what they say, known columns and places of a table of uniform cells."""
    rng = np.random.default_rng(5)
    table, left = rng.random((rows, known + unknown)), rng.normal(size=(2, unknown))
    places = Places(np.arange(known), np.arange(known, known + unknown))
    return left, table[:, known:] @ left.T, table[:, :known], places


@pytest.mark.parametrize("together", [1, 7, 32])
def test_rows_solved_in_chunks_are_those_solved_at_once(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_box_equations, "SETTLED_MEAN_CHANGE", 0.0)  # a chunk may settle early: not here
    left, right, own, places = uniform(rows=60, known=8, unknown=9)

    def found() -> tuple[float, np.ndarray]:
        weight = posterior_mean.blend_weight(left, own, places, np.random.default_rng(0))
        values = posterior_mean.solve(left, right, own, np.zeros(9), np.ones(9), places, np.random.default_rng(0))
        return weight, values

    weight, values = found()
    assert 0.0 < weight < 1.0
    monkeypatch.setattr(posterior_mean, "ROWS_TOGETHER", together)
    chunked_weight, chunked_values = found()
    assert chunked_weight == pytest.approx(weight, rel=1e-9)
    assert chunked_values == pytest.approx(values, abs=1e-9)


def test_450_hidden_columns_are_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior_mean, "COVARIANCE_CELLS", 4 * 100**2)  # chunks of few rows, at few rows in all
    left, right, own, places = uniform(rows=7, known=130, unknown=450)
    rng = np.random.default_rng(0)
    values = posterior_mean.solve(left, right, own, np.zeros(450), np.ones(450), places, rng)
    assert values.min() >= 0
    assert values.max() <= 1
    assert np.abs(values @ left.T - right).max() < 1e-6
