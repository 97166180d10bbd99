"""P10: floor and ceiling. What attacks learn stays below what learners with everybody else's complete rows could learn.

Three figures a column, each a share of its variance (clipped at the 1 and 99 % quantiles, as for ceilings): explained from own
columns alone, by the best attack, and from own columns with messages. Where the second is above the third by more than two
standard errors, it must be floor by algebra above the ceiling of learners: the attack solves equations or lattices that scores
give, and is named with its reason. Scores dealt to other people must add nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumbob.attacks import knowing
from plumbob.attacks.base import Branches, finite
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import defence_named
from plumbob.errors import Unfit
from plumbob.federation import FloatArray, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import column_positions, predict, predicting, training
from plumbob.scoring.ceiling import Z, clipped, learnable
from plumbob.scoring.column_ceiling import ColumnCeiling
from plumbob.scoring.score import named
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript

DATA = ("bank", "credit", "satellite", "breast", "drive")
UNKNOWN = 0.35
Defended = tuple[str, dict[str, Any]]
SCORES: tuple[Defended, ...] = (
    ("none", {}),
    ("rounding", {"digits": 2}),
    ("rounding", {"digits": 1}),
    ("label_only", {}),
    ("noise", {"sigma": 0.1}),
)
CUT_LAYER: tuple[Defended, ...] = (
    ("none", {}),
    ("quantised_embeddings", {"bits": 8}),
    ("quantised_embeddings", {"bits": 4}),
    ("gaussian_masking", {"sigma": 0.1}),
)
ATTACKS = {  # the strongest here that take seconds
    "logistic_regression": ("lattice_decoding", "posterior_mean", "shadow_inversion"),
    "decision_tree": ("path_restriction",),
    "neural_network": ("linearised_posterior",),
    "split_network": ("binary_columns", "linear_equations"),
}
THREAT = {"split_network": "active-training"}
ROWS = {"neural_network": 400, "split_network": 600}
TRAINED, PREDICTED = 3_000, 1_200
DEALS = 100
EXACT = 0.98  # a share from which an attack counts as exact
WHY = {  # those that solve equations; the others learn as learners do, and have no excuse
    "lattice_decoding": "exact scores and the grid of the values make a lattice, which learners do not know",
    "posterior_mean": "it solves the model's own equations, which learners with these rows only come near to",
    "linearised_posterior": "it solves the model's own equations, which learners with these rows only come near to",
    "binary_columns": "two-valued columns are solved exactly, learners come near",
    "linear_equations": "columns are solved exactly, learners come near",
}


@dataclass(frozen=True)
class Figures:
    """One column of one trial."""

    name: str
    own: float
    attack: float
    attack_error: float
    by: str
    full: float
    full_error: float

    @property
    def beyond(self) -> bool:
        """Whether the attack learnt more than learners could, by more than two standard errors."""
        return self.attack - self.full > 2 * float(np.hypot(self.attack_error, self.full_error))

    @property
    def words(self) -> str:
        return f"{self.name}: {self.own:.2f} / {self.attack:.2f} / {self.full:.2f}"


def floor_and_ceiling(scale: Scale, seed: int) -> CheckResult:
    """All tables, protocols and defences; each table and protocol is kept as one share of the work."""
    names, trials = (DATA, 2) if scale == "paper" else (("breast",), 1)
    protocols = tuple(ATTACKS) if scale == "paper" else ("logistic_regression", "decision_tree")
    measured: dict[str, Any] = {}
    answers: list[bool | None] = []
    for data in names:
        for protocol in protocols:
            done = part(
                f"{data}-{protocol}",
                lambda data=data, protocol=protocol: _share(data, protocol, trials, scale, seed),  # type: ignore[misc]
            )
            measured |= done.measured
            answers += done.answers
        done = part(f"{data}-dealt", lambda data=data: _dealt(data, scale, seed))  # type: ignore[misc]
        measured |= done.measured
        answers += done.answers
    expected = (
        "own + messages at least the best attack less two standard errors, but for attacks that solve equations (floor by "
        "algebra above the ceiling of learners, named); "
        "dealt-out scores: the interval holds 0 in at least 95 % of the draws"
    )
    return CheckResult(all(answers), measured, expected, trials)


def _share(data: str, protocol: str, trials: int, scale: Scale, seed: int) -> Part:
    """Every defence of one protocol on one table."""
    measured: dict[str, Any] = {}
    answers: list[bool | None] = []
    for name, settings in CUT_LAYER if protocol == "split_network" else SCORES:
        found: list[Figures] = []
        for trial in range(trials):
            log = _world(data, protocol, (name, settings), trial, scale, seed)
            found += _figures(log, protocol, generator(seed, "P10", data, protocol, name, str(settings), trial))
        title = f"{name} {' '.join(map(str, settings.values()))}".strip()
        measured[f"{data}, {protocol}, {title}"] = told = _told(found)
        answers.append(not told["unexplained"])
    return Part(measured, answers)


def _told(found: Sequence[Figures]) -> dict[str, Any]:
    """Means and maxima over columns, the exceptions with their reasons, and every column as own / attack / own with messages."""
    beyond = [one for one in found if one.beyond]
    known = [one for one in beyond if one.by in WHY]
    gains = [one.full - one.own for one in found]
    reasons = Counter(one.by for one in known)
    return {
        "columns": len(found),
        "own": round(float(np.mean([one.own for one in found])), 3),
        "attack": round(float(np.mean([one.attack for one in found])), 3),
        "own and messages": round(float(np.mean([one.full for one in found])), 3),
        "largest gain": round(max(gains), 3),
        "beyond": {f"{by} ({count})": WHY[by] for by, count in reasons.items()},
        "unexplained": [one.words for one in beyond if one.by not in WHY],
        "each": [one.words for one in found],
    }


def _world(data: str, protocol: str, defended: Defended, trial: int, scale: Scale, seed: int) -> Transcript:
    """One run on a random split; the same split, rows and model draws under every defence."""
    rng = generator(seed, "P10 world", data, protocol, trial)
    federation = split_at_random(registry.load(data), UNKNOWN, rng)
    train, rest = halves(federation.label, rng)
    most = ROWS.get(protocol, PREDICTED) if scale == "paper" else 150
    target, trainer = federation.rows(np.sort(rest[:most])), federation.rows(np.sort(train[:TRAINED]))
    name, settings = defended
    defence = defence_named(name, **settings)
    kind = defence.protect(PROTOCOLS[protocol]())
    if kind.phase == "training":
        return training(kind).train(target, trainer, rng)
    model = predicting(kind).fit(
        trainer.values, trainer.label, len(trainer.classes), rng, list(column_positions(trainer).values())
    )
    release = defence.release(predicting(kind), model, target)
    return predict(predicting(kind), model, target, trainer, release=release, defence=defence.known())


def _figures(log: Transcript, protocol: str, rng: np.random.Generator) -> list[Figures]:
    """The three figures of every hidden column."""
    view = cut(log, THREATS[THREAT.get(protocol, "active-auxiliary")])
    truth = truth_of(log, view)
    true = clipped(truth.values)
    guesses = {name: _guess(view, name, truth.values, rng) for name in ATTACKS[protocol]}
    made = []
    for j, ceiling in enumerate(learnable(view, truth, rng)):
        shares = {name: _explained(guess[:, j], true[:, j]) for name, guess in guesses.items() if guess is not None}
        by = max(shares, key=lambda name: shares[name][0]) if shares else ""
        best, error = shares.get(by, (0.0, 0.0))
        full_error = max(0.0, min(ceiling.high - ceiling.gain, ceiling.gain - ceiling.low)) / Z
        made.append(Figures(ceiling.name, ceiling.own, max(0.0, best), error, by, ceiling.full, full_error))
    return made


def _explained(guess: FloatArray, true: FloatArray) -> tuple[float, float]:
    """1 - MSE / variance and its standard error over rows."""
    variance = float(true.var())
    if variance <= 1e-15:
        return 0.0, 0.0
    squares = (np.clip(guess, true.min(), true.max()) - true) ** 2
    return 1 - float(squares.mean()) / variance, float(squares.std()) / np.sqrt(len(true)) / variance


def _guess(view: View, attack: str, true: FloatArray, rng: np.random.Generator) -> FloatArray | None:
    """What an attack says of every cell; None where it does not apply."""
    chosen = knowing(attack, preset="fast")
    try:
        guess = finite(chosen.run(view, rng))
    except Unfit:
        return None
    if guess.branches is not None:
        return _middles(guess.branches, without_scores(view))
    if guess.vectors is not None:
        return named(guess.vectors, true, without_scores(view))
    return guess.values


def _middles(branches: Branches, prior: FloatArray) -> FloatArray:
    """The prior, moved into the interval that a row's claims leave of the column."""
    values = np.array(prior, dtype=np.float64)
    low, high = np.zeros(values.shape), np.ones(values.shape)
    for place, (column, threshold) in enumerate(zip(branches.column, branches.threshold, strict=True)):
        said = branches.paths[branches.chosen, place]
        high[said == 1, column] = np.minimum(high[said == 1, column], threshold)
        low[said == 2, column] = np.maximum(low[said == 2, column], threshold)
    return np.asarray(np.where((values < low) | (values > high), (low + high) / 2, values))


