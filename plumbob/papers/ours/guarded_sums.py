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
PRICED_ROWS = {"smoke": 50, "paper": 120}  # trained on with real ciphertexts of 1,024 bits
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
    measured: dict[str, dict[str, object]] = {}
    read: dict[str, list[float]] = {"in the clear": [], "blinded": []}
    for code, attack in CODES_READ.items():
        for defence, found in group(_guarded(code, scale, seed), lambda f: f.defence).items():
            told = measured.setdefault(defence, {})
            by_attack = group(found, lambda f: f.attack)
            told[f"bins by {attack}"] = right = round(_right(by_attack[attack]), 3)
            read["blinded" if "blinding" in defence else "in the clear"].append(right)
            sides = {name: parts for name, parts in by_attack.items() if name != attack}
            told |= {_sides(name): round(_rank(parts), 3) for name, parts in sides.items()}
            told["accuracy"] = round(float(np.mean([f.model_accuracy or 0.0 for f in found])), 3)
    for finding in _priced(scale, seed):
        told = measured[finding.defence]
        told["megabytes"], told["seconds"] = round(finding.bytes_sent / 1e6, 2), round(finding.train_seconds, 1)
    least, most = min(read["in the clear"]), max(read["blinded"])
    expected = "codes are read in full under shared indicators and under noise at every budget, and not under blinding"
    why = (
        "the sums that are opened are the same, and noise is drawn in units of the gradients' precision, above the code; "
        "blinding beside noise covers the bits below"
    )
    summary: dict[str, object] = {"least read without blinding": least, "most read with blinding": most}
    return CheckResult(least == 1.0 and most < 0.2, {**measured, **summary}, expected, GUARDED_TRIALS[scale], why)


def _right(findings: Sequence[Finding]) -> float:
    """Of all cells, those whose bin was named rightly."""
    return float(np.mean([c.exact * c.claims / f.score.rows for f in findings for c in f.score.columns]))


def _rank(findings: Sequence[Finding]) -> float:
    """The mean rank correlation of the columns with their guesses."""
    return float(np.mean([column.rank for f in findings for column in f.score.columns]))


def _sides(attack: str) -> str:
    """How the sides are called that somebody reads who knows the defence, or who does not."""
    return "order by sides, unaware" if "adaptive=False" in attack else "order by sides"


def _guarded(code: str, scale: Scale, seed: int) -> list[Finding]:
    noise = [{"name": "dp_histograms", "settings": {"epsilon": budget}} for budget in BUDGETS_OF_SUMS[scale]]
    sides = [{"name": "split_sides", "settings": {"adaptive": knows}} for knows in (True, False)]
    return _audited(
        {
            "data": "breast",
            "protocols": [_boosting(trees=5, depth=3, key_bits=0, packed=False, code=code)],
            "threats": ["active-training"],
            "attacks": [CODES_READ[code], *(sides if code == "magic_numbers" else [])],
            "defences": ["none", "shared_indicators", *noise, "blinding", "dp_histograms+blinding"],
            "trials": GUARDED_TRIALS[scale],
            "rows": GUARDED_ROWS[scale],
        },
        seed,
    )


def _priced(scale: Scale, seed: int) -> list[Finding]:
    """One tree under a real key: what each defence adds to bytes and seconds."""
    return _audited(
        {
            "data": "breast",
            "protocols": [_boosting(trees=1, depth=3, key_bits=1_024, packed=False, code="magic_numbers")],
            "threats": ["active-training"],
            "attacks": ["reverse_sum"],
            "defences": ["none", "shared_indicators", "blinding", "dp_histograms+blinding"],
            "trials": 1,
            "rows": PRICED_ROWS[scale],
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
