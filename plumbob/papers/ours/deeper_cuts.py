"""Cuts of depth 1, 2 and 3, and pictures at the cut, attacked without the model (P41).

A column is found where an attack errs at most half as much as the best constant, and half as much as own columns:
    people       100 people of the federation in full             complete rows, inversion network
    predicted    100 other people who were predicted too          complete rows, inversion network
    unpaired     100 or 1,000 other people, without embeddings    matched moments; SDAR at depth 2, in 2,000 steps
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from plumbob.attacks import Attack
from plumbob.attacks.auxiliary.complete_rows import CompleteRows, learnt_alone
from plumbob.attacks.auxiliary.inversion_network import InversionNetwork
from plumbob.attacks.auxiliary.matched_moments import MatchedMoments
from plumbob.attacks.auxiliary.sdar import Sdar
from plumbob.data import registry
from plumbob.federation import Federation, FloatArray, halves, split_at_random, split_into_tiles
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import AuxiliaryRows, Grant, KnownPeople, Schema, Threat, View, cut
from plumbob.transcript import Transcript

TABLES = ("bank", "credit")
DEPTHS = (1, 2, 3)
SIZES: Mapping[Scale, tuple[int, int]] = {"smoke": (400, 1), "paper": (2_000, 1)}  # rows and trials
SHARE = 0.4  # of the columns that are hidden
HALF = 0.5
PICTURES: Mapping[Scale, int] = {"smoke": 80, "paper": 600}


def deeper(scale: Scale, seed: int) -> CheckResult:
    """Columns found by depth, table, grant and attack; pictures last."""
    parts = [part(data, lambda data=data: _of_table(data, scale, seed)) for data in TABLES]  # type: ignore[misc]  # mypy cannot infer it
    parts.append(part("pictures", lambda: _of_pictures(scale, seed)))
    measured = {key: value for done in parts for key, value in done.measured.items()}
    expected = (
        "with 100 rows whose embeddings are known more than half of the columns are found at every depth; with 1,000 rows whose "
        "embeddings are not, some are"
    )
    return CheckResult(every(a for done in parts for a in done.answers), measured, expected, SIZES[scale][1])


def _of_table(data: str, scale: Scale, seed: int) -> Part:
    rows, trials = SIZES[scale]
    sdar = Sdar.preset("small" if scale == "smoke" else "fast")
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for depth in DEPTHS:
        counts: dict[str, list[int]] = {}
        hidden = 0
        for trial in range(trials):
            log = _trained(data, depth, rows, seed + trial)
            for name, grant, attacks in _attackers(min(1_000, rows // 2), (sdar,) if depth == 2 else ()):
                view = cut(log, Threat("study", "", (Schema(), grant)))
                for attack in attacks:
                    found = _found(attack, view, log)
                    counts.setdefault(f"{name}, {attack.name}", []).append(int(found.sum()))
                    hidden += len(found) if not hidden else 0
        measured[f"{data}, depth {depth}"] = {"hidden columns": hidden} | {
            key: round(float(np.mean(value)), 1) for key, value in counts.items()
        }
        best = max(np.mean(value) for key, value in counts.items() if key.startswith("100 people"))
        answers.append(None if scale == "smoke" else bool(best > hidden / 2))
    return Part(measured, answers)


def _attackers(most: int, more: tuple[Attack, ...]) -> list[tuple[str, Grant, tuple[Attack, ...]]]:
    paired: tuple[Attack, ...] = (CompleteRows(), InversionNetwork())
    return [
        ("100 people", KnownPeople(100), paired),
        ("100 predicted", AuxiliaryRows(100, predicted=True), paired),
        ("100 unpaired", AuxiliaryRows(100), (MatchedMoments(),)),
        (f"{most:,} unpaired", AuxiliaryRows(most), (MatchedMoments(), *more)),
    ]


def _trained(data: str, depth: int, rows: int, seed: int) -> Transcript:
    rng = np.random.default_rng(seed)
    federation = split_at_random(registry.load(data), SHARE, rng)
    train, others = halves(federation.label, rng)
    return _network(depth).train(federation.rows(train[:rows]), federation.rows(others[:rows]), rng)


def _network(depth: int) -> SplitNetwork:
    return SplitNetwork(cut=depth)


def _found(attack: Attack, view: View, log: Transcript) -> FloatArray:
    """Of each hidden column, whether the attack errs half as much as the best constant and as own columns."""
    guess = attack.run(view, np.random.default_rng(0)).values
    true, alone = truth_of(log, view).values, learnt_alone(view)
    assert guess is not None
    assert alone is not None
    kept = np.setdiff1d(np.arange(len(true)), [] if view.people is None else view.people)
    lost, own = (((one - true)[kept] ** 2).mean(axis=0) for one in (guess, alone))
    return np.asarray(lost <= HALF * np.minimum(own, true[kept].var(axis=0)))


def _of_pictures(scale: Scale, seed: int) -> Part:
    """Quarters of digits behind convolutions with pooling, 100 people known in full (20 in a smoke test)."""
    rng, rows = np.random.default_rng(seed), PICTURES[scale]
    table = registry.load("mnist")
    federation = split_into_tiles(table.rows(np.sort(rng.permutation(len(table.values))[: 2 * rows])), 4)
    log = _pictured(federation, rows, rng)
    view = cut(log, Threat("study", "", (Schema(), KnownPeople(100 if scale == "paper" else 20))))
    true = truth_of(log, view).values
    assert view.people is not None
    kept = np.setdiff1d(np.arange(len(true)), view.people)
    measured: dict[str, object] = {}
    shown = {"best constant": np.tile(true[kept].mean(axis=0), (len(true), 1))}
    for attack in (CompleteRows(trees=0), InversionNetwork()):
        guess = attack.run(view, np.random.default_rng(0)).values
        assert guess is not None
        shown[attack.name] = guess
    for name, guess in shown.items():
        measured[name] = round(float(np.mean(-10 * np.log10(((guess - true)[kept] ** 2).mean(axis=1)))), 1)
    better = measured["inversion_network"] > measured["best constant"] + 1  # type: ignore[operator]  # numbers
    size = f"mnist, {rows} pictures in quarters, convolutions, decibels"
    return Part({size: measured}, [None if scale == "smoke" else better])


def _pictured(federation: Federation, rows: int, rng: np.random.Generator) -> Transcript:
    protocol = SplitNetwork(hidden=(32, 16), bottom="cafe", epochs=4, learning_rate=0.02, batch_size=64)
    return protocol.train(federation.rows(np.arange(rows)), federation.rows(np.arange(rows, 2 * rows)), rng)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P41",
        "bank, credit, mnist",
        "a deeper cut does not hide columns from whoever has complete rows of some people, nor pictures",
        deeper,
    ),
)
