"""Parties of split networks that deviate: a passive one completes its model (P42), an active one hijacks bottom models (P43).

P42   labels by model completion, with the agreed steps and with scaled ones, beside own columns with the same known labels
P43   columns by FSHA, beside own columns; and what a passive party can tell of it from the gradients g_i of a batch alone:
          r = |sum g_i| / sum |g_i|       honest gradients are residuals, which add up to little once the top model has a bias;
                                          those of a critic all point one way
      An alarm is a median of r over the last half of the rounds above a half. It holds against FSHA as published and not against
      who knows it: gradients less their mean have r = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from plumbob.attacks.auxiliary.complete_rows import learnt_alone
from plumbob.attacks.embeddings.fsha import Fsha
from plumbob.attacks.labels.active_completion import ActiveCompletion, complete
from plumbob.attacks.own_column_labels import labels_of_own_columns
from plumbob.data import registry
from plumbob.federation import Federation, IntArray, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, AnyGradient, AuxiliaryRows, Schema, Threat, View, cut
from plumbob.transcript import Transcript

ROWS: Mapping[Scale, int] = {"smoke": 200, "paper": 1_000}
TRIALS: Mapping[Scale, int] = {"smoke": 1, "paper": 3}
COMPLETED, HIJACKED = ("breast", "satellite"), ("bank", "satellite")
WATCHED = ("bank", "breast", "credit", "mushroom", "satellite", "student")
ALARM = 0.5
Parties = tuple[Federation, Federation]


def parties(data: str, share: float, rows: int, seed: int) -> Parties:
    """Rows of training and others."""
    rng = np.random.default_rng(seed)
    federation = split_at_random(registry.load(data), share, rng)
    train, others = halves(federation.label, rng)
    return federation.rows(train[:rows]), federation.rows(others[:rows])


def completion(scale: Scale, seed: int) -> CheckResult:
    """Share of the labels that were not known, and got right."""
    measured: dict[str, object] = {}
    gains = []
    for data in COMPLETED:
        found: dict[str, list[float]] = {}
        for trial in range(TRIALS[scale]):
            target, others = parties(data, 0.5, ROWS[scale], seed + trial)
            protocol = SplitNetwork(epochs=2 if scale == "smoke" else 40, batch_size=32, learning_rate=0.05)
            attack = ActiveCompletion.preset("small" if scale == "smoke" else "")
            for name, run in (("passive", protocol), ("active", protocol.deviating(attack.sends()))):
                log = run.train(target, others, np.random.default_rng(seed + trial))
                view = cut(log, THREATS["passive-own-steps"])
                guess = complete(view, attack.steps, attack.batch, np.random.default_rng(trial))
                found.setdefault(f"{name} completion", []).append(_right(guess.labels, view, target))
                accuracy = float(log.sealed("coordinator")["test accuracy"][0])
                found.setdefault(f"accuracy of the {'joint' if name == 'passive' else 'deviating'} model", []).append(
                    accuracy
                )
            found.setdefault("own columns", []).append(_right(labels_of_own_columns(view), view, target))
        measured[data] = {name: _mean(values) for name, values in found.items()}
        gains.append(float(np.mean(found["active completion"])) - float(np.mean(found["own columns"])))
    measured["gain of active completion over own columns"] = [round(gain, 3) for gain in gains]
    expected = "with 4 known labels for each class neither completion tells more than a twentieth beyond own columns"
    holds = None if scale == "smoke" else max(gains) < 0.05
    return CheckResult(holds, measured, expected, TRIALS[scale])


def _right(labels: IntArray | None, view: View, target: Federation) -> float:
    assert labels is not None
    asked = view.known_labels < 0
    return float(np.mean(labels[asked] == target.label[asked]))


def hijacking(scale: Scale, seed: int) -> CheckResult:
    """R2 by column, and the alarms of a passive party that looks at the gradients it gets."""
    measured: dict[str, object] = {}
    best, alarms = [], []
    threat = Threat("study", "", (Schema(), AuxiliaryRows(100 if scale == "smoke" else 1_000), AnyGradient()))
    for data in HIJACKED:
        target, others = parties(data, 0.4, ROWS[scale], seed)
        for preset in ("", "fast"):
            attack = Fsha.preset(preset)
            protocol = SplitNetwork(epochs=3 if scale == "smoke" else 60, batch_size=64)
            log = protocol.deviating(attack.sends().granted(threat)).train(target, others, np.random.default_rng(seed))
            view = cut(log, threat)
            guess, alone, true = (
                attack.run(view, np.random.default_rng(0)).values,
                learnt_alone(view),
                truth_of(log, view).values,
            )
            assert guess is not None
            assert alone is not None
            told, own = (1 - ((one - true) ** 2).mean(axis=0) / true.var(axis=0) for one in (guess, alone))
            best.append(int((told > np.maximum(own, 0.1)).sum()))
            alarms.append(watched(log))
            measured[f"{data}, {preset or 'as published'}"] = {
                "columns": len(told),
                "columns beyond own columns and 0.1": best[-1],
                "median R2": round(float(np.median(told)), 2),
                "median R2 of own columns": round(float(np.median(own)), 2),
                "r of the gradients received": round(alarms[-1], 2),
                "accuracy": round(float(log.sealed("coordinator")["test accuracy"][0]), 3),
            }
    honest = {data: _honest(data, scale, seed) for data in WATCHED}
    measured["r of honest gradients, largest of the runs"] = {data: round(max(rs), 2) for data, rs in honest.items()}
    runs = [r for rs in honest.values() for r in rs]
    measured["false alarms"] = f"{sum(r > ALARM for r in runs)} of {len(runs)} honest runs"
    measured["alarms"] = f"{sum(r > ALARM for r in alarms)} of {len(alarms)} hijacked runs"
    holds = None if scale == "smoke" else all(r > ALARM for r in alarms) and not any(r > ALARM for r in runs)
    expected = "a passive party tells chosen gradients from honest ones without a label, with no false alarm"
    why = "FSHA, made for pictures and ten thousand rounds, finds hardly any column of tables here"
    return CheckResult(holds, measured, expected, 1, why)


def _honest(data: str, scale: Scale, seed: int) -> list[float]:
    found = []
    for trial in range(TRIALS[scale]):
        target, others = parties(data, 0.4, ROWS[scale], seed + trial)
        protocol = SplitNetwork(epochs=3 if scale == "smoke" else 20, batch_size=64)
        found.append(watched(protocol.train(target, others, np.random.default_rng(seed + trial))))
    return found


def watched(log: Transcript) -> float:
    """The median of r over the last half of the rounds that a passive party got."""
    received = [m.payload for m in log.messages if m.name == "output gradients" and m.payload.size]
    rs = [
        float(np.linalg.norm(one.sum(axis=0)) / max(1e-30, float(np.linalg.norm(one, axis=1).sum())))
        for one in received[len(received) // 2 :]
    ]
    return float(np.median(rs))


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 3)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P42",
        "breast, satellite",
        "model completion, passive or active, tells hardly more labels than own columns with the same known labels",
        completion,
    ),
    Claim(
        "plumbob",
        "P43",
        "six tables",
        "gradients of a hijacker all point one way, which a passive party sees without a label; FSHA on tables",
        hijacking,
    ),
)
