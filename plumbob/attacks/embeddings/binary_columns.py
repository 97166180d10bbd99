"""Binary columns (ours): every two-valued column that the embeddings reveal, with a certificate.

The active party sees Z = X W', so all columns of X lie in the span of Z (ye2022). Those of the span that take two values only:
    few dimensions    all of them, by meeting in the middle: the search is complete (meet_in_the_middle.py)
    many dimensions   one null space narrows the span to what binary columns can lie in (lifting.py); then as above, by common
                      eigenvectors, or, where codes of categories have too many sums, by linear programmes (atoms.py)
    few rows          columns that ascent finds (two_values.py) and that pass the certificate; others may lie in it
    with noise        columns that explain best what is seen, by the same ascent; they have no certificate. Noise that is drawn
                      anew in each round is averaged first, over all rounds of training and prediction
    without prediction   the rounds of training combined
Against masquerade (ye2022, Section VII): a column that is found may be fabricated and takes the place of a direction, so the
rest is looked for once more where it is 0 and where it is 1, each less its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.embeddings._embedding_span import NOISE_TIMES_TO_COUNT, EmbeddingSpan, rounding
from plumbob.attacks.embeddings._lifted_null_space import diagonal, lift, rounded
from plumbob.attacks.embeddings._meet_in_the_middle import reach, search
from plumbob.attacks.embeddings._received_embeddings import BLURRING, Embedding, blurred, embeddings, noise
from plumbob.attacks.embeddings._smallest_columns import atoms
from plumbob.attacks.embeddings._two_valued_ascent import cuts
from plumbob.errors import BadInput, boolean
from plumbob.federation import FloatArray
from plumbob.kinds import Kind
from plumbob.threats import View

KINDS_TOLD_ONE_BY_ONE = 64  # of rows, up to which they are told one by one
WEAK = 0.003  # noise of a direction above which it is done without
NARROWING_TURNS = 3  # times that a span is narrowed
NULL_SPACE_SLACK = 20.0  # errors of a null space over those of the rows it is of
OFFERED = 8  # columns offered where there is no certificate
FEW_ROWS = 2_000  # starts of the ascent where it is the only way
WORTH = 0.5  # share that must be explained of them


@dataclass(frozen=True)
class FoundColumns:
    """Columns of one embedding."""

    columns: FloatArray  # n x count
    rank: int
    far: float  # the largest distance of a column from the span, of those with a certificate
    certified: int  # the first so many
    complete: bool
    kinds: int = 0  # of rows, where there are so few that any column which is the same within them lies in the span

    @property
    def words(self) -> str:
        """The certificate in a sentence."""
        offered = self.columns.shape[1] - self.certified
        parts = [f"{self.certified:,} in {self.rank} dimensions, sums of columns included"]
        if self.kinds:
            parts = [f"rows are of {self.kinds} kinds, which the embeddings tell apart"]
        if self.certified:
            parts.append(f"none further than {self.far:.1e} from the span")
        if not self.kinds:
            parts.append("no others lie in it" if self.complete else "others may lie in it")
        if offered:
            parts.append(f"{offered:,} more that only fit well")
        return "; ".join(parts)


class BinaryColumns(Attack):
    """All two-valued columns, exactly where possible. `affine`: also with biases and values other than 0 and 1."""

    name = "binary_columns"
    identity = "BinaryColumns(affine, values)"
    summary = "ours: finds every two-valued column in the span of the embeddings, with a certificate"
    paper = "plumbob"
    protocols = ("split_network",)
    addresses = (Kind.TWO_VALUED,)
    knows = BLURRING

    def __init__(self, affine: bool = True, values: tuple[float, ...] = (0.0, 1.0), adaptive: bool = True) -> None:
        self.affine = boolean("affine", affine)
        self.adaptive = boolean("binary_columns: adaptive", adaptive)
        good = isinstance(values, list | tuple) and all(isinstance(v, int | float) and np.isfinite(v) for v in values)
        if not good or len(set(values)) < 2:
            raise BadInput(f"values: expected at least two different numbers, got {values!r}")
        self.values = tuple(sorted(float(value) for value in set(values)))

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        columns = len(view.unknown) if blurred(view) else 0
        anew, _ = noise(view)
        parts = [(one, self.found(one, columns, rng)) for one in embeddings(view, averaged=anew > 0)]
        words = [f"{one.sender + ': ' if one.sender else ''}{one.told(part.words)}" for one, part in parts]
        vectors = np.hstack([one.placed(part.columns, len(view.own)) for one, part in parts])
        return Guess(view.unknown_names, vectors=vectors, certificate=". ".join(words))

    def found(self, one: Embedding, uncertain: int, rng: np.random.Generator) -> FoundColumns:
        """The columns of one embedding; where so many are `uncertain`, also what only fits well."""
        span = EmbeddingSpan.of(one.cells, max(one.sd, one.inexact), self.affine and self.values == (0.0, 1.0))
        columns, complete = (np.zeros((len(one.cells), 0)), False) if one.sd else exact(span, rng, self.values)
        far = float(span.distance(columns).max(initial=0.0))
        offered = approximate(one, columns, uncertain, rng) if uncertain else columns[:, :0]
        kinds = len(span.distinct) if span.spare <= 0 and columns.shape[1] else 0
        return FoundColumns(np.hstack([columns, offered]), span.rank, far, columns.shape[1], complete, kinds)


def exact(
    span: EmbeddingSpan, rng: np.random.Generator, values: tuple[float, ...] = (0.0, 1.0)
) -> tuple[FloatArray, bool]:
    """Columns of the span with these values only, and whether there are no others. Complements are not told apart."""
    if span.rank and span.spare <= 0:
        return _kinds(span), False
    if span.rank <= reach(len(values)):
        done = search(span, values)
        if done.complete or values != (0.0, 1.0):
            return done.columns, done.complete and not span.doubtful
    if values != (0.0, 1.0):
        return np.zeros((len(span.basis), 0)), False
    if span.rank > 1 and span.blur > WEAK:  # what does not need the noisiest direction can still be certain
        return exact(span.without_weakest(), rng)[0], False
    columns, complete = _narrowed(span, rng)
    return columns, complete and not span.doubtful


def _kinds(span: EmbeddingSpan) -> FloatArray:
    """Which rows are of each kind, where every such column lies in the span; nothing where kinds are about as many as rows."""
    first, kind = span.kinds
    if len(first) > min(KINDS_TOLD_ONE_BY_ONE, len(kind) // 8) or len(first) <= span.rank:
        return np.zeros((len(span.basis), 0))
    columns = (kind[:, None] == np.arange(len(first))).astype(np.float64)
    return judged(span, columns[:, 1:] if len(first) == 2 else columns)


def _narrowed(span: EmbeddingSpan, rng: np.random.Generator) -> tuple[FloatArray, bool]:
    """Columns of a span of many dimensions, and whether there are no others."""
    narrow = span
    for _ in range(NARROWING_TURNS):
        step = lift(narrow, rng)
        if not step.determined and narrow is span and span.spare < 2 * span.rank + 10:
            return np.zeros((len(span.basis), 0)), False  # an ascent could end anywhere
        if not step.determined and narrow is span:
            return judged(span, cuts(span, rng, FEW_ROWS).columns), False
        if not step.determined:
            break
        if step.dimension == step.directions.shape[1]:
            columns = judged(span, rounded(narrow, diagonal(step, rng)))
            if columns.shape[1] == step.dimension:
                return columns, True
        if step.directions.shape[1] == narrow.rank:
            break
        narrow = narrow.part(step.directions, min(1e-2, max(1e-6, NULL_SPACE_SLACK * narrow.blur)))
        if narrow.rank <= reach(2):
            done = search(narrow, within=span)
            if done.complete:
                return done.columns, True
    return judged(span, atoms(narrow, rng)), False


def judged(span: EmbeddingSpan, columns: FloatArray) -> FloatArray:
    """The columns that lie in the span; in an affine one they are 0 at its reference row, so the others are turned round."""
    if span.reference is not None:
        columns = np.abs(columns - columns[span.reference])
    return columns[:, np.asarray(span.holds(columns), dtype=bool) & columns.any(axis=0)]


def approximate(one: Embedding, found: FloatArray, unknown: int, rng: np.random.Generator) -> FloatArray:
    """Columns of two values near the span, those found before taken for fabricated and their part in it taken out.

    Embeddings of more dimensions than there are unknown columns are no linear ones: then also near their largest directions.
    """
    cells = one.cells.astype(np.float64)
    for j in range(min(found.shape[1], 4)):
        for value in (0.0, 1.0):
            rows = found[:, j] == value
            cells[rows] -= cells[rows].mean(axis=0)
    if not np.ptp(cells, axis=0).any():
        return found[:, :0]
    sd = max(one.sd, NOISE_TIMES_TO_COUNT * rounding(one.cells))
    offered = []
    for most in (None, unknown):
        span = EmbeddingSpan.of(cells, sd, affine=False, most=most)
        best = cuts(span, rng)
        offered.append(best.columns[:, best.explained > WORTH][:, :OFFERED])
        if span.rank <= unknown:
            break
    return np.hstack(offered)
