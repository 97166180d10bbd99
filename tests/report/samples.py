"""Synthetic findings that look like an audit: several attacks, shares and trials, and one case of every verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.run import training_losses
from plumbob.scoring.column_ceiling import CEILING, LABEL, ColumnCeiling
from plumbob.scoring.score import ColumnScore, Score, score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.worlds import picture_world

NAMES = ("income", "age", "balance", "campaign", "previous", "duration", "month", "job", "housing", "loan")
ATTACKS = ("equality_solving", "box_solving", "generative_regression")
HOSTILE = (
    "<script>window.hacked=1</script>",
    "\"><img src=x onerror='window.hacked=2'>",
    "שם עמודה בעברית",
    "gehalt\nin\teuro\x1b[31m",
    "[bold red]markup[/]",
    "a" * 300,
    "\u202eevil",
    "列" * 40,
    "'); window.hacked=3; //",
    "",
)


def column(
    name: str, error: float, rng: np.random.Generator, *, metric: str = "values", rank: float = 0.0
) -> ColumnScore:
    """One column whose best baseline errs by about 0.04 (or 0.4 for branches)."""
    base = float((0.4 if metric == "branches" else 0.04) * rng.uniform(0.98, 1.02))
    exact = error == 0
    return ColumnScore(
        name=name,
        error=error,
        best_baseline="best_constant",
        baseline_error=base,
        gain=1 - error / base,
        gain_error=0.0 if exact else 0.02,
        r2=1 - error / base,
        rank=1.0 if exact else rank,
        own_rank=0.05,
        exact=1.0 if exact else 1 - error if metric == "branches" else 0.0,
        within_1=1.0 if exact else 0.1,
        within_5=1.0 if exact else 0.4,
        within_10=1.0 if exact else 0.6,
        mean_error=0.01,
        own_correlation=float(np.clip(0.5 - 0.25 * error / base + rng.normal(0, 0.05), 0, 1)),
        score_correlation=float(np.clip(0.4 - 0.2 * error / base + rng.normal(0, 0.05), 0, 1)),
        claims=1000,
        tie=float(np.clip(rank or np.sqrt(max(0.0, 1 - error / base)), 0.0, 1.0)) if metric == "values" else None,
        tie_error=1 / np.sqrt(1000),
    )


def finding(columns: Sequence[ColumnScore], *, trial: int = 0, metric: str = "values", **setting: Any) -> Finding:
    """One trial over the given columns."""
    error = float(np.mean([c.error for c in columns]))
    best = float(np.mean([c.baseline_error for c in columns]))
    values = {"uniform": 3.1 * best, "normal": 2.6 * best, "own_mean": 1.25 * best, "own_row_mean": 1.4 * best}
    branches = {"random_path": 1.2 * best}
    judged = Score(
        metric=metric,
        error=error,
        baselines=(branches if metric == "branches" else values) | {"best_constant": best},
        gain=1 - error / best,
        r2=1 - error / best,
        bound=0.31,
        sharp_bound=0.155,
        attack_accuracy=None if metric == "branches" else 0.81,
        constant_accuracy=None if metric == "branches" else 0.6,
        row_error_quantiles=(0.001, 0.01, 0.05),
        candidates=2.5 if metric == "branches" else None,
        rows=1000,
        columns=tuple(columns),
    )
    fixed: dict[str, Any] = {
        "key": f"{trial:04d}",
        "data": "bank",
        "protocol": "logistic_regression",
        "threat": "active",
        "attack": "box_solving",
        "defence": "none",
        "unknown": 0.3,
        "known_columns": 9,
        "unknown_columns": len(columns),
        "classes": 2,
        "trial": trial,
        "seed": trial,
        "model_accuracy": 0.89,
        "withheld": 0.0,
        "seconds": 0.4,
        "peak_mb": 120.0,
    }
    return Finding(**(fixed | setting), score=judged)


def capped(findings: list[Finding], high: float = 0.03, *, label: bool = False, **more: Any) -> list[Finding]:
    """The same with a ceiling for every column of every situation and trial: learners find no more than `high`."""
    places = {(f.data, f.protocol, f.threat, f.defence, f.unknown, f.trial): f for f in findings}
    found = list(findings)
    for place, f in places.items():
        names = [*dict.fromkeys(column.name for column in f.score.columns), *([LABEL] if label else [])]
        told = tuple(
            ColumnCeiling(
                name,
                own=0.1,
                full=0.1 + high / 2,
                gain=high / 2,
                low=0.0,
                high=high,
                learner="ridge",
                rows=1_000,
                **more,
            )
            for name in names
        )
        judged = replace(f.score, metric=CEILING, columns=(), ceilings=told)
        found.append(replace(f, key=f"ceiling {place}", attack=CEILING, score=judged))
    return found


def values(
    names: Sequence[str] = NAMES,
    *,
    shares: Sequence[float] = (0.2, 0.4, 0.6),
    trials: int = 5,
    attacks: Sequence[str] = ATTACKS,
    **setting: Any,
) -> list[Finding]:
    """The first column is recovered, a third leaks, one leaks its order, the others do not leak."""
    rng = np.random.default_rng(7)
    strength = {"equality_solving": 1.6, "box_solving": 0.55, "generative_regression": 0.8}
    found = []
    for share in shares:
        for attack in attacks:
            for trial in range(trials):
                columns = []
                for j, name in enumerate(names):
                    leaks = 0 < j < 1 + len(names) / 3
                    factor = (0.25 if leaks else 1.06) + 0.5 * j / len(names)
                    factor *= strength.get(attack, 1.0) * (0.7 + share)
                    factor = factor if leaks else max(1.03, factor)
                    exact = j == 0 and attack == "box_solving"
                    noisy = 0.04 * factor * float(rng.normal(1, 0.05))
                    error = 0.0 if exact else max(1e-4 if leaks else 0.041, noisy)  # guessing errs by 0.0408 at most
                    order = 0.6 if j == len(names) - 1 and attack == "generative_regression" else 0.0
                    columns.append(column(name, error, rng, rank=order))
                found.append(finding(columns, trial=trial, attack=attack, unknown=share, **setting))
    return found


def every_level() -> list[Finding]:
    """A column at each level, in an attack that looks for two-valued columns."""
    rng = np.random.default_rng(11)
    some = {"rows_exact": 40, "rows_exact_chance": 0.2, "rows_missed": 1000, "tie": 0.0}
    columns = [
        column("recovered", 0.0, rng),
        replace(column("recovered for some", 0.05, rng), **some),
        column("leaking", 0.02, rng),
        column("in order", 0.045, rng, rank=0.6),
        replace(column("undecided", 0.045, rng), gain=0.05, gain_error=0.1, tie=0.0),
        replace(column("not tested", 0.045, rng), kind="whole numbers"),
        column("safe", 0.045, rng),
        replace(column("held", 0.0, rng), held="a copy of 'income'"),
    ]
    hits = {"fixed_1": 0.04, "fixed_5": 0.12, "fixed_10": 0.3}
    columns = [replace(one, **hits) for one in columns]
    return capped([finding(columns, trial=trial, attack="binary_columns") for trial in range(3)])


def branches(*, shares: Sequence[float] = (0.2, 0.4, 0.6), trials: int = 5) -> list[Finding]:
    """An attack on a tree: sides of thresholds instead of values."""
    rng = np.random.default_rng(8)
    found = []
    for share in shares:
        for trial in range(trials):
            rest = [float(0.1 + 0.04 * j + 0.1 * share + rng.normal(0, 0.01)) for j in range(1, len(NAMES))]
            wrong = [0.0, *rest]
            columns = [column(name, e, rng, metric="branches") for name, e in zip(NAMES, wrong, strict=True)]
            found.append(
                finding(
                    columns,
                    trial=trial,
                    metric="branches",
                    protocol="decision_tree",
                    attack="path_restriction",
                    unknown=share,
                )
            )
    return found


def harmless(names: Sequence[str] = NAMES, trials: int = 5) -> list[Finding]:
    """Nothing leaks."""
    rng = np.random.default_rng(9)
    return [
        finding(
            [column(name, float(0.045 * rng.normal(1, 0.03)), rng) for name in names],
            trial=trial,
            attack="generative_regression",
            defence="rounding(digits=1)",
        )
        for trial in range(trials)
    ]


def audit() -> list[Finding]:
    """Three scenes: regression, tree, and regression with a defence that works."""
    return values() + branches() + harmless()


def sweep(trials: int = 4, **setting: Any) -> list[Finding]:
    """Six defences under a white and a black box: one that works, one that costs, one that does nothing."""
    rng = np.random.default_rng(10)
    kinds = {
        "none": (0.5, 0.95),
        "rounding (digits=2)": (0.6, 0.95),
        "label_only": (1.2, 0.948),
        "noise (sigma=1.0)": (1.3, 0.7),
        "verification": (0.9, 0.3),
        "hide_model": (1.1, 0.95),
    }
    found = []
    for defence, (factor, accuracy) in kinds.items():
        for trial in range(trials):
            for white in (True, False) if defence != "hide_model" else (False,):
                errors = [max(1e-4, 0.04 * (factor if white else 1.1) * rng.normal(1, 0.02)) for _ in NAMES]
                columns = [column(name, float(error), rng) for name, error in zip(NAMES, errors, strict=True)]
                fixed: dict[str, Any] = {
                    "defence": defence,
                    "threat": "active" if white else "active-black-box-auxiliary",
                    "attack": "box_solving" if white else "shadow_inversion",
                    "white_box": white,
                    "model_accuracy": float(accuracy + rng.normal(0, 0.002)),
                    "train_seconds": 0.2,
                    "predict_seconds": 0.5 if defence == "verification" else 0.1,
                    "bytes_sent": 40_000,
                }
                found.append(finding(columns, trial=trial, **(fixed | setting)))
    return found


def pictures(defence: str = "none", noise: float = 0.02, **changes: Any) -> list[Finding]:
    """Two trials of an attack by steps that recovers pictures and labels."""
    log = picture_world(losses=np.linspace(2, 0.1, 300))
    view = cut(log, THREATS["coordinator"])
    truth = truth_of(log, view)
    found = []
    for trial in range(2):
        rng = np.random.default_rng(trial)
        values = truth.values + rng.normal(0, noise, truth.values.shape)
        path = ((0, np.full(values.shape, 0.5)), (100, values))
        judged = score(Guess(truth.names, values, labels=truth.label, path=path), truth, view, rng)
        base = finding(judged.columns, trial=trial, protocol="split_training", threat="coordinator")
        whole = {"unknown": 1.0, "known_columns": 0, "unknown_columns": truth.values.shape[1]}
        changed = (
            whole | {"attack": "tile_recovery", "defence": defence, "training_loss": training_losses(log)} | changes
        )
        found.append(replace(base, key=f"{defence}{trial}", score=judged, **changed))
    return found
