"""What we claim ourselves, checked like any paper's claim."""

from __future__ import annotations

import os

import numpy as np

from plumbob.audit.finding import Finding
from plumbob.audit.judge import group
from plumbob.audit.plan import make_plan
from plumbob.audit.run import run
from plumbob.audit.source import open_source
from plumbob.papers.claims import Check, Claim, Scale
from plumbob.papers.evidence import below, every

HALF = {("drive", 0.5): 0.6}  # allowed ratios other than one half
DATA = ("satellite", "robot", "bank", "drive")
UNKNOWN = (0.3, 0.5, 0.9)


def half_of_esa(scale: Scale, seed: int) -> Check:
    """Posterior mean against ESA on the same views; three batches of ten random splits of the columns."""
    trials = 3 if scale == "smoke" else 30
    measured: dict[str, object] = {}
    answers = []
    for data in DATA:
        plan = make_plan(
            {
                "data": {"name": data} | ({"sample": 2_000} if scale == "smoke" else {}),
                "protocols": ["logistic_regression"],
                "attacks": ["equation_solving", "posterior_mean"],
                "unknown": list(UNKNOWN),
                "trials": trials,
                "rows": 300 if scale == "smoke" else 2_000,
                "seed": seed,
            }
        ).filled()
        findings = [f for part in run(plan, open_source(plan.data, seed), workers=os.cpu_count() or 1) for f in part]
        for share, found in zip(UNKNOWN, group(findings, lambda f: round(f.unknown, 6)).values(), strict=True):
            error = {a: float(np.mean([f.score.error for f in found if f.attack == a])) for a in plan.fitting_attacks}
            ours, theirs = error["posterior_mean"], error["equation_solving"]
            r2 = float(np.mean([f.score.r2 for f in found if f.attack == "posterior_mean"]))
            seconds = float(np.mean([f.seconds for f in found if f.attack == "posterior_mean"]))
            batches = [_ratio([f for f in found if f.trial // 10 == batch]) for batch in range((trials + 9) // 10)]
            by_ten = " ".join(f"{ratio:.3f}" for ratio in batches)
            measured[f"{data} {share:.0%}"] = (
                f"{ours:.4f} / {theirs:.4f} = {ours / theirs:.3f} (by tens {by_ten}), R2 {r2:.2f}, {seconds:.1f} s"
            )
            limit = HALF.get((data, share), 0.5)
            excess = below(*([f.score.error * w for f in found if f.attack == a] for a, w in _weighed(limit)))
            answers.append(True if ours <= limit * theirs else excess)
            if (data, share) == ("satellite", 0.5):
                answers.append(r2 > 0.7)
    expected = "MSE of ours / of ESA at most 0.5 (0.6 on drive at 50 %); R2 > 0.7 on satellite at 50 %"
    return Check(every(answers), measured, expected, trials)


def _ratio(found: list[Finding]) -> float:
    """Our mean error over ESA's."""
    ours, theirs = (
        np.mean([f.score.error for f in found if f.attack == name]) for name in ("posterior_mean", "equation_solving")
    )
    return float(ours / theirs)


def _weighed(limit: float) -> tuple[tuple[str, float], tuple[str, float]]:
    return ("posterior_mean", 1.0), ("equation_solving", limit)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P1", "posterior mean", "the posterior mean has at most half of ESA's error", half_of_esa),
)
