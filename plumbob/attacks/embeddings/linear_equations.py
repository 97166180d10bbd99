"""Linear equations (ye2022, Algorithm 1): every binary column in the span of the embeddings, by trying all 2^d.

A is d independent columns of Z, A' d independent rows of A. For each x' of 0 and 1: w = A'^-1 x', x = A w; x is an answer if
it is binary. The paper returns the first and reports all; so does this. Work: n d 2^d.

Z is what prediction told of all rows; without prediction the rounds of training combined, or one batch (Section III-B).
With `differences` (Section VII) one row is taken from all others first: a bias is gone, and a column of any two values a and b is
one of 0 and b - a, or of 0 and a - b, so which of the two is which is open.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import qr

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._received_embeddings import embeddings
from plumbob.errors import boolean, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import Kind
from plumbob.setting_sources import ours, printed
from plumbob.threats import View

BINARY = 1e-2  # how far from 0 or 1 a value may be: embeddings in 32 bits are off by a little
CANDIDATE_CELLS = 2**23  # of candidates worked out together


class LinearEquations(Attack):
    """As printed, for at most `most` dimensions; with `differences` also for biases and any two values."""

    name = "linear_equations"
    identity = "LinearEquations(most)"
    summary = "tries all 2^d binary values at d rows and keeps those that are binary at all others"
    paper = "ye2022"
    protocols = ("split_network",)
    addresses = (Kind.TWO_VALUED,)
    by_default = False
    presets = {"differences": {"differences": True}, "small": {"most": 12}}
    sources = {
        "most": ours("all dimensions in the paper, whose time doubles with each; 28 at most in its Figure 4"),
        "differences": printed("Algorithm 1, which takes none; Section VII does where there is a bias or other values"),
    }

    def __init__(self, most: int = 24, differences: bool = False) -> None:
        self.most = whole("linear_equations: most", most, 1, 40)
        self.differences = boolean("linear_equations: differences", differences)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        found, words = [np.zeros((len(view.own), 0))], []
        for one in embeddings(view):
            cells = differences(one.cells) if self.differences else one.cells
            rank = EmbeddingSpan.of(cells, affine=False).rank
            if rank > self.most:
                words.append(f"{rank} dimensions are out of reach: 2^{rank} candidates")
                continue
            columns = solve(independent_columns(cells, rank))
            found.append(one.placed(columns, len(view.own)))
            words.append(one.told(f"{columns.shape[1]:,} of 2^{rank} - 1 candidates are binary"))
        return Guess(view.unknown_names, vectors=np.hstack(found), certificate="; ".join(words))


def differences(cells: FloatArray) -> FloatArray:
    """All rows less one of them. Any will do; that nearest the mean adds as little noise as any."""
    away = np.linalg.norm(cells - cells.mean(axis=0), axis=1)
    return np.asarray(cells - cells[int(np.argmin(away))])


def independent_columns(cells: FloatArray, rank: int) -> FloatArray:
    """So many of its columns, far from dependent."""
    order = qr(np.linalg.qr(cells.astype(np.float64), mode="r"), mode="r", pivoting=True)[1]
    return np.asarray(cells[:, order[:rank]], dtype=np.float64)


def candidates(places: int, together: int) -> Iterator[FloatArray]:
    """All of {0, 1}^places but 0, some columns at a time."""
    for start in range(1, 2**places, together):
        numbers: IntArray = np.arange(start, min(start + together, 2**places))
        yield ((numbers >> np.arange(places)[:, None]) & 1).astype(np.float64)


def solve(a: FloatArray) -> FloatArray:
    """Lines 1 to 8 for all candidates: the binary columns (n x count)."""
    rows, rank = a.shape
    if rank == 0:
        return np.zeros((rows, 0))
    chosen = qr(a.T, mode="r", pivoting=True)[1][:rank]
    inverse = np.linalg.inv(a[chosen])
    found = [np.zeros((rows, 0))]
    for x in candidates(rank, max(1, CANDIDATE_CELLS // rows)):
        values = a @ (inverse @ x)
        binary = (np.minimum(np.abs(values), np.abs(values - 1)) < BINARY).all(axis=0)
        found.append(np.round(values[:, binary]))
    return np.hstack(found)
