"""Benchmarks of binary columns in a span: our search against a loop over candidates, and the null space by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Measured, best, core_seconds, result
from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._lifted_null_space import diagonal, lift, rounded
from plumbob.attacks.embeddings._meet_in_the_middle import search
from plumbob.attacks.embeddings.binary_columns import exact
from plumbob.federation import FloatArray

LIMITS = {60: 5.0, 120: 120.0}  # seconds by the clock, for this many dimensions
LOOPED = 2_000  # candidates that tell what one costs in a loop


def _embedding(rows: int, columns: int, binary: int) -> tuple[FloatArray, FloatArray]:
    """What a random first layer makes of made-up columns, the first of them binary; and those."""
    rng = np.random.default_rng(0)
    x = rng.random((rows, columns))
    x[:, :binary] = x[:, :binary] < rng.uniform(0.2, 0.8, binary)
    return np.asarray(x @ rng.standard_normal((columns, columns + 10))).astype(np.float32), x[:, :binary]


def _same(found: FloatArray, true: FloatArray) -> bool:
    """Whether just the true columns were found, 0 and 1 swapped or not."""
    kinds = [{np.abs(column - column[0]).astype(np.int8).tobytes() for column in part.T} for part in (found, true)]
    return kinds[0] == kinds[1]


def enumeration_against_loop() -> Iterator[Measured]:
    """All 2^20 candidates: meeting in the middle against NumPy, one candidate after the other (extrapolated)."""
    rows, d = 5_000, 20
    z, true = _embedding(rows, d, 3)
    ours = core_seconds(lambda: search(EmbeddingSpan.of(z)), 3)
    assert _same(search(EmbeddingSpan.of(z)).columns, true)
    basis = EmbeddingSpan.of(z, affine=False).basis
    inverse = np.linalg.inv(basis[:d])
    bits = np.arange(d)

    def loop() -> None:
        for number in range(1, LOOPED + 1):
            x = basis @ (inverse @ ((number >> bits) & 1))
            bool((np.minimum(np.abs(x), np.abs(x - 1)) < 0.01).all())

    theirs = core_seconds(loop, 2) / LOOPED * 2**d
    size = f"d = {d}, n = {rows:,}, 2^{d} candidates; the loop extrapolated from {LOOPED:,} of them"
    yield result("a NumPy loop over candidates against meeting in the middle", theirs / ours, 1_000, size, ours)


def null_space_seconds() -> Iterator[Measured]:
    """The limit over the seconds of the null space and its eigenvectors, a third of the columns binary."""
    for d, limit in LIMITS.items():
        rows = max(5_000, int(1.6 * (d * (d + 1) // 2 + d)))
        z, true = _embedding(rows, d, d // 3)

        def solved(z: FloatArray = z) -> FloatArray:
            span, rng = EmbeddingSpan.of(z), np.random.default_rng(0)
            return rounded(span, diagonal(lift(span, rng), rng))

        seconds, found = best(solved, 1)
        assert _same(found, true)
        name = f"the limit of {limit:.0f} s over the null space at d = {d}"
        yield result(name, limit / seconds, 1, f"n = {rows:,}, {d // 3} binary columns, all found", seconds)


def null_space_cost_per_row() -> Iterator[Measured]:
    """The whole attack at 50 dimensions, too many to enumerate, on ten times the rows."""
    spent = {}
    for rows in (40_000, 400_000):
        z, true = _embedding(rows, 50, 6)
        started = time.process_time()
        found, complete = exact(EmbeddingSpan.of(z), np.random.default_rng(0))
        spent[rows] = time.process_time() - started
        assert complete
        assert _same(found, true)
    ratio = spent[400_000] / spent[40_000] / 10
    size = "400,000 rows against 40,000, 50 columns, cost per row; at most 1 if time is linear"
    yield result("binary columns cost per row, large against small", ratio, 1, size, spent[400_000])
