"""The column span of an embedding Z = X W' + noise, and whether a column lies in it.

Z = U S V' gives the span's basis U, one column for every singular value above what noise alone would give: cells off by `sd`
have singular values up to sd (sqrt(n) + sqrt(k)). A column x = Z b + error lies in the span if its root mean square distance
from it is what noise and the directions left out explain, sd |b| + s |b| / sqrt(n) with s the largest singular value left
out: that is the certificate of a column that was found. Where that is more than a fiftieth of a step there is none.

An affine span holds the columns that are 0 at one row once a constant is taken away: biases are gone, and a column of any two
values a and b is one of 0 and 1 there. Which of the two is 1 is then open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray

NOISE_TIMES_TO_COUNT = 4.0  # so many times the noise a singular value must be to count, and a distance may be to pass
SHARP = 1.02  # the same where the noise is known
CELL_ROUNDING = 1e-9  # of a cell's size: what sums in 64 bits may be off by
NOISE_THAT_CERTIFIES = 0.02  # noise that explains more of a column than this certifies nothing
DOUBT = 1.0  # singular values left out above this multiple of what noise can give may be more than noise


@dataclass(frozen=True)
class EmbeddingSpan:
    """Rows and basis of a span, and of what it is."""

    embedding: FloatArray  # n x k, less its mean row if the span is affine
    sd: float  # of a cell's noise
    basis: FloatArray  # n x d, orthonormal columns
    mixing: FloatArray  # k x d: embedding @ mixing = basis, up to a constant if the span is affine
    reference: int | None  # of an affine span: the row at which it is 0
    dropped: float = 0.0  # the largest singular value that was taken for noise
    doubtful: bool = False  # whether that may have been too much
    slack: float = 0.0  # how far a cell of basis * sqrt(n) may be off for other reasons than noise

    @classmethod
    def of(cls, embedding: FloatArray, sd: float = 0.0, affine: bool = True, most: int | None = None) -> EmbeddingSpan:
        """Of an embedding; `sd` is the noise known to be on it, `most` the dimension if that is known."""
        z = _checked(embedding)
        above = SHARP if sd > rounding(embedding) else NOISE_TIMES_TO_COUNT
        sd = max(sd, rounding(embedding))
        z = z - z.mean(axis=0) if affine else z
        _, sizes, rows = np.linalg.svd(np.linalg.qr(z, mode="r"), full_matrices=False)
        noise = max(sd, CELL_ROUNDING * float(np.abs(z).max(initial=0.0))) * (np.sqrt(len(z)) + np.sqrt(z.shape[1]))
        kept = int((sizes[:most] > above * noise).sum())
        mixing, left = rows[:kept].T / sizes[:kept], sizes[kept:]
        basis, reference = z @ mixing, None
        if affine:  # the row nearest the mean: what is taken away should add as little noise as any
            reference = int(np.argmin(np.linalg.norm(z, axis=1)))
            basis, upper = np.linalg.qr(basis - basis[reference])
            mixing = np.linalg.solve(upper.T, mixing.T).T
        dropped = float(left.max(initial=0.0))
        return cls(z, float(sd), basis, mixing, reference, dropped, dropped > DOUBT * noise)

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def blur(self) -> float:
        """How far a cell of basis * sqrt(n) may be off by noise."""
        return self.sd * float(np.linalg.norm(self.mixing, axis=0).max(initial=0.0)) * float(np.sqrt(len(self.basis)))

    def distance(self, x: FloatArray) -> FloatArray:
        """Root mean square of what the span does not explain, for every column of x."""
        left = x - self.basis @ (self.basis.T @ x)
        return np.asarray(np.sqrt(np.mean(left**2, axis=0)))

    def explained(self, x: FloatArray) -> FloatArray:
        """How large that may be: SURE sd |b| by noise and s |b| / sqrt(n) by what was left out, with x = Z b."""
        size = np.linalg.norm(self.mixing @ (self.basis.T @ x), axis=0)
        return np.asarray(
            (NOISE_TIMES_TO_COUNT * self.sd + self.dropped / np.sqrt(len(self.basis))) * size + CELL_ROUNDING
        )

    def holds(self, x: FloatArray) -> FloatArray:
        """Which columns of x lie in the span, as far as its noise lets one tell."""
        explained = self.explained(x)
        return np.asarray((self.distance(x) <= explained) & (explained < NOISE_THAT_CERTIFIES))

    def part(self, directions: FloatArray, slack: float = 0.0) -> EmbeddingSpan:
        """The span of some directions (d x r, coordinates in the basis), known up to a slack."""
        turn, _ = np.linalg.qr(directions)
        return replace(self, basis=self.basis @ turn, mixing=self.mixing @ turn, slack=max(slack, self.slack))

    def without_weakest(self) -> EmbeddingSpan:
        """The span less its noisiest direction, which is then among those left out."""
        _, sizes, rows = np.linalg.svd(self.mixing, full_matrices=False)
        dropped = max(self.dropped, 1.0 / float(sizes[0]))
        return replace(self.part(rows[1:].T), dropped=dropped, doubtful=True)

    @cached_property
    def kinds(self) -> tuple[IntArray, IntArray]:
        """The first row of each kind, as far as noise lets one tell rows apart, and every row's kind."""
        # Two random directions: rows that agree in both are alike.
        rng = np.random.default_rng(0)
        marks = self.basis @ rng.standard_normal((self.rank, 2)) * np.sqrt(len(self.basis))
        step = max(1e-7, 20 * self.blur, 4 * self.slack)
        rounded = np.round(marks / step).astype(np.int64)
        _, first, kind = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[kind.reshape(-1)]

    @property
    def distinct(self) -> IntArray:
        """One row number of each kind of row."""
        return self.kinds[0]

    @property
    def spare(self) -> int:
        """Kinds of rows beyond those that fix a column of the span: without any, every column that kinds allow lies in it."""
        return len(self.distinct) - self.rank - (self.reference is not None)


def rounding(embedding: FloatArray) -> float:
    """The noise that numbers of 32 bits have by themselves, also where they are kept in 64, in the largest row; else what sums
    in 64 bits have."""
    size = float(np.sqrt(np.mean(np.square(embedding, dtype=np.float64), axis=-1).max())) if embedding.size else 0.0
    single = embedding.dtype == np.float32 or bool((embedding.astype(np.float32) == embedding).all())
    return size * (2.0**-24 if single else 2.0**-50)


def _checked(embedding: FloatArray) -> FloatArray:
    if embedding.ndim != 2 or len(embedding) < 2:
        raise BadInput(f"embeddings: expected a table of at least 2 rows, got shape {embedding.shape}")
    if not np.isfinite(embedding).all():
        raise BadInput("embeddings: expected a number in every cell, got NaN or infinity")
    return embedding.astype(np.float64)
