"""The levels of a verdict, checked on leaks that were planted: how often they are wrong, and what they can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.ours.planted_leaks import EXACT_SHARES, KINDS, Planted, column, judged, world
from plumbob.scoring.leak_levels import Level

WORLDS = {"smoke": 60, "paper": 1000}
DRAWS = {"smoke": 5, "paper": 20}
MOST, MOST_BOUND = 0.05, 0.07  # share of wrong answers, and its upper 95 % bound
SIZES = (300, 1000)  # rows that part small, middle and large tables
SMOOTH = ("normal", "uniform", "lognormal 1", "student")  # where no value is hit by luck


@dataclass(frozen=True)
class Rate:
    """So many of so many, with the exact one-sided upper 95 % bound."""

    wrong: int
    of: int

    @property
    def bound(self) -> float:
        return float(betaincinv(self.wrong + 1, self.of - self.wrong, 0.95)) if self.wrong < self.of else 1.0

    @property
    def holds(self) -> bool:
        return self.wrong <= MOST * self.of and self.bound <= MOST_BOUND

    @property
    def words(self) -> str:
        """
        >>> Rate(0, 100).words
        '0 of 100 (at most 3.0 %)'
        """
        return f"{self.wrong} of {self.of:,} (at most {100 * self.bound:.1f} %)"


def false_leaks(worlds: Sequence[Sequence[Planted]]) -> Rate:
    """Tables in which any column of which nothing was told is said to leak."""
    asked = [[one for one in columns if one.truth == "nothing"] for columns in worlds]
    return Rate(sum(any(one.verdict.level.leaks for one in told) for told in asked), sum(map(bool, asked)))


def missed_leaks(columns: Sequence[Planted]) -> Rate:
    """Columns said to be safe whose leak is larger than the limit that is stated."""
    safe = [one for one in columns if one.verdict.level is Level.NONE and one.leak is not None]
    return Rate(sum((one.leak or 0.0) > (one.verdict.unseen or 0.0) for one in safe), len(safe))


def undecided(columns: Sequence[Planted]) -> list[float]:
    """The share of undecided columns in small, middle and large tables."""
    size = np.searchsorted(SIZES, [one.rows for one in columns], side="right")
    open_ = np.array([one.verdict.level is Level.UNDECIDED for one in columns])
    return [float(open_[size == place].mean()) if (size == place).any() else float("nan") for place in range(3)]


def some_exact(share: str, rows: int, draws: int) -> int:
    """In how many tables a column is found of which so many people are known exactly, and the others dealt at random."""
    found = 0
    for draw in range(draws):
        rng = np.random.default_rng([draw, rows, 577215])
        kind = SMOOTH[draw % len(SMOOTH)]
        hidden = column(kind, rows, rng)
        known = np.zeros(rows, dtype=np.bool_)
        known[rng.choice(rows, round(EXACT_SHARES[share] * rows), replace=False)] = True
        told = np.where(known, hidden, rng.permutation(hidden))
        (verdict,) = judged(told[:, None], hidden[:, None], [kind], rng)
        found += verdict.level in (Level.EXACT_FOR_SOME, Level.EXACT)
    return found


def nearly_all_exact(draws: int) -> int:
    """Tables in which a heavy-tailed column, 98 % exact and wildly wrong in the rest, is said to be recovered for some."""
    found = 0
    for draw in range(draws):
        rng = np.random.default_rng([draw, 141421])
        hidden = column("lognormal 2", 1000, rng)
        told = np.where(rng.random(1000) < 0.98, hidden, rng.random(1000))
        (verdict,) = judged(told[:, None], hidden[:, None], ["lognormal 2"], rng)
        found += verdict.level is Level.EXACT_FOR_SOME
    return found


def check(scale: Scale, seed: int) -> CheckResult:
    """Error rates over random tables, and what is found of leaks that concern few people."""
    count, draws = WORLDS[scale], DRAWS[scale]
    worlds = [world(one) for one in range(seed * count, (seed + 1) * count)]
    columns = [one for told in worlds for one in told]
    leaks, misses, small = false_leaks(worlds), missed_leaks(columns), undecided(columns)
    partly = {"1 in 50 of 1,000": some_exact("1 in 50", 1000, draws), "1 in 5 of 300": some_exact("1 in 5", 300, draws)}
    heavy = nearly_all_exact(draws)
    exact = [one for one in columns if one.truth == "exact"]
    answers = {
        "false leaks": leaks.holds or (scale == "smoke" and leaks.wrong <= MOST * leaks.of),
        "leaks above the limit": misses.holds,
        "undecided falls with rows": small[0] > small[1] > small[2],
        "1 in 50": partly["1 in 50 of 1,000"] >= 0.95 * draws,
        "1 in 5": partly["1 in 5 of 300"] == draws,
        "nearly all exact": heavy == draws,
        "exact": all(one.verdict.level is Level.EXACT for one in exact),
    }
    levels = {
        truth: {
            str(level): sum(one.truth == truth and one.verdict.level is level for one in columns)
            for level in reversed(Level)
        }
        for truth in dict.fromkeys(one.truth for one in columns)
    }
    measured = {
        "tables with a false leak": leaks.words,
        "columns called safe with a leak above the stated limit": misses.words,
        "undecided below 300, below 1,000 and above rows": [round(one, 3) for one in small],
        "some people exact, found": {name: f"{number} of {draws}" for name, number in partly.items()},
        "heavy tail, 98 % exact": f"{heavy} of {draws}",
        "levels by what was planted": levels,
        "kinds": list(KINDS),
    }
    expected = (
        "at most 5 % (upper bound 7 %) of either error; undecided falls; 1 in 50 in 95 % of tables, 1 in 5 in all"
    )
    why = "; ".join(f"{name} fails" for name, right in answers.items() if not right)
    return CheckResult(all(answers.values()), measured, expected, count, why or "every part holds")


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P9", "levels", "a leak is said where there is one, and no leak only below a stated limit", check),
)
