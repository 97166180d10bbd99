"""Verdicts from scores made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plumbob.auditing.concluding.judging import judge_column
from plumbob.scoring.score import ColumnScore

PLAIN = ColumnScore(
    name="shop.basket",
    error=0.05,
    best_baseline="best_constant",
    baseline_error=0.1,
    gain=0.5,
    gain_error=0.05,
    r2=0.5,
    rank=0.7,
    own_rank=0.1,
    exact=0.0,
    within_1=0.1,
    within_5=0.2,
    within_10=0.3,
    mean_error=0.0,
    own_correlation=0.1,
    score_correlation=0.1,
    claims=500,
)


def level(*parts: ColumnScore, family: int = 10) -> str:
    return judge_column(list(parts), "values", 500, family).level


def test_a_gain_beyond_chance_is_a_leak() -> None:
    assert level(PLAIN) == "leak"


def test_a_gain_within_chance_is_none() -> None:
    assert level(replace(PLAIN, gain_error=0.2, rank=0.1)) == "none"


def test_more_columns_ask_for_more_evidence() -> None:
    borderline = replace(PLAIN, gain=0.25, gain_error=0.08, rank=0.1)
    assert level(borderline, family=1) == "leak"
    assert level(borderline, family=1_000) == "none"


def test_more_trials_ask_for_more_evidence_in_each() -> None:
    borderline = replace(PLAIN, gain=0.25, gain_error=0.08, rank=0.1)
    assert level(*[borderline] * 100, family=1) == "none"


def test_one_exact_trial_is_enough_and_the_words_say_how_many() -> None:
    exact = replace(PLAIN, exact=1.0, gain=1.0, gain_error=0.0)
    assert level(exact, exact) == level(exact, PLAIN) == "exact"
    assert judge_column([exact, exact], "values", 1_000, 1).words == "recovered exactly"
    assert judge_column([exact, PLAIN], "values", 1_000, 1).words == "recovered exactly in 1 of 2 trials"


def test_never_naming_a_rare_value_is_not_recovering_it() -> None:
    assert level(replace(PLAIN, exact=0.995, gain=0.0, rank=0.0)) == "none"


def test_a_constant_column_has_nothing_to_leak() -> None:
    assert level(replace(PLAIN, exact=1.0, gain=0.0, baseline_error=0.0)) == "none"


def test_a_column_nothing_was_said_of_does_not_leak() -> None:
    assert level(replace(PLAIN, claims=0)) == "none"


@pytest.mark.parametrize("metric", ["branches", "orders"])
def test_a_few_branches_right_by_luck_are_no_leak(metric: str) -> None:
    lucky = replace(PLAIN, claims=1, error=0.0, exact=1.0, gain=1.0, gain_error=0.0, baseline_error=0.4, rank=0.0)
    wrong = replace(lucky, claims=40, error=0.7, exact=0.3, gain=-0.75, gain_error=0.1)
    assert judge_column([lucky, wrong, wrong, wrong, wrong], metric, 100, 6).level == "none"
    assert judge_column([replace(lucky, claims=40), wrong], metric, 100, 6).level == "exact"
    assert judge_column([replace(lucky, claims=60, error=0.05, exact=0.95, gain=0.875)], metric, 100, 6).level == "leak"


def test_order_alone_is_told_apart() -> None:
    assert level(replace(PLAIN, gain=-2.0)) == "order"
    assert level(replace(PLAIN, gain=-2.0, own_rank=0.65)) == "none"


def test_few_trials_show_the_spread_and_not_a_guess_of_it() -> None:
    verdict = judge_column([PLAIN, replace(PLAIN, gain=0.58)], "values", 500, 10)
    assert verdict.gain == pytest.approx(0.54)
    assert verdict.margin == pytest.approx(0.04 + 1.96 * 0.05)


def test_some_trials_count_and_are_counted() -> None:
    quiet = replace(PLAIN, gain=-1.0, rank=0.0)
    verdict = judge_column([PLAIN, quiet, PLAIN], "values", 500, 10)
    assert verdict.level == "leak"
    assert verdict.leaking == 2
    assert verdict.words.endswith("in 2 of 3 trials")
    assert verdict.gain == pytest.approx(0.5)
