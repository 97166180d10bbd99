"""Lattice decoding: whole rows from scores, found and known to be found without the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks import attacks
from plumbob.attacks._common.lattice_points import Problem
from plumbob.attacks.scores.equation_solving import equations
from plumbob.attacks.scores.lattice_decoding import answers, cutoff, decode
from plumbob.data.prepare import spacing
from plumbob.defences import defence_named
from plumbob.federation import Column, Table, halves, split_at_random
from plumbob.protocols.base import predict
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut
from plumbob.transcript import Transcript
from tests.worlds import built_in, made_table, world


def on_grid(levels: int, **made: int) -> Table:
    """A table whose cells are multiples of 1 / levels."""
    table = made_table(**made)
    columns = tuple(Column(column.name, step=1.0 / levels) for column in table.columns)
    return replace(table, columns=columns, values=np.rint(table.values * levels) / levels)


def guess(view: View, name: str = "lattice_decoding") -> np.ndarray:
    values = attacks("fast")[name].run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def exact_rows(log: Transcript) -> float:
    view = cut(log, LUO2021)
    return float((np.abs(guess(view) - truth_of(log, view).values) < 1e-6).all(axis=1).mean())


def rounded(table: Table, digits: int) -> Transcript:
    """Four of its columns are hidden, and scores are released with so many digits."""
    federation = split_at_random(table, 4, np.random.default_rng(0))
    train, rest = halves(federation.label, np.random.default_rng(1))
    trainer, target = federation.rows(train), federation.rows(rest)
    defence, protocol = defence_named("rounding", digits=digits), LogisticRegression()
    model = protocol.fit(trainer.values, trainer.label, 3, np.random.default_rng(2))
    release = defence.release(protocol, model, target)
    return predict(protocol, model, target, trainer, release=release, defence=defence.known())


@pytest.mark.parametrize("unknown", [3, 5, 7])
def test_more_columns_than_equations_are_recovered_to_the_last_row(unknown: int) -> None:
    assert exact_rows(world(table=on_grid(100), unknown=unknown)) == 1.0


def test_two_classes_and_one_equation_are_enough_for_four_columns() -> None:
    assert exact_rows(world(table=on_grid(50, classes=2), unknown=4)) == 1.0


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_planted_point_is_found_and_told(columns: int, equations: int, seed: int) -> None:
    """With 40 bits an equation and half of them used, every row is the only one that fits."""
    rng = np.random.default_rng(seed)
    levels = 2 ** max(1, min(12, 20 * equations // columns))
    steps = np.full(columns, 1.0 / levels)
    k = rng.integers(0, levels + 1, size=(40, columns))
    matrix, truth = rng.normal(size=(equations, columns)), k * steps
    problem = Problem(
        matrix, truth @ matrix.T, np.full(equations, 2.0**-40), steps, np.full_like(truth, 0.5), 3.0 * np.eye(columns)
    )
    found = problem.solve()
    assert np.array_equal(found.values, truth)
    assert found.chance.max() < 0.05


def test_answers_that_belong_to_no_row_are_not_taken_for_one() -> None:
    """Where no point was planted, points are no nearer than to decoys: hardly ever is a single row accepted."""
    accepted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        matrix, steps, inside = rng.normal(size=(1, 6)), np.full(6, 1.0 / 64), rng.random((2, 500, 6))
        answers, decoys = (
            Problem(matrix, x @ matrix.T, np.full(1, 2.0**-34), steps, np.full((500, 6), 0.5), 3.0 * np.eye(6)).solve()
            for x in inside
        )
        accepted += int((answers.chance <= cutoff(answers.chance, decoys.chance, 0.05)).any())
    assert accepted <= 1


def test_without_a_grid_it_is_the_posterior_mean() -> None:
    view = cut(world(), LUO2021)
    assert np.array_equal(view.steps, np.zeros(len(view.unknown)))
    assert guess(view) == pytest.approx(guess(view, "posterior_mean"), abs=0.02)


def test_too_fine_a_grid_is_not_claimed() -> None:
    """Ten-thousandths in five columns are 66 bits against one equation's 45: the posterior mean stays."""
    log = world(table=on_grid(10_000, classes=2), unknown=5)
    view = cut(log, LUO2021)
    assert np.array_equal(guess(view), guess(view, "posterior_mean"))


@pytest.mark.parametrize(("digits", "least", "most"), [(10, 0.85, 1.0), (2, 0.0, 0.02)])
def test_rounding_must_be_coarse_to_help(digits: int, least: float, most: float) -> None:
    """Ten digits still tell whole rows; two do not."""
    assert least <= exact_rows(rounded(on_grid(50, rows=600), digits)) <= most


@pytest.mark.parametrize("digits", [4, 5, 6, 7])
def test_what_is_told_is_right_also_between_too_few_and_enough_digits(digits: int) -> None:
    log = rounded(on_grid(60, rows=1_200), digits)
    view, system = cut(log, LUO2021), equations(cut(log, LUO2021))
    right, errors = answers(view, system)
    rows = np.flatnonzero(np.isfinite(errors).all(axis=1))
    start = guess(view, "posterior_mean")[rows]
    values, told = decode(view, system.left, right[rows], errors[rows], rows, start, np.random.default_rng(3))
    truth = truth_of(log, view).values[rows]
    assert np.mean((values - truth) ** 2) <= 1.02 * np.mean((start - truth) ** 2)
    if told.any():
        assert (np.abs(values - truth) < 1e-6)[told].mean() > 0.9


@pytest.mark.needs_data("satellite")
def test_satellite_gives_all_its_columns_away() -> None:
    """32 of 36 columns from the scores of six classes; ESA's limit is five."""
    table = built_in("satellite")
    assert exact_rows(world(table=table, unknown=0.9, seed=1)) > 0.95


def test_the_cutoff_counts_decoys() -> None:
    chance = np.concatenate([np.full(50, 1e-6), np.linspace(0.1, 1, 50)])
    assert cutoff(chance, np.linspace(0.01, 1, 100), 0.05) == pytest.approx(1e-6)
    assert cutoff(np.linspace(0.01, 1, 100), np.linspace(0.01, 1, 100), 0.05) == -1.0


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([17.0, 98.0], 1.0),
        ([0.5, 2.25], 0.01),
        ([4.961, 0.634], 0.001),
        ([0.1, 1 / 3], 0.0),
        ([1e300, 1.0], 0.0),
        ([0.0, 4e-10], 0.0),
    ],
)
def test_the_step_of_a_column_is_that_of_its_decimals(values: list[float], step: float) -> None:
    assert spacing(np.array(values)) == step
