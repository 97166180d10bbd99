"""The gate: its language, and what holds on findings made by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.gate import Check, Gate
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.finding import Finding
from plumbob.errors import BadInput
from plumbob.report import severity
from plumbob.report.answer import answers, overall
from plumbob.scoring.leak_levels import Level
from plumbob.scoring.score import ColumnScore
from plumbob.threats import THREATS
from tests.report import samples


def column(name: str, gain: float, gain_error: float = 0.01, **more: float) -> ColumnScore:
    plain = samples.column(name, 0.04 * (1 - gain), np.random.default_rng(0))
    tie = more.get("rank", max(0.0, gain) ** 0.5)
    return replace(plain, gain=gain, gain_error=gain_error, **{"exact": 0.0, "tie": tie, **more})


def trials(*columns: ColumnScore, count: int = 5, **setting: object) -> list[Finding]:
    return [samples.finding(columns, trial=trial, **setting) for trial in range(count)]


def checked(gate: str, findings: list[Finding], gaps: Sequence[Gap] = ()) -> list[Check]:
    """With a ceiling of 3 % everywhere, so that what no attack finds is safe."""
    every = samples.capped(findings)
    return list(Gate.parse(gate).outcome(every, conclude(every, gaps)).checks)


def holds(gate: str, findings: list[Finding]) -> bool:
    return all(check.holds for check in checked(gate, findings))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_gain<0.2", "max_gain<0.2"),
        (" max_gain  <= .5 AND exact_columns==0 ", "max_gain<=0.5 and exact_columns==0"),
        ("mean( max_gain ) < 2e-1", "mean(max_gain)<0.2"),
        ("min_accuracy>=0.8 and leaking_columns<3", "min_accuracy>=0.8 and leaking_columns<3"),
    ],
)
def test_what_a_gate_may_say(text: str, words: str) -> None:
    assert Gate.parse(text).text == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a condition such as max_gain<0.2"),
        ("max_gain", "expected a condition"),
        ("max_gain<0.2 or exact_columns==0", "expected a condition"),
        ("max_gain<0.2 and", "expected a condition"),
        ("__import__('os').system('id')<1", "expected a condition"),
        ("max_gian<0.2", "no measure 'max_gian'; did you mean 'max_gain'?"),
        ("max_gain=0.2", "no comparison '='"),
        ("max_gain!=0.2", "no comparison '!='"),
        ("max_gain==0.2", "is continuous"),
        ("max_gain>0.2", "requires the unsafe case; write what must hold: max_gain<="),
        ("min_accuracy<0.8", "requires the unsafe case"),
        ("max_gain<20", "always holds; 'max_gain' is 1 at worst"),
        ("max_gain<=1", "always holds"),
        ("max_gain<0", "can never hold"),
        ("min_accuracy>1", "can never hold"),
        ("exact_columns<0", "can never hold"),
        ("exact_columns<0.5", "needs a whole number"),
        ("mean(exact_columns)<1", "without mean()"),
        ("max_gain<nan", "expected a condition"),
        ("max_gain<0.2 and " * 100 + "max_gain<0.2", "at most 1,000 characters"),
    ],
)
def test_what_a_gate_may_not_say(text: str, words: str) -> None:
    with pytest.raises(BadInput) as error:
        Gate.parse(text)
    assert words in str(error.value)


@given(st.text(max_size=60))
def test_any_text_is_a_gate_or_one_sentence(text: str) -> None:
    with contextlib.suppress(BadInput):
        gate = Gate.parse(text)
        assert Gate.parse(gate.text).conditions == gate.conditions


def test_the_upper_end_is_compared_unless_the_mean_is_asked_for() -> None:
    found = trials(column("shop.basket", 0.18, gain_error=0.05))
    assert not holds("max_gain<0.2", found)
    assert holds("mean(max_gain)<0.2", found)
    assert holds("max_gain<0.3", found)


def test_a_breach_names_column_attack_and_interval() -> None:
    found = trials(column("shop.basket", 0.5), column("shop.visits", 0.0), attack="posterior_mean")
    check = checked("max_gain<0.2", found)[0]
    assert check.value == 0.5
    assert [(b.column, b.attack, b.level) for b in check.breaches] == [("shop.basket", "posterior_mean", "leak")]
    assert check.breaches[0].low == pytest.approx(0.5 - 1.96 * 0.01, abs=1e-4)
    assert check.breaches[0].high == pytest.approx(0.5 + 1.96 * 0.01, abs=1e-4)


def test_a_column_counts_by_its_worst_attack() -> None:
    found = trials(column("a.x", 0.1), attack="weak") + trials(column("a.x", 0.6), attack="strong")
    assert [b.attack for b in checked("max_gain<0.05", found)[0].breaches] == ["strong"]


def test_an_attack_that_does_worse_than_guessing_counts_as_nothing() -> None:
    assert holds("max_gain<0.04", trials(column("a.x", -5.0, gain_error=0.5)))
    assert not holds("max_gain<0.5", trials(column("a.x", -5.0, gain_error=9.0)))  # nobody knows what it is worth


def test_columns_are_counted_by_their_verdicts() -> None:
    exact = column("a.x", 1.0, 0.0, exact=1.0)
    order = column("a.z", -1.0, rank=0.9)
    found = trials(exact, column("a.y", 0.5), order, column("a.w", 0.0))
    assert checked("exact_columns==0", found)[0].value == 1
    assert checked("leaking_columns<3", found)[0].value == 3
    assert holds("exact_columns<=1 and leaking_columns<=3", found)
    assert not holds("leaking_columns==0", found)
    assert [b.column for b in checked("leaking_columns<3", found)[0].breaches] == ["a.x", "a.y", "a.z"]


def test_every_situation_must_pass() -> None:
    safe, leaking = column("a.x", 0.0), column("a.x", 0.5)
    found = trials(leaking, defence="none") + trials(safe, defence="rounding") + trials(leaking, defence="noise")
    broken = [check.situation.defence for check in checked("max_gain<0.2", found) if not check.holds]
    assert broken == ["none", "noise"]


def test_accuracy_is_compared_by_its_lower_end() -> None:
    found = trials(column("a.x", 0.0), model_accuracy=0.89)  # of 1,000 rows: 0.87 to 0.91
    assert holds("min_accuracy>0.86", found)
    assert not holds("min_accuracy>0.88", found)
    assert holds("mean(min_accuracy)>0.88", found)


def test_what_was_not_measured_does_not_hold() -> None:
    found = trials(column("a.x", 0.0), trained=False)
    assert [(c.holds, c.value) for c in checked("min_accuracy>0.1 and max_label_accuracy<0.9", found)] == [
        (False, None),
        (False, None),
    ]


def test_guessed_labels() -> None:
    found = [replace(f, score=replace(f.score, label_accuracy=0.7)) for f in trials(column("a.x", 0.0))]
    assert holds("max_label_accuracy<0.75", found)
    assert not holds("max_label_accuracy<0.71", found)


def test_a_plan_has_a_gate_that_is_no_part_of_what_it_audits() -> None:
    plan = make_plan({"gate": "max_gain<0.2"})
    assert plan.digest == make_plan({}).digest
    with pytest.raises(BadInput, match="no measure 'gain'"):
        make_plan({"gate": "gain<0.2"})


def test_labels_need_a_threat_that_lacks_them() -> None:
    with pytest.raises(BadInput, match="every threat of the plan includes the active party"):
        make_plan({"gate": "max_label_accuracy<0.6"})
    make_plan(
        {"gate": "max_label_accuracy<0.6", "threats": "coordinator", "protocols": "split_training", "data": "digits"}
    )


def test_what_is_not_known_counts_as_the_worst() -> None:
    undecided = column("a.x", 0.1, gain_error=0.2, tie=0.1)
    untold = column("a.y", 0.0, claims=0)
    assert not holds("leaking_columns==0", trials(undecided))
    assert holds("leaking_columns<=1 and exact_columns==0", trials(undecided))
    assert not holds("exact_columns==0", trials(untold))
    assert checked("max_gain<0.9", trials(untold))[0].value is None
    assert not holds("max_gain<0.9", trials(untold))


def test_a_situation_that_was_not_tested_fails_and_one_that_means_nothing_does_not() -> None:
    safe = trials(column("a.x", 0.0))
    gap = Gap("logistic_regression", "active-black-box", "none", "needs the model")
    for gate in ("leaks==0", "max_gain<0.5", "exact_columns==0"):
        assert all(check.holds for check in checked(gate, safe))
        assert [check.holds for check in checked(gate, safe, [gap])] == [True, False]
        assert all(check.holds for check in checked(gate, safe, [replace(gap, meaningful=False)]))
    assert all(check.holds for check in checked("min_accuracy>0.5", safe, [gap]))


KINDS = {
    "exact": column("a.x", 1.0, 0.0, exact=1.0),
    "some": column("a.x", 0.0, rows_exact=50, rows_exact_chance=0.0, rows_missed=1000),
    "leak": column("a.x", 0.5),
    "order": column("a.x", -1.0, rank=0.9),
    "undecided": column("a.x", 0.1, gain_error=0.2, tie=0.1),
    "untold": column("a.x", 0.0, claims=0),
    "none": column("a.x", 0.0),
}


@example(kinds=["none"], label=None, gap=True, ceiling=0.02)  # safe where it was tested
@example(kinds=["none"], label=None, gap=False, ceiling=0.02)
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
    label=st.sampled_from([None, 0.5, 0.52, 0.9, 1.0]),
    gap=st.sampled_from([None, True, False]),
    ceiling=st.sampled_from([0.02, 0.4, None]),
)
def test_headline_gate_and_level_agree(
    kinds: list[str], label: float | None, gap: bool | None, ceiling: float | None
) -> None:
    """One rule: the strictest gate holds if and only if the headline says that there is no leak."""
    columns = [replace(KINDS[kind], name=f"a.{i}") for i, kind in enumerate(kinds)]
    found = trials(*columns, count=2)
    if label is not None:
        told = [replace(f.score, label_accuracy=label, label_baseline=0.5, label_tie=2 * label - 1) for f in found]
        found = [replace(f, score=one) for f, one in zip(found, told, strict=True)]
    every = found if ceiling is None else samples.capped(found, high=ceiling, label=label is not None)
    gaps = [] if gap is None else [Gap("logistic_regression", "coordinator", "none", "why not", meaningful=gap)]
    conclusion = conclude(every, gaps)
    holds = Gate.parse("leaks==0").outcome(every, conclusion).holds
    headline = overall(answers(conclusion))
    assert holds == (conclusion.level is Level.NONE) == headline.startswith("No leak above")
    assert headline.startswith("Yes") == conclusion.level.leaks
    assert severity.risks(answers(conclusion), THREATS)
    if gap:
        assert not holds
        assert "not tested" in headline
