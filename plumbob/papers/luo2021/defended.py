"""luo2021, Fig 11: what rounding and dropout do to its attacks. Claims L13 to L15.

L14 and L15 have three trials where the paper has ten. Errors of ESA on rounded scores differ by powers of ten from trial to
trial, so L13 compares their logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.chosen import quick
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import YesNoOpen, below, every, times_below
from plumbob.papers.luo2021.generative import GENERATIVE_ROWS, GENERATIVE_TRIALS, curve, mean, word

ROUNDING_DEFENCES = (("rounding", "digits", 1), ("rounding", "digits", 3))
PANELS = ("bank", "drive")  # the text does not name the two data sets of Fig 11
Panels = Mapping[str, Mapping[float, Mapping[str, list[float]]]]  # data, share of unknown columns, case: errors


@cache
def defended(
    data: str,
    protocol: str,
    attack: str,
    defences: tuple[tuple[str, str, Any], ...],
    scale: Scale,
    seed: int,
    trials: int | None = None,
) -> tuple[Finding, ...]:
    """One panel of Fig 11, as an audit plan; each defence is its name and one setting ('' for the default)."""
    known = attack != "equation_solving"  # ESA as published; an attacker who knows of rounding trains the generator
    chosen = [{"name": name} | ({"settings": {key: value}} if key else {}) for name, key, value in defences]
    plan = make_plan(
        {
            "data": {"name": data} | ({"sample": GENERATIVE_ROWS[scale]} if GENERATIVE_ROWS[scale] else {}),
            "protocols": [protocol],
            "attacks": [quick(attack).knowing(known).model_dump()],
            "defences": ["none", *chosen],
            "unknown": [0.2, 0.6] if scale == "smoke" else [0.2, 0.4, 0.6],
            "trials": trials or GENERATIVE_TRIALS[scale],
            "seed": seed,
            "ceiling": False,
        }
    ).filled()
    plan = plan.model_copy(update={"rows": None})
    return tuple(run(plan, open_source(plan.data, seed)))


def rounding_breaks_esa(scale: Scale, seed: int) -> CheckResult:
    """Fig 11a-b: hardly means still below random, and by less than a tenth of random's error above plain ESA."""
    trials = GENERATIVE_TRIALS[scale] if scale == "smoke" else 10
    panels = _panels("logistic_regression", "equation_solving", ROUNDING_DEFENCES, scale, seed, trials)
    answers: dict[str, YesNoOpen] = {}
    for data, by in panels.items():
        for share, cases in by.items():
            plain, coarse, fine, random = (
                cases["none"],
                cases["rounding (digits=1)"],
                cases["rounding (digits=3)"],
                cases["uniform"],
            )
            answers[f"{data} {share:.0%}: 0.1 worse than random"] = times_below(random, coarse)
            limit = [one + 0.1 * other for one, other in zip(plain, random, strict=True)]
            answers[f"{data} {share:.0%}: 0.001 hardly matters"] = times_below(fine, limit)
    expected = "rounding to 0.1 is worse than random; to 0.001 hardly matters"
    check = _panel_check(panels, answers, expected, scale, "ESA")
    why = f"{check.why}; a score below the last digit becomes 0, and ESA takes its logarithm" if check.why else ""
    return replace(check, trials=trials, why=why)


def rounding_spares_generative(scale: Scale, seed: int) -> CheckResult:
    """Fig 11c-d: within 20 % of the error without rounding."""
    panels = _panels("logistic_regression", "generative_regression", ROUNDING_DEFENCES, scale, seed)
    return _panel_check(panels, _at_most(panels, 1.2), "error within 20 % of that without", scale, "GRNA")


def dropout_hardly_helps(scale: Scale, seed: int) -> CheckResult:
    """Fig 11e-f: 0 to 50 % more error."""
    panels = _panels("neural_network", "generative_regression", (("dropout", "", None),), scale, seed)
    answers = _at_most(panels, 1.5)
    for data, by in panels.items():
        plain, dropped = ([e for cases in by.values() for e in cases[name]] for name in ("none", "dropout"))
        answers[f"{data}: raises the error"] = below(plain, dropped)
    return _panel_check(panels, answers, "error 0 to 50 % above that without", scale, "GRNA")


def _panels(
    protocol: str,
    attack: str,
    defences: tuple[tuple[str, str, Any], ...],
    scale: Scale,
    seed: int,
    trials: int | None = None,
) -> Panels:
    panels: dict[str, dict[float, dict[str, list[float]]]] = {}
    for data in PANELS:
        found = defended(data, protocol, attack, defences, scale, seed, trials)
        panels[data] = {}
        for share, findings in group(found, lambda f: round(f.unknown, 4)).items():
            cases = {name: [f.score.error for f in fs] for name, fs in group(findings, lambda f: f.defence).items()}
            plain = [f.score for f in findings if f.defence == "none"]
            cases["uniform"] = [s.baselines["uniform"] for s in plain]
            cases["best constant"] = [s.baselines["best_constant"] for s in plain]
            panels[data][share] = cases
    return panels


def _at_most(panels: Panels, factor: float) -> dict[str, YesNoOpen]:
    return {
        f"{data} {share:.0%}: {name}": below(errors, [factor * e for e in cases["none"]])
        for data, by in panels.items()
        for share, cases in by.items()
        for name, errors in cases.items()
        if name not in ("none", "uniform", "best constant")
    }


def _panel_check(
    panels: Panels, answers: Mapping[str, YesNoOpen], expected: str, scale: Scale, attack: str
) -> CheckResult:
    measured: dict[str, object] = {}
    figures = []
    for data, by in panels.items():
        curves = []
        for name in next(iter(by.values())):
            lists = [cases[name] for cases in by.values()]
            measured[f"{data} {name}"] = [mean(errors) for errors in lists]
            if name in ("uniform", "best constant"):
                curves.append(Curve(name, list(by), [mean(errors) for errors in lists]))
            else:
                curves.append(curve(f"{attack}, {name}", by, lists))
        measured[f"{data} R2 without a defence"] = [
            1 - mean(cases["none"]) / mean(cases["best constant"]) for cases in by.values()
        ]
        figures.append(ClaimFigure(data, "share of unknown columns", "MSE per feature", curves))
    measured |= {name: word(answer) for name, answer in answers.items()}
    wrong = [name for name, answer in answers.items() if answer is False]
    why = f"not so: {', '.join(wrong)}" if wrong else ""
    return CheckResult(every(answers.values()), measured, expected, GENERATIVE_TRIALS[scale], why, tuple(figures))


CLAIMS: tuple[Claim, ...] = tuple(
    Claim("luo2021", *parts)
    for parts in (
        ("L13", "Fig 11a-b", "rounding to 0.1 defeats ESA, rounding to 0.001 hardly matters", rounding_breaks_esa),
        ("L14", "Fig 11c-d", "rounding does not stop GRNA", rounding_spares_generative),
        ("L15", "Fig 11e-f", "dropout raises GRNA's error only slightly", dropout_hardly_helps),
    )
)
