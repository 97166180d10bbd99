"""Every column of known values in a span, by meeting in the middle (ours): 2^(d/2) work where ye2022 enumerates 2^d.

A column x of the span is fixed by its values at d independent rows S: x = C x_S with C = Q Q_S^-1. All values of the first
half of S and all of the second half are two short lists of sums; x_S is a solution only if both add up to a value at every
other row. So the lists are matched at a few check rows at once, by their sorted sums with random weights: weights make the
sum of a match one of few numbers, whatever the rows. What is left is checked at more rows, one by one, and at last on all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from plumbob.attacks.embeddings._embedding_span import NOISE_TIMES_TO_COUNT, EmbeddingSpan
from plumbob.federation import FloatArray, IntArray

TABLE = 2**20  # entries of the longer list at most
PAIRS_TOGETHER = 2**22  # pairs looked at together
MOST_PAIRS_SEARCHED = 10**9  # pairs at all: more take minutes
CHECKS = 24  # rows at which pairs are checked before all others
CHANCE = -10  # log2 of the columns that may pass all rows by chance
ROWS_FOR_INDEPENDENCE = 20_000  # rows among which independent ones are looked for


@dataclass(frozen=True)
class Searched:
    """All columns of the values asked for (n x count), and whether that is all there are."""

    columns: FloatArray
    complete: bool


def reach(levels: int) -> int:
    """The largest dimension that is searched to the end."""
    return int(2 * np.log(TABLE) / np.log(levels))


def search(
    span: EmbeddingSpan, levels: Sequence[float] = (0.0, 1.0), most: int = 1_024, within: EmbeddingSpan | None = None
) -> Searched:
    """Every column of the span that takes only values among `levels`, the constant 0 left out; at most so many.

    Where the span is known up to some slack, columns are judged by the larger one `within` which it was found.
    """
    values = np.array(levels, dtype=np.float64)
    if span.rank == 0:
        return Searched(np.zeros((len(span.basis), 0)), True)
    if span.rank > reach(len(values)):
        return Searched(np.zeros((len(span.basis), 0)), False)
    nothing = Searched(np.zeros((len(span.basis), 0)), False)
    distinct = span.distinct
    if len(distinct) < span.rank:
        return nothing  # noise hides which rows differ
    chosen, others = _independent(span.basis[distinct])
    try:
        inverse = np.linalg.inv(span.basis[distinct[chosen]])
    except np.linalg.LinAlgError:
        return nothing
    off = (
        NOISE_TIMES_TO_COUNT
        * (span.sd + span.dropped / np.sqrt(len(span.basis)))
        * float(np.linalg.norm(span.mixing @ inverse))
        + 1e-9
    )
    off += NOISE_TIMES_TO_COUNT * span.slack * float(np.linalg.norm(inverse)) / np.sqrt(len(span.basis))
    step = float(np.diff(np.sort(values)).min())
    chance = span.rank * np.log2(len(values)) + span.spare * np.log2(min(1.0, 2 * len(values) * off / step))
    if off > step / 4 or (within is None and chance > CHANCE):
        return nothing
    checks = span.basis[distinct[others]] @ inverse
    lists = _Lists.of(_varied(checks), values, off)
    ranges = list(lists.ranges())
    if sum(int((end - begin).sum()) for begin, end in ranges) > MOST_PAIRS_SEARCHED:
        return nothing
    judge, together = within or span, max(1, PAIRS_TOGETHER // len(span.basis))
    seen: dict[bytes, FloatArray] = {}
    for starts in (match for begin, end in ranges for match in lists.matches(begin, end)):
        for place in range(0, len(starts), together):
            exact = span.basis @ (inverse @ starts[place : place + together].T)
            nearest = values[np.abs(exact[:, :, None] - values).argmin(axis=2)]
            good = (np.abs(exact - nearest).max(axis=0) < step / 3) & (np.abs(nearest).max(axis=0) > 0)
            good[good] = judge.holds(nearest[:, good])
            seen |= {column.astype(np.float32).tobytes(): column for column in nearest[:, good].T}
            if len(seen) > most:
                return Searched(_side_by_side(list(seen.values())[:most], len(span.basis)), False)
    return Searched(_side_by_side(list(seen.values()), len(span.basis)), True)


def _side_by_side(columns: list[FloatArray], rows: int) -> FloatArray:
    return np.array(columns).T if columns else np.zeros((rows, 0))


def _independent(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """d rows that are far from dependent, and others to check on, the most telling first."""
    some = np.arange(len(rows))
    if len(rows) > ROWS_FOR_INDEPENDENCE:
        some = np.random.default_rng(0).permutation(len(rows))[:ROWS_FOR_INDEPENDENCE]
    rank = rows.shape[1]
    order = qr(rows[some].T, mode="r", pivoting=True)[1]
    chosen = some[order[:rank]]
    rest = some[order[rank:]]
    if not len(rest):
        return chosen, rest
    mixed = np.abs(rows[rest] @ np.linalg.inv(rows[chosen]))
    # A row that hangs on many of the chosen ones with many different weights rules out most.
    weights = np.round(mixed, 6)
    weights.sort(axis=1)
    variety = (np.diff(weights, axis=1) > 0).sum(axis=1) + (weights > 1e-6).sum(axis=1)
    return chosen, rest[np.argsort(-variety, kind="stable")[: 40 * CHECKS]]


@dataclass(frozen=True)
class _Lists:
    """All values of the first half of the chosen rows, sorted by their key, and of the second, with their sums at check rows."""

    values: FloatArray
    off: float
    low: FloatArray  # entries x rows of the half
    high: FloatArray
    ours: FloatArray  # check rows x entries
    theirs: FloatArray
    weights: FloatArray  # of the check rows in the key

    @classmethod
    def of(cls, checks: FloatArray, values: FloatArray, off: float) -> _Lists:
        half = checks.shape[1] // 2
        low, high = _all(values, half), _all(values, checks.shape[1] - half)
        ours, theirs = checks[:, :half] @ low.T, checks[:, half:] @ high.T
        weights = np.array([1.0, 0.618034, 0.381967])[: len(checks)]
        order = np.argsort(weights @ ours[: len(weights)], kind="stable")
        return cls(values, off, low[order], high, np.ascontiguousarray(ours[:, order]), theirs, weights)

    def ranges(self) -> Iterator[tuple[IntArray, IntArray]]:
        """For every sum that a match can have and every entry of the second list: where in the first list the rest lies."""
        keyed = len(self.weights)
        key, other = self.weights @ self.ours[:keyed], self.weights @ self.theirs[:keyed]
        wide = self.off * float(self.weights.sum()) + 1e-12
        for target in np.unique(_all(self.values, keyed) @ self.weights) if keyed else np.zeros(1):
            begin = np.searchsorted(key, target - other - wide, side="left")
            yield begin, np.searchsorted(key, target - other + wide, side="right")

    def matches(self, begin: IntArray, end: IntArray) -> Iterator[FloatArray]:
        """Pairs in these ranges that give a value at every check row, as values at the chosen rows, in batches."""
        counts = end - begin
        entries = np.flatnonzero(counts)
        place = 0
        while place < len(entries):
            taken = entries[
                place : place + 1 + int(np.searchsorted(np.cumsum(counts[entries[place:]]), PAIRS_TOGETHER))
            ]
            place += len(taken)
            second = np.repeat(taken, counts[taken])
            starts = np.repeat(np.cumsum(counts[taken]) - counts[taken], counts[taken])
            first = np.arange(len(second)) - starts + begin[second]
            for ours, theirs in zip(self.ours, self.theirs, strict=True):
                total = ours[first] + theirs[second]
                near = np.abs(total[:, None] - self.values).min(axis=1) <= self.off
                first, second = first[near], second[near]
                if not len(first):
                    break
            if len(first):
                yield np.hstack([self.low[first], self.high[second]])


def _varied(checks: FloatArray) -> FloatArray:
    """Check rows of which none repeats another, the first of them."""
    _, first = np.unique(np.round(checks, 7), axis=0, return_index=True)
    return checks[np.sort(first)[:CHECKS]]


def _all(values: FloatArray, places: int) -> FloatArray:
    """Every way to put values at so many places, one below the other."""
    grid = np.indices((len(values),) * places).reshape(places, -1).T if places else np.zeros((1, 0), dtype=np.int64)
    return values[grid]
