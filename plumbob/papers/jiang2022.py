"""Jiang, Zhou, Grossklags: Comprehensive analysis of privacy leakage in VFL during prediction (PoPETs 2022).

The prediction phase; white box (gradient inversion) and black box (a shadow model first). Claims J1 to J11. The attacks
run as printed: Adam from zero, no finish, except where a claim is about the minimum itself (J2, "near 0" in J5; J3 shows
both). At paper scale the rate is the paper's 0.001; at smoke scale ten times that, with a tenth of the rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import stats

from plumbob.attacks.base import Attack
from plumbob.attacks.equation_solving import EquationSolving
from plumbob.attacks.gradient_inversion import GradientInversion, Loss
from plumbob.attacks.shadow_inversion import ShadowInversion, threshold
from plumbob.audit.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, FloatArray, Party, Table, halves, split_at_random
from plumbob.papers.claims import Check, Claim, Curve, Figure, Scale
from plumbob.papers.evidence import Answer, below, every, rises
from plumbob.protocols import LogisticRegression, Model, Protocol, SplitModels, predict
from plumbob.protocols.base import column_positions
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.metrics import attack_accuracy, mean_correlation
from plumbob.threats import LUO2021, AuxiliaryRows, Threat, View, cut

DATA = ("bank", "robot", "satellite", "drive")
ACCURACY = {  # Table 1: LR, network
    "bank": (0.9109, 0.9506),
    "robot": (0.6710, 0.8946),
    "satellite": (0.8152, 0.8275),
    "drive": (0.8037, 0.9241),
}
RECORDS = 100
TRIALS = {"smoke": 3, "paper": 10}
SAMPLE = {"smoke": 1_500, "paper": 12_000}  # rows taken of a data set, most of which train; J1 takes all at paper scale
RATIOS = {"smoke": (0.1, 0.5, 0.9), "paper": (0.1, 0.3, 0.5, 0.7, 0.9)}
ROUNDS = {"smoke": (300, 0.01), "paper": (3_000, 0.001)}  # T and lambda of Algorithm 1
HIDDEN = (8, 8)  # "NN" is two hidden layers of eight where a claim does not say otherwise
NEAR_ZERO = 0.01  # "close to 0", as an MSE of features in [0, 1]
END = "GIA to D = 0"
ALIKE = 0.2  # "similar", "almost the same": within this share


@dataclass(frozen=True)
class Case:
    """One trained federation and the records that are attacked."""

    protocol: Protocol
    model: Model
    target: Federation
    trainer: Federation

    def view(self, threat: Threat = LUO2021, others: Federation | None = None) -> View:
        return cut(predict(self.protocol, self.model, self.target, others or self.trainer), threat)

    @property
    def truth(self) -> FloatArray:
        return self.target["passive"].values


@dataclass(frozen=True)
class Result:
    """An attack on one case: error, R^2 against the best constant, and the error of uniform guessing."""

    error: float
    r2: float
    uniform: float
    accuracy: float = float("nan")


@lru_cache(maxsize=8)
def table(data: str, rows: int | None, seed: int) -> Table:
    whole = registry.load(data)
    if rows is None or rows >= len(whole.values):
        return whole
    assert whole.label is not None
    return whole.rows(np.sort(halves(whole.label, generator(seed, "sample"), rows / len(whole.values))[0]))


@lru_cache(maxsize=64)
def case(
    data: str, kind: str, unknown: float | int, scale: Scale, seed: int, trial: int, records: int = RECORDS
) -> Case:
    """`kind`: lr (with a bias), linear (per party, without), or layers and activation such as '2 sigmoid'."""
    whole = table(data, SAMPLE[scale], seed)
    federation = split_at_random(whole, unknown, generator(seed, "columns", unknown, trial))
    order, target = halves(federation.label, generator(seed, "rows", trial), 1 - records / len(federation))
    trainer = federation.rows(order)
    protocol = protocol_of(kind)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(
        trainer.values, trainer.label, len(federation.classes), generator(seed, "model", data, kind, trial), blocks
    )
    return Case(protocol, model, federation.rows(target[:records]), trainer)


def protocol_of(kind: str, epochs: int = 40) -> Protocol:
    if kind == "lr":
        return LogisticRegression()
    if kind == "linear":
        return SplitModels(layers=0)
    layers, activation = kind.split()
    return SplitModels(layers=int(layers), activation=activation, epochs=epochs)


def gia(scale: Scale, loss: Loss = "mse") -> GradientInversion:
    steps, rate = ROUNDS[scale]
    return GradientInversion(loss=loss, steps=steps, rate=rate, finish=0)


def to_the_end(scale: Scale) -> GradientInversion:
    """The same, and then on until D is 0: the paper stops when D "approaches 0", which Adam alone does not reach here."""
    steps, rate = ROUNDS[scale]
    return GradientInversion(steps=steps, rate=rate, finish=40)


def shadow(scale: Scale, structure: tuple[int, ...] | None = None, solve: bool = True) -> ShadowInversion:
    steps, rate = ROUNDS[scale]
    rounds = 400 if scale == "smoke" else 1_500
    return ShadowInversion(structure=structure, solve=solve, fitting=rounds, steps=steps, rate=rate, finish=0)


def result(attack: Attack, one: Case, view: View, accuracy: bool = False, seed: int = 0) -> Result:
    guess = attack.run(view, generator(seed, "attack", repr(attack))).values
    assert guess is not None
    return judged(guess, one, accuracy, seed)


def judged(guess: FloatArray, one: Case, accuracy: bool = False, seed: int = 0) -> Result:
    truth = one.truth
    error, variance = float(np.mean((guess - truth) ** 2)), float(truth.var(axis=0).mean())
    same = float("nan")
    if accuracy:
        held_out, labels = one.trainer["passive"].values[:2_000], one.trainer.label[:2_000]
        same = attack_accuracy(guess, truth, held_out, labels, generator(seed, "judge"))
    return Result(error, 1 - error / max(variance, 1e-15), float(np.mean((truth - 0.5) ** 2)) + 1 / 12, same)


def errors(results: Iterable[Result]) -> list[float]:
    return [one.error for one in results]


def shown(results: Sequence[Result]) -> str:
    """Mean error, its interval, and R^2 beside it."""
    mean, margin = mean_and_margin(errors(results))
    return f"{mean:.4g} ± {margin:.2g}, R2 {np.mean([one.r2 for one in results]):.2f}"


def curve(name: str, x: Sequence[float], results: Sequence[Sequence[Result]]) -> Curve:
    points = [mean_and_margin(errors(one)) for one in results]
    return Curve(name, list(x), [p[0] for p in points], [p[1] for p in points])


def guess_curves(x: Sequence[float], results: Sequence[Sequence[Result]]) -> list[Curve]:
    """Uniform guessing and the best constant beside an attack's curve."""
    uniform = [float(np.mean([r.uniform for r in one])) for one in results]
    constant = [float(np.mean([r.error / max(1 - r.r2, 1e-15) for r in one])) for one in results]
    return [Curve("uniform", list(x), uniform), Curve("best constant", list(x), constant)]


