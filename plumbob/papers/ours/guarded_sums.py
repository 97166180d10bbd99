"""Sums of encrypted boosting: what bins are worth in values (P17), and what the defences of weng2022, Section 6, do (P18)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.sums.bin_mapping import BinMapping
from plumbob.attacks.sums.code_decoding import CodeDecoding
from plumbob.attacks.sums.reverse_sum import ReverseSum
from plumbob.attacks.sums.split_sides import SplitSides
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import Defence, defence_named
from plumbob.federation import Federation, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import YesNoOpen, below, every
from plumbob.protocols.base import training
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.scoring.metrics import rank_correlation
from plumbob.scoring.score import Score, score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import COORDINATOR, Transcript

MAPPED = {"breast": 280, "credit": 1_800}  # rows trained on, all of them with a code
KNOWN = {"smoke": (30, 100), "paper": (10, 30, 100, 280)}
MAPPED_TRIALS = {"smoke": 2, "paper": 3}
BUDGETS_OF_SUMS = {"smoke": (10.0,), "paper": (1_000.0, 100.0, 10.0, 1.0)}
GUARDED_ROWS = {"smoke": 60, "paper": 120}
GUARDED_TRIALS = {"smoke": 1, "paper": 2}
PRICED_ROWS = {"smoke": 20, "paper": 60}  # trained on with real ciphertexts of 1,024 bits
CODES_READ: tuple[tuple[HiddenCode, Attack], ...] = ((MagicNumbers(), ReverseSum()), (LabelledGroups(), CodeDecoding()))
ACTIVE = THREATS["active-training"]


def _federation(data: str, rows: int, seed: int, trial: int) -> tuple[Federation, Federation]:
    """Rows to train on and rows of other people; half of the columns are the passive party's."""
    rng = generator(seed, "guarded sums", data, trial)
    whole = split_at_random(registry.load(data), 0.5, rng)
    one, other = halves(whole.label, rng)
    return whole.rows(one[:rows]), whole.rows(other)


def values_of_bins(scale: Scale, seed: int) -> CheckResult:
    """Values from bins and rows of other people, against the best guess without messages, which has the same rows."""
    measured: dict[str, object] = {}
    answers: list[YesNoOpen] = []
    figures = []
    for data in MAPPED if scale == "paper" else ("breast",):
        judged = {known: list[Score]() for known in KNOWN[scale]}
        medians = {known: list[Score]() for known in KNOWN[scale]}
        for trial in range(MAPPED_TRIALS[scale]):
            train, others = _federation(data, MAPPED[data], seed, trial)
            protocol = SecureBoost(trees=1, depth=3, key_bits=0, packed=False, code=MagicNumbers())
            log = protocol.train(train, others, generator(seed, "training", trial))
            for known in KNOWN[scale]:
                view = replace(cut(log, ACTIVE), auxiliary=others.values[:known])
                for attack, kept in ((BinMapping(), judged), (BinMapping.preset("median"), medians)):
                    guess = attack.run(view, generator(seed, "attack", trial))
                    kept[known].append(score(guess, truth_of(log, view), view, generator(seed, "score", trial)))
        for known, found in judged.items():
            by_medians = {f"{key}, by medians": value for key, value in _told(medians[known]).items()}
            bare = _mean([1 - _without(one) / one.baselines["best_constant"] for one in found])
            measured[f"{data}, {known} known"] = _told(found) | {"the same without messages": bare} | by_medians
        answers.append(below([one.error for one in judged[100]], [_without(one) for one in judged[100]]))
        figures.append(_mapped_figure(data, judged))
    expected = "with 100 rows of other people the error is below that of the best guess without messages"
    why = "the guess without messages regresses each column on the attacker's own, in the same known rows"
    return CheckResult(every(answers), measured, expected, MAPPED_TRIALS[scale], why, tuple(figures))


def _told(found: Sequence[Score]) -> dict[str, float]:
    """R2 as the mean over columns and of all cells together, the share of cells within 5 % of the range, and the order."""
    columns = [column for one in found for column in one.columns]
    return {
        "R2": _mean([column.r2 for column in columns]),
        "R2 of all cells": _mean([1 - one.error / one.baselines["best_constant"] for one in found]),
        "within 5 %": _mean([column.within_5 for column in columns]),
        "rank": _mean([column.rank for column in columns]),
    }


def _without(judged: Score) -> float:
    return min(judged.baselines[name] for name in ("no_message", "own_mean"))


