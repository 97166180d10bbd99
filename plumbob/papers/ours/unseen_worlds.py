"""Unseen data: random CSV files by seed, in which it is known in advance what leaks and what does not.

Every world plants columns that are provably in the view (to be called exact) or provably not (to be called safe); the proof
stands with each of them. The rest is as wild as files are: scales, words, dates, gaps, tails, orders of rows, separators.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

Maker = Callable[[int, np.random.Generator], list[str]]
NAMES = (
    *(
        "age",
        "größe",
        "età",
        "net worth",
        "Kürzel",
        "col-7",
        "x.1",
        "a/b",
        "名前",
        "n°",
        "visits (2019)",
        "q&a",
        "rate %",
    ),
    *("tenure", "Δt", "score_2", "x,y", "left;right", "it's", 'said "so"', "T", "1st", "доход", "city name", "UPPER"),
)
PARTIES = (("bank", "shop", "clinic"), ("A", "B", "C"), ("north office", "süd", "est"), ("p1", "p2", "p3"))
LABEL_WORDS = (("no", "yes"), ("0", "1"), ("good", "bad"), ("-1", "1"), ("benign", "malignant"), ("Ja", "Nein"))
WORDS = ("oslo", "rome", "bern", "łódź", "n/a?", "none of these", "A1", "b 2", "C-3", "d/4", "über", "zzz")
PAIRS = (("yes", "no"), ("Y", "N"), ("0", "1"), ("true", "false"), ("m", "f"), ("1", "2"), ("left", "right"))
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%Y-%m-%d %H:%M")
WORLD_SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class World:
    """Files, the flags of `plumbob init` that describe them, and what must come out."""

    kind: str
    proof: str
    protocol: str
    columns: dict[str, dict[str, list[str]]]  # by party; the first party is active
    label: list[str]
    threat: str = "active"
    defence: str = "none"
    exact: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    premise: str = ""  # what must be looked up in the transcripts before `safe` is proven

    @property
    def active(self) -> str:
        return next(iter(self.columns))


# columns


def floats(rows: int, rng: np.random.Generator) -> list[str]:
    """Numbers of any scale and offset."""
    scale = 10.0 ** rng.uniform(-6, 9)
    return [f"{value:.9g}" for value in scale * (rng.normal(size=rows) + rng.normal())]


def integers(rows: int, rng: np.random.Generator) -> list[str]:
    low, span = int(rng.integers(-1000, 1000)), int(rng.integers(3, 5000))
    return [str(value) for value in rng.integers(low, low + span, rows)]


def yes_no(rows: int, rng: np.random.Generator) -> list[str]:
    pair = PAIRS[rng.integers(len(PAIRS))]
    return [pair[value] for value in (rng.random(rows) < rng.uniform(0.25, 0.75)).astype(int)]


def categories(rows: int, rng: np.random.Generator) -> list[str]:
    words = rng.permutation(WORDS)[: rng.integers(3, len(WORDS) + 1)]
    return [str(word) for word in rng.choice(words, rows, p=rng.dirichlet(np.full(len(words), 3.0)))]


def dates(rows: int, rng: np.random.Generator) -> list[str]:
    form = DATES[rng.integers(len(DATES))]
    first = date(int(rng.integers(1930, 2015)), 1, 1)
    return [(first + timedelta(days=int(day))).strftime(form) for day in rng.integers(0, 4000, rows)]


def tails(rows: int, rng: np.random.Generator) -> list[str]:
    """Few rows hold most of the sum."""
    drawn = rng.lognormal(sigma=rng.uniform(1.0, 2.5), size=rows) if rng.random() < 0.5 else rng.standard_t(2, rows)
    return [f"{value:.8g}" for value in 100 * drawn]


def gaps(rows: int, rng: np.random.Generator) -> list[str]:
    """Numbers, and up to a fifth of the cells empty."""
    missing = rng.random(rows) < rng.uniform(0.02, 0.2)
    return ["" if gap else value for gap, value in zip(missing, floats(rows, rng), strict=True)]


def constant(rows: int, rng: np.random.Generator) -> list[str]:
    return [("7", "same", "2020-02-02")[rng.integers(3)]] * rows


ANY: tuple[Maker, ...] = (floats, integers, yes_no, categories, dates, tails, gaps)


@dataclass
class Hand:
    """Deals columns with names that no other column has."""

    rows: int
    rng: np.random.Generator
    free: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = [str(name) for name in self.rng.permutation(NAMES)]

    def deal(self, makers: Sequence[Maker]) -> dict[str, list[str]]:
        return {self.free.pop(): make(self.rows, self.rng) for make in makers}

    def some(self, low: int, high: int, makers: Sequence[Maker] = ANY) -> dict[str, list[str]]:
        """That many columns of random kinds, and now and then a constant one."""
        chosen = [makers[i] for i in self.rng.integers(len(makers), size=self.rng.integers(low, high + 1))]
        return self.deal([*chosen, *([constant] if self.rng.random() < 0.3 else [])])


def number(cells: Sequence[str]) -> np.ndarray:
    """The order of a column's cells as numbers: values where they are, else the rank of the word."""
    try:
        return np.array([float(cell) if cell else 0.0 for cell in cells])
    except ValueError:
        return np.unique(np.array(cells), return_inverse=True)[1].astype(np.float64)


