"""Every state of a verdict through the command: headline, exit code, every measure of a gate, assessment and findings agree."""

import json
from pathlib import Path

import pytest
import yaml

from plumbob.app import run_audit
from tests.commands import plumbob

PLAN = {
    "data": "breast",
    "protocols": ["logistic_regression"],
    "attacks": ["posterior_mean"],
    "unknown": [0.2],
    "trials": 1,
    "rows": 200,
}
QUIET = {"defences": [{"name": "noise", "settings": {"sigma": 10}}]}
STATES = {
    "leak": ({}, "Yes"),
    "undecided": (QUIET | {"limit": 0.01}, "Not known"),
    "not tested": (QUIET | {"limit": 0.9, "threats": ["active", "active-black-box-auxiliary"]}, "Not known"),
    "failed": ({"attack_seconds": 0.001}, "Not known"),
    "none": (QUIET | {"limit": 0.9}, "No leak above"),
}
GATE = ("leaks==0", "leaking_columns==0", "exact_columns==0", "max_gain<0.95")
BROKEN = {
    "leak": {"leaks==0", "leaking_columns==0"},
    "undecided": {"leaks==0", "leaking_columns==0"},  # of gains what is possible is compared
    "not tested": set(GATE),
    "failed": set(GATE),
    "none": set(),
}


@pytest.mark.parametrize("state", STATES)
def test_headline_exit_code_gate_and_assessment_agree(state: str, tmp_path: Path) -> None:
    changes, headline = STATES[state]
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(PLAN | changes))
    words = ("audit", "plan.yaml", "--out", "out")
    bare = plumbob(*words, cwd=tmp_path)
    assert bare.returncode == 0, bare.stderr  # an audit that ran is no error, whatever it found
    first = next(line for line in bare.stdout.splitlines() if line.strip())
    assert headline in first
    gated = plumbob(*words, "--json", "--gate", " and ".join(GATE), cwd=tmp_path)  # nothing is computed again
    told = json.loads(gated.stdout.splitlines()[-1])
    assert gated.returncode == (1 if BROKEN[state] else 0), gated.stderr
    assert told["holds"] == (not BROKEN[state])
    broken = {breach["condition"] for breach in told["broken_by"]}
    assert broken >= BROKEN[state] if state == "leak" else broken == BROKEN[state]
    page = (tmp_path / "out" / "report.html").read_text()
    assert headline in page
    assert ("No leak above" in page.partition("</h1>")[0]) == (state == "none")
    if state == "failed":
        assert "failed" in bare.stdout


def test_columns_that_a_tree_never_asks_for_are_judged_by_who_has_rows(tmp_path: Path) -> None:
    """Path restriction says nothing of them; complete rows of other people can tell what the told sides say of them."""
    plan = {"data": "breast", "protocols": "decision_tree", "unknown": [0.4], "trials": 1}
    done = run_audit(plan | {"threats": ["active", "active-auxiliary"]}, tmp_path / "out")
    levels = {
        judged.situation.threat: {one.verdict.column: one.level.value for one in judged.standings}
        for judged in done.conclusion.situations
    }
    untold = [column for column, level in levels["active"].items() if level == "not tested"]
    assert untold
    with_rows = [levels["active-auxiliary"][column] for column in untold]
    assert "not tested" not in with_rows
    assert "none" in with_rows
