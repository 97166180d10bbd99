"""Noise that is drawn anew in each epoch averages out: Gaussian masking and dithered levels on the tables of ye2022 (P21)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.embeddings._received_embeddings import embeddings, noise
from plumbob.attacks.embeddings.binary_columns import approximate
from plumbob.attacks.embeddings.leverage_sampling import LeverageSampling
from plumbob.auditing.running.run import generator
from plumbob.defences import defence_named
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.ye2022.attacks import thinned
from plumbob.papers.ye2022.defences import HOLDS, accuracy
from plumbob.papers.ye2022.federations import (
    TABLE_1,
    THREAT,
    agreement_either_way,
    attack_accuracy,
    binaries,
    federation,
    found,
    usual,
    with_sums,
)
from plumbob.protocols.base import training
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import cut
from plumbob.transcript import Transcript

ASKED = (0.1, 0.5, 2.0)  # deviations at which the claim is made
BEYOND = (8.0, 20.0)  # and larger ones, to see where it holds
DITHERED = {"bits": 2}  # levels of 2 bits from -4 to 4
FEWER = 1_000  # rows that Algorithm 2 is given


@dataclass(frozen=True)
class AveragedSize:
    """Tables, epochs, deviations, trials, rows by table where they are not all, and draws of Algorithm 2."""

    tables: tuple[str, ...]
    epochs: int
    sigmas: tuple[float, ...]
    trials: int
    rows: dict[str, int]
    runs: int


SIZES: dict[Scale, AveragedSize] = {
    "smoke": AveragedSize(("nursery",), 20, (0.5, 2.0), 1, {"nursery": 1_500}, 3),
    "paper": AveragedSize(
        tuple(TABLE_1), 100, (*ASKED, *BEYOND), 1, {"covertype": 11_620}, 20
    ),  # a fiftieth of covertype
}


def _trained(name: str, scale: Scale, seed: int, defence: str, settings: dict[str, Any]) -> Transcript:
    size = SIZES[scale]
    target, others = federation(name, size.rows.get(name, 10**7), seed)
    protocol = SplitNetwork(hidden=TABLE_1[name].hidden, epochs=size.epochs, archive_mb=1)
    protected = defence_named(defence, **settings).protect(protocol)
    return training(protected).train(target, others, generator(seed, "training", name))


def _near(log: Transcript, averaged: bool, seed: int) -> FloatArray:
    """What ours finds near the span, with and without averaging."""
    view = cut(log, THREAT)
    (one,) = embeddings(view, averaged)
    return approximate(one, np.zeros((len(view.own), 0)), len(view.unknown), generator(seed, "P21", averaged))


def _best(vectors: FloatArray, log: Transcript) -> float:
    """The best agreement of any vector with any column, or sum of codes of a category."""
    return float(agreement_either_way(vectors, with_sums(binaries(log))).max(initial=0.0))


def _shuffled(vectors: FloatArray, log: Transcript, seed: int) -> float:
    """The same with the columns of other people: what fitting so many vectors gives by chance."""
    columns = with_sums(binaries(log))
    return float(agreement_either_way(vectors, generator(seed, "others").permutation(columns)).max(initial=0.0))


def _gain(vectors: FloatArray, log: Transcript) -> float:
    """Of the column that leaks most: the share of guessing's mistakes that the nearest vector does not make."""
    true = binaries(log)
    base = usual(true)
    return float(((agreement_either_way(vectors, true).max(axis=0, initial=0.0) - base) / (1 - base)).clip(0).max())


def _printed(log: Transcript, attack: Attack, seed: int) -> tuple[float, float]:
    """The paper's attack accuracy of Algorithm 2's one answer, and its agreement either way."""
    vectors = found(log, attack, seed).vectors
    assert vectors is not None
    return float(attack_accuracy(vectors, with_sums(binaries(log))).max(initial=0.0)), _best(vectors, log)


def _one(name: str, scale: Scale, seed: int, defence: str, settings: dict[str, Any]) -> Part:
    """One training and what both attacks make of it."""
    try:
        log = _trained(name, scale, seed, defence, settings)
    except BadInput as error:
        if "not finite" not in str(error):
            raise
        return Part({"failed": str(error)}, [])  # so much noise that training runs away
    if defence == "none":
        return Part({"accuracy": accuracy(log)}, [])
    assert noise(cut(log, THREAT))[0] > 0
    last, mean = _near(log, False, seed), _near(log, True, seed)
    made = {
        "ours, last": _best(last, log),
        "ours, averaged": _best(mean, log),
        "shuffled": _shuffled(mean, log, seed),
        "gain, last": _gain(last, log),
        "gain, averaged": _gain(mean, log),
        "usual value": float(usual(with_sums(binaries(log))).max()),
        "accuracy": accuracy(log),
    }
    if settings.get("sigma", 0.0) <= ASKED[-1]:
        few = thinned(log, FEWER)
        for told, averaged in (("last", False), ("averaged", True)):
            attack = LeverageSampling.preset("sharp", runs=SIZES[scale].runs, adaptive=True, averaged=averaged)
            made[f"Algorithm 2, {told}"], made[f"Algorithm 2, {told}, either way"] = _printed(few, attack, seed)
    return Part(made, [])


