"""Verdicts from scores made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.auditing.concluding.judging import LIMIT, Verdict, judge_column
from plumbob.scoring.leak_levels import Level, worst
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
    tie=0.7,
    tie_error=1 / 500**0.5,
    effective=300.0,
    rows_exact=0,
    rows_exact_chance=0.0,
    rows_missed=490,
)
NOTHING = replace(PLAIN, gain=-0.2, gain_error=0.02, rank=0.0, tie=0.0)


def judged(*parts: ColumnScore, family: int = 10, **more: object) -> Verdict:
    return judge_column(list(parts), "values", 500, family, **more)  # type: ignore[arg-type]  # keywords by name


def level(*parts: ColumnScore, family: int = 10) -> str:
    return judged(*parts, family=family).level


def test_a_gain_beyond_chance_is_a_leak() -> None:
    assert level(PLAIN) == "leak"


def test_nothing_is_none_with_a_limit() -> None:
    verdict = judged(NOTHING)
    assert verdict.level == "none"
    assert verdict.unseen == pytest.approx((1.96 / 500**0.5) ** 2)
    assert verdict.words == "no leak above 1 %"


def test_a_gain_within_chance_is_undecided() -> None:
    """The interval holds both nothing and more than the limit."""
    verdict = judged(replace(PLAIN, gain_error=0.3, rank=0.1, tie=0.1))
    assert verdict.level == "undecided"
    assert verdict.unseen == 1.0 or verdict.unseen > verdict.gain


def test_a_noisy_guess_may_be_scaled_back() -> None:
    """Worse than guessing, but its correlation says what an attacker could make of it."""
    assert judged(replace(NOTHING, gain=-3.0, tie=0.05)).level == "none"
    assert judged(replace(NOTHING, gain=-3.0, tie=None)).level == "undecided"


def test_one_heavy_row_decides_nothing() -> None:
    assert judged(replace(NOTHING, effective=2.0)).level == "undecided"


def test_more_columns_ask_for_more_evidence() -> None:
    borderline = replace(PLAIN, gain=0.25, gain_error=0.05, rank=0.1, tie=0.1)
    assert level(borderline, family=1) == "leak"
    assert level(borderline, family=100_000) == "undecided"


def test_more_trials_ask_for_more_evidence_in_each() -> None:
    borderline = replace(PLAIN, gain=0.25, gain_error=0.065, rank=0.1, tie=0.1)
    assert level(borderline, family=1) == "leak"
    assert level(*[borderline] * 100, family=1) == "undecided"


def test_a_small_gain_counts_where_the_order_proves_it() -> None:
    """The gain alone is within the family's chance; the tie is not."""
    small = replace(PLAIN, gain=0.1, gain_error=0.045, tie=0.32, rank=0.32)
    assert level(small) == "leak"
    assert level(replace(small, tie=0.05)) != "leak"
    assert level(replace(small, gain_error=0.06)) == "order"  # its interval holds 0


@pytest.mark.parametrize(
    ("hits", "chance", "expected"), [(20, 0.0, "exact for some"), (5, 0.0, "exact for some"), (4, 0.0, "none")]
)
def test_people_hit_exactly_are_counted(hits: int, chance: float, expected: str) -> None:
    assert level(replace(NOTHING, rows_exact=hits, rows_exact_chance=chance)) == expected


def test_hits_by_luck_are_not_people_recovered() -> None:
    assert level(replace(NOTHING, rows_exact=20, rows_exact_chance=15.0)) == "none"
    assert level(replace(NOTHING, rows_exact=200, rows_exact_chance=100.0)) == "none"  # a value that luck often hits


def test_what_an_attack_does_not_address_is_not_tested_unless_it_is_found() -> None:
    assert judged(NOTHING, why_not="it looks for two values only").level == "not tested"
    assert judged(NOTHING, why_not="it looks for two values only").words == "not tested: it looks for two values only"
    assert judged(PLAIN, why_not="it looks for two values only").level == "leak"


