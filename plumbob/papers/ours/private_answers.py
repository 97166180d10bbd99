"""Differential privacy on predictions (luo2021, Section VII calls it unsuitable): what it costs and what it leaves (P12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import every

BUDGETS = {"smoke": (1.0, 10.0), "paper": (0.1, 0.3, 1.0, 3.0, 10.0)}
BUDGET_TRIALS = {"smoke": 1, "paper": 4}
SMALL_BUDGET = 1.0  # up to which a promise is usually taken to mean something
MECHANISMS = ("dp_scores", "randomised_response")
ATTACK = "posterior_mean"  # the strongest on logistic regression; it knows the mechanism


def budgets_cost(scale: Scale, seed: int) -> CheckResult:
    """Accuracy, and the share of guessing's error that the attack removes, by budget.

    The attacker has the model and no complete rows: with them guessing is so good here that noisy answers add nothing to it.
    """
    measured: dict[str, object] = {}
    lost: list[bool] = []
    better: list[bool] = []
    figures = []
    for data in ("robot", "satellite"):
        cases = _cases(data, scale, seed)
        usual = float(np.mean([f.usual_class or 0.0 for f in cases["none"]]))
        right = {name: _mean([f.model_accuracy or 0.0 for f in found]) for name, found in cases.items()}
        gains = {name: _mean([f.score.gain for f in found]) for name, found in cases.items()}
        measured[data] = {"usual class": round(usual, 3)} | {
            name: f"accuracy {right[name]:.3f}, gain {gains[name]:.3f}" for name in cases
        }
        for budget in BUDGETS[scale]:
            laplace, response = (right[_title(name, budget)] for name in MECHANISMS)
            better.append(response >= laplace)
            if budget <= SMALL_BUDGET:
                lost += [one - usual < 0.5 * (right["none"] - usual) for one in (laplace, response)]
        figures += [_figure(f"{data}: {what}", scale, by) for what, by in (("accuracy", right), ("gain", gains))]
    measured["most of the lead is lost at budgets up to 1"] = every(lost)
    measured["randomised response is at least as accurate as Laplace noise"] = every(better)
    why = "the promise is about any two rows, so it takes from every answer what it says of the row: the prediction itself"
    expected = "at budgets up to 1 most of the model's lead over the most frequent class is lost"
    return CheckResult(every(lost), measured, expected, BUDGET_TRIALS[scale], why, tuple(figures))


def _cases(data: str, scale: Scale, seed: int) -> Mapping[str, Sequence[Finding]]:
    """Findings by defence."""
    private = [{"name": name, "settings": {"epsilon": budget}} for name in MECHANISMS for budget in BUDGETS[scale]]
    plan = make_plan(
        {
            "data": {"name": data, "sample": 1_000 if scale == "smoke" else 3_000},
            "protocols": ["logistic_regression"],
            "threats": ["active"],
            "attacks": [ATTACK],
            "defences": ["none", "label_only", *private],
            "unknown": 0.3,
            "trials": BUDGET_TRIALS[scale],
            "rows": 300 if scale == "smoke" else 500,
            "seed": seed,
            "ceiling": False,
        }
    ).filled()
    found = group(run(plan, open_source(plan.data, seed)), lambda f: f.defence)
    assert set(found) == {"none", "label_only", *(_title(n, b) for n in MECHANISMS for b in BUDGETS[scale])}, set(found)
    return found


def _title(name: str, budget: float) -> str:
    return f"{name} (epsilon={budget})"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _figure(title: str, scale: Scale, by: Mapping[str, float]) -> ClaimFigure:
    budgets = list(BUDGETS[scale])
    curves = [Curve(name, budgets, [by[_title(name, budget)] for budget in budgets]) for name in MECHANISMS]
    curves += [Curve(name, budgets, [by[name]] * len(budgets)) for name in ("none", "label_only")]
    return ClaimFigure(title, "budget epsilon", title.partition(": ")[2], curves)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P12", "private scores", "differential privacy of answers costs the model", budgets_cost),
)
