"""A sweep on a table that nobody tuned for: no defence is called safe because one weak attack failed."""

from __future__ import annotations

import pytest

from plumbob.app import Result, run_audit
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.planning.sweep import THREATS
from plumbob.report.answer import answers, overall
from plumbob.report.protection import advice
from plumbob.scoring.leak_levels import Level
from tests.auditing import clinic

ROUNDED = "rounding (digits=1)"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("clinic")
    defences = ["none", {"name": "rounding", "settings": {"digits": 1}}, "label_only", "hide_model"]
    plan = clinic.plan(folder, trials=1, defences=defences, threats=list(THREATS["prediction"]))
    return run_audit(plan, folder / "out")


def test_rounding_to_one_digit_is_not_recommended(swept: Result) -> None:
    """Without auxiliary rows its attacks find little; with a hundred, columns come out."""
    (made,) = frontiers(swept.findings, swept.conclusion)
    option = made.option(ROUNDED)
    assert option is not None
    assert not option.safe
    assert option.level.leaks
    assert made.recommended != ROUNDED
    assert made.reason != "safe"
    assert "take " not in advice(made)


def test_hiding_the_model_is_judged_by_who_has_rows(swept: Result) -> None:
    (made,) = frontiers(swept.findings, swept.conclusion)
    hidden = made.option("hide_model")
    assert hidden is not None
    assert not hidden.safe
    assert hidden.gaps == ()  # what no attack fits is covered by the attacker who knows more


def test_headline_gate_and_situations_agree(swept: Result) -> None:
    found = answers(swept.conclusion)
    assert len(found) == 4 * 3  # every defence against every threat
    assert overall(found).startswith("Yes: 4 of 4 columns leak")
    assert swept.conclusion.level is Level.EXACT
    assert not Gate.parse("leaks==0").outcome(swept.findings, swept.conclusion).holds


def test_the_ceiling_is_below_no_attack_that_learners_can_follow(swept: Result) -> None:
    """Where scores are rounded, nothing but learning is left, and learners with all rows find what attacks find."""
    rounded = [one for j in swept.conclusion.situations if j.situation.defence == ROUNDED for one in j.standings]
    leaking = [one for one in rounded if one.level is Level.LEAK and one.ceiling is not None]
    assert leaking
    assert all(one.ceiling is not None and one.ceiling.high > 0 for one in leaking)