def mostly(answers: Sequence[Answer]) -> Answer:
    """True or False if more than half of the settings say so."""
    for verdict in (True, False):
        if sum(answer is verdict for answer in answers) * 2 > len(answers):
            return verdict
    return None


def word(answer: Answer) -> str:
    return {True: "yes", False: "no", None: "undecided"}[answer]


def accuracies(scale: Scale, seed: int) -> Check:
    trials = 1 if scale == "smoke" else 3
    measured: dict[str, object] = {}
    answers: list[Answer] = []
    for data in DATA:
        whole = table(data, 4_000 if scale == "smoke" else None, seed)
        for kind, paper in zip(("linear", "2 sigmoid"), ACCURACY[data], strict=True):
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
        "the paper does not print its training; ours is Adam with a falling rate for networks and the optimum for LR. "
        "bank's .9506 is not reached with this structure, and LR at its optimum is better on drive than the paper's"
    )
    return Check(every(answers), measured, "Table 1 within .03", trials, why)


def exact_below_threshold(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale]
    measured: dict[str, object] = {}
    answers = []
    plain = gia(scale)
    for data in DATA:
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
    return Check(every(answers), measured, "MSE < 1e-6 for d_pas <= k - 1", trials, why)


def below_esa(scale: Scale, seed: int) -> Check:
    trials = 3 if scale == "smoke" else 5
    measured: dict[str, object] = {}
    lower: list[Answer] = []
    higher: list[Answer] = []
    ratios: dict[str, Answer] = {}
    gaps, figures = [], []
    attacks: dict[str, Attack] = {
        "ESA": EquationSolving(),
        "GIA-MSE": gia(scale),
        "GIA-KLD": gia(scale, "kld"),
        END: to_the_end(scale),
    }
    lower_at_end: list[Answer] = []
    for data in DATA:
        found: dict[str, list[list[Result]]] = {name: [] for name in attacks}
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
            measured[f"{data} r={ratio}"] = "; ".join(
                f"{name} {shown(r[-1])}, accuracy {np.mean([one.accuracy for one in r[-1]]):.2f}"
                for name, r in found.items()
            )
        curves = [curve(name, RATIOS[scale], results) for name, results in found.items()]
        curves += guess_curves(RATIOS[scale], found["ESA"])
        figures.append(Figure(data, "share of unknown columns", "MSE per feature", curves))
    alike = bool(np.mean(gaps) <= ALIKE)
    parts = {"mostly below ESA": mostly(lower), "accuracy mostly higher": mostly(higher), "MSE and KLD alike": alike}
    parts |= {f"{data} at 0.9 half or less": answer for data, answer in ratios.items()}
    told = parts | {"mostly below ESA if run until D = 0": mostly(lower_at_end)}
    measured = {name: word(answer) for name, answer in told.items()} | measured
    why = (
        "which of the values that fit is found depends on the search: Adam moves every cell at the same pace, ESA takes the "
        "shortest answer. " + _no_individuals(figures)
    )
    expected = "below ESA, 2-3 times on drive and satellite at 0.9; losses alike; higher attack accuracy"
    return Check(every(parts.values()), measured, expected, trials, why, tuple(figures))


