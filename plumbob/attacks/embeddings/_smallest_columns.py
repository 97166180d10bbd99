"""The smallest binary columns of a span that has too many of them (ours): codes of categories, whose sums are binary as well.

k codes of one category have 2^k - 1 sums; only the codes themselves tell anything. A binary column is a corner of the box
0 <= Q w <= 1, so the smallest one with a 1 at row i and a 0 at row j is a linear programme's answer, wherever that answer is
    binary: least sum(Q w)  with  (Q w)_i = 1, (Q w)_j = 0, 0 <= Q w <= 1.
Rows repeat, so there are as many inequalities as kinds of rows. Pairs are drawn among kinds that no column found so far
tells apart, until the columns span all of it or nothing new comes; a column that is the sum of others found is left out.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.embeddings._embedding_span import NOISE_TIMES_TO_COUNT, EmbeddingSpan
from plumbob.federation import FloatArray
from plumbob.lazy_imports import optimize

KINDS_FOR_PROGRAMMES = 3_000  # kinds of rows up to which programmes are quick
IDLE = 200  # pairs without anything new before it ends
MOST_PAIRS_OF_KINDS = 2_000  # pairs at all


def atoms(span: EmbeddingSpan, rng: np.random.Generator) -> FloatArray:
    """Binary columns that are no sums of others, as far as pairs of rows single them out (n x count)."""
    kinds = span.distinct
    found: dict[bytes, FloatArray] = {}
    if not span.rank or len(kinds) > KINDS_FOR_PROGRAMMES or len(kinds) < 2:
        return np.zeros((len(span.basis), 0))
    rows = span.basis[kinds] * np.sqrt(len(span.basis))
    total = rows.sum(axis=0)
    idle, dimension = 0, 0
    for _ in range(MOST_PAIRS_OF_KINDS):
        one, zero = _pair(np.array([column[kinds] for column in found.values()]), len(kinds), rng)
        x = _least(rows, total, one, zero, max(1e-6, NOISE_TIMES_TO_COUNT * (span.slack + span.blur)))
        new = False
        if x is not None:
            column = (span.basis @ x * np.sqrt(len(span.basis)) > 0.5).astype(np.float64)
            new = column.tobytes() not in found and bool(span.holds(column[:, None])[0])
            if new:
                found[column.tobytes()] = column
                dimension = int(np.linalg.matrix_rank(np.array([c[kinds] for c in found.values()])))
        idle = 0 if new else idle + 1
        if idle >= IDLE or dimension >= span.rank:
            break
    return irreducible(np.array(list(found.values())).T) if found else np.zeros((len(span.basis), 0))


def _pair(told: FloatArray, kinds: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two kinds of rows, alike in every column found so far where there are such."""
    one = int(rng.integers(kinds))
    alike = np.flatnonzero((told == told[:, [one]]).all(axis=0)) if len(told) else np.arange(kinds)
    alike = alike[alike != one]
    zero = int(rng.choice(alike)) if len(alike) else int((one + 1 + rng.integers(kinds - 1)) % kinds)
    return one, zero


def _least(rows: FloatArray, total: FloatArray, one: int, zero: int, off: float) -> FloatArray | None:
    """The programme's answer, if all its values are 0 or 1. Rows may be off by a little."""
    solved = optimize.linprog(
        total,
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.concatenate([np.full(len(rows), 1 + off), np.full(len(rows), off)]),
        A_eq=rows[[one, zero]],
        b_eq=[1.0, 0.0],
        bounds=(None, None),
        method="highs",
    )
    if solved.x is None:
        return None
    values = rows @ solved.x
    return np.asarray(solved.x) if np.minimum(np.abs(values), np.abs(values - 1)).max() < 0.1 else None


def irreducible(columns: FloatArray) -> FloatArray:
    """Columns that are not sums of smaller ones among them that do not overlap."""
    order = np.argsort(columns.sum(axis=0), kind="stable")
    kept: list[FloatArray] = []
    for j in order:
        left = columns[:, j].copy()
        for part in reversed(kept):
            if (part <= left).all():
                left = left - part
        if left.any():
            kept.append(columns[:, j])
    return np.array(kept).T if kept else columns[:, :0]
