"""Binary columns of a span by one null space (ours): polynomial in d, where enumeration is exponential.

x = Q w has only 0 and 1 as values iff (q_i.w)^2 = q_i.w at every row i, which is linear in (W, w) = (ww', w):
    <q_i q_i', W> = q_i.w   for all i.
All solutions (W, w) are the null space N of one matrix with d(d+1)/2 + d columns, computed once. Then
    narrowed    every binary column's w lies in the space V of the w's of N. Usually V is tiny, often spanned by the binary
                columns themselves; with the rows of Q V in place of Q all starts again until V stays as it is.
    diagonal    if N has the dimension of V, its W's are sums of the ww' of V's binary columns: two random ones have the w's
                as their common eigenvectors.
Columns whose products vanish (codes of one category) add W's of their own to N, and it is larger: then V is searched
(meet_in_the_middle.py), or taken apart (atoms.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eig

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.federation import FloatArray

EQUATIONS_PER_UNKNOWN = 1.5  # equations per unknown that are taken
UNKNOWNS_FOR_ALL_EIGENVALUES = 1_200  # unknowns up to which all eigenvalues are worked out
MEDIUM = 4_500  # the same where many of them are small
BLOCK = 48  # null vectors looked for at first
MOST_LIFTED_UNKNOWNS = 9_000  # unknowns at most: a matrix of 650 MB
NULL_SPACE_GAP = 1e3  # how much larger the next eigenvalue must be for a null space to count as one


@dataclass(frozen=True)
class Lifted:
    """The null space's directions w as coordinates in the span's basis (d x r), and the pairs behind them."""

    directions: FloatArray
    matrices: FloatArray  # dimension x d x d, the W of each null vector
    dimension: int
    determined: bool  # whether there were enough rows for this to mean anything


def lift(span: EmbeddingSpan, rng: np.random.Generator) -> Lifted:
    """The null space of the lifted equations."""
    rank = span.rank
    unknowns = rank * (rank + 1) // 2 + rank
    distinct = span.distinct
    nothing = Lifted(np.eye(rank), np.zeros((0, rank, rank)), 0, False)
    if len(distinct) < unknowns or unknowns > MOST_LIFTED_UNKNOWNS:
        return nothing
    rows = distinct
    if len(rows) > EQUATIONS_PER_UNKNOWN * unknowns + 200:
        rows = rng.permutation(distinct)[: int(EQUATIONS_PER_UNKNOWN * unknowns) + 200]
    q = span.basis[rows] * np.sqrt(len(span.basis))
    null = _null_space(q, span, rng)
    if null is None:
        return nothing
    upper = np.triu_indices(rank)
    count = len(upper[0])
    matrices = np.zeros((null.shape[1], rank, rank))
    matrices[:, upper[0], upper[1]] = (null[:count] / np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))[:, None]).T
    matrices = matrices + np.triu(matrices, 1).transpose(0, 2, 1)
    w = null[count:]
    left, sizes, _ = np.linalg.svd(w, full_matrices=False)
    kept = sizes > 1e-4 * max(1.0, sizes.max(initial=0.0)) if len(sizes) else np.zeros(0, dtype=bool)
    return Lifted(left[:, kept], matrices, null.shape[1], True)


def _null_space(q: FloatArray, span: EmbeddingSpan, rng: np.random.Generator) -> FloatArray | None:
    """Orthonormal null vectors (unknowns x dimension) of the lifted equations at these rows; None where no gap shows them."""
    rank = q.shape[1]
    upper = np.triu_indices(rank)
    lifted = np.empty((len(q), len(upper[0]) + rank))
    np.multiply(q[:, upper[0]], q[:, upper[1]], out=lifted[:, : len(upper[0])])
    lifted[:, : len(upper[0])] *= np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
    lifted[:, len(upper[0]) :] = -q
    scale = np.linalg.norm(lifted, axis=0)
    lifted /= scale
    floor = max(1e-13, (20 * span.blur) ** 2)  # what noise of the rows leaves where the truth is 0: its square
    gram = lifted.T @ lifted
    top = float(np.linalg.norm(gram, 1))
    if len(gram) <= UNKNOWNS_FOR_ALL_EIGENVALUES:
        values, vectors = np.linalg.eigh(gram)
    else:
        values, vectors = _smallest(gram, max(floor, 1e-12) * top, rng)
    count = int((values < floor * top).sum())
    if count == len(values) or (count and values[count] < NULL_SPACE_GAP * max(values[count - 1], 1e-16 * top)):
        below = values / top
        jumps = np.flatnonzero(below[1:] > NULL_SPACE_GAP * np.maximum(below[:-1], 1e-15))
        jumps = jumps[below[jumps] < max(floor, 1e-9)]
        if not len(jumps):
            return None
        count = int(jumps[-1]) + 1
    null = vectors[:, :count] / scale[:, None]
    return np.linalg.qr(null)[0] if count else null


def _smallest(gram: FloatArray, shift: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The smallest eigenvalues and their vectors, by inverse iteration on a block that grows until it holds a large one."""
    factor = cho_factor(gram + shift * np.eye(len(gram)), lower=True, overwrite_a=True, check_finite=False)
    block = BLOCK
    while True:
        vectors = np.linalg.qr(rng.standard_normal((len(gram), block)))[0]
        for _ in range(3):
            vectors = np.linalg.qr(cho_solve(factor, vectors, check_finite=False))[0]
        values, turn = np.linalg.eigh(vectors.T @ (gram @ vectors))
        vectors = vectors @ turn
        if values[-1] > 1e4 * shift:
            return values, vectors
        block *= 3
        if block > len(gram) // 8:
            if len(gram) > MEDIUM:
                return values, vectors
            values, vectors = np.linalg.eigh(gram)
            return values, vectors


def diagonal(lifted: Lifted, rng: np.random.Generator) -> FloatArray:
    """Where the W's are sums of ww' of as many independent w's: those w's, up to their length (d x r)."""
    inside = lifted.directions
    first, second = (
        inside.T @ np.tensordot(rng.standard_normal(lifted.dimension), lifted.matrices, axes=1) @ inside for _ in "ab"
    )
    try:
        values, vectors = eig(first, second)
    except (np.linalg.LinAlgError, ValueError):
        return np.zeros((len(inside), 0))
    real = np.isfinite(values) & (np.abs(values.imag) <= 1e-6 * (1 + np.abs(values.real)))
    # Eigenvectors belong to the pencil's other side: W = sum a ww' sends the dual vectors of the w's to them.
    return np.asarray(inside @ (second @ vectors[:, real].real))


def rounded(span: EmbeddingSpan, directions: FloatArray) -> FloatArray:
    """Columns of 0 and 1 from directions of unknown length and sign: 0 is where most of the small values lie."""
    x = span.basis @ directions
    largest = np.abs(x).argmax(axis=0)
    x = x / x[largest, np.arange(x.shape[1])]
    return np.asarray((x > 0.5).astype(np.float64))
