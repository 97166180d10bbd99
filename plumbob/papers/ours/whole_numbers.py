"""P35: whole numbers behind a network's scores are found one by one, and what known rounding leaves of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from plumbob.attacks.scores.grid_enumeration import GridEnumeration
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import defence_named
from plumbob.federation import FloatArray, halves, split
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.protocols.base import predict
from plumbob.protocols.scores.neural_network import NeuralNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut

HIDDEN = ("age", "duration", "campaign", "education", "job")  # columns of bank, hidden in this order
EXACT = 1e-6  # in units of the range
ASKED = 0.95  # share of cells that must be exact with three columns hidden


def grid_of_bank(
    hidden: Sequence[str], threat: str, digits: int | None, rows: int, scored: int, sample: int, seed: int
) -> tuple[FloatArray, FloatArray, float, str]:
    """Truth and guess of `rows` of bank's rows, processor seconds, and what the attack says of its search."""
    rng = generator(seed, "P35", len(hidden))
    table = registry.load("bank")
    owners = {"active": [n for n in table.names if n not in hidden], "passive": [n for n in table.names if n in hidden]}
    federation = split(table, owners, "active")
    federation = federation.rows(np.sort(rng.permutation(len(table.values))[:sample]))
    train, rest = halves(federation.label, rng)
    trainer, target = federation.rows(train), federation.rows(np.sort(rng.permutation(rest)[:rows]))
    protocol = NeuralNetwork()
    model = protocol.fit(trainer.values, trainer.label, len(trainer.classes), rng)
    if digits is None:
        log = predict(protocol, model, target, trainer)
    else:
        defence = defence_named("rounding", digits=digits)
        release = defence.release(protocol, model, target)
        log = predict(protocol, model, target, trainer, release=release, defence=defence.known())
    view = cut(log, THREATS[threat])
    started = time.process_time()
    guess = GridEnumeration(rows=rows, scored=scored).run(view, generator(seed, "P35 attack", len(hidden)))
    assert guess.values is not None
    return truth_of(log, view).values, guess.values, time.process_time() - started, guess.certificate


def whole_numbers(scale: Scale, seed: int) -> CheckResult:
    """Three to five whole-number columns of bank behind a network of two classes, and three behind rounded scores."""
    smoke = scale == "smoke"
    sample, rows = (2_000, 12) if smoke else (12_000, 200)
    known = "active-auxiliary"
    runs = [(3, "active", 4_000_000), (3, known, 1_500_000), (4, known, 4_000_000), (5, known, 8_000_000)]
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for count, threat, scored in runs[1:2] if smoke else runs:

        def searched(count: int = count, threat: str = threat, scored: int = scored) -> Part:
            some = rows if count < 5 else rows // 2
            told = grid_of_bank(HIDDEN[:count], threat, None, some, scored, sample, seed)
            truth, guess, seconds, certificate = told
            exact = float((np.abs(guess - truth) < EXACT).mean())
            told_exact = f"{exact:.1%} of {truth.size:,} cells exact, {seconds:.0f} s of one core ({certificate})"
            return Part({f"{count} hidden, threat {threat}": told_exact}, [exact >= ASKED] if count == 3 else [])

        done = part(f"{count}-{threat}", searched)
        measured |= done.measured
        answers += done.answers
    for digits in (1,) if smoke else (2, 1):

        def rounded(digits: int = digits) -> Part:
            told = grid_of_bank(HIDDEN[:3], known, digits, 100 if smoke else 2_000, 600_000, sample, seed)
            truth, guess, seconds, _ = told
            error, best = ((guess - truth) ** 2).mean(axis=0), truth.var(axis=0)
            names = [name for name in registry.load("bank").names if name in HIDDEN[:3]]
            gains = ", ".join(f"{name} {1 - e / b:.2f}" for name, e, b in zip(names, error, best, strict=True))
            exact = float((np.abs(guess - truth) < EXACT).mean())
            key = f"3 hidden, threat {known}, rounding to {digits} digits"
            return Part({key: f"R2 {gains}; {exact:.1%} of cells exact, {seconds:.0f} s"}, [])

        measured |= part(f"rounded-{digits}", rounded).measured
    expected = "at least 95 % of the cells exact with three hidden columns; the rest is reported"
    return CheckResult(every(answers), measured, expected, 1)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P35",
        "grid enumeration",
        "three to five whole-number columns come out of a network's scores",
        whole_numbers,
    ),
)