def _no_individuals(figures: Sequence[Figure]) -> str:
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


def correlated_are_easier(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] * (2 if scale == "smoke" else 1)
    measured: dict[str, object] = {}
    answers: list[Answer] = []
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
    return Check(every(answers), measured, "error falls with correlation: rank correlation < 0", trials)


def below_generator(scale: Scale, seed: int) -> Check:
    trials = 3 if scale == "smoke" else 5
    rival = generator_attack(scale)
    measured: dict[str, object] = {}
    lower: list[Answer] = []
    near: list[Answer] = []
    figures = []
    for data in DATA if scale == "paper" else ("bank", "satellite"):
        found: dict[str, list[list[Result]]] = {}
        for ratio in RATIOS[scale]:
            cases = [case(data, "2 sigmoid", ratio, scale, seed, trial) for trial in range(trials)]
            for name, attack in (("GIA", gia(scale)), (END, to_the_end(scale)), ("GRN", rival)):
                found.setdefault(name, []).append([result(attack, one, one.view(), True, seed) for one in cases])
            ours = found["GIA"][-1]
            lower.append(below(errors(ours), errors(found["GRN"][-1])))
            if ratio <= 0.1:
                end = errors(found[END][-1])
                far = below([NEAR_ZERO] * trials, end)
                near.append(True if np.mean(end) < NEAR_ZERO else False if far else None)
            measured[f"{data} r={ratio}"] = "; ".join(
                f"{name} {shown(r[-1])}, accuracy {np.mean([one.accuracy for one in r[-1]]):.2f}"
                for name, r in found.items()
            )
        curves = [curve(name, RATIOS[scale], results) for name, results in found.items()]
        curves += guess_curves(RATIOS[scale], found["GIA"])
        figures.append(Figure(data, "share of unknown columns", "MSE per feature", curves))
    parts = {"GIA below GRN everywhere": every(lower), f"to D = 0: below {NEAR_ZERO} at r = 0.1": every(near)}
    measured = {name: word(answer) for name, answer in parts.items()} | measured
    expected = "GIA below GRN at every r; near 0 for r <= 0.1"
    return Check(every(parts.values()), measured, expected, trials, _no_individuals(figures), tuple(figures))


def few_records(scale: Scale, seed: int) -> Check:
    trials = 3 if scale == "smoke" else 5
    rival = generator_attack(scale)
    counts = (1, 10, 100) if scale == "smoke" else (1, 10, 100, 1000)
    repeats = {1: 5, 10: 2} if scale == "smoke" else {1: 20, 10: 5}
    measured: dict[str, object] = {}
    answers: list[Answer] = []
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
        figures.append(Figure(data, "log10 of records", "attack accuracy", curves))
        measured |= {f"{data} GRN grows": word(grows), f"{data} GIA grows": word(needs)}
    expected = "GRN's accuracy grows with the records, GIA's does not need to"
    why = "GIA takes each row by itself: its guesses are the same for any number of records"
    return Check(every(answers), measured, expected, trials, why, tuple(figures))


def generator_attack(scale: Scale) -> Attack:
    """luo2021's GRN."""
    from plumbob.attacks.generative_regression import GenerativeRegression

    return GenerativeRegression() if scale == "paper" else GenerativeRegression(steps=60)