def label_of(columns: Sequence[Sequence[str]], classes: int, rng: np.random.Generator) -> list[str]:
    """Classes of a noisy sum of the columns' ranks, of any imbalance."""
    ranks = np.array([np.argsort(np.argsort(number(cells))) / len(cells) for cells in columns])
    total = rng.normal(size=len(ranks)) @ ranks + 0.3 * rng.normal(size=ranks.shape[1])
    shares = rng.dirichlet(np.full(classes, 4.0)) if classes > 2 else np.array([0.9, 0.1])
    if classes == 2 and rng.random() < 0.7:
        shares = np.array([0.6, 0.4])
    codes = np.searchsorted(np.quantile(total, np.cumsum(shares)[:-1]), total)
    words = LABEL_WORDS[rng.integers(len(LABEL_WORDS))] if classes == 2 else [f"{WORDS[i]}" for i in range(classes)]
    return [words[code] for code in codes]


def parties(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    return PARTIES[rng.integers(len(PARTIES))][:count]


# worlds


def equations(rows: int, rng: np.random.Generator) -> World:
    hand, classes = Hand(rows, rng), int(rng.integers(2, 7))
    active, passive = parties(rng, 2)
    own = hand.some(2, 8)
    theirs = hand.deal([ANY[i] for i in rng.integers(len(ANY), size=rng.integers(1, classes))])
    return World(
        "equations",
        "scores of c classes are c - 1 linear equations, and at most c - 1 columns are unknown: one solution",
        "logistic_regression",
        {active: own, passive: theirs | ({"fixed": constant(rows, rng)} if rng.random() < 0.3 else {})},
        label_of([*own.values(), *theirs.values()], classes, rng),
        threat=("active", "active-model-only")[rng.integers(2)],
        exact=tuple(f"{passive}.{name}" for name in theirs),
    )


def collusion(rows: int, rng: np.random.Generator) -> World:
    hand, classes = Hand(rows, rng), int(rng.integers(2, 6))
    active, helper, passive = parties(rng, 3)
    own, helping = hand.some(2, 5), hand.some(1, 5)
    theirs = hand.deal([ANY[i] for i in rng.integers(len(ANY), size=rng.integers(1, classes))])
    return World(
        "collusion",
        "with the helper's columns known, at most c - 1 columns stay unknown in c - 1 linear equations: one solution",
        "logistic_regression",
        {active: own, helper: helping, passive: theirs},
        label_of([*own.values(), *helping.values(), *theirs.values()], classes, rng),
        threat="collusion",
        exact=tuple(f"{passive}.{name}" for name in theirs),
    )


def codes(rows: int, rng: np.random.Generator) -> World:
    hand = Hand(rows, rng)
    active, passive = parties(rng, 2)
    own, theirs = hand.some(2, 6), hand.deal([yes_no] * int(rng.integers(2, 9)))
    return World(
        "codes",
        "the 2^d sums of d yes/no columns' weights all differ by far more than a score's last digit: one row fits",
        "logistic_regression",
        {active: own, passive: theirs},
        label_of([*own.values(), *theirs.values()], int(rng.integers(2, 4)), rng),
        exact=tuple(f"{passive}.{name}" for name in theirs),
    )


def tree(rows: int, rng: np.random.Generator) -> World:
    """The label is a threshold on a passive column, on an own one, or on the own one and then on the passive one."""
    hand = Hand(rows, rng)
    active, passive = parties(rng, 2)
    (own_name, own_cells), (name, cells) = (
        next(iter(hand.deal([make]).items())) for make in (floats, (floats, yes_no)[rng.integers(2)])
    )
    own_above = number(own_cells) > np.median(number(own_cells))
    above = number(cells) > (0.5 if len(set(cells)) == 2 else np.median(number(cells)))
    if len(set(cells)) == 2:
        above = np.unique(np.array(cells), return_inverse=True)[1] == 1
    which = int(rng.integers(3))
    codes = (above.astype(int), own_above.astype(int), np.where(own_above, 1 + above, 0))[which]
    noise = hand.some(2, 7)
    words = ("a", "b", "c")
    return World(
        "tree",
        "the label is that threshold, so the tree splits on it and on nothing else: each class has one leaf, which tells "
        "the side, and the other columns are in no part of the view",
        "decision_tree",
        {active: {own_name: own_cells} | hand.some(1, 4), passive: {name: cells} | noise},
        [words[code] for code in codes],
        exact=() if which == 1 else (f"{passive}.{name}",),
        safe=tuple(f"{passive}.{one}" for one in (noise if which != 1 else {**noise, name: cells})),
    )


def silent(protocol: str, rows: int, rng: np.random.Generator) -> World:
    hand = Hand(rows, rng)
    active, passive = parties(rng, 2)
    own, theirs = hand.some(2, 6), hand.some(2, 8)
    words = LABEL_WORDS[rng.integers(len(LABEL_WORDS))]
    threats = ("active", "active-auxiliary") if protocol != "random_forest" else ("active",)
    return World(
        f"silent {protocol}",
        "every released class is the same, so the view's rows are the own columns, which the others do not depend on",
        protocol,
        {active: own, passive: theirs},
        [words[code] for code in (rng.random(rows) < 0.04).astype(int)],
        threat=threats[rng.integers(len(threats))] if rows >= 400 else "active",
        defence="label_only",
        safe=tuple(f"{passive}.{name}" for name in theirs),
        premise="one release",
    )


def cut(rows: int, rng: np.random.Generator) -> World:
    hand = Hand(rows, rng)
    active, passive = parties(rng, 2)
    own, binary = hand.some(2, 6), hand.deal([yes_no] * int(rng.integers(1, 6)))
    theirs = binary | hand.some(0, 4)
    left_out = rng.random() < 0.5
    found = tuple(f"{passive}.{name}" for name, cells in theirs.items() if len(set(cells) - {""}) == 2)
    return World(
        "cut left out" if left_out else "cut",
        "columns of two values are replaced by 0 before the first layer, and nothing else depends on them"
        if left_out
        else "the cut is wider than the columns are many, so that each lies in the span of what is sent; of two values "
        "are there only these",
        "split_network",
        {active: own, passive: theirs | ({} if len(theirs) > len(binary) else hand.deal([floats]))},
        label_of([*own.values(), *theirs.values()] if not left_out else list(own.values()), 2, rng),
        threat="active-training",
        defence="left_out" if left_out else "none",
        exact=() if left_out else found,
        safe=found if left_out else (),
    )


def _silent(protocol: str) -> Callable[[int, np.random.Generator], World]:
    return lambda rows, rng: silent(protocol, rows, rng)


WORLDS: tuple[Callable[[int, np.random.Generator], World], ...] = (
    *(equations, tree, cut, _silent("logistic_regression"), codes, tree, collusion, cut, equations, codes),
    *(_silent("random_forest"), cut, tree, equations, _silent("logistic_regression"), cut, collusion, tree, codes),
    _silent("neural_network"),
)
SLOW = 600  # rows at most where the attacks are slow


def world(seed: int) -> World:
    """The world of a seed: kinds take turns, everything else is drawn."""
    rng = np.random.default_rng([seed, 271828])
    place = seed % len(WORLDS)
    rows = int(np.exp(rng.uniform(np.log(200), np.log(SLOW if place in (10, 19) else 3000))))
    made = WORLDS[place](rows, rng)
    return replace(made, safe=tuple(c for c in made.safe if not _is_constant(made, c)))


def _is_constant(made: World, column: str) -> bool:
    return any(f"{p}.{n}" == column and len(set(c)) == 1 for p, cs in made.columns.items() for n, c in cs.items())


# files


def write(made: World, folder: Path, seed: int) -> dict[str, Path]:
    """One file a party, with rows of its own order, rows that others lack, and the id and label columns among the others."""
    rng = np.random.default_rng([seed, 314159])
    rows = len(made.label)
    form = ("{:06d}", "{}", "c{:05d}", "{:04d}-x")[rng.integers(4)]
    people = rng.permutation(10 * rows)[:rows]
    files = {}
    for party, columns in made.columns.items():
        table = {"id": [form.format(one) for one in people]} | columns
        table |= {"target": made.label} if party == made.active else {}
        keep = rng.permutation(rows)[: rows - int(rng.integers(0, max(1, rows // 40)))]
        names = [str(name) for name in rng.permutation(list(table))]
        separator = WORLD_SEPARATORS[rng.integers(len(WORLD_SEPARATORS))]
        ending = (".csv", ".csv", ".csv.gz")[rng.integers(3)] if separator != "\t" else ".tsv"
        files[party] = folder / f"{party} data{ending}"
        opened = gzip.open if ending.endswith(".gz") else open
        with opened(files[party], "wt", encoding=("utf-8", "utf-8-sig")[rng.integers(2)], newline="") as file:
            written = csv.writer(file, delimiter=separator, lineterminator=("\n", "\r\n")[rng.integers(2)])
            written.writerow(names)
            written.writerows([table[name][row] for name in names] for row in keep)
    return files
