"""Over random findings: advice, page and residual risk say the same, and what could be learnt at most stands beside it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, frontiers
from plumbob.auditing.concluding.judging import LABEL
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.running.finding import Finding
from plumbob.report import at_most, protection, severity
from plumbob.report.answer import Answer, answers, overall
from plumbob.report.assessment import render
from plumbob.report.before_after import before_after
from plumbob.report.residual import Stage, stages
from plumbob.threats import THREATS
from tests.report import samples
from tests.report.test_assessment import about, text_of, with_flows

SEEDS = range(150)
SAFE = ("no leak above", "no defence is needed")


def random_findings(seed: int) -> tuple[list[Finding], list[Gap]]:
    """One protocol under up to three ways to run it: columns of every level, labels, gaps, ceilings that are there or not."""
    rng = np.random.default_rng(seed)
    mild = rng.random() < 0.7  # most worlds are such that a defence may be safe
    odd = 0.02 if mild else 0.15  # how often something is missing or out of line
    found: list[Finding] = []
    gaps = []
    for defence in ("none", "rounding (digits=1)", "hide_model"):
        for threat in ("active", "collusion"):
            chance = rng.random()
            if chance < 2 * odd:
                gaps.append(
                    Gap("logistic_regression", threat, defence, "no attack", meaningful=bool(rng.random() < 0.6))
                )
                continue
            leaks = rng.random() < (0.7 if defence == "none" else 0.25)
            some = _attacked(rng, defence, threat, leaks, odd)
            high = 0.3 if rng.random() < 2 * odd else 0.03
            capped = rng.random() > odd
            labelled, covers = bool(rng.random() < odd), bool(rng.random() > odd)
            found += samples.capped(some, high, label=labelled, covers=covers) if capped else some
            if rng.random() < odd:  # a ceiling of a situation in which no attack was run
                found += [
                    f for f in samples.capped([replace(f, threat="coordinator") for f in some]) if f.score.ceilings
                ]
    return found, gaps


def _attacked(rng: np.random.Generator, defence: str, threat: str, leaks: bool, odd: float) -> list[Finding]:
    names = ["a", "b", "c"][: int(rng.integers(2, 4))] if rng.random() < odd else ["a", "b"]
    columns = [samples.column(n, float(rng.choice([0.0, 0.01, 0.035])) if leaks else 0.0415, rng) for n in names]
    if rng.random() < odd:
        columns = [replace(one, gain_error=0.3, tie=0.0) for one in columns]
    fixed = {"defence": defence, "threat": threat, "white_box": defence != "hide_model"}
    accuracy = float(rng.choice([0.95, 0.948, 0.7]))
    trials = [samples.finding(columns, trial=i, model_accuracy=accuracy, **fixed) for i in range(3)]
    changes: dict[str, object] = {"untried": "it does not fit"} if rng.random() < odd else {}
    if rng.random() < odd:
        changes |= {"label_accuracy": float(rng.choice([0.5, 1.0])), "label_baseline": 0.5}
    return [replace(one, score=replace(one.score, **changes)) for one in trials]


def concluded() -> Iterator[tuple[Conclusion, list[Answer], Frontier, Stage]]:
    for seed in SEEDS:
        findings, gaps = random_findings(seed)
        conclusion = conclude(findings, gaps, limit=0.12)
        found, choices = answers(conclusion), frontiers(findings, conclusion)
        made = stages(found, choices, THREATS)
        if len(made) == len(choices) == 1:
            yield conclusion, found, choices[0], made[0]


def none_found(found: list[Answer], defence: str) -> bool:
    left = severity.risks([a for a in found if a.situation.defence == defence], THREATS)
    return bool(left) and all(risk.level == severity.NONE_FOUND for risk in left)


def test_no_measure_is_called_safe_whose_residual_risk_is_not_none_found() -> None:
    safe = unsafe = 0
    for _, found, choice, stage in concluded():
        headline = protection.headline(choice)
        said = any(words in headline for words in SAFE)
        assert said == (choice.reason in ("safe", "unneeded"))
        if said:
            safe += 1
            assert stage.residual == severity.NONE_FOUND, headline
            assert none_found(found, choice.recommended)
        else:
            unsafe += 1
            assert "no setting tried is shown to be safe" in headline
            assert stage.residual != severity.NONE_FOUND, headline
        if choice.if_known_reason in ("safe", "unneeded"):  # the one to fall back on is called safe, too
            assert none_found(found, choice.if_known), protection.advice(choice)
    assert min(safe, unsafe) >= 20  # the worlds are such that both occur


def test_the_headline_says_no_leak_only_where_nothing_is_left_open() -> None:
    for conclusion, found, _, stage in concluded():
        said = overall(found)
        assert said.startswith("Yes") == conclusion.level.leaks
        if said.startswith("No leak") and "not tested" not in said:
            assert all(none_found(found, side.measure or "none") for side in stage.sides)
        if stage.residual in (severity.LOW, severity.MEDIUM, severity.HIGH):
            assert said.startswith("Yes")


def test_what_remains_is_not_called_nothing_where_a_risk_is_left() -> None:
    told = 0
    for _, found, choice, stage in concluded():
        figure = before_after(choice, found)
        if figure is None:
            continue
        told += 1
        columns = [pair for pair in stage.pairs if pair.column.metric != "labels"]
        if "What remains: no leak" in figure.caption:
            assert all(pair.residual == severity.NONE_FOUND for pair in columns)
    assert told >= 20


@pytest.mark.parametrize("seed", range(20))
def test_a_page_of_random_findings_holds_no_word_of_safety_beside_a_risk(seed: int) -> None:
    findings, gaps = random_findings(seed)
    if not findings:
        return
    conclusion = conclude(findings, gaps)
    page = render(about(), with_flows(findings), made={}, conclusion=conclusion)
    left = stages(answers(conclusion), frontiers(findings, conclusion), THREATS)
    if any(stage.residual != severity.NONE_FOUND for stage in left):
        advice = text_of(page).partition("Measures tried")[2].partition("If the model is known")[0]
        assert not any(words in advice for words in SAFE)


def lines(findings: list[Finding], **changes: object) -> list[str]:
    conclusion = conclude(findings)
    (stage,) = stages(answers(conclusion), frontiers(findings, conclusion), THREATS)
    return at_most.lines(about(**changes), stage.before)


def test_the_ceiling_stands_in_one_line_for_the_columns_of_a_party_and_one_for_the_label() -> None:
    found = samples.capped(samples.values(), high=0.165, label=True)
    columns, label = lines(found)
    assert columns.startswith("10 columns of passive: up to 17 % (")  # rounded up
    assert columns.endswith("; attacks found more for 5.")  # equations and order beat learners
    assert label == "The label: up to 17 %."
    dealt, _ = lines(found, dealt=(0.3,))
    assert dealt.startswith("10 columns hidden: up to 17 %")
    text = text_of(render(about(), with_flows(found), made={}))
    measured = text.partition("Measured by this audit")[2].partition("Combined: risk")[0]
    assert "At most, for learners with everybody else’s complete rows" in measured
    assert columns in measured


def test_a_ceiling_that_is_missing_or_blind_is_named() -> None:
    assert lines(samples.values()) == []
    both = samples.capped(samples.values(shares=(0.3,))) + samples.values(shares=(0.3,), threat="collusion")
    assert "not computed in some situation for 10" in lines(both)[0]
    blind = samples.capped(samples.values(shares=(0.3,), threat="collusion"), covers=False)
    assert lines(blind) == ["10 columns of passive: not known, because the learners could not read the messages."]
    half = samples.capped(samples.values(shares=(0.3,))) + blind
    assert "up to 3 % (" in lines(half)[0]
    assert "the learners could not read some messages for 10" in lines(half)[0]


def test_the_motivated_intruder_is_told_what_a_stronger_attacker_could_learn() -> None:
    def intruder(findings: list[Finding]) -> str:
        text = text_of(render(about(), with_flows(findings), made={}))
        return text.partition("motivated intruder has")[2].partition("is it reasonably likely")[0]

    assert "could learn: of a hidden column up to 17 %" in intruder(samples.capped(samples.harmless(), high=0.165))
    assert "of the label up to 17 %" in intruder(samples.capped(samples.harmless(), high=0.165, label=True))
    assert "not known, because no ceiling was computed" in intruder(samples.harmless())
    assert LABEL == "the label"
