"""The frontier: exact small examples of dominance, ties, intervals and the recommendation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.defence_frontier import (
    Mark,
    Option,
    dominates,
    estimate,
    frontier,
    frontiers,
    recommend,
)
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.running.finding import Finding
from plumbob.report.answer import answers, how
from plumbob.scoring.leak_levels import Level
from tests.report import samples


def option(
    defence: str,
    accuracy: float | list[float],
    leak: float | list[float],
    *,
    level: str | None = None,
    white: bool = True,
) -> Option:
    """An option with one mark; several numbers are several trials."""
    accuracies = accuracy if isinstance(accuracy, list) else [accuracy]
    leaks = leak if isinstance(leak, list) else [leak]
    found = Level(level or ("leak" if max(leaks) > 0 else "none"))
    error, hits = estimate({0: 0.02}), estimate({0: 0.8})
    mark = Mark(
        threat="active" if white else "dark",
        white_box=white,
        metric="values",
        leak=estimate(dict(enumerate(leaks))),
        leak_attack="a",
        error=error,
        error_attack="a",
        error_baseline=0.02,
        hits=hits,
        hits_attack="a",
        hits_baseline=0.5,
        level=found,
        leaking=int(found != "none"),
        columns=4,
        attacks=("a",),
    )
    return Option(defence, estimate(dict(enumerate(accuracies))), (mark,), 1.0, 2.0, 100.0)


@pytest.mark.parametrize(
    ("one", "other", "wins"),
    [
        ((0.9, 0.1), (0.9, 0.2), True),  # as accurate, leaks less
        ((0.9, 0.2), (0.8, 0.2), True),  # more accurate, leaks as much
        ((0.9, 0.2), (0.9, 0.2), False),  # a tie dominates nothing
        ((0.9, 0.3), (0.8, 0.2), False),  # a trade
        ((0.8, 0.2), (0.9, 0.2), False),
    ],
)
def test_one_option_dominates_another(one: tuple[float, float], other: tuple[float, float], wins: bool) -> None:
    assert dominates(option("one", *one), option("other", *other)) is wins


def test_a_difference_within_its_interval_dominates_nothing() -> None:
    steady = [0.90, 0.90, 0.90]
    noisy = option("noisy", steady, [0.30, 0.05, 0.25])
    mean = option("mean", steady, [0.19, 0.18, 0.20])  # less on average, but not beyond chance
    assert mean.worst.leak.mean < noisy.worst.leak.mean
    assert not dominates(mean, noisy)


def test_trials_are_compared_one_by_one() -> None:
    """Trials differ far more than the two options do; the difference is the same in each, so it is no chance."""
    high = option("high", [0.9, 0.7, 0.5], [0.31, 0.11, 0.21])
    low = option("low", [0.9, 0.7, 0.5], [0.30, 0.10, 0.20])
    assert dominates(low, high)
    assert not dominates(high, low)


def test_hiding_the_model_is_not_a_setting_among_others() -> None:
    assert not dominates(option("hidden", 0.9, 0.0, white=False), option("open", 0.9, 0.2))


def test_dominated_options_name_what_beats_them() -> None:
    found = frontier("d", "p", [option("none", 0.9, 0.5), option("a", 0.9, 0.3), option("b", 0.9, 0.1)])
    assert [o.dominated_by for o in found.options] == ["b", "b", ""]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([("none", 0.9, 0.0), ("a", 0.95, 0.0)], ("none", "unneeded")),
        ([("none", 0.9, 0.5), ("a", 0.7, 0.0), ("b", 0.8, 0.0)], ("b", "safe")),
        ([("none", 0.9, 0.5), ("a", 0.9, 0.2), ("b", 0.892, 0.1), ("c", 0.88, 0.05)], ("b", "least")),
        ([("none", 0.9, 0.5), ("a", 0.88, 0.2)], ("", "nothing")),
        ([("none", 0.9, 0.5), ("a", 0.9, 0.5)], ("", "nothing")),
        ([("a", 0.9, 0.5), ("b", 0.895, 0.2)], ("b", "least")),  # without `none` the most accurate one is the measure
    ],
)
def test_the_recommendation(options: list[tuple[str, float, float]], expected: tuple[str, str]) -> None:
    assert recommend([option(*parts) for parts in options]) == expected


def test_of_equally_accurate_safe_options_the_one_that_leaks_least() -> None:
    options = [option("none", 0.9, 0.5), option("a", 0.9, 0.02, level="none"), option("b", 0.9, 0.01, level="none")]
    assert recommend(options) == ("b", "safe")


def test_an_order_that_leaks_is_a_leak() -> None:
    assert recommend([option("none", 0.9, 0.0, level="order")]) == ("", "nothing")


def test_the_worst_threat_counts() -> None:
    white, black = option("x", 0.9, 0.1), option("x", 0.9, 0.3, white=False)
    both = replace(white, marks=white.marks + black.marks)
    assert both.worst.white_box is False
    assert not both.hidden
    assert black.hidden


def test_where_the_model_is_hidden_the_next_best_is_named_too() -> None:
    options = [option("none", 0.9, 0.5), option("hide", 0.9, 0.0, white=False), option("a", 0.8, 0.0)]
    found = frontier("d", "p", options)
    assert (found.recommended, found.if_known) == ("hide", "a")
    assert frontier("d", "p", [options[0], options[2]]).if_known == ""


def test_accuracy_lost_is_paired() -> None:
    found = frontier("d", "p", [option("none", [0.9, 0.7], 0.5), option("a", [0.8, 0.6], 0.2)])
    lost = found.lost(found.options[1])
    assert lost is not None
    assert lost.mean == pytest.approx(0.1)
    assert lost.margin == pytest.approx(0.0, abs=1e-12)


def finding(defence: str, trial: int, errors: list[float], **changes: object) -> Finding:
    rng = np.random.default_rng(trial)
    columns = [samples.column(f"c{i}", error, rng) for i, error in enumerate(errors)]
    return replace(samples.finding(columns, trial=trial, defence=defence), **changes)


def test_one_defence_is_no_frontier() -> None:
    assert frontiers([finding("none", 0, [0.01])]) == []


def test_a_frontier_from_findings() -> None:
    found = [
        finding(defence, trial, errors, model_accuracy=accuracy, attack=attack, train_seconds=1.0, bytes_sent=size)
        for trial in range(3)
        for defence, attack, errors, accuracy, size in (
            ("none", "strong", [0.001, 0.09], 0.9, 100),
            ("none", "weak", [0.03, 0.05], 0.9, 100),
            ("wall", "strong", [0.06, 0.09], 0.8, 140),
            ("wall", "weak", [0.05, 0.06], 0.8, 140),
        )
    ]
    (made,) = frontiers(samples.capped(found))
    bare, wall = made.options
    assert (made.recommended, made.reason) == ("wall", "safe")
    assert bare.worst.leak_attack == "strong"  # one column of two, although its mean error is the larger one
    assert bare.worst.leak.mean == pytest.approx(0.5 * (1 - 0.001 / 0.04), abs=0.01)
    assert bare.worst.error_attack == "weak"
    assert bare.worst.leaking == 1
    assert wall.worst.leak.mean == 0
    assert wall.bytes_sent - bare.bytes_sent == 40
    lost = made.lost(wall)
    assert lost is not None
    assert lost.mean == pytest.approx(0.1)
    assert bare.worst.hits.mean == pytest.approx(0.81)


def test_branches_are_measured_by_their_rate() -> None:
    found = [replace(f, defence=d) for f in samples.branches(shares=(0.2,), trials=2) for d in ("none", "label_only")]
    (made,) = frontiers(samples.capped(found))
    mark = made.options[0].worst
    assert mark.metric == "branches"
    assert mark.hits.mean == pytest.approx(1 - mark.error.mean)


def test_labels_that_are_guessed_are_a_leak_too() -> None:
    """A defence that hides the columns and not the labels is not safe; one that hides both is the one to take."""

    def told(made: Finding, accuracy: float) -> Finding:
        tie = max(0.0, accuracy - 0.6)
        return replace(made, score=replace(made.score, label_accuracy=accuracy, label_baseline=0.6, label_tie=tie))

    bare, columns, both = (finding(name, 0, [0.01]) for name in ("none", "columns only", "both"))
    quiet = replace(bare.score.columns[0], gain=0.0, gain_error=0.01, tie=0.0)
    columns, both = (replace(f, score=replace(f.score, columns=(quiet,))) for f in (columns, both))
    (made,) = frontiers(samples.capped([told(bare, 1.0), told(columns, 0.9), told(both, 0.6)], label=True))
    leaks = {o.defence: o.worst.leak.mean for o in made.options}
    assert leaks["columns only"] == pytest.approx(0.75)
    assert leaks["both"] == 0
    assert {o.defence: o.safe for o in made.options} == {"none": False, "columns only": False, "both": True}
    assert recommend(made.options) == ("both", "safe")


def test_what_a_defence_costs_is_not_known_of_a_model_that_did_not_learn() -> None:
    from plumbob.report.protection import _cost

    still = [replace(finding(name, 0, [0.01]), trained=False) for name in ("none", "a")]
    (made,) = frontiers(still)
    assert "not known" in _cost(made, made.options[-1])


def limited(defence: str, trial: int, errors: list[float], **changes: object) -> Finding:
    made = finding(defence, trial, errors, **changes)
    return replace(made, score=replace(made.score, untried="a limit"))


@pytest.mark.parametrize("first", [0, 1])
def test_a_trial_that_no_attack_handles_is_not_known_wherever_it_stands(first: int) -> None:
    trials = [finding("wall", first, [0.06]), limited("wall", 1 - first, [0.06])]
    found = [*(finding("none", trial, [0.001]) for trial in range(2)), *sorted(trials, key=lambda f: f.trial)]
    (made,) = frontiers(samples.capped(found))
    assert made.options[1].unknown
    assert not made.options[1].safe
    every = samples.capped(found)
    (answer,) = (a for a in answers(conclude(every)) if a.situation.defence == "wall")
    assert answer.headline == "Not known: no leak was found, but 1 of 1 is not tested"
    assert how(answer) == "Not tried: box solving, because a limit, in 1 of 2 trials."
    assert answer.columns[0].badge == "not tested"
    assert answer.columns[0].words == "not tested: a limit, in 1 of 2 trials"
    assert not any(c.holds for c in Gate.parse("max_gain < 0.5").outcome(every, conclude(every)).checks)


def test_one_attack_that_handles_it_is_enough() -> None:
    found = [finding("none", 0, [0.001]), limited("wall", 0, [0.06]), finding("wall", 0, [0.06], attack="other")]
    (made,) = frontiers(samples.capped(found))
    assert not made.options[1].unknown
    assert made.recommended == "wall"


@pytest.mark.parametrize(
    ("untold", "told", "unknown"), [("gradient_peeling", "dlg", True), ("dlg", "gradient_peeling", False)]
)
def test_weaker_rivals_tell_nothing_where_the_stronger_attack_is_not_tried(
    untold: str, told: str, unknown: bool
) -> None:
    defended = [limited("wall", 0, [0.06], attack=untold), finding("wall", 0, [0.06], attack=told)]
    (made,) = frontiers(samples.capped([finding("none", 0, [0.001]), *defended]))
    assert made.options[1].unknown is unknown


def test_nothing_found_under_a_high_ceiling_is_not_safe() -> None:
    """Attacks failed, but learners with everybody else's rows would not: no defence is recommended on that."""
    found = [finding(name, trial, [error]) for trial in range(2) for name, error in (("none", 0.001), ("wall", 0.06))]
    (low,), (high,) = (frontiers(samples.capped(found, high=top)) for top in (0.03, 0.4))
    assert (low.recommended, low.reason) == ("wall", "safe")
    assert high.reason == "least"
    assert high.options[1].reach == pytest.approx(0.2)


def test_a_threat_that_was_not_tested_is_never_in_favour_of_a_defence() -> None:
    found = samples.capped([finding(name, 0, [error]) for name, error in (("none", 0.001), ("wall", 0.06))])
    gap = Gap("logistic_regression", "active-auxiliary", "wall", "needs the model")
    (made,) = frontiers(found, conclude(found, [gap]))
    assert made.options[1].gaps == (gap,)
    assert (made.recommended, made.reason) == ("", "nothing")


def test_a_leak_that_an_attack_with_limits_finds_is_a_leak() -> None:
    found = [limited("none", 0, [0.001]), limited("wall", 0, [0.001])]
    (made,) = frontiers(samples.capped(found))
    assert {option.level for option in made.options} == {"leak"}
    assert all(answer.headline.startswith("Yes") for answer in answers(conclude(found)))
