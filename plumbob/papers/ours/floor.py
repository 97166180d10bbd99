"""The floor (`complete_rows`) beside every specialised attack on the same messages, all protocols (P39).

An attacker who knows 100 rows of other people may take the floor or any attack that fits. Of each pair the difference of gains is
told column by column, with its standard error over columns and trials: who is to be asked first, and where the floor alone
would say too little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.targets.xgboost.xgboost_columns import installed

FLOOR, KNOWN = "complete_rows", 100
ERRORS = 2.0  # standard errors within which the floor counts as no weaker
SCORES = (
    "logistic_regression",
    "decision_tree",
    "random_forest",
    "boosted_trees",
    "neural_network",
    "split_models",
)
TRAINED: Mapping[str, Mapping[str, Any]] = {
    "encrypted_logistic_regression": {"key_bits": 0, "batch_size": 32, "epochs": 8},
    "secure_boost": {"key_bits": 0, "trees": 5},
    "split_network": {"epochs": 10},
    "split_training": {"rounds": 150},
    "xgboost_columns": {"trees": 5},
}
TABLE = {"name": "credit", "sample": 1_200}
ROWS: Mapping[Scale, int] = {"smoke": 100, "paper": 300}
TRIALS: Mapping[Scale, int] = {"smoke": 1, "paper": 2}


def asked(protocol: str, scale: Scale, seed: int) -> dict[str, Any]:
    """Who knows the model and 100 rows where predictions are attacked; in training the coordinator too, and a passive party."""
    known = {"name": "passive-known-people"}
    training = [{"name": "corrupted-coordinator", "auxiliary_rows": KNOWN}, known]
    return {
        "data": TABLE if scale == "paper" else {"name": "breast"},
        "protocols": [{"name": protocol, "settings": dict(TRAINED.get(protocol, {}))}],
        "threats": training if protocol in TRAINED else ["active-auxiliary"],
        "unknown": [0.3],
        "trials": TRIALS[scale],
        "rows": ROWS[scale],
        "effort": "quick",
        "ceiling": False,
        "seed": seed,
    }


def gains(trials: Sequence[Finding]) -> dict[tuple[int, str], float]:
    """By trial and target: the share of guessing's error that an attack removes, of the label too; 0 where it adds to it."""
    found: dict[tuple[int, str], float] = {}
    for one in trials:
        found |= {(one.trial, column.name): max(0.0, column.gain) for column in one.score.columns}
        right, usual = one.score.label_accuracy, one.score.label_baseline
        if right is not None and usual is not None and usual < 1:
            found[one.trial, "the label"] = max(0.0, (right - usual) / (1 - usual))
    return found


def compared(findings: Sequence[Finding]) -> Iterator[tuple[str, str, float, float, float, float, int]]:
    """Threat, attack, both mean gains, the floor's lead and its error, and over how many columns and trials."""
    for threat, parts in group(attacked(findings), lambda f: f.threat).items():
        by_attack = group(parts, lambda f: f.attack)
        floor = gains(by_attack.pop(FLOOR, []))
        for attack, trials in by_attack.items():
            theirs = gains([one for one in trials if not one.score.failed])
            labels = any(one.score.label_accuracy is not None for one in trials)
            both = sorted(set(floor) & set(theirs))
            both = [key for key in both if (key[1] == "the label") == (labels and threat.startswith("passive"))]
            if not both:
                continue
            lead = np.array([floor[key] - theirs[key] for key in both])
            error = float(lead.std(ddof=1)) / math.sqrt(len(lead)) if len(lead) > 1 else math.inf
            means = [float(np.mean([of[key] for key in both])) for of in (floor, theirs)]
            yield threat, attack, means[0], means[1], float(lead.mean()), error, len(both)


def _protocol(protocol: str, scale: Scale, seed: int) -> Part:
    plan = make_plan(asked(protocol, scale, seed)).filled()
    measured: dict[str, Any] = {}
    for threat, attack, floor, theirs, lead, error, pairs in compared(run(plan, open_source(plan.data, seed))):
        beaten = lead < -ERRORS * error
        measured[f"{protocol} / {threat} / {attack}"] = {
            "floor": round(floor, 3),
            "attack": round(theirs, 3),
            "lead of the floor": round(lead, 3),
            "standard error": round(error, 3) if math.isfinite(error) else None,
            "pairs": pairs,
            "stronger": attack if beaten else "neither, within two errors" if lead <= ERRORS * error else "the floor",
        }
    return Part(measured, [bool(measured)])


def floor(scale: Scale, seed: int) -> CheckResult:
    """Every protocol: the table is complete if in each the floor meets a specialised attack."""
    names = [*SCORES, *(name for name in TRAINED if name != "xgboost_columns" or installed())]
    names = names if scale == "paper" else [names[0], names[-2]]
    parts = [part(name, partial(_protocol, name, scale, seed)) for name in names]
    measured = {key: value for one in parts for key, value in one.measured.items()}
    stronger = [
        key for key, value in measured.items() if value["stronger"] not in ("the floor", "neither, within two errors")
    ]
    why = f"stronger than the floor by more than two standard errors: {'; '.join(stronger)}" if stronger else ""
    expected = "the floor's gain at least each attack's less two standard errors, or the attack is named as stronger"
    return CheckResult(every([a for one in parts for a in one.answers]), measured, expected, TRIALS[scale], why)


CLAIMS = (
    Claim(
        "plumbob", "P39", "complete rows", "where the floor is stronger than specialised attacks, and where not", floor
    ),
)
