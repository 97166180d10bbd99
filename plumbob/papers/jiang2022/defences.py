"""jiang2022, Figs 14 and 15: what each defence costs and what it stops (claim J12), against attackers who know of it.

One row per defence: accuracy of the released scores, and for each attack its attack accuracy, MSE and R^2. Two lines belong
beside it: no defence, and no scores at all ("silent"), where the attacker has its own columns and the ranges only. What an
attack reaches above the silent line is what the scores gave away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from plumbob.attacks import Attack, attacks, knowing
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import Defence, defence_named
from plumbob.federation import Federation, FloatArray, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.papers.jiang2022.federations import JIANG_DATA
from plumbob.protocols.base import Model, PredictionProtocol, Release, predict, predicting
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, AuxiliaryRows, Schema, Threat, cut

DEFENDED_UNKNOWN = 0.5
WHITE = ("equation_solving", "lattice_decoding")
BLACK = ("shadow_inversion",)
KNOWING = ("lattice_decoding", "shadow_inversion")  # ESA is the published one
BLACK_BOX_WITH_ROWS = Threat("active-black-box-rows", "no model, but 100 complete rows", (Schema(), AuxiliaryRows(100)))
DEFENCES_COMPARED: tuple[tuple[str, dict[str, object]], ...] = (
    ("none", {}),
    ("dp_sgd", {"epsilon": 0.1}),
    ("dp_sgd", {"epsilon": 1.0}),
    ("dp_sgd", {"epsilon": 10.0}),
    ("rounding", {"digits": 1}),
    ("rounding", {"digits": 2}),
    ("rounding", {"digits": 3}),
    ("label_only", {}),
    ("noise", {"sigma": 1.0}),
    ("noise", {"sigma": 0.1}),
    ("noise", {"sigma": 0.01}),
    ("purifier", {"trained_on": "real"}),
    ("purifier", {"trained_on": "random"}),
    ("codebook", {"levels": 1}),
    ("codebook", {"levels": 4}),
)
DEFENDED_TRIALS: dict[Scale, int] = {"smoke": 2, "paper": 4}
AT_BASELINE, AT_MOST = 0.02, 0.01  # R^2 above the silent line that still counts as none; accuracy that may be lost
SMOKE_DEFENCES = (
    "none",
    "dp_sgd epsilon=10.0",
    "rounding digits=1",
    "label_only",
    "noise sigma=0.1",
    "codebook levels=1",
)


class _Silent(Defence):
    """Nothing is released: the lower bound for every attack."""

    name = "silent"
    summary = "no scores at all"
    point = "scores"

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        return lambda scores, rows: np.full_like(scores, np.nan)


@dataclass(frozen=True)
class DefendedLine:
    """One defence against one attack in one trial."""

    data: str
    trial: int
    defence: str
    attack: str
    box: str  # white or black
    accuracy: float
    attack_accuracy: float
    error: float
    r2: float


def table(data: str, scale: Scale, seed: int, chosen: tuple[str, ...] | None = None) -> Iterator[DefendedLine]:
    """The lines of one data set, trial by trial: one split and one set of training rows for all defences."""
    trials, sample, rows = DEFENDED_TRIALS[scale], *((1_500, 100) if scale == "smoke" else (12_000, 1_000))
    named = [(_title(name, settings), defence_named(name, **settings)) for name, settings in DEFENCES_COMPARED]
    named = [pair for pair in named if chosen is None or pair[0] in chosen]
    for trial in range(trials):
        federation = split_at_random(registry.load(data), DEFENDED_UNKNOWN, generator(seed, "J12 columns", data, trial))
        train, rest = halves(federation.label, generator(seed, "J12 rows", data, trial))
        trainer, target = federation.rows(train[: sample // 2]), federation.rows(rest[:rows])
        for title, defence in [*named, ("silent", _Silent())]:
            yield from _lines(data, trial, title, defence, trainer, target, generator(seed, "J12 fit", data, trial))


def _title(name: str, settings: dict[str, object]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in settings.items())])


def _lines(
    data: str,
    trial: int,
    title: str,
    defence: Defence,
    trainer: Federation,
    target: Federation,
    rng: np.random.Generator,
) -> Iterator[DefendedLine]:
    protocol = predicting(defence.protect(LogisticRegression()))
    model = protocol.fit(trainer.values, trainer.label, len(trainer.classes), rng)
    release = defence.release(protocol, model, target)
    log = predict(protocol, model, target, trainer, release=release, defence=defence.known())
    scores = np.concatenate([m.payload for m in log.messages if m.name == "scores"])
    for box, threat, attack in _attackers():
        view = cut(log, threat)
        guess = attack.run(view, np.random.default_rng(0))
        judged = score(guess, truth_of(log, view), view, np.random.default_rng(0))
        yield DefendedLine(
            data,
            trial,
            title,
            attack.name,
            box,
            _accuracy(scores, target),
            judged.attack_accuracy if judged.attack_accuracy is not None else float("nan"),
            judged.error,
            judged.r2,
        )


def _accuracy(scores: FloatArray, target: Federation) -> float:
    told = ~np.isnan(scores[:, 0])
    return float(np.mean(told & (np.argmax(np.nan_to_num(scores), axis=1) == target.label)))


def _attackers() -> Iterator[tuple[str, Threat, Attack]]:
    for box, threat, names in (("white", LUO2021, WHITE), ("black", BLACK_BOX_WITH_ROWS, BLACK)):
        for name in names:
            attack = knowing(name, preset="fast") if name in KNOWING else attacks("fast")[name]
            if attack.why_not("logistic_regression", threat) is None:
                yield box, threat, attack


@cache
def lines(scale: Scale, seed: int) -> tuple[DefendedLine, ...]:
    """All lines; at smoke scale some defences on two data sets."""
    data = ("robot", "satellite") if scale == "smoke" else JIANG_DATA
    chosen = SMOKE_DEFENCES if scale == "smoke" else None
    return tuple(line for name in data for line in table(name, scale, seed, chosen))


def mean(found: tuple[DefendedLine, ...], field: str, **where: str) -> float:
    """The mean of a field over the lines that match."""
    return float(np.mean([getattr(one, field) for one in found if all(getattr(one, k) == v for k, v in where.items())]))


def privacy_and_utility(scale: Scale, seed: int) -> CheckResult:
    """J12. A leak is what the strongest white-box attack learns about individuals beyond the silent line; costs are accuracy.

    About individuals nothing is learnt up to R^2 = 0, where the guess is the column's mean: so R^2 counts from there.
    """
    found = lines(scale, seed)
    measured: dict[str, object] = {}
    names = list(dict.fromkeys(one.defence for one in found))
    data = list(dict.fromkeys(one.data for one in found))
    leak, cost = {}, {}
    for name in names:
        for one in data:
            parts = [f"accuracy {mean(found, 'accuracy', data=one, defence=name):.3f}"]
            for attack in dict.fromkeys(line.attack for line in found):
                got = {
                    f: mean(found, f, data=one, defence=name, attack=attack) for f in ("attack_accuracy", "error", "r2")
                }
                parts.append(f"{attack} {got['attack_accuracy']:.3f} {got['error']:.4f} {got['r2']:+.3f}")
            measured[f"{one} {name}"] = "; ".join(parts)
        leaks = [(*mean_and_margin(_leak(found, name, one)), one) for one in data]
        leak[name] = float(np.mean([value for value, *_ in leaks]))
        cost[name] = mean(found, "accuracy", defence="none") - mean(found, "accuracy", defence=name)
        measured[f"leak {name}"] = ", ".join(f"{one} {value:.3f} ± {margin:.3f}" for value, margin, one in leaks)
        measured[f"accuracy lost {name}"] = round(cost[name], 4)
    for one in data:
        here = tuple(line for line in found if line.data == one)
        kept = [
            n for n in names if mean(here, "accuracy", defence="none") - mean(here, "accuracy", defence=n) <= AT_MOST
        ]
        left = {name: float(np.mean(_leak(found, name, one))) for name in kept}
        safe = [name for name in kept if left[name] <= AT_BASELINE]
        least = min(left, key=lambda name: left[name])
        measured[f"{one} at the baseline for 1 point of accuracy"] = (
            ", ".join(safe) or f"none; least: {least} {left[least]:+.3f}"
        )
    full = leak["none"]
    answers: list[bool | None] = [
        leak["dp_sgd epsilon=10.0"] > 0.5 * full,
        leak["label_only"] < 0.5 * full and abs(cost["label_only"]) < 1e-9,
        leak["noise sigma=0.1"] < 0.5 * full and cost["noise sigma=0.1"] < 0.03,
    ]
    if scale == "paper":
        real, random = "purifier trained_on=real", "purifier trained_on=random"
        answers.append(leak[real] < 0.5 * full and cost[real] < 0.03)
        answers.append(leak[random] <= leak[real] + 0.02 and cost[random] < 0.03)
        answers.append(cost["dp_sgd epsilon=0.1"] > 0.01)
    else:
        answers.append(None)  # purifier and small epsilons are not run
    why = (
        "PSI changes no score, so its line equals that without defence. Each defence is tested against attackers who know it "
        "(lattice decoding, which falls back to the posterior mean), not only against ESA; label only still reveals the class, "
        "which is informative where classes correlate with columns"
    )
    expected = "DP-SGD at 10 leaks on; label only, noise 0.1 and purifier halve the leak at little cost in accuracy"
    return CheckResult(every(answers), measured, expected, DEFENDED_TRIALS[scale], why)


def _leak(found: tuple[DefendedLine, ...], name: str, data: str) -> list[float]:
    """For each trial: R^2 from 0 of the strongest white-box attack, less what it has without scores."""
    r2 = {
        (line.defence, line.trial): max(line.r2, 0.0)
        for line in found
        if line.attack == WHITE[-1] and line.data == data
    }
    return [r2[name, trial] - r2["silent", trial] for defence, trial in r2 if defence == name]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "jiang2022",
        "J12",
        "Fig 14, 15",
        "PSI and DP-SGD do not protect; label only, noise of 0.1 and the purifier do, at little cost",
        privacy_and_utility,
    ),
)
