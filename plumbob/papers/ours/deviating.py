"""Audits of SecureBoost from a plan of one line, with an active party that chooses what it sends (P14)."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import inapplicable
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every

PUBLISHED = {2: "100 %", 4: "38 to 100 %"}  # Table 6, two supergroups: rows with a number that were found, by base
REAL = {
    "smoke": {"key_bits": 1_024, "trees": 2, "depth": 1},
    "paper": {},
}  # settings of the protocol; none: its defaults
BLINDED = {"key_bits": 1_024, "trees": 4, "blinding": True}
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"trials": 1, "unknown": [0.1], "rows": 60},
    "paper": {"trials": 1, "unknown": [0.3]},
}


def one_line(scale: Scale, seed: int) -> CheckResult:
    """`protocols: [secure_boost]` on breast: what the default threats find, and what is left with a threat that only looks."""
    sizes = SIZES[scale] | {"seed": seed, "ceiling": False}
    protocol = {"name": "secure_boost", "settings": REAL[scale]} if REAL[scale] else "secure_boost"
    plan = make_plan({"protocols": [protocol]} | sizes).filled()
    found = _by_attack(plan)
    base_4 = {"name": "reverse_sum", "settings": {"base": 4}}
    more = _by_attack(
        make_plan({"protocols": [protocol], "threats": ["active-low-bits"], "attacks": [base_4]} | sizes).filled()
    )
    honest = make_plan({"protocols": [protocol], "threats": ["active"]} | sizes).filled()
    blinded = {"name": "secure_boost", "settings": BLINDED | ({} if scale == "paper" else {"trees": 1, "depth": 1})}
    drowned = _by_attack(make_plan({"protocols": [blinded]} | sizes).filled())
    success = {name: _success(findings) for name, findings in (found | more).items()}
    left = {name: _success(findings) for name, findings in drowned.items()}
    measured: dict[str, object] = {
        "reverse sum, values whose bin it finds (base 2; the paper: 100 %)": success["reverse_sum"],
        f"reverse sum at base 4 (the paper: {PUBLISHED[4]})": success["reverse_sum (base=4)"],
        "code decoding": success["code_decoding"],
        "model accuracy, honest and with codes": _accuracies(found, ("split_sides", "reverse_sum", "code_decoding")),
        "a threat that only looks": [one.words for one in inapplicable(honest)],
        "blinding: reverse sum, code decoding, chosen gradients": [
            left.get(name, 0.0) for name in ("reverse_sum", "code_decoding", "chosen_gradients")
        ],
        "blinding: model accuracy, honest and with chosen gradients": _accuracies(
            drowned, ("split_sides", "chosen_gradients")
        ),
    }
    answers = [
        success["reverse_sum"] == 1,
        len(inapplicable(honest)) == 3,
        left["chosen_gradients"] == 1,
        max(left["reverse_sum"], left["code_decoding"]) < 0.2,
    ]
    expected = (
        "reverse sum runs and finds every bin at base 2; with a threat that only looks it is not applicable; blinding stops "
        "codes in the low bits and not gradients that are codes"
    )
    return CheckResult(every(answers), measured, expected, 1)


def _by_attack(plan: Plan) -> dict[str, list[Finding]]:
    """Findings by attack, under whichever threat it was made."""
    return group(attacked(run(plan, open_source(plan.data, plan.seed))), lambda finding: finding.attack)


def _success(findings: list[Finding]) -> float:
    """Share of the hidden values whose bin was named, and rightly."""
    shares = [c.claims * (1 - c.error) / f.score.rows for f in findings for c in f.score.columns]
    return round(float(np.mean(shares)), 4)


def _accuracies(found: dict[str, list[Finding]], names: tuple[str, ...]) -> list[float]:
    return [round(float(np.mean([f.model_accuracy or 0.0 for f in found[name]])), 4) for name in names]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob", "P14", "secure boost in one line", "a plan of one line runs reverse sum on secure boost", one_line
    ),
)
