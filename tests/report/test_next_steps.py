"""What a report tells to do next, and the threats it lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.matrix import matrix
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.isolation.limits import Limits
from plumbob.report.answer import answers
from plumbob.report.facts import Asked, facts
from plumbob.report.next_steps import Step, next_steps
from plumbob.report.threat_table import TIERS, tier, tiers
from plumbob.scoring.score import ColumnScore
from plumbob.threats import THREATS, AuxiliaryRows, Schema, Threat
from tests.report import samples

ASKED = Asked(matrix=tuple(matrix({"logistic_regression": "logistic_regression"})))


def steps(findings: list[Finding], asked: Asked = ASKED) -> list[Step]:
    conclusion = conclude(findings)
    return next_steps(conclusion, frontiers(findings, conclusion), asked)


def commands(found: list[Step]) -> list[str]:
    return [step.command for step in found if step.command]


def test_a_leak_without_a_sweep_asks_for_one_for_more_attackers_and_for_a_gate() -> None:
    found = steps(samples.capped(samples.values()))
    assert commands(found) == [
        "plumbob audit plan.yaml --sweep --out swept",
        "threats: [active, active-auxiliary, active-known-people, corrupted-coordinator]  # in plan.yaml",
        'plumbob audit plan.yaml --gate "leaks==0"',
    ]
    assert "active-auxiliary (the active party, which knows the model and 100 complete rows" in found[2].said
    assert "not possible with such parties" in found[2].said.partition("collusion")[0]  # nobody is left to collude with
    assert "collusion (" in steps(samples.values(), replace(ASKED, parties=("a", "b", "c"), active="a"))[2].said


def test_what_was_asked_for_is_not_asked_again() -> None:
    asked = ("active-auxiliary", "active-black-box-auxiliary", "active-known-people", "corrupted-coordinator")
    asked += ("coordinator", "passive-known-people", "passive-known-labels")
    every = [f for threat in asked for f in samples.values(threat=threat)]
    found = steps(every, replace(ASKED, gated=True, sweeps=False))
    assert commands(found) == []
    assert "a recorded run cannot be changed" in found[1].said


def test_what_leaks_is_withheld_until_something_is_shown_to_stop_it() -> None:
    first = steps(samples.values())[0].said
    assert first == (
        "Withhold these columns, or the model, until a defence is shown to stop the leak: income, age, balance and 3 more leak. "
        "What leaks without the model was not tested."
    )
    assert not steps(samples.values(threat="active-black-box"))[0].said.startswith("Withhold these columns, or")
    assert not any(step.said.startswith("Withhold") for step in steps(samples.capped(samples.sweep())))


def test_withholding_the_model_is_no_cure_where_who_has_none_learns_too() -> None:
    said = steps(samples.values() + samples.values(threat="active-black-box-auxiliary"))[0].said
    assert said.startswith("Withhold these columns until")
    assert said.endswith(
        "Withholding the model is not enough: without it 6 of 10 columns still leak (active-black-box-auxiliary)."
    )
    harmless = steps(samples.values() + [replace(f, threat="active-black-box") for f in samples.harmless()])[0].said
    assert harmless.startswith("Withhold these columns, or the model,")
    assert "(active-black-box)" in harmless


def test_weaker_settings_are_to_be_run_again() -> None:
    made = [replace(f, attack="shadow_inversion (fast, adaptive=True)") for f in samples.values(shares=(0.3,))]
    assert any(step.said.startswith("Run it again at full strength") for step in steps(made))
    assert not any(step.said.startswith("Run it again") for step in steps(samples.values()))


def test_nothing_is_to_be_done_about_what_is_safe_but_to_keep_it_so() -> None:
    found = steps(samples.capped(samples.harmless()), Asked())
    assert [step.said.partition(":")[0].partition(" ")[0] for step in found] == ["Keep", "Audit"]
    assert steps([]) == []


def test_a_recommended_defence_is_to_be_taken() -> None:
    assert steps(samples.capped(samples.sweep()))[0].said.startswith("Take hide_model, and audit it alone")


def test_undecided_columns_say_what_would_decide_them() -> None:
    def said(findings: list[Finding]) -> str:
        return " ".join(step.said for step in steps(findings))

    uncertain = [
        replace(
            f, score=replace(f.score, columns=tuple(replace(c, gain=0.05, gain_error=0.1) for c in f.score.columns))
        )
        for f in samples.harmless()
    ]
    assert "Supply more rows: income, age, balance and 7 more are undecided, since 1,000 rows" in said(uncertain)
    assert "About 2,200 rows would bring the limit to 10 %" in said(uncertain)
    assert "a better attack could gain up to 17 %" in said(samples.capped(samples.harmless(), high=0.17))
    assert "no ceiling was computed" in said(samples.harmless())
    assert "learners cannot read what was sent" in said(samples.capped(samples.harmless(), covers=False))
    blind = [
        replace(f, attack="binary_columns", score=replace(f.score, columns=(_whole(),))) for f in samples.harmless()
    ]
    assert "a is not tested (binary columns looks for two-valued columns only)" in said(blind)


def _whole() -> ColumnScore:
    return replace(samples.column("a", 0.045, np.random.default_rng(0)), kind="whole numbers")


def test_every_situation_is_listed_by_what_the_curious_must_know() -> None:
    findings = samples.capped(samples.sweep()) + samples.values(threat="collusion") + samples.values(threat="our own")
    gaps = [
        Gap("logistic_regression", "active-black-box", "label_only", "needs the model (white box)"),
        Gap("logistic_regression", "passive-training", "none", "it gets no message", meaningful=False),
    ]
    conclusion = conclude(findings, gaps)
    found = tiers(answers(conclusion), tuple(THREATS.values()))
    assert [one.heading for one in found] == list(TIERS)
    rows = [row for one in found for row in one.rows]
    assert len(rows) == len(conclusion.situations)
    first = {row.threat: row for row in found[0].rows}
    assert (first["active-black-box"].badge, first["active-black-box"].verdict) == (
        "not tested",
        "needs the model (white box)",
    )
    assert (first["passive-training"].badge, first["passive-training"].verdict) == (
        "not applicable",
        "it gets no message",
    )
    assert {row.threat for row in found[1].rows} == {"active"}
    assert found[2].rows[0].knows == "the names, ranges and decimals of the columns, 100 complete rows of other people"


def test_a_threat_of_the_plan_is_described_as_the_plan_has_it() -> None:
    ours = Threat("our own", "somebody", (Schema(), AuxiliaryRows(7)))
    (found,) = tiers(answers(conclude(samples.values(threat="our own"))), (ours,))
    assert found.heading == TIERS[2]
    assert "7 complete rows of other people" in found.rows[0].knows
    assert tier(None) == len(TIERS) - 1


def test_an_attack_that_failed_is_part_of_the_answer_and_the_first_thing_to_do() -> None:
    def broken(why: str) -> list[Finding]:
        made = samples.values(trials=2, shares=(0.2,), attacks=("equality_solving",))
        return [replace(f, attack="lattice_decoding", score=f.score.without_claims(why)) for f in made]

    raised = broken("ValueError: too few rows")
    conclusion = conclude(samples.values() + raised)
    told = {fact.name: fact.said for fact in facts(answers(conclusion), ASKED, conclusion.failures)}
    assert told["Failed"].startswith("Lattice decoding failed in 2 of 2 runs on logistic_regression")
    assert "ValueError: too few rows" in told["Failed"]
    assert "is not known" in told["Failed"]
    first = steps(samples.values() + raised)[0]
    assert first.said.startswith("Run lattice decoding again: it failed, and what it would have found is not known")
    assert first.command == f"plumbob audit plan.yaml --debug-attack {raised[0].key[:12]}"
    late = steps(samples.values() + broken(Limits(5.0, 100).too_long))[0]
    assert "More time or memory may do" in late.said
    assert late.command.startswith("attack_seconds")
    assert "Failed" not in {fact.name for fact in facts(answers(conclude(samples.values())), ASKED)}


def test_a_defence_that_only_leaves_least_to_learn_is_not_one_to_take() -> None:
    findings = samples.sweep()  # nobody computed ceilings: nothing is shown to be safe
    conclusion = conclude(findings)
    assert {choice.reason for choice in frontiers(findings, conclusion)} <= {"least", "nothing"}
    first = steps(findings)[1].said
    assert first.startswith("Do not rely on a defence of this sweep: none is shown to be safe.")
    assert not any(step.said.startswith("Take") for step in steps(findings))
