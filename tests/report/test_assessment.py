"""The appendix for an impact assessment: contents from the run, the stated rule, and nothing but escaped names."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.app import run_audit
from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.data_flows import CLEAR, ENCRYPTED, Flow, flows_of
from plumbob.auditing.running.finding import Finding
from plumbob.protocols import protocol_named
from plumbob.report import severity
from plumbob.report.answer import answers
from plumbob.report.assessment import Member, Subject, render
from plumbob.threats import THREATS
from tests.report import samples
from tests.worlds import world

FLOWS = (
    Flow("predict", "active", "passive", "rows", CLEAR, 1, 8_000),
    Flow("predict", "passive", "coordinator", "answer", CLEAR, 1, 16_000),
    Flow("predict", "coordinator", "active", "scores", CLEAR, 1, 16_000),
)


def about(**changes: object) -> Subject:
    made = Subject(
        data="bank",
        purpose="",
        members=(Member("active", True, ("age",), 2_000), Member("passive", False, samples.NAMES, 2_000)),
        active="active",
        parties=("active", "passive"),
        dealt=(),
        classes=2,
        threats=(THREATS["active"],),
        alignment=(),
        gaps=(),
        attacks=samples.ATTACKS,
    )
    return replace(made, **changes)


def with_flows(findings: list[Finding]) -> list[Finding]:
    return [replace(finding, flows=FLOWS) for finding in findings]


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<main>")[2]))


def test_the_sections_follow_article_35() -> None:
    page = render(about(), with_flows(samples.audit()), made={})
    places = [page.index(f"Art. 35(7)({letter})") for letter in "abcd"]
    assert places == sorted(places)
    assert "Advice of the data protection officer" in page
    assert 'href="report.html"' in page
    assert "http" not in page.replace('http-equiv="', "")


def test_flows_and_views_are_those_of_the_findings() -> None:
    text = text_of(render(about(), with_flows(samples.audit()), made={}))
    assert "prediction passive coordinator a party’s contribution for each row 1 16 kB in the clear" in text
    assert "the model’s answer for each row (in the clear)" in text  # what the active party receives
    views = text.partition("Who sees what")[2].partition("What was learnt")[0]
    assert "contribution" not in views  # it goes to the coordinator, who is not curious here
    assert "the whole model" in views


def test_old_findings_without_flows_say_so() -> None:
    findings = [Finding.from_line(line) for line in (f.to_line() for f in samples.audit())]
    assert all(finding.flows == () for finding in findings)
    assert "before flows were kept" in render(about(), findings, made={})


def test_a_finding_keeps_its_flows_through_a_file() -> None:
    finding = with_flows(samples.audit()[:1])[0]
    assert Finding.from_line(finding.to_line()) == finding
    old = finding.to_line().replace('"flows":', '"ignored":')
    with pytest.raises(TypeError):
        Finding.from_line(old)
    assert Finding.from_line(re.sub(r',"flows":\[\[.*?\]\]', "", finding.to_line())).flows == ()


@pytest.mark.parametrize(
    ("name", "settings"), [("encrypted_logistic_regression", {"epochs": 1}), ("secure_boost", {"trees": 1})]
)
def test_a_ciphertext_is_told_from_a_number(name: str, settings: dict) -> None:
    from benchmarks.costs import made

    federation, _ = made(120, 6, 2).deal(0.5, np.random.default_rng(0))
    rows, others = federation.rows(np.arange(60)), federation.rows(np.arange(60, 120))
    forms = {}
    for bits in (0, 1_024):
        log = protocol_named(name, key_bits=bits, **settings).train(rows, others, np.random.default_rng(0))
        found = flows_of(log)
        assert sum(flow.bytes for flow in found) == log.bytes_sent()
        assert sum(flow.messages for flow in found) == len(log.messages)
        forms[bits] = {flow.name: flow.form for flow in found if flow.phase == "train"}
    secret = {"encrypted_logistic_regression": ("partial", "residual", "encrypted gradient")}.get(
        name, ("gradients", "sums")
    )
    assert all(forms[1_024][one] == ENCRYPTED for one in secret)
    assert set(forms[0].values()) == {CLEAR}
    assert forms[1_024].get("left", CLEAR) == CLEAR


def test_scores_cross_in_the_clear() -> None:
    flows = {flow.name: flow for flow in flows_of(world())}
    assert flows["scores"].form == CLEAR
    assert flows["scores"].receiver == world().active


@pytest.mark.parametrize(
    ("threat", "expected"),
    [("active-training", "maximum"), ("active", "significant"), ("collusion", "limited"), ("coordinator", "limited")],
)
def test_likelihood_goes_by_what_the_curious_need(threat: str, expected: str) -> None:
    found = answers(conclude(samples.values(threat=threat)))
    worst = severity.risks(found, THREATS)[0]
    assert worst.column.level == "exact"
    assert (worst.severity, worst.likelihood) == ("maximum", expected)
    assert worst.level == ("medium" if expected == "limited" else "high")


def test_severity_goes_by_what_was_learnt() -> None:
    found = answers(conclude(samples.capped(samples.values())))
    for one in severity.risks(found, THREATS):
        level, gain = one.column.level, one.column.verdict.gain
        assert one.severity == {"exact": "maximum", "order": "limited", "none": "negligible"}.get(
            level, "significant" if gain >= 0.5 else "limited"
        )
        assert (one.level == "none found") == (level == "none")
    assert {one.level for one in severity.risks(found, THREATS)} >= {"high", "none found"}


def test_the_label_has_a_risk_of_its_own() -> None:
    found = samples.values(threat="passive-training")
    known = [replace(f, score=replace(f.score, label_accuracy=1.0, label_baseline=0.5)) for f in found]
    worst = severity.risks(answers(conclude(known)), THREATS)
    told = {risk.column.verdict.column: risk for risk in worst}["the label"]
    assert (told.severity, told.likelihood, told.level) == ("maximum", "maximum", "high")
    text = text_of(render(about(threats=(THREATS["passive-training"],)), with_flows(known), made={}))
    assert "leak (1 in order only) to a passive party, and the label; 4 of 10 are undecided." in text
    assert (
        "the label recovered every label is known, where the best guess without a message gets 50 % a passive party"
        in text
    )
    partly = [replace(f, score=replace(f.score, label_accuracy=0.7, label_baseline=0.5)) for f in found]
    less = {r.column.verdict.column: r for r in severity.risks(answers(conclude(partly)), THREATS)}
    assert less["the label"].severity == "limited"
    chance = [replace(f, score=replace(f.score, label_accuracy=0.51, label_baseline=0.5)) for f in found]
    few = {r.column.verdict.column: r for r in severity.risks(answers(conclude(chance)), THREATS)}["the label"]
    assert (few.severity, few.level) == ("not known", "not known")  # nothing found, but no ceiling was computed
    capped = severity.risks(answers(conclude(samples.capped(chance, label=True), limit=0.15)), THREATS)
    none = {r.column.verdict.column: r for r in capped}["the label"]
    assert (none.severity, none.level) == ("negligible", "none found")  # attacked, and nothing found
    assert "the label" not in {r.column.verdict.column for r in severity.risks(answers(conclude(found)), THREATS)}


def test_a_column_counts_once_over_protocols() -> None:
    both = samples.values() + samples.values(protocol="neural_network", shares=(0.2,), attacks=("equality_solving",))
    found = severity.risks(answers(conclude(samples.capped(both))), THREATS)
    assert len(found) == 2 * len(samples.NAMES)
    alone = severity.risks(answers(conclude(samples.capped(samples.values()))), THREATS)
    assert severity.counts(found) == severity.counts(alone)
    assert sum(severity.counts(found).values()) == len(samples.NAMES)


def test_training_that_is_not_played_is_named_and_the_coordinator_is_listed() -> None:
    findings = with_flows(samples.values())
    text = text_of(render(about(untrained=("logistic_regression",)), findings, made={}))
    assert "Training is not played in this audit for logistic regression" in text
    assert (
        "coordinator coordinator: takes, combines and passes on messages; holds neither label nor columns – 0" in text
    )
    assert "Training is not played" not in text_of(render(about(), findings, made={}))
    assert "coordinator: takes" not in text_of(render(about(), samples.values(), made={}))  # it is in no flow


def test_where_nothing_leaks_no_risk_is_found_and_that_is_no_proof() -> None:
    page = render(about(), with_flows(samples.capped(samples.harmless())), made={})
    text = text_of(page)
    assert "It is not a proof" in text
    assert "none found" in text.partition("Declared by the controller")[0]
    assert not re.search(r'class="badge (exact|leak|order)"', page)
    bare = render(about(), with_flows(samples.harmless()), made={})  # the same attacks, and no ceiling
    assert "none found" not in text_of(bare).partition("Declared by the controller")[0]
    assert not re.search(r'class="badge (exact|leak|order|none)"', bare)


def test_the_residual_risk_is_that_of_the_recommended_measure() -> None:
    findings = samples.capped(samples.sweep())
    subject = about(threats=(THREATS["active"], THREATS["active-black-box-auxiliary"]))
    text = text_of(render(subject, with_flows(findings), made={}))
    risk = text.partition("Risk by column, before and after measures")[2].partition("The rule")[0]
    assert "logistic regression on bank , with hide_model" in risk
    assert "Initial risk Residual risk" in risk


def test_what_was_not_tested_is_named() -> None:
    text = text_of(render(about(gaps=("decision tree, threat x",)), samples.audit(), made={}))
    untested = text.partition("What was not tested")[2].partition("Combined:")[0]
    assert "decision tree, threat x" in untested
    assert "corrupted-coordinator" in untested  # a threat outside of the plan
    assert "reverse sum" in untested  # an attack that was not run


def test_a_purpose_is_repeated_and_its_absence_is_a_blank() -> None:
    assert "To be filled in by the controller" in render(about(), samples.audit(), made={})
    page = render(about(purpose="Predict <i>default</i>"), samples.audit(), made={})
    assert "Predict &lt;i&gt;default&lt;/i&gt;" in page
    assert "To be filled in by the controller" not in page


def test_hostile_names_are_escaped_everywhere() -> None:
    evil = samples.HOSTILE[0]
    flows = (Flow(evil, evil, evil, evil, evil, 1, 1),)
    findings = samples.values(samples.HOSTILE, shares=(0.3,), data=evil, protocol=evil, defence=samples.HOSTILE[1])
    subject = about(
        data=evil, purpose=evil, gaps=(evil,), members=(Member(evil, True, samples.HOSTILE, 5),), alignment=flows
    )
    page = render(subject, [replace(finding, flows=flows) for finding in findings], made={})
    assert "<script" not in page
    assert "<img" not in page


def test_an_audit_writes_it_from_its_own_run(tmp_path: Path) -> None:
    plan = {"data": "breast", "unknown": [0.3], "trials": 2, "rows": 60, "protocols": ["logistic_regression"]}
    plan |= {"attacks": ["equation_solving"], "purpose": "Tell tumours apart", "ceiling": False}
    result = run_audit(plan, tmp_path / "out")
    text = text_of((tmp_path / "out" / "assessment.html").read_text(encoding="utf-8"))
    assert "Tell tumours apart" in text
    assert "mean radius" in text
    assert "Training is not played in this audit for logistic regression" in text
    assert 'href="assessment.html"' in result.report.read_text(encoding="utf-8")
    assert [bool(finding.flows) for finding in result.findings] == [True, False]  # of the first trial
    assert sum(flow.bytes for flow in result.findings[0].flows) == result.findings[0].bytes_sent


def test_the_purpose_is_no_part_of_what_is_audited() -> None:
    assert make_plan({"purpose": "one"}).digest == make_plan({"purpose": "two"}).digest
