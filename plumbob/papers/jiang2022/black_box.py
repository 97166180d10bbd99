"""jiang2022 in the black box: a shadow model first. Claims J9 to J11."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from plumbob.attacks.auxiliary.shadow_inversion import ShadowInversion, threshold
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, FloatArray, Party
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import YesNoOpen, below, every
from plumbob.papers.jiang2022.federations import (
    GIA_ROUNDS,
    JIANG_DATA,
    JIANG_HIDDEN_LAYERS,
    JIANG_TRIALS,
    SIMILAR_SHARE,
    JiangCase,
    JiangResult,
    case,
    curve,
    errors,
    gia,
    guess_curves,
    judged,
    mostly,
    result,
    shown,
    word,
)
from plumbob.scoring.intervals import mean_and_margin
from plumbob.threats import AuxiliaryRows, Threat


def shadow(scale: Scale, structure: tuple[int, ...] | None = None, solve: bool = True) -> ShadowInversion:
    steps, rate = GIA_ROUNDS[scale]
    rounds = 400 if scale == "smoke" else 1_500
    return ShadowInversion.preset(
        "fast", structure=structure, solve=solve, fitting=rounds, steps=steps, rate=rate, finish=0
    )


def black_box(rows: int) -> Threat:
    return Threat("black box", "", (AuxiliaryRows(rows),))


def shadows_reach_white_box(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] if scale == "smoke" else 5
    shares = (0.1, 0.25, 0.5, 1.0)
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    figures = []
    settings = [("bank", "linear"), ("robot", "linear"), ("satellite", "2 sigmoid"), ("drive", "2 sigmoid")]
    for data, kind in settings:
        entry = registry.find(data)
        tau = threshold(entry.features, entry.classes, () if kind == "linear" else JIANG_HIDDEN_LAYERS)
        cases = [case(data, kind, 0.3, scale, seed, trial) for trial in range(trials)]
        white = [result(gia(scale), one, one.view()) for one in cases]
        found = []
        for share in shares:
            rows = max(1, round(share * tau))
            found.append([result(shadow(scale), one, one.view(black_box(rows)), seed=seed) for one in cases])
            measured[f"{data} {share:g} tau = {rows} rows"] = shown(found[-1])
        measured[f"{data} white box"] = shown(white)
        ratio = float(np.mean(errors(found[-1])) / np.mean(errors(white)))
        quarter = float(np.mean(errors(found[1])) / np.mean(errors(white)))
        measured[f"{data} ratio at tau, 0.25 tau"] = f"{ratio:.2f}, {quarter:.2f}"
        excess = below([(1 + SIMILAR_SHARE) * error for error in errors(white)], errors(found[-1]))
        answers.append(True if ratio <= 1 + SIMILAR_SHARE else False if excess else None)
        answers.append(below(errors(found[1]), [one.uniform for one in found[1]]))
        answers.append(0.25 * tau < (10 if kind == "linear" else 25))
        figures.append(
            ClaimFigure(
                f"{data}, {'LR' if kind == 'linear' else 'NN'}, 30 % unknown",
                "auxiliary rows / tau",
                "MSE per feature",
                [
                    curve("black box", shares, found),
                    curve("white box", shares, [white] * len(shares)),
                    *guess_curves(shares, found),
                ],
            )
        )
    expected = f"at tau within {SIMILAR_SHARE:.0%} of the white box; at 0.25 tau (< 10 rows LR, < 25 NN) below random"
    return CheckResult(every(answers), measured, expected, trials, "", tuple(figures))


def made_up(real: Federation, rows: int, kind: str, rng: np.random.Generator) -> Federation:
    """Random rows of no real person, with independent cells; both parties store them like a client."""

    def draw(columns: int) -> FloatArray:
        size = (rows, columns)
        if kind == "uniform":
            return rng.random(size)
        return rng.standard_normal(size) if kind == "normal" else rng.laplace(size=size)

    parties = tuple(Party(p.name, p.columns, draw(len(p.columns))) for p in real.parties)
    return replace(real, parties=parties, label=np.zeros(rows, dtype=np.int64))


KINDS_OF_ROWS = ("original", "uniform", "normal", "laplace")


def made_up_rows(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] if scale == "smoke" else 5
    measured: dict[str, object] = {}
    worse: list[YesNoOpen] = []
    better: list[YesNoOpen] = []
    figures = []
    ratios = (0.1, 0.5) if scale == "smoke" else (0.1, 0.5, 0.9)
    for data in ("robot",) if scale == "smoke" else JIANG_DATA:
        curves: dict[str, list[tuple[float, float]]] = {}
        chance_curve = []
        for ratio in ratios:
            cases = [case(data, "linear", ratio, scale, seed, trial) for trial in range(trials)]
            rate = {}
            for kind, solve in product(KINDS_OF_ROWS, (False, True)):
                results = shadowed(cases, data, kind, solve, scale, seed)
                rate[kind, solve] = [r.accuracy for r in results]
                mean = mean_and_margin(rate[kind, solve])
                name = f"{kind}, {'least squares' if solve else 'Adam'}"
                curves.setdefault(name, []).append(mean)
                measured[f"{data} r={ratio} {name}"] = f"accuracy {mean[0]:.2f}; {shown(results)}"
            chance = [
                judged(generator(seed, "chance", t).random(one.truth.shape), one, True, seed).accuracy
                for t, one in enumerate(cases)
            ]
            chance_curve.append(float(np.mean(chance)))
            for kind in KINDS_OF_ROWS[1:]:
                worse.append(below(rate[kind, False], rate["original", False]))
                better.append(below(chance, rate[kind, False]))
        drawn = [Curve(n, list(ratios), [m for m, _ in line], [w for _, w in line]) for n, line in curves.items()]
        drawn.append(Curve("uniform", list(ratios), chance_curve))
        figures.append(ClaimFigure(data, "share of unknown columns", "attack accuracy", drawn))
    parts = {"made-up rows mostly worse": mostly(worse), "mostly better than random": mostly(better)}
    measured = {name: word(answer) for name, answer in parts.items()} | measured
    why = (
        "evaluated with the shadow fitted as published (Adam). By least squares a linear shadow is exact from d_pas rows of any "
        "distribution, as long as no score is rounded to 0"
    )
    expected = "accuracy below that of original rows, above random guessing"
    return CheckResult(every(parts.values()), measured, expected, trials, why, tuple(figures))


def shadowed(cases: list[JiangCase], data: str, kind: str, solve: bool, scale: Scale, seed: int) -> list[JiangResult]:
    """Shadow inversion of every case, with as many rows of this kind as determine a linear shadow."""
    rows = registry.find(data).features  # tau at r = 1
    results = []
    for trial, one in enumerate(cases):
        rng = generator(seed, "made up", kind, trial)
        others = None if kind == "original" else made_up(one.trainer, rows, kind, rng)
        results.append(result(shadow(scale, solve=solve), one, one.view(black_box(rows), others), True, seed))
    return results


def wrong_structure(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] if scale == "smoke" else 5
    structures: dict[str, tuple[int, ...]] = {
        "LR": (),
        "8": (8,),
        "8-8 (same)": JIANG_HIDDEN_LAYERS,
        "16-16": (16, 16),
        "8-8-8": (8, 8, 8),
    }
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    figures = []
    ratios = (0.3,) if scale == "smoke" else (0.1, 0.3, 0.5, 0.7)
    for data in ("robot", "satellite") if scale == "smoke" else JIANG_DATA:
        entry = registry.find(data)
        tau = threshold(entry.features, entry.classes, JIANG_HIDDEN_LAYERS)
        found: dict[str, list[list[JiangResult]]] = {name: [] for name in structures}
        for ratio in ratios:
            cases = [case(data, "2 sigmoid", ratio, scale, seed, trial) for trial in range(trials)]
            for name, structure in structures.items():
                attack = shadow(scale, structure)
                found[name].append([result(attack, one, one.view(black_box(tau)), seed=seed) for one in cases])
                measured[f"{data} r={ratio} {name}"] = shown(found[name][-1])
        pooled = {name: [e for results in of for e in errors(results)] for name, of in found.items()}
        means = {name: float(np.mean(values)) for name, values in pooled.items()}
        worst = max(means, key=lambda name: means[name])
        best = min(means, key=lambda name: means[name])
        answers.append(every(below(pooled[name], pooled["LR"]) for name in structures if name != "LR"))
        answers.append(every(below(pooled["8-8 (same)"], pooled[name]) for name in ("LR", "8-8-8")))
        measured[f"{data} worst, best"] = f"{worst}, {best}"
        curves = [curve(name, ratios, results) for name, results in found.items()]
        curves += guess_curves(ratios, found["8-8 (same)"])
        figures.append(ClaimFigure(data, "share of unknown columns", "MSE per feature", curves))
    expected = "LR worst; the same structure best; three layers worse"
    return CheckResult(every(answers), measured, expected, trials, "", tuple(figures))


CLAIMS: tuple[Claim, ...] = tuple(
    Claim("jiang2022", *parts)
    for parts in (
        (
            "J9",
            "Fig 11",
            "the black-box attack matches the white-box attack at tau auxiliary rows",
            shadows_reach_white_box,
        ),
        ("J10", "Fig 12", "random auxiliary rows are worse than real ones but better than guessing", made_up_rows),
        ("J11", "Fig 13", "a linear shadow model of a network is worst, the same architecture best", wrong_structure),
    )
)
