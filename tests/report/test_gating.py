"""What is said of a gate: on the terminal, as JSON and as JUnit XML."""

from __future__ import annotations

import io
import json
from xml.etree import ElementTree

from rich.console import Console

from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.running.finding import Finding
from plumbob.report.gating import gate_line, junit, print_gate
from tests.report import samples

GATE = Gate.parse("max_gain<0.2 and min_accuracy>0.8")
WORST = (*samples.HOSTILE, "nul\x00 and \ufffe\uffff and \ud800", "]]>&amp;")


def untried(*places: str) -> list[Untried]:
    return [Untried(place, "no attack of this plan applies") for place in places]


def printed(findings: list[Finding], gate: Gate = GATE, unmeasured: tuple[str, ...] = ()) -> str:
    file = io.StringIO()
    print_gate(gate.outcome(findings, untried=untried(*unmeasured)), Console(file=file, width=500))
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
    assert "no attack of this plan applies: decision_tree" in printed(samples.values(), unmeasured=("decision_tree",))


def test_names_do_not_steer_the_terminal() -> None:
    text = printed(samples.values(WORST, shares=(0.3,)))
    assert not any(bad in text for bad in ("\x1b", "\u202e", "\x00"))


def test_the_line_for_programs_names_all_that_broke_it() -> None:
    found = samples.values(WORST, shares=(0.3,))
    line = gate_line(GATE.outcome(found, untried=untried("somewhere")))
    assert "\n" not in line
    told = json.loads(line)
    assert (told["gate"], told["holds"], told["not_checked"]) == (GATE.text, False, ["somewhere"])
    assert {one["column"] for one in told["broken_by"]} <= set(WORST)
    assert told["broken_by"][0]["value"] == 1.0
    assert json.loads(gate_line(GATE.outcome([])))["holds"] is True


def test_what_was_not_measured_is_told_to_programs_too() -> None:
    gate = Gate.parse("max_label_accuracy<0.6")
    told = json.loads(gate_line(gate.outcome(samples.values(shares=(0.3,)))))
    assert told["broken_by"][0]["measured"] is None
    assert "no attack here guesses labels" in told["broken_by"][0]["words"]


def test_junit_has_a_case_per_condition_and_situation() -> None:
    found = samples.values(shares=(0.3,)) + samples.values(shares=(0.3,), defence="rounding")
    root = ElementTree.fromstring(junit(GATE.outcome(found, untried=untried("secure_boost"))))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("5", "2", "1")
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases] == [
        *["max_gain<0.2"] * 2,
        *["min_accuracy>0.8"] * 2,
        "measured",
    ]
    assert [case.find("failure") is not None for case in cases] == [True, True, False, False, False]
    assert cases[-1].find("skipped") is not None


def test_junit_survives_hostile_names() -> None:
    found = samples.values(WORST, shares=(0.3,), data="<&\x00>")
    text = junit(GATE.outcome(found, untried=untried("<&\x1b>")))
    assert ElementTree.fromstring(text.encode("utf-8")).get("failures") == "1"
    assert "<script>" not in text
