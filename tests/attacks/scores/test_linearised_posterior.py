"""The linearised posterior: exact where equations fix everything, in range, and close on real data."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks.scores._boxed_gauss_newton import boxed, gaussian, network_equations
from plumbob.attacks.scores._column_prior import components, expected_means
from plumbob.attacks.scores.linearised_posterior import LinearisedPosterior, solved_rows
from plumbob.protocols.scores.neural_network import Network, NeuralNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut
from plumbob.transcript import Transcript
from tests.attacks.scores.told import beats_own_means, r2, with_and_without_rows
from tests.worlds import built_in, made_table, transcript, world


def guess(view: View) -> np.ndarray:
    values = LinearisedPosterior().run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def network_world(name: str, unknown: float, seed: int = 0) -> Transcript:
    from plumbob.federation import split_at_random

    federation = split_at_random(built_in(name), unknown, np.random.default_rng(seed))
    return transcript(NeuralNetwork(hidden=(100, 50), epochs=20), federation, seed)


@cache
def digits() -> tuple[Transcript, View, np.ndarray]:
    log = network_world("digits", 0.3)
    view = cut(log, LUO2021)
    return log, view, guess(view)


def scores_of(view: View, values: np.ndarray) -> np.ndarray:
    assert view.model is not None
    rows = np.empty((len(values), len(view.known) + len(view.unknown)))
    rows[:, view.known], rows[:, view.unknown] = view.own, values
    return Network.from_arrays(view.model).scores(rows)


def test_the_jacobian_is_that_of_finite_differences() -> None:
    view = cut(world("neural_network", unknown=3), LUO2021)
    system = network_equations(view, np.zeros(3), np.ones(3))
    own, point, step = view.own[:5], np.full((5, 3), 0.4), 1e-6
    tangents = system.tangents(own, point)
    for column in range(3):
        ahead = point + step * np.eye(3)[column]
        slope = (system.differences(own, ahead) - system.differences(own, point)) / step
        assert tangents[:, :, column] == pytest.approx(slope, abs=1e-3)


def test_the_truth_solves_the_equations() -> None:
    log = world("neural_network", unknown=3)
    view = cut(log, LUO2021)
    system = network_equations(view, np.zeros(3), np.ones(3))
    answers = -np.diff(np.log(view.received("scores")), axis=1)
    assert system.differences(view.own, truth_of(log, view).values) == pytest.approx(answers, abs=1e-9)


def test_exact_with_as_many_equations_as_unknowns() -> None:
    log = world("neural_network", made_table(classes=6), unknown=3)
    view = cut(log, LUO2021)
    error = np.abs(guess(view) - truth_of(log, view).values).max(axis=1)
    assert np.mean(error < 1e-3) > 0.97  # a network can have two solutions for a row


def test_the_guess_stays_in_range() -> None:
    _, _, values = digits()
    assert values.min() >= 0
    assert values.max() <= 1


def test_solved_rows_reproduce_the_scores() -> None:
    """Whatever is expected of them; the guess itself is the mean of two such answers."""
    _, view, _ = digits()
    count = len(view.unknown)
    system = network_equations(view, np.zeros(count), np.ones(count))
    answers = -np.diff(np.log(view.received("scores")), axis=1)
    everyone = np.arange(len(answers))
    for centre in (0.2, 0.5):
        centres = np.full((len(answers), count), centre)
        values = solved_rows(system, view.own, answers, everyone, 0.05 * np.eye(count), centres)
        gaps = np.abs(scores_of(view, values) - view.received("scores")).max(axis=1)
        assert np.quantile(gaps, 0.9) < 0.02


def test_better_than_the_best_constant_on_digits() -> None:
    log, view, values = digits()
    assert r2(values, truth_of(log, view).values) > 0.0


def test_with_two_classes_better_than_guesses_without_scores() -> None:
    """One equation for nine columns: below the best constant, which no attacker knows, but above what own columns give."""
    log = network_world("breast", 0.3)
    view = cut(log, LUO2021)
    assert beats_own_means(guess(view), log, view)


def test_auxiliary_rows_help() -> None:
    without, having = with_and_without_rows(guess, network_world("breast", 0.5))
    assert having > max(without, 0.5)


def test_ranges_are_units_of_the_guess() -> None:
    """Wider granted ranges leave the solution where equations fix it."""
    log = world("neural_network", made_table(classes=6), unknown=2)
    view = cut(log, LUO2021)
    wide = replace(view, ranges=np.tile([-1.0, 2.0], (2, 1)))
    assert np.median(np.abs(guess(wide) - truth_of(log, view).values)) < 1e-3


def test_conditioning_is_the_gaussian_formula() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    covariance, mean, tangents = root @ root.T, rng.random((1, 4)), rng.normal(size=(1, 2, 4))
    targets, noise, flat = rng.normal(size=(1, 2)), np.full((1, 2), 0.1), np.zeros((1, 4))
    gain = covariance @ tangents[0].T @ np.linalg.inv(tangents[0] @ covariance @ tangents[0].T + 0.1 * np.eye(2))
    joint, left = gaussian(np.linalg.inv(covariance), mean, flat, flat, tangents, targets, noise)
    assert joint[0] == pytest.approx(mean[0] + gain @ (targets[0] - tangents[0] @ mean[0]))
    assert left[0] == pytest.approx(covariance - gain @ tangents[0] @ covariance)


def test_the_box_moves_a_wide_normal_to_the_middle() -> None:
    """A normal of variance 100 around 0.9, cut to [0, 1], is nearly uniform: mean 1/2."""
    inverse, centres, flat = np.array([[0.01]]), np.array([[0.9]]), np.zeros((1, 1))
    nothing = np.zeros((1, 1, 1)), np.zeros((1, 1)), np.ones((1, 1))
    precision, pull = flat, flat
    for _ in range(20):
        mean, spread = gaussian(inverse, centres, precision, pull, *nothing)
        precision, pull = boxed(mean, spread, precision, pull)
    mean, spread = gaussian(inverse, centres, precision, pull, *nothing)
    assert mean[0, 0] == pytest.approx(0.5, abs=0.01)
    assert spread[0, 0, 0] == pytest.approx(1 / 12, abs=0.01)


def test_marks_that_tell_the_means_are_believed_and_others_are_not() -> None:
    view = cut(world("neural_network", made_table(columns=30), unknown=15), LUO2021)
    rng = np.random.default_rng(0)
    means = rng.permutation(np.linspace(0.2, 0.8, 30))
    told, spread = expected_means(3 * means + 0.01 * rng.normal(size=30), view, means[view.known])
    assert np.abs(told - means[view.unknown]).max() < 0.1
    assert spread < 0.02
    silent, _ = expected_means(np.full(30, np.nan), view, means[view.known])
    assert np.ptp(silent) == 0


def test_components_have_unit_variance_and_no_correlation() -> None:
    parts = components(made_table().values, 3)
    assert parts.T @ parts / len(parts) == pytest.approx(np.eye(parts.shape[1]), abs=1e-8)