@given(
    st.lists(
        st.builds(
            lambda gain, error, tie, effective, hits: replace(
                PLAIN, gain=gain, gain_error=error, tie=tie, rank=tie, effective=effective, rows_exact=hits
            ),
            st.floats(-3, 1),
            st.floats(0, 0.5),
            st.floats(-1, 1),
            st.floats(1, 500),
            st.integers(0, 30),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 1000),
)
def test_words_and_numbers_agree_whatever_the_scores(parts: list[ColumnScore], family: int) -> None:
    """No leak with an interval that holds 0, no "none" beside a gain above its limit, every gain inside its interval."""
    verdict = judged(*parts, family=family)
    assert verdict.low <= verdict.gain <= verdict.high
    if verdict.level == "leak":
        assert verdict.low > 0
    if verdict.level in ("none", "undecided"):
        assert verdict.unseen is not None
        assert verdict.gain <= verdict.unseen
    if verdict.level == "none":
        assert verdict.unseen is not None
        assert verdict.unseen <= LIMIT


def test_one_exact_trial_is_enough_and_the_words_say_how_many() -> None:
    exact = replace(PLAIN, exact=1.0, gain=1.0, gain_error=0.0)
    assert level(exact, exact) == level(exact, PLAIN) == "exact"
    assert judge_column([exact, exact], "values", 1_000, 1).words == "recovered exactly"
    assert judge_column([exact, PLAIN], "values", 1_000, 1).words == "recovered exactly in 1 of 2 trials"


def test_never_naming_a_rare_value_is_not_recovering_it() -> None:
    assert level(replace(NOTHING, exact=0.995, gain=0.0)) == "none"


def test_a_constant_column_has_nothing_to_leak() -> None:
    assert level(replace(PLAIN, exact=1.0, gain=0.0, baseline_error=0.0)) == "none"


def test_a_column_nothing_was_said_of_was_not_tested() -> None:
    assert level(replace(PLAIN, claims=0)) == "not tested"


@pytest.mark.parametrize("metric", ["branches", "orders"])
def test_a_few_branches_right_by_luck_are_no_leak(metric: str) -> None:
    lucky = replace(
        PLAIN, claims=1, error=0.0, exact=1.0, gain=1.0, gain_error=0.0, baseline_error=0.4, rank=0.0, tie=None
    )
    wrong = replace(lucky, claims=40, error=0.7, exact=0.3, gain=-0.75, gain_error=0.1)
    assert judge_column([lucky, wrong, wrong, wrong, wrong], metric, 100, 6).level == "undecided"
    assert judge_column([replace(lucky, claims=40), wrong], metric, 100, 6).level == "exact"
    assert judge_column([replace(lucky, claims=60, error=0.05, exact=0.95, gain=0.875)], metric, 100, 6).level == "leak"


def test_order_alone_is_told_apart() -> None:
    assert level(replace(PLAIN, gain=-2.0)) == "order"
    assert level(replace(PLAIN, gain=-2.0, tie=0.05)) == "none"  # own columns tell as much


def test_few_trials_show_the_spread_and_not_a_guess_of_it() -> None:
    verdict = judge_column([PLAIN, replace(PLAIN, gain=0.58)], "values", 500, 10)
    assert verdict.gain == pytest.approx(0.54)
    assert (verdict.low, verdict.high) == (
        pytest.approx(0.5 - 1.968 * 0.05, abs=1e-3),
        pytest.approx(0.58 + 1.968 * 0.05, abs=1e-3),
    )


def test_some_trials_count_and_are_counted() -> None:
    quiet = replace(PLAIN, gain=-1.0, rank=0.0, tie=0.0)
    verdict = judge_column([PLAIN, quiet, PLAIN], "values", 500, 10)
    assert verdict.level == "leak"
    assert verdict.leaking == 2
    assert verdict.words.endswith("in 2 of 3 trials")
    assert verdict.gain == pytest.approx(0.5)


def test_what_the_curious_hold_already_is_a_class_of_its_own() -> None:
    copied = replace(PLAIN, gain=1.0, exact=1.0, gain_error=0.0, held="a copy of 'income'")
    assert judged(copied).level == "held already"
    assert judged(copied).words == "held already: a copy of 'income'"
    assert judged(copied, NOTHING).level == "none"  # dealt anew: in the other trial it was hidden
    assert not Level.HELD.leaks
    assert worst([Level.HELD, Level.UNDECIDED]) is Level.UNDECIDED
    assert worst([Level.HELD]) is Level.NONE