def _by_kind(
    kinds: Sequence[str], scale: Scale, seed: int, trials: int
) -> tuple[dict[str, dict[str, list[list[Result]]]], tuple[Figure, ...]]:
    """Gradient inversion of several kinds of network: data -> kind -> ratio -> trials."""
    ratios = (0.3,) if scale == "smoke" else RATIOS[scale]
    found: dict[str, dict[str, list[list[Result]]]] = {}
    figures = []
    for data in ("robot", "satellite") if scale == "smoke" else DATA:
        found[data] = {}
        for kind in kinds:
            found[data][kind] = [
                [
                    result(gia(scale), one, one.view())
                    for one in (case(data, kind, ratio, scale, seed, trial) for trial in range(trials))
                ]
                for ratio in ratios
            ]
        curves = [curve(kind, ratios, results) for kind, results in found[data].items()]
        curves += guess_curves(ratios, found[data][kinds[0]])
        figures.append(Figure(data, "share of unknown columns", "MSE per feature", curves))
    return found, tuple(figures)


def deeper_is_harder(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] if scale == "smoke" else 5
    kinds = [f"{layers} sigmoid" for layers in (1, 2, 3)]
    found, figures = _by_kind(kinds, scale, seed, trials)
    measured: dict[str, object] = {}
    answers: list[Answer] = []
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
    return Check(every(answers), measured, expected, trials, "figures at the largest share", figures)


def relu_is_harder(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] if scale == "smoke" else 5
    found, figures = _by_kind(["2 sigmoid", "2 tanh", "2 relu"], scale, seed, trials)
    measured: dict[str, object] = {}
    answers: list[Answer] = []
    for data, by_kind in found.items():
        relu = [error for results in by_kind["2 relu"] for error in errors(results)]
        for other in ("2 sigmoid", "2 tanh"):
            answers.append(below([error for results in by_kind[other] for error in errors(results)], relu))
            measured[f"{data} {other} below relu"] = word(answers[-1])
        measured[data] = "; ".join(f"{kind} {shown(results[-1])}" for kind, results in by_kind.items())
    expected = "relu's error slightly larger on most data sets"
    return Check(mostly(answers), measured, expected, trials, "figures at the largest share", figures)


def black_box(rows: int) -> Threat:
    return Threat("black box", "", (AuxiliaryRows(rows),))


