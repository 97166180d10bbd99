"""Planted leaks: random tables and guesses of which it is known by construction what they tell about each person.

    nothing          a guess that is drawn without looking at the column
    leak g           m + g (x - m) + sqrt(g (1 - g)) s e,  whose squared error is (1 - g) of the variance s^2
    exact for some   the value for a random share q of the people; for the others the mean, which leaves (1 - q) of the variance,
                     or another person's value: nobody can tell which is which, and the best use of it leaves 1 - q^2
    order only       a steep monotone function of the column, off by far more than guessing
    exact            the value

Columns are of many kinds: bell-shaped, heavy-tailed, of two values, whole numbers, mostly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.auditing.concluding.judging import Verdict
from plumbob.auditing.concluding.summarise import summarise
from plumbob.auditing.running.finding import Finding
from plumbob.federation import FloatArray
from plumbob.kinds import kind_of
from plumbob.scoring.score import score
from plumbob.scoring.truth import Truth
from plumbob.threats import View

Maker = Callable[[int, np.random.Generator], FloatArray]
KINDS: dict[str, tuple[Maker, float]] = {  # with the step of the column's grid
    "normal": (lambda n, rng: rng.standard_normal(n), 0.0),
    "uniform": (lambda n, rng: rng.random(n), 0.0),
    "lognormal 1": (lambda n, rng: rng.lognormal(0.0, 1.0, n), 0.0),
    "lognormal 2": (lambda n, rng: rng.lognormal(0.0, 2.0, n), 0.0),
    "student": (lambda n, rng: rng.standard_t(2, n), 0.0),
    "two values": (lambda n, rng: (rng.random(n) < rng.uniform(0.02, 0.5)).astype(float), 1.0),
    "whole numbers": (lambda n, rng: rng.integers(0, rng.integers(3, 80), n).astype(float), 1.0),
    "mostly zero": (lambda n, rng: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2.0, size=n)), 0.0),
}
TRUTHS = {  # what is planted, and the part of the variance that it explains; None: not of that kind
    "nothing": 0.0,
    "leak 5 %": 0.05,
    "leak 10 %": 0.10,
    "leak 30 %": 0.30,
    "exact for 1 in 50, else the mean": 0.02,
    "exact for 1 in 20, else the mean": 0.05,
    "exact for 1 in 50, else others": 0.02**2,
    "exact for 1 in 20, else others": 0.05**2,
    "order only": None,
    "exact": 1.0,
}
EXACT_SHARES = {"1 in 50": 0.02, "1 in 20": 0.05, "1 in 5": 0.2}
ROWS = (80, 3000)
SHARES = (0.28, *[0.08] * 9)  # how often each truth is planted


@dataclass(frozen=True)
class Planted:
    """One column: what was planted, in which kind of column, and what was said of it."""

    truth: str
    kind: str
    rows: int
    verdict: Verdict

    @property
    def leak(self) -> float | None:
        return TRUTHS[self.truth]


def column(kind: str, rows: int, rng: np.random.Generator) -> FloatArray:
    """A column in units of its range, as tables are prepared; never constant."""
    make, _ = KINDS[kind]
    drawn = make(rows, rng)
    if np.ptp(drawn) == 0:
        drawn[0] += 1.0
    return np.asarray((drawn - drawn.min()) / np.ptp(drawn))


def guess(truth: str, hidden: FloatArray, rng: np.random.Generator) -> FloatArray:
    """What an attack says that knows just so much."""
    rows, mean, spread = len(hidden), hidden.mean(), hidden.std()
    if truth == "exact":
        return hidden.copy()
    if truth == "nothing":
        way = rng.integers(4)
        wide = float(rng.uniform(0.0, 1.0))
        return (
            rng.permutation(hidden),
            mean + wide * spread * rng.standard_normal(rows),
            np.full(rows, rng.random()),
            rng.random(rows),
        )[way]
    if truth == "order only":
        return np.asarray(3.0 + 2.0 * np.exp(hidden) + 0.05 * spread * rng.standard_normal(rows))
    if truth.startswith("exact for"):
        share, _, others = truth.removeprefix("exact for ").partition(", else ")
        known = rng.random(rows) < EXACT_SHARES[share]
        return np.where(known, hidden, rng.permutation(hidden) if others == "others" else mean)
    leak = TRUTHS[truth] or 0.0
    noise = rng.standard_normal(rows)
    noise -= noise.mean()
    return np.asarray(mean + leak * (hidden - mean) + np.sqrt(leak * (1 - leak)) * spread * noise / noise.std())


def world(seed: int, columns: int = 8) -> list[Planted]:
    """One audit of a random table: every column judged as all of them together are."""
    rng = np.random.default_rng([seed, 161803])
    rows = int(np.exp(rng.uniform(*np.log(ROWS))))
    kinds = [str(kind) for kind in rng.choice(list(KINDS), columns)]
    truths = [str(one) for one in rng.choice(list(TRUTHS), columns, p=SHARES)]
    hidden = np.stack([column(kind, rows, rng) for kind in kinds], axis=1)
    told = np.stack([guess(truth, hidden[:, j], rng) for j, truth in enumerate(truths)], axis=1)
    return [
        Planted(truth, kind, rows, verdict)
        for truth, kind, verdict in zip(truths, kinds, judged(told, hidden, kinds, rng), strict=True)
    ]


def judged(told: FloatArray, hidden: FloatArray, kinds: list[str], rng: np.random.Generator) -> list[Verdict]:
    """The verdicts of one trial, in the order of the columns."""
    rows, columns = hidden.shape
    own = rng.random((rows, int(rng.integers(1, 6))))
    scores = np.full((rows, 2), 0.5)
    view = View.from_arrays(own=own, scores=scores, unknown=columns)
    steps = [KINDS[kind][1] for kind in kinds]
    truth = Truth(
        view.unknown_names,
        hidden,
        hidden[:0],
        np.zeros(0, dtype=np.int64),
        kinds=tuple(kind_of(hidden[:, j], step) for j, step in enumerate(steps)),
    )
    found = score(Guess(view.unknown_names, values=told), truth, view, rng)
    finding = Finding("k", "d", "p", "t", "a", "none", 0.5, own.shape[1], columns, 2, 0, 0, None, 0.0, found, 0.0, 0.0)
    (summary,) = summarise([finding])
    by_name = {verdict.column: verdict for verdict in summary.verdicts}
    return [by_name[name] for name in view.unknown_names]
