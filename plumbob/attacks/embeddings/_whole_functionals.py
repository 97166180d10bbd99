"""The whole-number columns that lie in the span of linear embeddings, as a lattice (ours).

Differences of rows are z_i - z_0 = W (x_i - x_0), so a column of whole numbers u is u_i - u_0 = (z_i - z_0).w for one w. On m
rows, more than dimensions, all w of whole values form a lattice, and the values u themselves are its short vectors: of
    (u, C H u)   for u in Z^m,   H the part of u that the span explains no better than noise does
those with H u = 0 are about |u| long, all others C. LLL finds them together. Rows that were not among the m then decide: a w
that is not whole there has met too few of them, so some of those rows are added. What stays is whole in all rows.
A w counts only where its noise, sd |w|, is far below 1, and where its values are not whole by chance. With s kinds of rows
beyond those that fix it, and t the tolerance, (2 t)^s of the (1 + range)^r functionals with such values are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.embeddings._embedding_span import rounding
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import flint

ABOVE_NOISE = 10.0  # how much larger than noise a direction must be to count
UNSURE = 0.25  # noise of a value, in units of its step, above which it is no whole number by sight
FAR = 12.0  # deviations of noise that a value may be off
SPARE_ROWS = 30  # rows beyond two for each dimension
DIGITS = 4.0  # of the probability of chance, below which a column does not count
TURNS = 14  # times that rows are added
IDLE = 2  # times that rows are added without finding more
FINE = 2.0**6  # vectors are rounded to this part of 1 before the reduction
MOST = 130  # dimensions up to which the reduction takes seconds
SAMPLED = 8_000  # rows among which functionals are looked for
SETTLING = 6  # fits to rounded values at most
SINGULAR = 0.7  # singular value of the m rows, whitened, below which a direction is not seen in them


@dataclass(frozen=True)
class Coordinates:
    """Rows of an embedding in as many coordinates as stand out of noise, each of mean square 1."""

    rows: FloatArray  # n x r
    mixing: FloatArray  # k x r: rows = (z - origin) @ mixing
    noise: FloatArray  # r: deviation of each coordinate
    sd: float  # of a cell of z
    origin: FloatArray  # k

    @property
    def rank(self) -> int:
        return int(self.rows.shape[1])

    @classmethod
    def of(cls, cells: FloatArray, sd: float, origin: FloatArray | None = None) -> Coordinates:
        """Of rows less an origin, 0 if none is given."""
        if cells.ndim != 2 or len(cells) < 2:
            raise BadInput(f"embeddings: expected a table of at least 2 rows, got shape {cells.shape}")
        if not np.isfinite(cells).all():
            raise BadInput("embeddings: expected a number in every cell, got NaN or infinity")
        sd = max(sd, rounding(cells))
        z = cells.astype(np.float64)
        origin = np.zeros(z.shape[1]) if origin is None else origin
        z = z - origin
        _, sizes, turn = np.linalg.svd(np.linalg.qr(z, mode="r"), full_matrices=False)
        floor = ABOVE_NOISE * sd * (np.sqrt(len(z)) + np.sqrt(z.shape[1]))
        kept = int((sizes > floor).sum())
        mixing = turn[:kept].T / sizes[:kept] * np.sqrt(len(z))
        return cls(z @ mixing, mixing, sd * np.linalg.norm(mixing, axis=0), sd, origin)


@dataclass(frozen=True)
class WholeColumns:
    """Independent columns of whole numbers, 0 at one row, whose sums are all that lie in the span as far as noise shows."""

    columns: FloatArray  # n x count
    off: float  # root mean square of what they were off from whole numbers
    noise: float  # the largest noise of any, in units of its step
    rank: int  # dimensions of the embeddings
    sound: bool  # whether nothing was left out for want of reach
    digits: float = 0.0  # a column is whole by chance with a probability of 10^-digits at most


def whole_columns(cells: FloatArray, sd: float, rng: np.random.Generator, most: int = MOST) -> WholeColumns:
    """All that embeddings of at most so many dimensions show."""
    most = min(most, MOST)
    sample = np.sort(rng.permutation(len(cells))[:SAMPLED])
    some = cells[sample]
    middle = some.astype(np.float64).mean(axis=0)
    origin = some[int(np.argmin(np.linalg.norm(some - middle, axis=1)))].astype(np.float64)
    at = Coordinates.of(some, max(sd, rounding(cells)), origin)
    empty = WholeColumns(np.zeros((len(cells), 0)), 0.0, 0.0, at.rank, at.rank <= most)
    if not 0 < at.rank <= most:
        return empty
    distinct = _distinct(at, rng)
    functionals = _functionals(at, distinct, rng)
    values = ((cells - origin) @ at.mixing) @ (functionals / at.noise[:, None])
    whole = np.rint(values)
    size = np.linalg.norm(functionals, axis=0)
    off, allowed = np.abs(values - whole), _allowed(size)
    spare = len(distinct) - at.rank
    digits = -spare * np.log10(2 * allowed) - at.rank * np.log10(1 + np.ptp(whole, axis=0))
    kept = (off.max(axis=0, initial=0.0) < allowed) & (np.ptp(whole, axis=0) > 0) & (digits > DIGITS)
    if not kept.any():
        return empty
    square = float(np.sqrt(np.mean(off[:, kept] ** 2)))
    return WholeColumns(whole[:, kept], square, float(size[kept].max()), at.rank, True, float(digits[kept].min()))


def _allowed(noise: FloatArray) -> FloatArray:
    """How far values may be off whole numbers."""
    return np.asarray(np.minimum(0.45, FAR * noise + 1e-6))


def _distinct(at: Coordinates, rng: np.random.Generator) -> IntArray:
    """One row of each kind, but for the kind of the origin."""
    marks = np.round(at.rows @ rng.standard_normal((at.rank, 2)), 5)
    distinct = np.unique(marks, axis=0, return_index=True)[1]
    return np.asarray(distinct[np.linalg.norm(at.rows[distinct], axis=1) > 1e-5])


def _functionals(at: Coordinates, distinct: IntArray, rng: np.random.Generator) -> FloatArray:
    """Functionals (r x count, in coordinates of which each has noise 1) that are whole in all rows, up to noise."""
    seen = at.rows / at.noise
    best = np.zeros((at.rank, 0))
    if len(distinct) <= at.rank:
        return best
    size = np.linalg.norm(at.rows[distinct], axis=1)
    count = min(len(distinct), 2 * at.rank + SPARE_ROWS)
    central = distinct[np.argsort(size)[: max(count, int(0.6 * len(distinct)))]]
    rows = _covering(at.rows, rng.permutation(central)[:count])
    idle = 0
    for _ in range(TURNS):
        found, more = _turn(at, seen, rows, distinct, size)
        idle = 0 if found.shape[1] > best.shape[1] else idle + 1
        best = found if found.shape[1] >= best.shape[1] else best
        if not len(more) or found.shape[1] == at.rank or idle > IDLE:
            break
        rows = _covering(at.rows, np.concatenate([rows, rng.permutation(more)[: max(8, at.rank // 2)]]))
    return best


def _covering(rows: FloatArray, chosen: IntArray) -> IntArray:
    """The chosen rows, and more until every direction is seen in them."""
    for _ in range(2 * rows.shape[1]):
        _, sizes, turn = np.linalg.svd(rows[chosen], full_matrices=False)
        if len(sizes) == rows.shape[1] and sizes[-1] > SINGULAR:
            break
        share = np.abs(rows @ turn[-1])
        share[chosen] = 0.0
        chosen = np.append(chosen, int(share.argmax()))
    return chosen


def _turn(
    at: Coordinates, seen: FloatArray, rows: IntArray, distinct: IntArray, size: FloatArray
) -> tuple[FloatArray, IntArray]:
    """What the reduction on these rows finds, and rows that refute what was whole on these rows only."""
    values = short_vectors(seen[rows], 1 / float(np.median(at.noise)))
    bound = np.eye(at.rank)
    joint = np.vstack([seen[rows], bound])
    fitted = np.linalg.lstsq(joint, np.vstack([values.T, np.zeros((at.rank, len(values)))]), rcond=None)[0]
    near = np.linalg.norm(fitted, axis=0) < UNSURE
    near &= np.abs(seen[rows] @ fitted - values.T).max(axis=0) < 0.45
    found, more = [], []
    for x, w in zip(values[near], fitted[:, near].T, strict=True):
        settled, right = _settled(seen, w, bound)
        if right and np.array_equal(np.rint(seen[rows] @ settled), x):
            found.append(settled)
            continue
        off = seen[distinct] @ w
        off = np.abs(off - np.rint(off))
        refuting = np.flatnonzero((off > 0.3) & ~np.isin(distinct, rows))
        if len(refuting):
            more.append(int(distinct[refuting[np.argmin(size[refuting])]]))
    return np.array(found).T.reshape(at.rank, -1), np.unique(np.array(more, dtype=np.int64))


def _settled(seen: FloatArray, w: FloatArray, bound: FloatArray) -> tuple[FloatArray, bool]:
    """The functional fitted to its own rounded values in all rows, and whether these are whole as far as noise lets one tell."""
    values = seen @ w
    whole = np.rint(values)
    for _ in range(SETTLING):
        good = np.abs(values - whole) < 0.3
        target = np.concatenate([whole[good], np.zeros(len(bound))])
        w = np.linalg.lstsq(np.vstack([seen[good], bound]), target, rcond=None)[0]
        values = seen @ w
        if np.array_equal(np.rint(values), whole):
            break
        whole = np.rint(values)
    noise = float(np.linalg.norm(w))
    off = np.abs(values - whole)
    return w, bool(off.max() < float(_allowed(np.array(noise))) and noise < UNSURE)


def short_vectors(seen: FloatArray, penalty: float) -> FloatArray:
    """Whole vectors (count x m) near the span of `seen` (m x r, each coordinate of noise 1), the shortest of a reduced basis."""
    m, r = seen.shape
    turn, sizes, _ = np.linalg.svd(seen, full_matrices=True)
    outside = np.ones(m)
    outside[:r] = np.sqrt(m / (sizes**2 + m))
    basis = np.rint(FINE * np.hstack([np.eye(m), penalty * (turn * outside)]))
    reduced = flint.fmpz_mat([[int(value) for value in row] for row in basis]).lll()
    vectors = np.array([[float(int(value)) for value in row[:m]] for row in reduced.tolist()]) / FINE
    return np.rint(vectors[np.abs(vectors).any(axis=1)])
