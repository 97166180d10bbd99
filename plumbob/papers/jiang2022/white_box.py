"""Jiang, Zhou, Grossklags: Comprehensive analysis of privacy leakage in VFL during prediction (PoPETs 2022).

The prediction phase in the white box, by gradient inversion. Claims J1 to J8. The attacks
run as printed: Adam from zero, no finish, except where a claim is about the minimum itself (J2, "near 0" in J5; J3 shows
both). At paper scale the rate is the paper's 0.001; at smoke scale ten times that, with a tenth of the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.scores.equation_solving import EquationSolving
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import halves, split_at_random
from plumbob.lazy_imports import stats
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import YesNoOpen, below, every, rises
from plumbob.papers.jiang2022.federations import (
    JIANG_DATA,
    JIANG_TRIALS,
    RATIOS,
    SIMILAR_SHARE,
    JiangResult,
    case,
    curve,
    errors,
    gia,
    guess_curves,
    judged,
    mostly,
    protocol_of,
    result,
    shown,
    table,
    to_the_end,
    word,
)
from plumbob.protocols.base import column_positions
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.metrics import mean_correlation

TABLE_1_ACCURACY = {  # Table 1: LR, network
    "bank": (0.9109, 0.9506),
    "robot": (0.6710, 0.8946),
    "satellite": (0.8152, 0.8275),
    "drive": (0.8037, 0.9241),
}
NEAR_ZERO = 0.01  # "close to 0", as an MSE of features in [0, 1]
GIA_TO_THE_END = "GIA to D = 0"


def accuracies(scale: Scale, seed: int) -> CheckResult:
    trials = 1 if scale == "smoke" else 3
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    for data in JIANG_DATA:
        whole = table(data, 4_000 if scale == "smoke" else None, seed)
        for kind, paper in zip(("linear", "2 sigmoid"), TABLE_1_ACCURACY[data], strict=True):
            right = []
            for trial in range(trials):
                federation = split_at_random(whole, 0.5, generator(seed, "columns", trial))
                train, rest = halves(federation.label, generator(seed, "rows", trial), 0.8)
                trainer, target = federation.rows(train), federation.rows(rest)
                blocks = list(column_positions(federation).values())
                protocol = protocol_of(kind, 30 if scale == "smoke" else 60)
                fit_rng = generator(seed, "model", data, kind, trial)
                model = protocol.fit(trainer.values, trainer.label, len(federation.classes), fit_rng, blocks)
                right.append(float(np.mean(np.argmax(model.scores(target.values), axis=1) == target.label)))
            mean, margin = mean_and_margin(right)
            name = "LR" if kind == "linear" else "NN"
            measured[f"{data} {name}"] = f"{mean:.4f} ± {margin:.4f} (paper {paper:.4f})"
            near = abs(mean - paper) <= 0.03
            answers.append(near if near or scale == "paper" else None)
    why = (
        "the paper does not state its training settings; ours is Adam with a decaying rate for networks and the optimum for LR. "
        "bank's .9506 is not reached with this structure, and LR at its optimum is better on drive than the paper's"
    )
    return CheckResult(every(answers), measured, "Table 1 within .03", trials, why)


def exact_below_threshold(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale]
    measured: dict[str, object] = {}
    answers = []
    plain = gia(scale)
    for data in JIANG_DATA:
        classes = registry.find(data).classes
        for unknown in sorted({1, classes - 1}):
            cases = [case(data, "lr", unknown, scale, seed, trial) for trial in range(trials)]
            worst = {
                name: max(result(attack, one, one.view()).error for one in cases)
                for name, attack in (("ESA", EquationSolving()), ("GIA", to_the_end(scale)), ("Adam alone", plain))
            }
            answers += [worst["ESA"] < 1e-6, worst["GIA"] < 1e-6]
            measured[f"{data} d={unknown}"] = ", ".join(f"{name} {error:.1e}" for name, error in worst.items())
    why = (
        f"GIA is run until D is 0: Gauss-Newton after Adam. Adam alone after {plain.steps:,} rounds at {plain.rate:g} is "
        "still on its way (last figure)"
    )
    return CheckResult(every(answers), measured, "MSE < 1e-6 for d_pas <= k - 1", trials, why)


def below_esa(scale: Scale, seed: int) -> CheckResult:
    trials = 3 if scale == "smoke" else 5
    measured: dict[str, object] = {}
    lower: list[YesNoOpen] = []
    higher: list[YesNoOpen] = []
    ratios: dict[str, YesNoOpen] = {}
    gaps, figures = [], []
    attacks: dict[str, Attack] = {
        "ESA": EquationSolving(),
        "GIA-MSE": gia(scale),
        "GIA-KLD": gia(scale, "kld"),
        GIA_TO_THE_END: to_the_end(scale),
    }
    lower_at_end: list[YesNoOpen] = []
    for data in JIANG_DATA:
        found: dict[str, list[list[JiangResult]]] = {name: [] for name in attacks}
        for ratio in RATIOS[scale]:
            cases = [case(data, "lr", ratio, scale, seed, trial) for trial in range(trials)]
            for name, attack in attacks.items():
                found[name].append([result(attack, one, one.view(), True, seed) for one in cases])
            esa, mse, kld, end = (found[name][-1] for name in attacks)
            if len(cases[0].truth.T) >= len(cases[0].target.classes):
                lower.append(below(errors(mse), errors(esa)))
                lower_at_end.append(below(errors(end), errors(esa)))
                higher.append(below([r.accuracy for r in esa], [r.accuracy for r in mse]))
                gaps.append(abs(np.mean(errors(kld)) / np.mean(errors(mse)) - 1))
            if ratio == 0.9 and data in ("drive", "satellite"):
                ratios[data] = below([2 * error for error in errors(mse)], errors(esa))
            measured[f"{data} r={ratio}"] = side_by_side(found)
        figures.append(panel(data, RATIOS[scale], found, found["ESA"]))
    alike = bool(np.mean(gaps) <= SIMILAR_SHARE)
    parts = {"mostly below ESA": mostly(lower), "accuracy mostly higher": mostly(higher), "MSE and KLD alike": alike}
    parts |= {f"{data} at 0.9 half or less": answer for data, answer in ratios.items()}
    told = parts | {"mostly below ESA if run until D = 0": mostly(lower_at_end)}
    measured = {name: word(answer) for name, answer in told.items()} | measured
    why = (
        "which of the consistent values is found depends on the search: Adam moves every cell at the same pace, ESA takes the "
        "minimum-norm solution. " + _no_individuals(figures)
    )
    expected = "below ESA, 2-3 times on drive and satellite at 0.9; losses alike; higher attack accuracy"
    return CheckResult(every(parts.values()), measured, expected, trials, why, tuple(figures))


def side_by_side(found: Mapping[str, Sequence[Sequence[JiangResult]]]) -> str:
    """The last results of every attack, in words."""
    return "; ".join(
        f"{name} {shown(results[-1])}, accuracy {np.mean([one.accuracy for one in results[-1]]):.2f}"
        for name, results in found.items()
    )


def panel(
    data: str,
    ratios: Sequence[float],
    found: Mapping[str, Sequence[Sequence[JiangResult]]],
    guessed: Sequence[Sequence[JiangResult]],
) -> ClaimFigure:
    """Every attack's error against the share of unknown columns, with what guessing has on the rows of one of them."""
    curves = [curve(name, ratios, results) for name, results in found.items()]
    return ClaimFigure(data, "share of unknown columns", "MSE per feature", [*curves, *guess_curves(ratios, guessed)])


