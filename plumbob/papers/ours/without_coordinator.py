"""Split models without a coordinator (jiang2022, Sections 3.2 and 7): each passive party's answer reaches the active party.

White box (P19) and black box with 100 complete rows (P20), on robot (four classes) and, of two classes, bank. A row counts as
recovered where every hidden value is within 0.001 of its range.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumbob.attacks import attack_named
from plumbob.attacks.scores._party_answers import every_solution
from plumbob.attacks.scores.answer_solving import answering_parties
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, halves, split
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.protocols.base import column_positions, predict
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.threats import LUO2021, THREATS, View, cut

RECOVERED = 1e-3  # largest miss of a cell of a recovered row, in units of the range
SEEDS = {"smoke": 1, "paper": 5}
PARTIES = {"smoke": (2,), "paper": (2, 3)}  # passive ones
ANSWERED_ROWS = {"smoke": 100, "paper": 1_000}
HIDDEN = {"smoke": (3, 4), "paper": (3, 4, 6)}  # columns of one passive party
COMPARED = 2  # seeds on which the scores alone are attacked too
BLACK_BOX = THREATS["active-black-box-auxiliary"]


@dataclass(frozen=True)
class Answered:
    """What one attack made of one federation."""

    recovered: float
    error: float
    several: float = float("nan")
    seconds: float = float("nan")

    @property
    def words(self) -> str:
        return f"{self.recovered:.1%} of rows, MSE {self.error:.2g}"


def federated(data: str, hidden: Sequence[int], seed: int, trial: int) -> Federation:
    """So many columns for each passive party, drawn at random; the active party has the others."""
    table = registry.load(data)
    names = [column.name for column in table.columns]
    order = generator(seed, "answers", data, tuple(hidden), trial).permutation(len(names))
    ends = np.cumsum(hidden)
    parts = np.split(order[: ends[-1]], ends[:-1])
    owners = {f"passive{p + 1}": [names[i] for i in sorted(part)] for p, part in enumerate(parts)}
    return split(table, {"active": [names[i] for i in sorted(order[ends[-1] :])]} | owners, "active")


def views(
    data: str, hidden: Sequence[int], layers: int, scale: Scale, seed: int, trial: int
) -> tuple[View, View, View, np.ndarray]:
    """White box and black box without a coordinator, white box with one, and the truth."""
    federation = federated(data, hidden, seed, trial)
    train, rest = halves(federation.label, generator(seed, "answered rows", data, trial))
    trainer, target = federation.rows(train), federation.rows(rest[: ANSWERED_ROWS[scale]])
    blocks = list(column_positions(federation).values())
    protocol = SplitModels(layers=layers, coordinator=False)
    rng = generator(seed, "answering model", data, trial)
    model = protocol.fit(trainer.values, trainer.label, len(federation.classes), rng, blocks)
    log = predict(protocol, model, target, trainer)
    usual = cut(predict(SplitModels(layers=layers), model, target, trainer), LUO2021)
    white = cut(log, LUO2021)
    return white, cut(log, BLACK_BOX), usual, target.values[:, white.unknown]


def answered(name: str, view: View, truth: np.ndarray, seed: int, **settings: object) -> Answered:
    """One attack, judged."""
    begun = time.perf_counter()
    guess = attack_named(name, **settings).run(view, generator(seed, "attack", name)).values
    seconds = time.perf_counter() - begun
    assert guess is not None
    gaps = np.abs(guess - truth)
    return Answered(float((gaps.max(axis=1) < RECOVERED).mean()), float((gaps**2).mean()), seconds=seconds)


def several_solutions(view: View, seed: int) -> float:
    """The share of rows for which some party's answer has more than one solution in the box."""
    rows, rng = np.arange(len(view.own)), generator(seed, "solutions")
    counts = [every_solution(party, rows, 48, rng).counts for party in answering_parties(view) if party.determined]
    return float((np.stack(counts) > 1).any(axis=0).mean()) if counts else float("nan")


def _share(several: Sequence[float]) -> str:
    return (
        "infinitely many, with more columns than equations"
        if np.isnan(several).any()
        else f"{np.mean(several):.1%} of rows"
    )


