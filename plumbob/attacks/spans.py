"""The column span of an embedding Z = X W' + noise, and whether a column lies in it.

Z = U S V' gives the span's basis U, one column for every singular value above what noise alone would give: cells off by `sd`
have singular values up to sd (sqrt(n) + sqrt(k)). A column x = Z b + error lies in the span if its distance from it is what
that noise explains, sd |b| sqrt(n): that is the certificate of a column that was found.

An affine span is that of Z less one of its rows: biases are gone, and a column of any two values a and b is one of 0 and 1
there, 0 at that row. Which of the two is 1 is then open, unless exactly one of x and 1 - x lies in the span of Z itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray

SURE = 4.0  # so many times the noise a singular value must be to count, and a distance may be to pass
SHARP = 1.02  # the same where the noise is known
LEAST = 1e-9  # of a cell's size: what sums in 64 bits may be off by


@dataclass(frozen=True)
class Span:
    """Rows and basis of a span. `embedding` holds the cells it is of, less the reference row if it is affine."""

    embedding: FloatArray  # n x k
    sd: float  # of a cell's noise
    basis: FloatArray  # n x d, orthonormal columns
    sizes: FloatArray  # d singular values
    mixing: FloatArray  # k x d: embedding @ mixing = basis
    reference: int | None  # the row taken away, of an affine span
    slack: float = 0.0  # how far a cell of basis * sqrt(n) may be off for other reasons than noise

    @classmethod
    def of(cls, embedding: FloatArray, sd: float = 0.0, affine: bool = True, most: int | None = None) -> Span:
        """Of an embedding; `sd` is the noise known to be on it, `most` the dimension if that is known."""
        z = _checked(embedding)
        above = SHARP if sd > rounding(embedding) else SURE
        sd = max(sd, rounding(embedding))
        reference = None
        if affine:
            # The row nearest the mean: what is taken away should add as little noise as any.
            reference = int(np.argmin(np.linalg.norm(z - z.mean(axis=0), axis=1)))
            z = z - z[reference]
            sd *= 2**0.5
        _, sizes, rows = np.linalg.svd(np.linalg.qr(z, mode="r"), full_matrices=False)
        edge = above * max(sd, LEAST * float(np.abs(z).max(initial=0.0))) * (np.sqrt(len(z)) + np.sqrt(z.shape[1]))
        kept = int((sizes > edge).sum()) if most is None else int((sizes[:most] > edge).sum())
        mixing = rows[:kept].T / sizes[:kept]
        return cls(z, float(sd), z @ mixing, sizes[:kept], mixing, reference)

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    def distance(self, x: FloatArray) -> FloatArray:
        """Root mean square of what the span does not explain, for every column of x."""
        left = x - self.basis @ (self.basis.T @ x)
        return np.asarray(np.sqrt(np.mean(left**2, axis=0)))

    def explained(self, x: FloatArray) -> FloatArray:
        """How large that may be by noise: sd |b| with x = Z b, for every column of x."""
        b = self.mixing @ (self.basis.T @ x)
        return np.asarray(SURE * self.sd * np.linalg.norm(b, axis=0) + LEAST)

    def holds(self, x: FloatArray) -> FloatArray:
        """Which columns of x lie in the span, as far as its noise lets one tell: half a step is too much for that."""
        explained = self.explained(x)
        return np.asarray((self.distance(x) <= explained) & (explained < 0.25))

    def part(self, directions: FloatArray, slack: float = 0.0) -> Span:
        """The span of some directions (d x r, coordinates in the basis), known up to a slack."""
        turn, _ = np.linalg.qr(directions)
        slack = max(slack, self.slack)
        return Span(self.embedding, self.sd, self.basis @ turn, self.sizes, self.mixing @ turn, self.reference, slack)

    @property
    def blur(self) -> float:
        """How far a cell of basis * sqrt(n) may be off by noise."""
        return self.sd * float(np.linalg.norm(self.mixing, axis=0).max(initial=0.0)) * float(np.sqrt(len(self.basis)))

    @cached_property
    def distinct(self) -> IntArray:
        """One row number of each kind of row, as far as noise lets one tell rows apart."""
        # Two random directions: rows that agree in both are alike.
        rng = np.random.default_rng(0)
        marks = self.basis @ rng.standard_normal((self.rank, 2)) * np.sqrt(len(self.basis))
        step = max(1e-7, 20 * self.blur, 4 * self.slack)
        _, first = np.unique(np.round(marks / step).astype(np.int64), axis=0, return_index=True)
        return np.sort(first)


def rounding(embedding: FloatArray) -> float:
    """The noise that numbers of 32 bits have by themselves, also where they are kept in 64; else what sums in 64 bits have."""
    size = float(np.sqrt(np.mean(np.square(embedding, dtype=np.float64)))) if embedding.size else 0.0
    single = embedding.dtype == np.float32 or bool((embedding.astype(np.float32) == embedding).all())
    return size * (2.0**-24 if single else 2.0**-50)


def _checked(embedding: FloatArray) -> FloatArray:
    if embedding.ndim != 2 or len(embedding) < 2:
        raise BadInput(f"embeddings: expected a table of at least 2 rows, got shape {embedding.shape}")
    if not np.isfinite(embedding).all():
        raise BadInput("embeddings: expected a number in every cell, got NaN or infinity")
    return embedding.astype(np.float64)