def _no_individuals(figures: Sequence[ClaimFigure]) -> str:
    """Settings in which GIA beats uniform guessing but not the best constant."""
    names = []
    for figure in figures:
        lines = {line.name: line for line in figure.curves}
        ours = next(line for name, line in lines.items() if name.startswith("GIA"))
        for x, error, uniform, constant in zip(
            ours.x, ours.y, lines["uniform"].y, lines["best constant"].y, strict=True
        ):
            if constant < error < uniform:
                names.append(f"{figure.title} {x:g}")
    return f"below random guessing yet worse than the true mean (R2 < 0): {', '.join(names)}" if names else ""


def correlated_are_easier(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] * (2 if scale == "smoke" else 1)
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    for data in ("bank", "drive"):
        ranks, results = [], []
        for trial in range(trials):
            one = case(data, "lr", 0.3, scale, seed, trial)
            guess = gia(scale).run(one.view(), generator(seed, "attack")).values
            assert guess is not None
            error = np.mean((guess - one.truth) ** 2, axis=0)
            correlation = mean_correlation(one.trainer["active"].values, one.trainer["passive"].values)
            ranks.append(float(stats.spearmanr(correlation, error).statistic))
            results.append(judged(guess, one))
        mean, margin = mean_and_margin(ranks)
        measured[f"{data} rank correlation"] = f"{mean:.2f} ± {margin:.2f}"
        measured[f"{data} GIA"] = shown(results)
        answers.append(below(ranks, [0.0] * trials))
    return CheckResult(every(answers), measured, "error falls with correlation: rank correlation < 0", trials)


