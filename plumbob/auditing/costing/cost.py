"""Cost laws: seconds and bytes of every stage of an audit, as functions of its sizes and settings.

The form of a law comes from the algorithm: a sum of terms, each a count of the work (`TERMS`, in the symbols of `Size`). An
attack or a protocol declares the terms of its own law (`cost_terms`) and what it spends its time on (`workload`). The
coefficients are measured by `python -m benchmarks.costs` and lie in `costs.json`; `speed` scales them to this machine.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from statistics import geometric_mean
from typing import Any

import numpy as np

from plumbob.attacks import ATTACKS, Attack
from plumbob.identity import Workload
from plumbob.lazy_imports import torch
from plumbob.protocols import PROTOCOLS, Protocol
from plumbob.scoring.ceiling import ROWS
from plumbob.scoring.column_ceiling import CEILING

TRIES = 20  # of a calibration; the fastest counts, for a busy machine is slower now and then
SLOWEST = 8.0  # a calibration that says more than this, or less than its inverse, was disturbed


@dataclass(frozen=True)
class Size:
    """What a stage works on. Symbols: N, n, d, u, c; of the protocol e (epochs), t (trees), h (depth), b (key bits / 2048)."""

    train: int  # N, rows of training
    rows: int  # n, rows predicted, or of training where that is attacked
    columns: int  # d
    unknown: int  # u
    classes: int  # c
    protocol: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # the protocol's, all of them

    def number(self, name: str, default: float = 0.0) -> float:
        value = self.settings.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    @property
    def goals(self) -> int:
        """Models that a protocol of two classes needs for c of them."""
        return 1 if self.classes == 2 else self.classes

    @property
    def steps(self) -> float:
        """Of an optimizer: epochs times batches."""
        batch = self.number("batch") or self.number("batch_size") or 256
        return self.number("epochs", 20) * math.ceil(self.train / batch)

    @property
    def rounds(self) -> float:
        """Of split training: as said, or as many as rows and a quarter more."""
        return self.number("rounds") or 1.25 * self.train

    @property
    def trained_rounds(self) -> float:
        """Of split training: with the epochs before the first one that the server looks at."""
        return self.rounds + self.number("warm_up") * self.train / (self.number("batch_size") or 40)

    @property
    def keys(self) -> float:
        return self.number("key_bits") / 2_048

    @property
    def leaves(self) -> float:
        return self.number("trees", 1) * 2 ** self.number("depth", 1)

    @property
    def weights(self) -> float:
        """Parameters of the joint model, w."""
        d, c = self.columns, self.classes
        if "depth" in self.settings:  # a model of trees
            return self.leaves
        hidden = [float(width) for width in self.settings.get("hidden") or ()]
        if not hidden and self.number("width"):
            hidden = [self.number("width")] * max(1, int(self.number("layers", 1)))
        widths = [float(d), *hidden, float(c)]
        return sum(a * b for a, b in itertools.pairwise(widths))

    @property
    def draws(self) -> float:
        """Steps of generative regression as audits run it: 60 epochs of batches of 128, at most 600."""
        return min(600.0, 60 * math.ceil(self.rows / 128))

    @property
    def archive(self) -> float:
        """Bytes of messages that a training keeps, up to its `archive_mb`: gradients a round, or outputs a row."""
        width = float(next(iter(self.settings.get("hidden") or ()), 0))
        rounds = self.rounds * self.weights if "rounds" in self.settings else 0.0
        return min(1e6 * self.number("archive_mb"), 8 * (rounds + self.number("epochs") * self.train * width))

    @property
    def loose(self) -> bool:
        """Whether c scores say less than u columns need, so that an attack must search or draw."""
        return self.unknown > self.classes - 1

    @property
    def newton(self) -> bool:
        return (self.columns + 1) * self.classes <= 400


Term = Callable[[Size], float]
TERMS: dict[str, Term] = {
    "1": lambda s: 1.0,
    "N d": lambda s: s.train * s.columns,
    "newton N (d c)^2": lambda s: s.newton * s.train * (s.columns * s.classes) ** 2,
    "newton N d c": lambda s: s.newton * s.train * s.columns * s.classes,
    "lbfgs N d c": lambda s: (not s.newton) * s.train * s.columns * s.classes,
    "N d h log N": lambda s: s.train * s.columns * s.number("depth", 5) * math.log2(s.train + 2),
    "t": lambda s: s.number("trees", 1),
    "t N sqrt(d) h log N": lambda s: (
        s.number("trees", 1) * s.train * math.sqrt(s.columns) * s.number("depth", 3) * math.log2(s.train + 2)
    ),
    "e N / batch": lambda s: s.steps,
    "e N w": lambda s: s.number("epochs", 20) * s.train * s.weights,
    "e N d": lambda s: s.goals * s.number("epochs", 10) * s.train * s.columns,
    "e N b^3": lambda s: s.goals * s.number("epochs", 10) * s.train * s.keys**3,
    "e N d b^2": lambda s: s.goals * s.number("epochs", 10) * s.train * s.columns * s.keys**2,
    "e N / batch d b^3": lambda s: s.goals * s.steps * s.columns * s.keys**3,
    "t 2^h": lambda s: s.goals * s.leaves,
    "t h N d": lambda s: s.goals * s.number("trees", 10) * s.number("depth", 3) * s.train * s.columns,
    "t N b^3": lambda s: s.goals * s.number("trees", 10) * s.train * s.keys**3,
    "t h N u b^2": lambda s: s.goals * s.number("trees", 10) * s.number("depth", 3) * s.train * s.unknown * s.keys**2,
    "t 2^h u bins b^3": lambda s: s.goals * s.leaves * s.unknown * s.number("bins", 32) * s.keys**3,
    "b^4": lambda s: s.keys**4,
    "rounds": lambda s: s.trained_rounds,
    "rounds batch w": lambda s: s.trained_rounds * s.number("batch_size", 40) * s.weights,
    "n": lambda s: s.rows,
    "n d": lambda s: s.rows * s.columns,
    "n u": lambda s: s.rows * s.unknown,
    "n c": lambda s: s.rows * s.classes,
    "n w": lambda s: s.rows * s.weights,
    "w": lambda s: float(s.weights),
    "n u c": lambda s: s.rows * s.unknown * s.classes,
    "n u^2": lambda s: s.rows * s.unknown**2,
    "u^3": lambda s: s.unknown**3,
    "n u w": lambda s: s.rows * s.unknown * s.weights,
    "n^2": lambda s: s.rows**2,
    "draws": lambda s: s.draws,
    "draws w": lambda s: s.draws * s.weights,
    "draws u": lambda s: s.draws * s.unknown,
    "u": lambda s: s.unknown,
    "archive": lambda s: s.archive,
    "seen": lambda s: min(s.rows, ROWS),
    "seen u": lambda s: min(s.rows, ROWS) * s.unknown,
    "loose": lambda s: s.loose,
    "loose n u": lambda s: s.loose * s.rows * s.unknown,
}


# The terms of the stages that are the same for every protocol and attack; the others are declared in their classes.
PREDICTION = ("1", "n d", "n w", "N d")  # each row meets the model; rows of training are sealed beside
OVERHEAD = ("1", "n u", "n d", "N d", "archive")  # of a finding: view, score and baselines
MEMORY = ("1", "N d", "n u", "n w", "n u c", "archive")
LINE = ("1", "u")  # of findings.jsonl
LEARNERS = ("1", "seen", "seen u", "archive")  # of a ceiling
Coefficients = Mapping[str, float]


def terms_of(law: str) -> tuple[str, ...]:
    """The terms of a law by its name: `train/<protocol>`, `predict/…`, `attack/<attack>/<protocol>`, and so on.

    >>> terms_of("attack/equation_solving/logistic_regression")
    ('1', 'n u c')
    """
    stage, _, rest = law.partition("/")
    if stage == "train":
        return PROTOCOLS.get(rest, Protocol).cost_terms
    if stage == "attack":
        return ATTACKS.get(rest.partition("/")[0], Attack).cost_terms
    return {"predict": PREDICTION, "memory": MEMORY, "line": LINE, CEILING: LEARNERS}.get(stage, OVERHEAD)


def value(coefficients: Coefficients, size: Size) -> float:
    """A law at a size: the sum of its terms.

    >>> value({"1": 2.0, "n": 0.5}, Size(0, 10, 1, 1, 2, "toy"))
    7.0
    """
    return sum(weight * TERMS[name](size) for name, weight in coefficients.items())


def kind_of(law: str) -> Workload:
    """Which speed of a machine a law goes by."""
    stage, _, rest = law.partition("/")
    attack, _, protocol = rest.partition("/")
    if stage == "attack":
        return ATTACKS.get(attack, Attack).workload
    if stage == "train":
        return PROTOCOLS.get(rest, Protocol).workload
    return "matrices" if protocol or stage == CEILING else "loops"


@dataclass(frozen=True)
class Costs:
    """The measured file: laws, what defences multiply them by, and the machine that they were measured on."""

    laws: Mapping[str, Coefficients]
    factors: Mapping[str, float]  # of a law under a defence: `<defence> <law>`
    speeds: Mapping[str, float]  # seconds of the four calibrations
    start_seconds: float  # of a process until its libraries are there
    warm_seconds: float  # until a network was used for the first time
    start_bytes: float
    command: str
    environment: Mapping[str, str]
    largest: Mapping[str, float]  # rows and columns that were measured

    def law(self, name: str) -> tuple[Coefficients, str]:
        """A law and its origin: where none was measured, the same attack on another protocol, or the median of all."""
        if name in self.laws:
            return self.laws[name], ""
        stage, _, rest = name.partition("/")
        attack = rest.partition("/")[0]
        alike = [law for law in self.laws if stage == "attack" and law.startswith(f"attack/{attack}/")]
        if alike:
            return self.laws[alike[0]], f"extrapolated from {alike[0].rpartition('/')[2]}"
        every = [coefficients for law, coefficients in self.laws.items() if law.startswith(f"{stage}/")]
        middle = sorted(every, key=lambda law: value(law, _TYPICAL))[len(every) // 2]
        return middle, "not measured: the median of all others"

    def factor(self, defence: str, law: str) -> float:
        """The factor by which a defence multiplies a law: as measured, or as measured on other protocols.

        A defence that was never measured leaves the law unchanged.
        """
        return math.prod(self._factor(part, law) for part in defence.split("+"))

    def _factor(self, defence: str, law: str) -> float:
        if f"{defence} {law}" in self.factors or law.startswith("train/"):
            return self.factors.get(f"{defence} {law}", 1.0)
        alike = f"{defence} {law.rpartition('/')[0]}/"
        found = [factor for name, factor in self.factors.items() if name.startswith(alike)]
        return geometric_mean(found) if found else 1.0


_TYPICAL = Size(1_000, 1_000, 20, 8, 3, "logistic_regression")


@cache
def measured() -> Costs:
    """The file that comes with the package."""
    return Costs(**json.loads(files("plumbob.auditing.costing").joinpath("costs.json").read_text(encoding="utf-8")))


def calibrate() -> dict[str, float]:
    """Processor seconds of this machine for four small tasks, under half a second in all."""
    from gmpy2 import mpz, powmod

    square = np.random.default_rng(0).random((200, 200))
    modulus, layer = mpz(2) ** 2_048 - 1_942_289, torch.nn.Linear(64, 64)
    rows = torch.ones(128, 64)

    def step() -> None:
        for _ in range(20):
            layer.zero_grad()
            layer(rows).square().mean().backward()

    works: dict[str, Callable[[], object]] = {
        "matrices": lambda: [square @ square for _ in range(8)],
        "loops": lambda: sum(i * i % 7 for i in range(60_000)),
        "powers": lambda: powmod(mpz(3) ** 1_200, modulus - 5, modulus),
        "networks": step,
    }
    return {kind: _fastest(work) for kind, work in works.items()}


def _fastest(work: Callable[[], object]) -> float:
    work()  # libraries that load on first use
    spent = []
    for _ in range(TRIES):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return max(min(spent), 1e-6)


def speed(costs: Costs) -> dict[str, float]:
    """This machine's time relative to the file's, by kind of work."""
    here = calibrate()
    return {kind: min(SLOWEST, max(1 / SLOWEST, here[kind] / there)) for kind, there in costs.speeds.items()}
