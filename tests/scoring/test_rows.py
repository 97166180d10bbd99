"""Rows at risk are counted beyond what guessing gets on the same rows, and chance is told."""

from __future__ import annotations

import numpy as np

from plumbob.scoring.baselines import squared_errors
from plumbob.scoring.rows_at_risk import at_risk


def counted(guess: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    return at_risk(guess, truth, squared_errors(truth, np.zeros((len(truth), 0))), np.random.default_rng(0)).rows


def test_rows_that_are_recovered_whole_half_or_in_one_column_are_counted() -> None:
    truth = np.random.default_rng(1).uniform(size=(200, 4))
    guess = np.full_like(truth, 5.0)
    guess[:10] = truth[:10]
    guess[10:30, :2] = truth[10:30, :2] + 0.02
    guess[30:60, 0] = truth[30:60, 0]
    found = counted(guess, truth)
    # A baseline that hits a cell takes it from the count, so a few rows of those with one column may be missing.
    assert found["all_1"] == 10
    assert 36 <= found["any_1"] <= 40
    assert 10 < found["half_5"] <= 30
    assert found["half_1"] == 10
    assert found["all_1"] <= found["half_1"] <= found["any_1"]
    assert found["all_1_chance"] < 1


def test_naming_the_usual_value_of_a_column_puts_nobody_at_risk() -> None:
    truth = (np.random.default_rng(2).uniform(size=(300, 3)) < 0.1).astype(float)
    usual = counted(np.zeros_like(truth), truth)
    assert {usual[name] for name in usual if not name.endswith("_hit")} == {0.0}
    assert usual["all_1_hit"] == (truth == 0).all(axis=1).sum()
    found = at_risk(truth, truth, squared_errors(truth, np.zeros((300, 0))), np.random.default_rng(0))
    assert (
        found.within_1.tolist() == found.exact.tolist() == truth.sum(axis=0).tolist()
    )  # the rare value is what is learnt


def test_recovered_rows_are_counted_whether_guessing_gets_them_or_not() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, size=(158, 4)).astype(float)
    whole = counted(truth, truth)
    assert whole["all_1_hit"] == whole["any_1_hit"] == 158 > whole["all_1"]
    blurred = counted(truth + rng.normal(0, 0.02, truth.shape), truth)
    for share in ("any", "half", "all"):
        assert blurred[f"{share}_1"] <= blurred[f"{share}_1_hit"] <= blurred[f"{share}_5_hit"]
    assert blurred["all_1_hit"] <= blurred["half_1_hit"] <= blurred["any_1_hit"]


def test_guesses_of_other_people_are_chance() -> None:
    rng = np.random.default_rng(3)
    truth = rng.uniform(size=(1000, 2))
    found = counted(rng.uniform(size=truth.shape), truth)
    assert abs(found["any_1"] - found["any_1_chance"]) < 4 * np.sqrt(found["any_1_chance"])
    assert counted(truth, truth)["all_1"] > 20 * counted(truth, truth)["all_1_chance"]


def test_where_everything_is_held_already_nobody_is_counted() -> None:
    truth = np.random.default_rng(5).uniform(size=(100, 2))
    guesses, rng = squared_errors(truth, np.zeros((100, 0))), np.random.default_rng(0)
    assert at_risk(truth, truth, guesses, rng, held=np.array([True, True])).rows == {}
    one = at_risk(truth, truth, guesses, rng, held=np.array([True, False]))
    assert (one.rows["columns"], one.rows["all_1_hit"]) == (1, 100)
    assert "rows" not in one.rows
    assert (one.exact > 90).all()


def test_constant_columns_and_one_row_are_survived() -> None:
    same = counted(np.ones((5, 2)), np.ones((5, 2)))
    assert {number for name, number in same.items() if not name.endswith("_hit")} == {0.0}
    assert same["all_1_hit"] == 5
    assert counted(np.zeros((1, 1)), np.ones((1, 1)))["any_1"] == 0