def below_generator(scale: Scale, seed: int) -> CheckResult:
    trials = 3 if scale == "smoke" else 5
    rival = generator_attack(scale)
    measured: dict[str, object] = {}
    lower: list[YesNoOpen] = []
    near: list[YesNoOpen] = []
    figures = []
    for data in JIANG_DATA if scale == "paper" else ("bank", "satellite"):
        found: dict[str, list[list[JiangResult]]] = {}
        for ratio in RATIOS[scale]:
            cases = [case(data, "2 sigmoid", ratio, scale, seed, trial) for trial in range(trials)]
            for name, attack in (("GIA", gia(scale)), (GIA_TO_THE_END, to_the_end(scale)), ("GRN", rival)):
                found.setdefault(name, []).append([result(attack, one, one.view(), True, seed) for one in cases])
            ours = found["GIA"][-1]
            lower.append(below(errors(ours), errors(found["GRN"][-1])))
            if ratio <= 0.1:
                end = errors(found[GIA_TO_THE_END][-1])
                far = below([NEAR_ZERO] * trials, end)
                near.append(True if np.mean(end) < NEAR_ZERO else False if far else None)
            measured[f"{data} r={ratio}"] = side_by_side(found)
        figures.append(panel(data, RATIOS[scale], found, found["GIA"]))
    parts = {"GIA below GRN everywhere": every(lower), f"to D = 0: below {NEAR_ZERO} at r = 0.1": every(near)}
    measured = {name: word(answer) for name, answer in parts.items()} | measured
    expected = "GIA below GRN at every r; near 0 for r <= 0.1"
    return CheckResult(every(parts.values()), measured, expected, trials, _no_individuals(figures), tuple(figures))


def few_records(scale: Scale, seed: int) -> CheckResult:
    trials = 3 if scale == "smoke" else 5
    rival = generator_attack(scale)
    counts = (1, 10, 100) if scale == "smoke" else (1, 10, 100, 1000)
    repeats = {1: 5, 10: 2} if scale == "smoke" else {1: 20, 10: 5}
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    figures = []
    for data in ("bank", "satellite"):
        points: dict[str, list[tuple[float, float]]] = {}
        for trial in range(trials):
            one = case(data, "2 sigmoid", 0.5, scale, seed, trial, counts[-1])
            view = one.view()
            ours = gia(scale).run(view, generator(seed, "attack")).values  # row by row: the same for any batch
            assert ours is not None
            for count in counts:
                rates: dict[str, list[float]] = {}
                for repeat in range(repeats.get(count, 1)):
                    rows = np.arange(count) + repeat * count
                    few = replace(one, target=one.target.rows(rows))
                    rates.setdefault("GIA", []).append(judged(ours[rows], few, True, seed).accuracy)
                    theirs = rival.run(few.view(), generator(seed, "rival", trial, count, repeat)).values
                    assert theirs is not None
                    rates.setdefault("GRN", []).append(judged(theirs, few, True, seed).accuracy)
                for name, values in rates.items():
                    points.setdefault(name, []).append((float(np.log10(count)), float(np.mean(values))))
        trend = {name: rises([x for x, _ in pairs], [y for _, y in pairs]) for name, pairs in points.items()}
        grows, needs = trend["GRN"], trend["GIA"]
        answers += [grows, needs is not True]
        curves = []
        for name, pairs in points.items():
            means = [mean_and_margin([y for x, y in pairs if x == np.log10(c)]) for c in counts]
            measured[f"{data} {name} accuracy at {', '.join(map(str, counts))}"] = [round(m, 3) for m, _ in means]
            xs = [float(np.log10(c)) for c in counts]
            curves.append(Curve(name, xs, [m for m, _ in means], [w for _, w in means]))
        figures.append(ClaimFigure(data, "log10 of records", "attack accuracy", curves))
        measured |= {f"{data} GRN grows": word(grows), f"{data} GIA grows": word(needs)}
    expected = "GRN's accuracy grows with the records, GIA's does not need to"
    why = "GIA treats each row separately, so its guesses do not depend on the number of records"
    return CheckResult(every(answers), measured, expected, trials, why, tuple(figures))


