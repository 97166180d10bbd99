"""Audits of split models without a coordinator read what the parties' answers give away."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbob.app import run_audit
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import Unit, attack_cases, gaps
from plumbob.data import registry
from plumbob.scoring.leak_levels import Level

ON_ANSWERS = {"answer_solving", "shadow_answers"}


def attacks_of(**settings: object) -> set[str]:
    plan = make_plan(
        {
            "data": "vehicle",
            "protocols": [{"name": "split_models", "settings": settings}],
            "threats": ["active", "active-black-box-auxiliary"],
        }
    ).filled()
    return {case.attack.name for case in attack_cases(plan, Unit(plan.protocols[0], 0)) if case.attack is not None}


@pytest.mark.parametrize("settings", [{"coordinator": False}, {"coordinator": False, "layers": 0}])
def test_a_default_audit_runs_what_reads_answers_where_they_cross(settings: dict[str, object]) -> None:
    assert attacks_of(**settings) >= ON_ANSWERS


@pytest.mark.parametrize("settings", [{}, {"sums": "shared"}, {"sums": "paillier"}])
def test_and_nowhere_else(settings: dict[str, object]) -> None:
    assert not attacks_of(**settings) & ON_ANSWERS


def test_equation_solving_is_offered_on_linear_parts_alone() -> None:
    assert "equation_solving" in attacks_of(layers=0)
    assert "equation_solving" not in attacks_of(layers=1)
    plan = make_plan({"data": "vehicle", "protocols": ["split_models"], "attacks": ["answer_solving"]}).filled()
    (gap,) = gaps(plan)
    assert gap.protocol == "split_models"


def test_its_verdict_is_exact_where_the_scores_alone_say_less(tmp_path: Path) -> None:
    """Ten classes, two parties of three columns each: their answers give them away."""
    names = registry.load("digits").names
    plan = {
        "data": {
            "name": "digits",
            "sample": 400,
            "parties": {
                "clinic": {"columns": [*names[20:23]]},
                "shop": {"columns": [*names[35:38]]},
                "bank": {"columns": [*names[:20], *names[23:35], *names[38:]]},
            },
            "active": "bank",
        },
        "protocols": [
            {"name": "split_models", "settings": {"epochs": 20, "coordinator": coordinator}}
            for coordinator in (False, True)
        ],
        "threats": ["active"],
        "attacks": ["answer_solving", {"name": "gradient_inversion", "preset": "small"}],
        "trials": 1,
        "rows": 60,
        "ceiling": False,
    }
    result = run_audit(plan, tmp_path / "out")
    alone, helped = (one.level for one in result.conclusion.situations)
    assert alone is Level.EXACT
    assert helped is not Level.EXACT