def _mean(found: Sequence[Answered]) -> Answered:
    recovered, error, seconds = (
        float(np.mean([getattr(f, k) for f in found])) for k in ("recovered", "error", "seconds")
    )
    return Answered(recovered, error, seconds=seconds)


def white_box(scale: Scale, seed: int) -> CheckResult:
    """P19. One hidden layer of 8 units, and none; one, two and three passive parties."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    trials = range(SEEDS[scale])
    for hidden in HIDDEN[scale]:
        made = [views("robot", (hidden,), 1, scale, seed, trial) for trial in trials]
        solved = [answered("answer_solving", white, truth, seed) for white, _, _, truth in made]
        scores = [answered("linearised_posterior", usual, truth, seed) for _, _, usual, truth in made[:COMPARED]]
        several = [several_solutions(white, seed) for white, *_ in made]
        bare = [answered("answer_solving", replace(white, steps=None), truth, seed) for white, _, _, truth in made]
        measured[f"robot, {hidden} hidden columns"] = (
            f"answers: {_mean(solved).words} (worst seed {min(s.recovered for s in solved):.1%}); "
            f"without the columns' decimals: {_mean(bare).recovered:.1%}; "
            f"scores alone: {_mean(scores).words}; several solutions: {_share(several)}; "
            f"{_mean(solved).seconds:.1f} s for {ANSWERED_ROWS[scale]:,} rows"
        )
        if hidden <= 4:
            answers.append(_mean(solved).recovered >= 0.98)
    for layers, words in ((1, "network"), (0, "linear")):
        for parties in PARTIES[scale]:
            made = [views("robot", (3,) * parties, layers, scale, seed, trial) for trial in trials]
            solved = [answered("answer_solving", white, truth, seed) for white, _, _, truth in made]
            scores = [answered("linearised_posterior", usual, truth, seed) for _, _, usual, truth in made[:COMPARED]]
            measured[f"robot, {words}, passive parties with {' + '.join(['3'] * parties)} columns"] = (
                f"answers: {_mean(solved).words}; scores alone: {_mean(scores).words}"
            )
            answers.append(_mean(solved).recovered >= 0.98)
    made = [views("bank", (3,), 1, scale, seed, trial) for trial in trials]
    both = [
        _mean([answered(name, view, truth, seed) for view, truth in cases])
        for name, cases in (
            ("answer_solving", [(white, truth) for white, _, _, truth in made]),
            ("linearised_posterior", [(usual, truth) for _, _, usual, truth in made[:COMPARED]]),
        )
    ]
    measured["bank (two classes), 3 hidden columns"] = f"answers: {both[0].words}; scores alone: {both[1].words}"
    why = (
        "an answer is one equation a row more than the scores, and each party's own; rows with several solutions are told "
        "apart by the decimals of the columns; with two classes it says what the score says"
    )
    expected = (
        "at least 98 % of rows within 0.001 for 3 and 4 hidden columns; the same for each of 2 and 3 passive parties"
    )
    return CheckResult(every(answers), measured, expected, SEEDS[scale], why)


def black_box(scale: Scale, seed: int) -> CheckResult:
    """P20. The answers about 100 auxiliary rows, their scores alone, and linear parts."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for layers, words in ((0, "linear"), (1, "network")):
        for hidden in ((3,), (4,), (3, 3)):
            made = [views("robot", hidden, layers, scale, seed, trial) for trial in range(SEEDS[scale])]
            fits = [answered("shadow_answers", black, truth, seed) for _, black, _, truth in made]
            measured[f"robot, {words}, hidden columns {' + '.join(map(str, hidden))}"] = (
                f"{_mean(fits).words} (worst seed {min(f.recovered for f in fits):.1%}), {_mean(fits).seconds:.1f} s"
            )
            if layers or hidden[0] == 3:  # a linear part of 4 columns has only 3 equations that differ
                answers.append(_mean(fits).recovered >= 0.98)
    why = "an answer is as many exact numbers as there are classes, of one party's columns alone"
    expected = "at least 98 % of rows, as with the model; not of a linear part of 4 columns, which has 3 equations"
    return CheckResult(every(answers), measured, expected, SEEDS[scale], why)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P19", "no coordinator", "each passive party's answer gives its row away", white_box),
    Claim("plumbob", "P20", "no coordinator, black box", "100 complete rows stand in for the model", black_box),
)
