"""What the rounds of training tell of the columns (ye2022, Section III-B): every batch larger than d is an instance, and together
they are one instance of all rows.

A batch B of any round has Z_B = X_B W_t', so a column x of X has x_B in the span of Z_B, whatever the weights were. With P_B the
projection on that span and n_i the batches that hold row i, all columns of X are fixed by
    x = D^-1 sum over batches of S_B' P_B S_B x,   D = diag(n_i),   S_B picks the rows of B
and where batches overlap enough nothing else is: subspace iteration finds those columns to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.crypto.masking import opened_sum
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.embeddings.split_network import BITS
from plumbob.threats import View

PASSES = 8  # times that a row is taken at most
MOST_TURNS = 400  # of the iteration
SPARE = 6  # directions that are followed besides
FIXED = 1e-6  # how far below 1 an eigenvalue may be that counts as 1
SETTLED = 1e-13  # change of a turn at which it ends


@dataclass(frozen=True)
class Batch:
    """What one sender said of one batch."""

    rows: IntArray
    cells: FloatArray


def batches(view: View) -> dict[str, list[Batch]]:
    """Batches by sender, in order, as far as they were kept; the sender of opened sums is ''."""
    rows: dict[tuple[str, int], IntArray] = {}
    outputs: dict[str, list[tuple[tuple[str, int], FloatArray]]] = {}
    masked: dict[tuple[str, int], dict[str, FloatArray]] = {}
    for message in view.messages:
        when = message.phase, message.round
        if message.whole:
            continue
        if message.name == "rows":
            rows[when] = np.asarray(message.payload).ravel().astype(np.int64)
        elif message.name == "outputs" and message.sender not in view.curious:
            outputs.setdefault(message.sender, []).append((when, message.payload))
        elif message.name == "masked outputs":
            masked.setdefault(when, {})[message.sender] = message.payload
    senders = {name for parts in masked.values() for name in parts}
    whole = [(when, list(parts.values())) for when, parts in masked.items() if len(parts) == len(senders)]
    if whole:
        outputs[""] = [(when, opened_sum(parts, BITS).astype(np.float32)) for when, parts in whole]
    count = len(view.own)
    made = {name: [_batch(rows[w], cells, count) for w, cells in parts if w in rows] for name, parts in outputs.items()}
    return {name: [one for one in some if one is not None] for name, some in made.items()}


def _batch(rows: IntArray, cells: FloatArray, count: int) -> Batch | None:
    """The rows that are known (not below 0), each once; None if that is no batch."""
    if cells.ndim != 2 or len(cells) != len(rows) or not np.isfinite(cells).all():
        return None
    numbers, first = np.unique(rows, return_index=True)
    first = first[(numbers >= 0) & (numbers < count)]
    return Batch(rows[first], cells[first]) if len(first) > 1 else None


def largest(some: list[Batch]) -> Batch | None:
    """The first of the largest batches, if it has more rows than dimensions."""
    best = max(some, key=lambda one: len(one.rows), default=None)
    return None if best is None or _span(best).rank >= len(best.rows) else best


def linked(some: list[Batch], count: int) -> FloatArray | None:
    """All rows as one embedding (count x k), where the batches hold every row and fix the columns; else None."""
    taken = _taken(some, count)
    times = np.bincount(np.concatenate([one.rows for one, _ in taken]), minlength=count) if taken else np.zeros(count)
    if not times.all():
        return None
    rank = max(basis.shape[1] for _, basis in taken)
    mean = np.zeros((count, taken[0][0].cells.shape[1]))
    for one, _ in taken:
        mean[one.rows] += one.cells
    mean /= times[:, None]
    found = _fixed(taken, np.sqrt(times), mean, rank)
    if found is None:
        return None
    columns = found / np.sqrt(times)[:, None]  # D^-1/2 of the symmetric operator's eigenvectors
    basis, _ = np.linalg.qr(columns)
    return np.asarray((basis @ (basis.T @ mean)).astype(np.float32))


def _span(one: Batch) -> EmbeddingSpan:
    return EmbeddingSpan.of(one.cells, affine=False)


def _taken(some: list[Batch], count: int) -> list[tuple[Batch, FloatArray]]:
    """So many of the last batches as hold each row a few times, each with its span's basis; without those too small to tell."""
    found: list[tuple[Batch, FloatArray]] = []
    rows = 0
    for one in reversed(some):
        rows += len(one.rows)
        if rows > PASSES * count:
            break
        basis = _span(one).basis
        if basis.shape[1] < len(one.rows):
            found.append((one, basis))
    return found


def _fixed(taken: list[tuple[Batch, FloatArray]], root: FloatArray, mean: FloatArray, rank: int) -> FloatArray | None:
    """Orthonormal vectors that the symmetric operator D^-1/2 sum(S' P S) D^-1/2 leaves as they are; None unless these are at most
    so many as one batch has dimensions."""
    width = min(rank + SPARE, len(mean) - 1)
    noise = np.random.default_rng(0).standard_normal((len(mean), width))
    start = mean * root[:, None]
    left = np.linalg.svd(start, full_matrices=False)[0][:, :rank]
    v, _ = np.linalg.qr(np.hstack([left, noise])[:, :width])
    before = np.zeros(width)
    for _ in range(MOST_TURNS):
        applied = np.zeros_like(v)
        for one, basis in taken:
            here = one.rows
            applied[here] += (basis @ (basis.T @ (v[here] / root[here, None]))) / root[here, None]
        values, turn = np.linalg.eigh(v.T @ applied)
        v, _ = np.linalg.qr(applied @ turn[:, ::-1])
        values = values[::-1]
        settled = np.abs(values - before)[:rank].max() < SETTLED
        before = values
        if settled:
            break
    kept = int((before > 1 - FIXED).sum())
    return v[:, :kept] if 0 < kept <= rank and kept < width else None