def _dealt(data: str, scale: Scale, seed: int) -> Part:
    """Scores of other people, and beside the table's columns one with a long tail: how often the interval holds 0."""
    log = _world(data, "logistic_regression", ("none", {}), 0, scale, seed)
    view = cut(log, THREATS["active-black-box"])  # its model would have no row for the column that is added
    truth = truth_of(log, view)
    rng = generator(seed, "P10 dealt", data)
    tail = np.exp(2 * rng.normal(size=(len(truth.values), 1)) + view.own[:, :1])
    truth = replace(
        truth, names=(*truth.names, "a long tail"), values=np.hstack([truth.values, tail / tail.max(axis=0)])
    )
    view = replace(view, unknown=np.append(view.unknown, view.unknown.max() + 1), unknown_names=truth.names)
    draws = DEALS if scale == "paper" else 10
    held = np.zeros(len(truth.names), dtype=np.int64)
    for _ in range(draws):
        order = rng.permutation(len(view.own))
        messages = tuple(replace(m, payload=m.payload[order]) if m.name == "scores" else m for m in view.messages)
        found = learnable(replace(view, messages=messages), truth, rng)
        held += [_holds_nothing(one) for one in found]
    told = {"draws": draws, "least of any column": int(held.min()), "of a long tail": int(held[-1])}
    return Part({f"{data}, scores dealt to others": told}, [bool(held.min() >= 0.95 * draws)])


def _holds_nothing(ceiling: ColumnCeiling) -> bool:
    return ceiling.low <= 0 <= ceiling.high


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P10",
        "floor and ceiling",
        "attacks stay below what learners with complete rows find, but for named exceptions; dealt-out scores add nothing",
        floor_and_ceiling,
    ),
)
