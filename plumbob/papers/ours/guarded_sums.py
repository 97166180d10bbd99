"""Sums of encrypted boosting: what their bins are worth in values (P17), and what the defences of weng2022, Section 6 do (P18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import every
from plumbob.scoring.intervals import mean_and_margin

MAPPED = {"smoke": {"breast": 280}, "paper": {"breast": 280, "credit": 1_800}}  # rows trained on, all of them with a code
KNOWN = {"smoke": (30, 100), "paper": (10, 30, 100, 300)}
MAPPED_TRIALS = {"smoke": 1, "paper": 5}
BUDGETS_OF_SUMS = {"smoke": (10.0,), "paper": (10_000.0, 1_000.0, 100.0, 10.0, 1.0)}
GUARDED_ROWS = {"smoke": 60, "paper": 280}
GUARDED_TRIALS = {"smoke": 1, "paper": 3}
CODES_READ = {"magic_numbers": "reverse_sum", "labelled_groups": "code_decoding"}


def values_of_bins(scale: Scale, seed: int) -> CheckResult:
    """Values from bins and rows of other people, against regression on the attacker's own columns of these rows."""
    measured: dict[str, object] = {}
    answers, figures = [], []
    for data, rows in MAPPED[scale].items():
        curves: dict[str, list[float]] = {"bin mapping": [], "own columns": []}
        for known in KNOWN[scale]:
            findings = [f for f in _mapped(data, rows, known, scale, seed) if f.attack.startswith("bin_mapping")]
            r2 = [float(np.mean([c.r2 for c in f.score.columns])) for f in findings]
            gain, margin = mean_and_margin([f.score.gain for f in findings])
            near = float(np.mean([c.within_5 for f in findings for c in f.score.columns]))
            rank = float(np.mean([c.rank for f in findings for c in f.score.columns]))
            own = [_own_r2(f) for f in findings]
            measured[f"{data}, {known} known"] = {
                "r2": round(float(np.mean(r2)), 3),
                "own columns r2": round(float(np.mean(own)), 3),
                "within 5 %": round(near, 3),
                "rank": round(rank, 3),
                "gain": f"{gain:.0%} ± {margin:.0%}" if np.isfinite(margin) else f"{gain:.0%}",
            }
            curves["bin mapping"].append(float(np.mean(r2)))
            curves["own columns"].append(float(np.mean(own)))
            if known == 100:
                answers.append(gain - (margin if np.isfinite(margin) else 0.0) > 0.0)
        x = [float(known) for known in KNOWN[scale]]
        figures.append(ClaimFigure(data, "known rows", "R2", [Curve(name, x, y) for name, y in curves.items()]))
    expected = "with 100 rows of other people the values are better than any guess without messages"
    why = "gain is over the best guess without messages, which has the same rows; R2 is the mean over columns"
    return CheckResult(every(answers), measured, expected, MAPPED_TRIALS[scale], why, tuple(figures))


def _own_r2(finding: Finding) -> float:
    """R2 of the best guess without messages that also has the known rows, over all columns together."""
    constant = finding.score.baselines["best_constant"]
    return 1.0 - finding.score.baselines["no_message"] / constant


def _mapped(data: str, rows: int, known: int, scale: Scale, seed: int) -> list[Finding]:
    return _audited(
        {
            "data": {"name": data, "sample": 4_000} if data == "credit" else data,
            "protocols": [_boosting(trees=1, depth=3, key_bits=0, code="magic_numbers")],
            "threats": [{"name": "active-training", "auxiliary_rows": min(known, 280 if data == "breast" else known)}],
            "attacks": ["bin_mapping"],
            "trials": MAPPED_TRIALS[scale],
            "rows": rows,
        },
        seed,
    )


def guarded_sums(scale: Scale, seed: int) -> CheckResult:
    """Each defence against both codes and the sides of splits: what is learnt, and accuracy, bytes and seconds."""
    measured: dict[str, object] = {}
    read: dict[str, float] = {}
    for code, attack in CODES_READ.items():
        findings = _guarded(code, scale, seed)
        for defence, found in group(findings, lambda f: f.defence).items():
            right = {name: _learnt(parts) for name, parts in group(found, lambda f: f.attack).items()}
            read[f"{defence}, {code}"] = right[attack]
            if code == "magic_numbers":
                measured[defence] = {
                    "bins": round(right[attack], 3),
                    "sides": {name.partition("(")[2].rstrip(")") or "adaptive": round(v, 3) for name, v in right.items() if "split" in name},
                    "accuracy": round(float(np.mean([f.model_accuracy or 0.0 for f in found])), 3),
                    "megabytes": round(float(np.mean([f.bytes_sent for f in found])) / 1e6, 1),
                    "seconds": round(float(np.mean([f.train_seconds for f in found])), 1),
                }
            else:
                measured[defence] |= {"bins of labelled groups": round(right[attack], 3)}  # type: ignore[operator]  # a dictionary
    blind = [value for name, value in read.items() if "blinding" in name]
    open_ones = [value for name, value in read.items() if "blinding" not in name]
    measured["bins read without blinding, least"] = min(open_ones)
    measured["bins read with blinding, most"] = max(blind)
    expected = "codes are read in full under shared indicators and under noise at every budget, and not under blinding"
    why = (
        "the sums that are opened are the same, and noise is drawn in units of the gradients' precision, above the code; "
        "blinding beside noise covers the bits below"
    )
    return CheckResult(min(open_ones) == 1.0 and max(blind) < 0.2, measured, expected, GUARDED_TRIALS[scale], why)


def _learnt(findings: Sequence[Finding]) -> float:
    """Of codes the share of claimed bins that are right; of sides the mean rank correlation of the columns."""
    if findings[0].score.metric == "orders":
        return float(np.mean([1.0 - f.score.error for f in findings]))
    return float(np.mean([column.rank for f in findings for column in f.score.columns]))


def _guarded(code: str, scale: Scale, seed: int) -> list[Finding]:
    noise = [{"name": "dp_histograms", "settings": {"epsilon": budget}} for budget in BUDGETS_OF_SUMS[scale]]
    sides = [{"name": "split_sides", "settings": {"adaptive": knows}} for knows in (True, False)]
    return _audited(
        {
            "data": "breast",
            "protocols": [_boosting(trees=3, depth=3, key_bits=1_024, packed=False, code=code)],
            "threats": ["active-training"],
            "attacks": [CODES_READ[code], *(sides if code == "magic_numbers" else [])],
            "defences": ["none", "shared_indicators", *noise, "blinding", "dp_histograms+blinding"],
            "trials": GUARDED_TRIALS[scale],
            "rows": GUARDED_ROWS[scale],
        },
        seed,
    )


def _boosting(**settings: Any) -> Mapping[str, Any]:
    return {"name": "secure_boost", "settings": settings}


def _audited(plan: Mapping[str, Any], seed: int) -> list[Finding]:
    made = make_plan({**plan, "unknown": 0.5, "seed": seed, "ceiling": False}).filled()
    findings = attacked(list(run(made, open_source(made.data, seed))))
    failed = [f for f in findings if f.score.failed]
    assert not failed, failed[0].score.failed
    return findings


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P17", "values of bins", "bins become values by rows of other people", values_of_bins),
    Claim("plumbob", "P18", "defences of sums", "shared indicators and noise leave codes readable; blinding does not", guarded_sums),
)