def _all(scale: Scale, seed: int) -> dict[str, dict[str, dict[str, Any]]]:
    """By table and setting: means over trials. Every training is a part; those that the claim is about come first."""
    size = SIZES[scale]
    tried: list[tuple[str, str, dict[str, Any]]] = [("none", "none", {})]
    tried += [(f"sigma {sigma:g}", "gaussian_masking", {"sigma": sigma}) for sigma in size.sigmas]
    tried.insert(4, ("dithered", "quantised_embeddings", dict(DITHERED)))
    raw: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in size.tables}
    for trial in range(size.trials):
        for told, defence, settings in tried:
            for name in size.tables:
                work = partial(_one, name, scale, seed + trial, defence, settings)
                done = part(f"{name}-{told.replace(' ', '-')}-{trial}", work)
                raw[name].setdefault(told, []).append(done.measured)
    means = {name: {told: _means(runs) for told, runs in table.items()} for name, table in raw.items()}
    for table in means.values():
        for told, one in table.items():
            if told != "none" and "failed" not in one:
                one["cost"] = round(table["none"]["accuracy"] - one["accuracy"], 4)
    return means


def averaged_noise(scale: Scale, seed: int) -> CheckResult:
    """P21: attack accuracy with and without averaging, at each sigma."""
    size = SIZES[scale]
    means = _all(scale, seed)
    measured: dict[str, object] = {
        "size": f"{size.epochs} epochs; rows: all, but of {', '.join(f'{n} {r:,}' for n, r in size.rows.items())}",
        "rows for Algorithm 2, at most": FEWER,
    }
    answers: list[bool | None] = []
    curves = []
    for name, told in means.items():
        sigmas = [sigma for sigma in size.sigmas if "failed" not in told[f"sigma {sigma:g}"]]
        leaks = {sigma: told[f"sigma {sigma:g}"]["gain, averaged"] for sigma in sigmas}
        measured[name] = told | {"holds": _holding(leaks, told)}
        answers += [leaks[sigma] > HOLDS for sigma in sigmas if sigma <= ASKED[-1]]
        for key in ("last", "averaged"):
            curves.append(Curve(f"{name}, {key}", sigmas, [told[f"sigma {s:g}"][f"ours, {key}"] for s in sigmas]))
    figure = (
        (ClaimFigure("averaged", "sigma", "agreement with the nearest column", curves),) if scale == "paper" else ()
    )
    expected = f"a gain above {HOLDS} over the usual value at sigma 0.1, 0.5 and 2 on every table"
    why = (
        "a row's mean over all messages is X times the mean of the weights plus noise of sigma over the root of the epochs. "
        "Ours: agreement either way with the nearest column or sum, of the columns it offers; Algorithm 2: the paper's attack "
        "accuracy of its one answer, distances relative to the variance. Shuffled: the same vectors against the columns of other "
        "people. Cost: accuracy lost against no defence. Noise per row does not depend on the number of rows, so fewer rows of "
        "covertype change little: the span is known a little less well, and 100 epochs are fewer steps"
    )
    return CheckResult(every(answers), measured, expected, size.trials, why, figure)


def _means(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over trials; what failed once has failed."""
    failed = [run["failed"] for run in runs if "failed" in run]
    return (
        {"failed": failed[0]} if failed else {key: round(float(np.mean([r[key] for r in runs])), 4) for key in runs[0]}
    )


def _holding(leaks: dict[float, float], told: dict[str, Any]) -> str:
    """From which sigma on it holds, and what that costs."""
    above = [sigma for sigma in leaks if all(leak <= HOLDS for other, leak in leaks.items() if other >= sigma)]
    if not above:
        return f"at no sigma up to {max(leaks):g}"
    first = min(above)
    return f"from sigma {first:g}, at {100 * told[f'sigma {first:g}']['cost']:.1f} points of accuracy"


CLAIMS = (
    Claim(
        "plumbob",
        "P21",
        "noise and epochs",
        "noise that is drawn anew each epoch averages out: Gaussian masking does not hide two-valued columns",
        averaged_noise,
    ),
)