def _mapped_figure(data: str, judged: Mapping[int, list[Score]]) -> ClaimFigure:
    x = [float(known) for known in judged]
    mapped = [_mean([one.error for one in found]) for found in judged.values()]
    own = [_mean([_without(one) for one in found]) for found in judged.values()]
    return ClaimFigure(data, "known rows", "MSE", [Curve("bin mapping", x, mapped), Curve("without messages", x, own)])


def guarded_sums(scale: Scale, seed: int) -> CheckResult:
    """Each defence against both codes and the sides of splits: what is learnt, and accuracy, bytes and seconds."""
    measured: dict[str, object] = {}
    read: dict[bool, list[float]] = {True: [], False: []}
    for name, defence in _defences(scale).items():
        told: dict[str, list[float]] = {}
        for trial in range(GUARDED_TRIALS[scale]):
            parties = _federation("breast", GUARDED_ROWS[scale], seed, trial)
            for code, attack in CODES_READ:
                log = _trained(defence, parties, generator(seed, "training", trial), code=code, trees=3)
                told.setdefault(f"bins by {attack.name}", []).append(_right(attack, log))
                if attack is CODES_READ[0][1]:
                    told.setdefault("accuracy", []).append(float(log.sealed(COORDINATOR)["test accuracy"][0]))
                    for words, adaptive in (("order by sides", True), ("order by sides, unaware", False)):
                        told.setdefault(words, []).append(_rank(SplitSides(adaptive=adaptive), log))
        read["blinding" in name] += [v for key, values in told.items() if key.startswith("bins") for v in values]
        measured[name] = {key: _mean(values) for key, values in told.items()} | _price(name, defence, scale, seed)
    least, most = min(read[False]), max(read[True])
    measured |= {"least read without blinding": round(least, 3), "most read with blinding": round(most, 3)}
    expected = "codes are read in full under shared indicators and under noise at every budget, and not under blinding"
    why = (
        "the sums that are opened are the same, and noise is drawn in units of the gradients' precision, above the code; "
        "blinding beside noise covers the bits below. Bytes and seconds are of one tree under a key of 1,024 bits"
    )
    return CheckResult(least == 1.0 and most < 0.2, measured, expected, GUARDED_TRIALS[scale], why)


def _defences(scale: Scale) -> dict[str, Defence]:
    noise = {f"dp_histograms {b:g}": defence_named("dp_histograms", epsilon=b) for b in BUDGETS_OF_SUMS[scale]}
    both = {"dp_histograms 10+blinding": defence_named("dp_histograms+blinding", dp_histograms={"epsilon": 10.0})}
    named = {name: defence_named(name) for name in ("none", "shared_indicators", "blinding")}
    return named | noise | both


def _trained(
    defence: Defence,
    parties: tuple[Federation, Federation],
    rng: np.random.Generator,
    *,
    code: HiddenCode,
    trees: int,
    key_bits: int = 0,
) -> Transcript:
    protocol = SecureBoost(trees=trees, depth=3, key_bits=key_bits, packed=False, code=code)
    return training(defence.protect(protocol)).train(*parties, rng)


def _right(attack: Attack, log: Transcript) -> float:
    """Of all cells, those whose bin was named rightly."""
    orders = attack.run(cut(log, ACTIVE), np.random.default_rng(0)).orders
    assert orders is not None
    return float(np.mean(orders.bins == log.sealed("passive")["bins"]))


def _rank(attack: Attack, log: Transcript) -> float:
    """The mean rank correlation of the columns with their guesses."""
    view: View = cut(log, ACTIVE)
    values = attack.run(view, np.random.default_rng(0)).values
    assert values is not None
    return float(np.mean(rank_correlation(values, log.sealed("passive")["columns"])))


def _price(name: str, defence: Defence, scale: Scale, seed: int) -> dict[str, float]:
    """What one tree takes under a real key; noise costs an addition for each sum, whatever its budget."""
    if name.startswith("dp_histograms") and name != "dp_histograms 10":
        return {}
    parties = _federation("breast", PRICED_ROWS[scale], seed, 0)
    started = time.perf_counter()
    log = _trained(defence, parties, generator(seed, "price"), code=MagicNumbers(), trees=1, key_bits=1_024)
    seconds = time.perf_counter() - started
    return {"megabytes": round(log.bytes_sent() / 1e6, 2), "seconds": round(seconds, 1)}


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P17", "values of bins", "bins become values by rows of other people", values_of_bins),
    Claim(
        "plumbob", "P18", "sums", "shared indicators and noise leave codes readable; blinding does not", guarded_sums
    ),
)
