"""What we claim ourselves, checked like any paper's claim."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from plumbob.attacks import name_of
from plumbob.attacks.scores.generative_regression import GenerativeRegression
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.chosen import quick
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import every
from plumbob.protocols.base import predict
from plumbob.protocols.scores.random_forest import RandomForest
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, cut

STRONGEST = "lattice_decoding"
RATIOS_ALLOWED = {("drive", 0.5): 0.6}  # allowed ratios other than one half
SCORES_DATA = ("satellite", "robot", "bank", "drive")
SCORES_UNKNOWN = (0.3, 0.5, 0.9)


def by_unknown(
    asked: dict[str, Any], shares: Sequence[float], trials: int, seed: int
) -> Mapping[float, Sequence[Finding]]:
    """The findings of a plan, share by share of unknown columns; floors only, for attacks are compared with attacks."""
    plan = make_plan(asked | {"unknown": list(shares), "trials": trials, "seed": seed, "ceiling": False}).filled()
    found = run(plan, open_source(plan.data, seed), workers=os.cpu_count() or 1)
    return group(found, lambda f: round(f.unknown, 6))


def half_of_esa(scale: Scale, seed: int) -> CheckResult:
    """Our solvers against ESA on the same views, on ten random splits of the columns.

    Judged is lattice decoding, which gives the posterior mean where nothing is determined; that alone stands beside it.
    """
    trials = 3 if scale == "smoke" else 10
    measured: dict[str, object] = {}
    answers = []
    for data in SCORES_DATA:
        asked = {
            "data": {"name": data} | ({"sample": 2_000} if scale == "smoke" else {}),
            "protocols": ["logistic_regression"],
            "attacks": ["equation_solving", "posterior_mean", STRONGEST],
            "rows": 300 if scale == "smoke" else 2_000,
        }
        by_share = by_unknown(asked, SCORES_UNKNOWN, trials, seed)
        for share, found in zip(SCORES_UNKNOWN, by_share.values(), strict=True):
            error = {
                a: float(np.mean([f.score.error for f in found if f.attack == a]))
                for a in dict.fromkeys(f.attack for f in found)
            }
            ours, theirs = error[STRONGEST], error["equation_solving"]
            r2 = float(np.mean([f.score.r2 for f in found if f.attack == STRONGEST]))
            exact = float(np.mean([c.exact for f in found if f.attack == STRONGEST for c in f.score.columns]))
            seconds = float(np.mean([f.seconds for f in found if f.attack == STRONGEST]))
            measured[f"{data} {share:.0%}"] = (
                f"{ours:.4f} / {theirs:.4f} = {ours / theirs:.3f}, R2 {r2:.2f}, "
                f"{exact:.0%} of cells exact, {seconds:.1f} s; posterior mean alone {error['posterior_mean'] / theirs:.3f}"
            )
            limit = RATIOS_ALLOWED.get((data, share), 0.5)
            answers.append(ours <= limit * theirs)
            if (data, share) == ("satellite", 0.5):
                answers.append(r2 > 0.7)
    expected = "MSE of ours / of ESA at most 0.5 (0.6 on drive at 50 %); R2 > 0.7 on satellite at 50 %"
    return CheckResult(every(answers), measured, expected, trials)


def stronger(protocol: str, ours: str, rivals: tuple[str, ...], scale: Scale, seed: int) -> CheckResult:
    """R^2 of our attack against the published ones on the same views; above 0 means: something about individuals."""
    trials, ratios = (1, (0.5,)) if scale == "smoke" else (3, SCORES_UNKNOWN)
    measured: dict[str, object] = {}
    answers, figures, empty = [], [], []
    for data in ("robot",) if scale == "smoke" else SCORES_DATA:
        asked = {
            "data": {"name": data, "sample": 1_000 if scale == "smoke" else 12_000},
            "protocols": [protocol],
            "attacks": [quick(name).model_dump() for name in (*rivals, ours)],
            "rows": 150 if scale == "smoke" else 1_000,
        }
        curves: dict[str, list[float]] = {}
        for share, found in by_unknown(asked, ratios, trials, seed).items():
            r2 = {a: [f.score.r2 for f in part] for a, part in group(found, lambda f: name_of(f.attack)).items()}
            means = {attack: float(np.mean(values)) for attack, values in r2.items()}
            seconds = float(np.mean([f.seconds for f in found if f.attack == ours]))
            told = ", ".join(f"{attack} {mean:.2f}" for attack, mean in means.items())
            measured[f"{data} {share:.0%}"] = f"{told}; ours {seconds:.0f} s"
            answers += [means[ours] > means[rival] for rival in rivals]
            empty += [f"{data} {share:.0%}"] if max(means[rival] for rival in rivals) <= 0 else []
            for attack, mean in means.items():
                curves.setdefault(attack, []).append(max(mean, -1.0))
        lines = [Curve(attack, list(ratios), values) for attack, values in curves.items()]
        figures.append(
            ClaimFigure(data, "share of unknown columns", "R2 against the best constant, at least -1", lines)
        )
    why = f"the published attacks learn nothing about individuals (R2 <= 0) on: {', '.join(empty)}" if empty else ""
    return CheckResult(
        every(answers), measured, "R2 of ours above that of each published attack", trials, why, tuple(figures)
    )


def stand_ins(scale: Scale, seed: int) -> CheckResult:
    """GRNA on forests with the stand-in fitted evenly over the box, as printed, and near real rows, on the same views."""
    trials = 1 if scale == "smoke" else 2
    measured: dict[str, object] = {}
    answers = []
    for data in ("breast",) if scale == "smoke" else ("bank", "credit", "drive", "news"):
        errors: dict[str, list[float]] = {}
        for trial in range(trials):
            rng = generator(seed, "P5", data, trial)
            federation = split_at_random(registry.load(data), 0.4, rng)
            train, rest = halves(federation.label, rng)
            trainer, target = federation.rows(train[:6_000]), federation.rows(rest[:4_000])
            forest = RandomForest().fit(trainer.values, trainer.label, len(trainer.classes), rng)
            log = predict(RandomForest(), forest, target, trainer)
            view = cut(log, LUO2021)
            truth = truth_of(log, view).values
            for near in (False, True):
                guess = (
                    GenerativeRegression.preset("fast", near=near)
                    .run(view, generator(seed, "P5 attack", data, trial))
                    .values
                )
                assert guess is not None
                errors.setdefault("near" if near else "even", []).append(float(((guess - truth) ** 2).mean()))
            drawn = generator(seed, "P5 uniform", data, trial).random(truth.shape)
            errors.setdefault("random", []).append(float(((drawn - truth) ** 2).mean()))
        means = {name: float(np.mean(values)) for name, values in errors.items()}
        measured[data] = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
        answers.append(means["near"] < means["even"])
    return CheckResult(
        every(answers), measured, "MSE lower with a stand-in fitted near real rows; 40 % unknown", trials
    )


STRONGER_ON_NETWORKS = partial(
    stronger, "neural_network", "linearised_posterior", ("gradient_inversion", "generative_regression")
)
FORESTS = partial(stronger, "random_forest", "forest_boxes", ("generative_regression",))

CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P1", "lattice decoding", "our solvers have at most half of ESA's error", half_of_esa),
    Claim(
        "plumbob", "P2", "linearised posterior", "on networks, ours learns more than GIA and GRNA", STRONGER_ON_NETWORKS
    ),
    Claim("plumbob", "P3", "forest boxes", "on forests, ours learns more than GRNA", FORESTS),
    Claim(
        "plumbob",
        "P5",
        "generative regression",
        "GRNA on forests depends on the surrogate network",
        stand_ins,
    ),
)
