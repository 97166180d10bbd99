"""What is said of a gate: on the terminal, as JSON and as JUnit XML."""

from __future__ import annotations

import io
import json
from xml.etree import ElementTree

from rich.console import Console

from plumbob.auditing.concluding.conclusion import NO_ATTACK, conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.gate import Gate, Outcome
from plumbob.auditing.running.finding import Finding
from plumbob.report.gating import gate_line, junit, print_gate
from tests.report import samples

GATE = Gate.parse("max_gain<0.2 and min_accuracy>0.8")
WORST = (*samples.HOSTILE, "nul\x00 and \ufffe\uffff and \ud800", "]]>&amp;")


def outcome(findings: list[Finding], gate: Gate = GATE, unmeasured: tuple[str, ...] = ()) -> Outcome:
    gaps = [Gap(protocol, "active", "none", NO_ATTACK) for protocol in unmeasured]
    return gate.outcome(findings, conclude(findings, gaps))


def printed(findings: list[Finding], gate: Gate = GATE, unmeasured: tuple[str, ...] = ()) -> str:
    file = io.StringIO()
    print_gate(outcome(findings, gate, unmeasured), Console(file=file, width=500))
    return file.getvalue()


def test_a_gate_that_holds_is_one_line() -> None:
    assert printed(samples.values(), Gate.parse("min_accuracy>0.8")) == "Gate holds: min_accuracy>0.8\n"


def test_a_broken_gate_says_what_broke_it() -> None:
    lines = printed(samples.values(shares=(0.3,), defence="rounding")).splitlines()
    assert lines[0] == "Gate broken: max_gain<0.2 and min_accuracy>0.8"
    assert "column income has the gain 1.000 (95 % interval 1.000 to 1.000) by box solving" in lines[1]
    assert "protocol logistic_regression, threat active, defence rounding" in lines[1]


def test_none_beside_a_defence_is_checked_and_said_to_be() -> None:
    found = samples.values(shares=(0.3,)) + samples.values(shares=(0.3,), defence="rounding")
    assert "none as well" in printed(found)
    assert "none as well" not in printed(samples.values(shares=(0.3,)))


def test_what_no_attack_fits_is_said() -> None:
    text = printed(samples.values(), unmeasured=("decision_tree",))
    assert "decision_tree, threat active, defence none: not tested, no attack of this plan applies." in text
    assert "max_gain<0.2: not tested, so not known to be safe (protocol decision_tree" in text


def test_names_do_not_steer_the_terminal() -> None:
    text = printed(samples.values(WORST, shares=(0.3,)))
    assert not any(bad in text for bad in ("\x1b", "\u202e", "\x00"))


def test_the_line_for_programs_names_all_that_broke_it() -> None:
    found = samples.values(WORST, shares=(0.3,))
    line = gate_line(outcome(found, unmeasured=("somewhere",)))
    assert "\n" not in line
    told = json.loads(line)
    not_checked = [f"somewhere, threat active, defence none: not tested, {NO_ATTACK}"]
    assert (told["gate"], told["holds"], told["not_checked"]) == (GATE.text, False, not_checked)
    assert {one["column"] for one in told["broken_by"] if one["protocol"] != "somewhere"} <= set(WORST)
    assert [one["measured"] for one in told["broken_by"] if one["protocol"] == "somewhere"] == [None]
    assert told["broken_by"][0]["value"] == 1.0


def test_what_was_not_measured_is_told_to_programs_too() -> None:
    gate = Gate.parse("max_label_accuracy<0.6")
    told = json.loads(gate_line(outcome(samples.values(shares=(0.3,)), gate)))
    assert told["broken_by"][0]["measured"] is None
    assert "no attack here guesses labels" in told["broken_by"][0]["words"]


def test_junit_has_a_case_per_condition_and_situation() -> None:
    found = samples.values(shares=(0.3,)) + samples.values(shares=(0.3,), defence="rounding")
    root = ElementTree.fromstring(junit(outcome(found, unmeasured=("secure_boost",))))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "3", "1")
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases] == [
        *["max_gain<0.2"] * 3,
        *["min_accuracy>0.8"] * 2,
        "measured",
    ]
    assert [case.find("failure") is not None for case in cases] == [True] * 3 + [False] * 3
    assert cases[-1].find("skipped") is not None


def test_junit_survives_hostile_names() -> None:
    found = samples.values(WORST, shares=(0.3,), data="<&\x00>")
    text = junit(outcome(found, unmeasured=("<&\x1b>",)))
    assert ElementTree.fromstring(text.encode("utf-8")).get("failures") == "2"
    assert "<script>" not in text