def shadows_reach_white_box(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] if scale == "smoke" else 5
    shares = (0.1, 0.25, 0.5, 1.0)
    measured: dict[str, object] = {}
    answers: list[Answer] = []
    figures = []
    settings = [("bank", "linear"), ("robot", "linear"), ("satellite", "2 sigmoid"), ("drive", "2 sigmoid")]
    for data, kind in settings:
        entry = registry.find(data)
        tau = threshold(entry.features, entry.classes, () if kind == "linear" else HIDDEN)
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
        excess = below([(1 + ALIKE) * error for error in errors(white)], errors(found[-1]))
        answers.append(True if ratio <= 1 + ALIKE else False if excess else None)
        answers.append(below(errors(found[1]), [one.uniform for one in found[1]]))
        answers.append(0.25 * tau < (10 if kind == "linear" else 25))
        figures.append(
            Figure(
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
    expected = f"at tau within {ALIKE:.0%} of the white box; at 0.25 tau (< 10 rows LR, < 25 NN) below random"
    return Check(every(answers), measured, expected, trials, "", tuple(figures))


def made_up(real: Federation, rows: int, kind: str, rng: np.random.Generator) -> Federation:
    """Rows that nobody is, with independent cells; both parties store them as they would a client."""

    def draw(columns: int) -> FloatArray:
        size = (rows, columns)
        if kind == "uniform":
            return rng.random(size)
        return rng.standard_normal(size) if kind == "normal" else rng.laplace(size=size)

    parties = tuple(Party(p.name, p.columns, draw(len(p.columns))) for p in real.parties)
    return replace(real, parties=parties, label=np.zeros(rows, dtype=np.int64))


def made_up_rows(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] if scale == "smoke" else 5
    kinds = ("original", "uniform", "normal", "laplace")
    measured: dict[str, object] = {}
    worse: list[Answer] = []
    better: list[Answer] = []
    figures = []
    ratios = (0.1, 0.5) if scale == "smoke" else (0.1, 0.5, 0.9)
    for data in ("robot",) if scale == "smoke" else DATA:
        rows = registry.find(data).features  # tau at r = 1
        curves: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        chance_curve = []
        for ratio in ratios:
            cases = [case(data, "linear", ratio, scale, seed, trial) for trial in range(trials)]
            rate = {}
            for kind in kinds:
                for solve in (False, True):
                    results = []
                    for trial, one in enumerate(cases):
                        rng = generator(seed, "made up", kind, trial)
                        others = None if kind == "original" else made_up(one.trainer, rows, kind, rng)
                        view = one.view(black_box(rows), others)
                        results.append(result(shadow(scale, solve=solve), one, view, True, seed))
                    rate[kind, solve] = [r.accuracy for r in results]
                    mean = mean_and_margin(rate[kind, solve])
                    curves.setdefault((kind, solve), []).append(mean)
                    fitted = "least squares" if solve else "Adam"
                    measured[f"{data} r={ratio} {kind}, {fitted}"] = f"accuracy {mean[0]:.2f}; {shown(results)}"
            chance = [
                judged(generator(seed, "chance", t).random(one.truth.shape), one, True, seed).accuracy
                for t, one in enumerate(cases)
            ]
            chance_curve.append(float(np.mean(chance)))
            for kind in kinds[1:]:
                worse.append(below(rate[kind, False], rate["original", False]))
                better.append(below(chance, rate[kind, False]))
        figures.append(
            Figure(
                data,
                "share of unknown columns",
                "attack accuracy",
                [
                    Curve(
                        f"{kind}, {'least squares' if solve else 'Adam'}",
                        list(ratios),
                        [m for m, _ in points],
                        [w for _, w in points],
                    )
                    for (kind, solve), points in curves.items()
                ]
                + [Curve("uniform", list(ratios), chance_curve)],
            )
        )
    parts = {"made-up rows mostly worse": mostly(worse), "mostly better than random": mostly(better)}
    measured = {name: word(answer) for name, answer in parts.items()} | measured
    why = (
        "judged with the shadow fitted as printed (Adam). By least squares a linear shadow is exact from d_pas rows of any "
        "distribution, as long as no score is rounded to 0"
    )
    expected = "accuracy below that of original rows, above random guessing"
    return Check(every(parts.values()), measured, expected, trials, why, tuple(figures))


def wrong_structure(scale: Scale, seed: int) -> Check:
    trials = TRIALS[scale] if scale == "smoke" else 5
    structures: dict[str, tuple[int, ...]] = {
        "LR": (),
        "8": (8,),
        "8-8 (same)": HIDDEN,
        "16-16": (16, 16),
        "8-8-8": (8, 8, 8),
    }
    measured: dict[str, object] = {}
    answers: list[Answer] = []
    figures = []
    ratios = (0.3,) if scale == "smoke" else (0.1, 0.3, 0.5, 0.7)
    for data in ("robot", "satellite") if scale == "smoke" else DATA:
        entry = registry.find(data)
        tau = threshold(entry.features, entry.classes, HIDDEN)
        found: dict[str, list[list[Result]]] = {name: [] for name in structures}
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
        figures.append(Figure(data, "share of unknown columns", "MSE per feature", curves))
    expected = "LR worst; the same structure best; three layers worse"
    return Check(every(answers), measured, expected, trials, "", tuple(figures))


CLAIMS: tuple[Claim, ...] = tuple(
    Claim("jiang2022", *parts)
    for parts in (
        ("J1", "Table 1", "accuracies of LR and of a network per party", accuracies),
        ("J2", "Fig 5", "GIA and ESA are exact when the unknown columns are at most k - 1", exact_below_threshold),
        ("J3", "Fig 5", "GIA is mostly below ESA, most so on drive and satellite at 90 %", below_esa),
        ("J4", "Fig 6", "correlated features are reconstructed better", correlated_are_easier),
        ("J5", "Fig 7", "on networks GIA is below GRN, and near 0 at 10 %", below_generator),
        ("J6", "Fig 8", "GRN needs many records, GIA does not", few_records),
        ("J7", "Fig 9", "more hidden layers, more error", deeper_is_harder),
        ("J8", "Fig 10", "relu is slightly harder than sigmoid and tanh", relu_is_harder),
        ("J9", "Fig 11", "the black box reaches the white box at tau auxiliary rows", shadows_reach_white_box),
        ("J10", "Fig 12", "made-up auxiliary rows are worse than real ones, better than guessing", made_up_rows),
        ("J11", "Fig 13", "a linear shadow of a network is worst, the same structure best", wrong_structure),
    )
)
