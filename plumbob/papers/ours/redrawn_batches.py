"""Batches drawn anew (weng2022, Section 2.3), which its attack (Section 4.1) does not have: what is left of it (P16).

A residual belongs to one row, so a row's equations add up over the rounds that it was drawn in. With d unknown columns and m
models it needs ceil(d / m) + 1 rounds for differences; how often it was drawn is binomial, so the last of n rows takes longer:
    n P(Bin(T, batch / n) <= ceil(d / m)) < 1        rounds T after which less than one row is expected to be short
Exact algebra solves the rows that are short from the gradients, whose unknowns are all rows together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.sums._product_equations import opened_rounds
from plumbob.attacks.sums.exact_multiplication import ExactMultiplication
from plumbob.attacks.sums.reverse_multiplication import ReverseMultiplication
from plumbob.lazy_imports import stats
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.weng2022.multiplication import CORRUPTED, EQUAL, UNKNOWN_COLUMNS, WENG_RATE, accuracy, trained
from plumbob.protocols.sums.encrypted_logistic_regression import DRAWN, EncryptedLogisticRegression
from plumbob.threats import View, cut
from plumbob.transcript import Transcript

MODELS = {"vehicle": 4, "credit": 1, "breast": 1}
# data: (rows, or None for all; batch; epochs)
REDRAWN: Mapping[Scale, Mapping[str, tuple[int | None, int, tuple[int, ...]]]] = {
    "smoke": {"vehicle": (150, 40, (2, 4, 16))},
    "paper": {
        "vehicle": (None, 64, (1, 2, 3, 4, 6, 8, 12, 16)),
        "breast": (None, 64, (16, 22, 32, 48)),
        "credit": (1_500, 128, (8, 12, 16, 32)),
    },
}
ATTACKERS: tuple[Attack, ...] = (ReverseMultiplication(), ExactMultiplication())


def redrawn(scale: Scale, seed: int) -> CheckResult:
    """Share of rows recovered to 1e-6, by epochs and by how batches are drawn."""
    parts = [part(data, lambda data=data: _of_data(data, scale, seed)) for data in REDRAWN[scale]]  # type: ignore[misc]  # mypy cannot infer it
    measured = {name: value for done in parts for name, value in done.measured.items()}
    figures = [
        ClaimFigure(data, "epochs", "rows", done.curves) for data, done in zip(REDRAWN[scale], parts, strict=True)
    ]
    expected = (
        "with enough rounds every row, by both attacks; the exact one needs no more rounds than the published one"
    )
    why = (
        "rows that are drawn seldom are solved last: the published attack waits for each, gradients tell the exact one; where a "
        "row is short by chance in the last run, the published attack has not every row"
    )
    return CheckResult(every(a for done in parts for a in done.answers), measured, expected, 1, why, tuple(figures))


def _of_data(data: str, scale: Scale, seed: int) -> Part:
    rows, batch, epochs = REDRAWN[scale][data]
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    curves = []
    for drawn in DRAWN:
        shares: dict[str, list[float]] = {attack.name: [] for attack in ATTACKERS}
        for count in epochs:
            protocol = EncryptedLogisticRegression(
                key_bits=0, batch_size=batch, epochs=count, learning_rate=WENG_RATE, batches=drawn
            )
            log = trained(data, seed, rows, protocol)
            for attack in ATTACKERS:
                shares[attack.name].append(_recovered(attack, cut(log, CORRUPTED), log))
        published, exact = shares.values()
        answers += [published[-1] == 1.0, all(more >= one for one, more in zip(published, exact, strict=True))]
        measured[drawn] = {
            "published": _first_whole(epochs, published),
            "exact": _first_whole(epochs, exact),
            "published by epochs": dict(zip(map(str, epochs), published, strict=True)),
            "exact by epochs": dict(zip(map(str, epochs), exact, strict=True)),
            "accuracy": round(accuracy(log), 3),
            "rows drawn too seldom in the last run": _short(log, data),
        }
        curves += [Curve(f"{name}, {drawn}", [float(n) for n in epochs], y) for name, y in shares.items()]
    size = len(log.sealed("active")["columns"])
    measured["expected for iteration"] = expected_epochs(size, batch, -(-UNKNOWN_COLUMNS[data] // MODELS[data]))
    measured["rows"], measured["batch"] = size, batch
    return Part({data: measured}, answers, curves)


def _recovered(attack: Attack, view: View, log: Transcript) -> float:
    values = attack.run(view, np.random.default_rng(0)).values
    assert values is not None
    return round(float(np.mean(np.abs(values - log.sealed("passive")["columns"]).max(axis=1) < EQUAL)), 4)


def _short(log: Transcript, data: str) -> int:
    """Rows that no more rounds have drawn than there are equations missing for differences: doubles cannot solve them."""
    drawn = np.bincount(np.concatenate([one.rows for one in opened_rounds(cut(log, CORRUPTED))]))
    return int((drawn <= -(-UNKNOWN_COLUMNS[data] // MODELS[data])).sum())


def _first_whole(epochs: tuple[int, ...], shares: list[float]) -> int | None:
    """The first number of epochs, of those tried, that gave every row away."""
    return next((count for count, share in zip(epochs, shares, strict=True) if share == 1.0), None)


@lru_cache(maxsize=16)
def expected_epochs(rows: int, batch: int, short: int) -> int:
    """Epochs after which less than one row is expected to have been drawn in no more than `short` rounds.

    >>> expected_epochs(676, 64, 3)
    12
    """
    per_epoch = -(-rows // batch)
    return next(
        count
        for count in range(1, 10_000)
        if rows * float(stats.binom.cdf(short, count * per_epoch, min(1.0, batch / rows))) < 1.0
    )


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P16", "batches drawn anew", "reverse multiplication does without recurring batches", redrawn),
)