def generator_attack(scale: Scale) -> Attack:
    """luo2021's GRN."""
    from plumbob.attacks.scores.generative_regression import GenerativeRegression

    return GenerativeRegression.preset("fast", **({} if scale == "paper" else {"steps": 60}))


def _by_kind(
    kinds: Sequence[str], scale: Scale, seed: int, trials: int
) -> tuple[dict[str, dict[str, list[list[JiangResult]]]], tuple[ClaimFigure, ...]]:
    """Gradient inversion of several kinds of network: data -> kind -> ratio -> trials."""
    ratios = (0.3,) if scale == "smoke" else RATIOS[scale]
    found: dict[str, dict[str, list[list[JiangResult]]]] = {}
    figures = []
    for data in ("robot", "satellite") if scale == "smoke" else JIANG_DATA:
        found[data] = {}
        for kind in kinds:
            found[data][kind] = [
                [
                    result(gia(scale), one, one.view())
                    for one in (case(data, kind, ratio, scale, seed, trial) for trial in range(trials))
                ]
                for ratio in ratios
            ]
        figures.append(panel(data, ratios, found[data], found[data][kinds[0]]))
    return found, tuple(figures)


def deeper_is_harder(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] if scale == "smoke" else 5
    kinds = [f"{layers} sigmoid" for layers in (1, 2, 3)]
    found, figures = _by_kind(kinds, scale, seed, trials)
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    for data, by_kind in found.items():
        x, y = [], []
        for at_ratio in zip(*by_kind.values(), strict=True):
            centre = float(np.mean([errors(results) for results in at_ratio]))
            for layers, results in enumerate(at_ratio, 1):
                x += [float(layers)] * len(results)
                y += [error - centre for error in errors(results)]
        grows = rises(x, y)
        random = every(below(errors(r), [one.uniform for one in r]) for results in by_kind.values() for r in results)
        answers += [grows, random]
        measured[data] = f"grows: {word(grows)}, below random: {word(random)}; " + "; ".join(
            f"{kind} {shown(results[-1])}" for kind, results in by_kind.items()
        )
    expected = "error grows with the hidden layers, below random guessing"
    return CheckResult(every(answers), measured, expected, trials, "figures at the largest share", figures)


def relu_is_harder(scale: Scale, seed: int) -> CheckResult:
    trials = JIANG_TRIALS[scale] if scale == "smoke" else 5
    found, figures = _by_kind(["2 sigmoid", "2 tanh", "2 relu"], scale, seed, trials)
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    for data, by_kind in found.items():
        relu = [error for results in by_kind["2 relu"] for error in errors(results)]
        for other in ("2 sigmoid", "2 tanh"):
            answers.append(below([error for results in by_kind[other] for error in errors(results)], relu))
            measured[f"{data} {other} below relu"] = word(answers[-1])
        measured[data] = "; ".join(f"{kind} {shown(results[-1])}" for kind, results in by_kind.items())
    expected = "relu's error slightly larger on most data sets"
    return CheckResult(mostly(answers), measured, expected, trials, "figures at the largest share", figures)


CLAIMS: tuple[Claim, ...] = tuple(
    Claim("jiang2022", *parts)
    for parts in (
        ("J1", "Table 1", "accuracies of LR and of a network per party", accuracies),
        ("J2", "Fig 5", "GIA and ESA are exact when the unknown columns are at most k - 1", exact_below_threshold),
        ("J3", "Fig 5", "GIA's error is mostly below ESA's, most clearly on drive and satellite at 90 %", below_esa),
        ("J4", "Fig 6", "correlated features are reconstructed better", correlated_are_easier),
        ("J5", "Fig 7", "on networks GIA's error is below GRN's, and near 0 at 10 %", below_generator),
        ("J6", "Fig 8", "GRN needs many records, GIA does not", few_records),
        ("J7", "Fig 9", "the error grows with the number of hidden layers", deeper_is_harder),
        ("J8", "Fig 10", "relu is slightly harder than sigmoid and tanh", relu_is_harder),
    )
)
