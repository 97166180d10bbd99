"""Who attacks a defence: beside the published attack, which knows of none, the attacker who knows it; each once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from plumbob.attacks import attack_named
from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.summarise import attacked, summarise
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import Unit, attack_cases
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.report.phrases import label
from plumbob.scoring.leak_levels import Level


def planned(attacks: Any, defences: Any, **more: Any) -> Plan:
    raw = {"data": {"name": "breast", "sample": 120}, "protocols": "logistic_regression", "attacks": attacks}
    return make_plan(raw | {"defences": defences, "unknown": 0.3, "trials": 1, "rows": 50} | more)


def titles(plan: Plan, defence: str) -> list[str]:
    cases = attack_cases(plan, Unit(plan.protocols[0], 0))
    return [case.title for case in cases if case.defence.title == defence]


BOTH = ["equation_solving (adaptive=False)", "equation_solving (adaptive=True)"]
AWARE = {"name": "equation_solving", "settings": {"adaptive": True}}


def test_a_published_attack_is_made_by_who_knows_the_defence_and_by_who_does_not() -> None:
    plan = planned("equation_solving", ["none", "rounding", "rounding+hide_model", "label_only+verification"])
    assert titles(plan, "rounding") == BOTH
    assert titles(plan, "label_only+verification") == BOTH


def test_where_no_defence_is_in_place_it_is_made_once() -> None:
    plan = planned(["equation_solving", AWARE, "gradient_inversion"], ["none", "rounding"])
    assert titles(plan, "none") == ["equation_solving", "gradient_inversion"]
    assert titles(plan, "rounding")[:2] == BOTH
    assert len(titles(plan, "rounding")) == 4


def test_where_knowing_makes_no_difference_it_is_made_once() -> None:
    """Verification withholds scores and changes none; after dp_sgd scores are what the model says."""
    plan = planned("equation_solving", ["none", "verification", "dp_sgd"])
    assert titles(plan, "verification") == titles(plan, "dp_sgd") == ["equation_solving"]


def test_a_plan_may_say_which_attacker_it_wants() -> None:
    assert titles(planned([AWARE], ["none", "rounding"]), "rounding") == BOTH[1:]


def test_attacks_of_our_own_know_the_defence() -> None:
    assert titles(planned("posterior_mean", ["none", "rounding"]), "rounding") == ["posterior_mean"]


def test_a_recorded_run_under_a_defence_has_both_attackers() -> None:
    recorded = make_plan({"data": "breast", "attacks": "leverage_sampling"})
    plan = recorded.of_recording("split_network", ("gaussian_masking",)).filled()
    both = ["leverage_sampling (adaptive=False)", "leverage_sampling (adaptive=True)"]
    assert list(dict.fromkeys(titles(plan, "none"))) == both


def test_both_draw_the_same_numbers() -> None:
    aware, unaware = (attack_named("gradient_inversion", adaptive=adaptive) for adaptive in (True, False))
    assert aware.identified() == unaware.identified() == attack_named("gradient_inversion").identified()


@cache
def found() -> tuple[Finding, ...]:
    plan = planned("equation_solving", ["none", "label_only"], ceiling=False)
    return tuple(attacked(run(plan.filled(), open_source(plan.data, 0))))


def test_a_finding_says_what_its_attacker_does_not_know_of() -> None:
    assert [(one.attack, one.unaware) for one in found()] == [
        ("equation_solving", ""),
        (BOTH[0], "label_only"),
        (BOTH[1], ""),
    ]
    assert [Finding.from_line(one.to_line()).unaware for one in found()] == ["", "label_only", ""]
    assert [label(one.attack) for one in found()][1:] == [
        "equation solving (does not know the defence)",
        "equation solving (knows the defence)",
    ]


def test_what_an_attacker_misses_who_does_not_know_the_defence_proves_nothing() -> None:
    _, unaware, aware = summarise(found())
    assert {verdict.level for verdict in unaware.verdicts if not verdict.level.leaks} <= {Level.NOT_TESTED}
    assert any("does not know of label_only" in verdict.why for verdict in unaware.verdicts)
    assert all(verdict.level is not Level.NOT_TESTED for verdict in aware.verdicts)


@pytest.mark.parametrize("which", [1, 2])
def test_the_worse_of_the_two_stands(which: int) -> None:
    """One of them is made to recover a column: the verdict is about that, whichever it is."""
    trials = list(found())
    first = trials[which].score.columns[0]
    leaking = replace(first, error=0.0, gain=1.0, gain_error=0.0, exact=1.0, tie=1.0, tie_error=0.01)
    trials[which] = replace(
        trials[which], score=replace(trials[which].score, columns=(leaking, *trials[which].score.columns[1:]))
    )
    (judged,) = (one for one in conclude(trials).situations if one.situation.defence == "label_only")
    worst = next(one for one in judged.standings if one.verdict.column == first.name)
    assert worst.level is Level.EXACT
    assert worst.attack == trials[which].attack
