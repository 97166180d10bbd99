"""Score a guess against the truth, next to the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from plumbob.attacks.base import Guess, finite
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.lazy_imports import optimize
from plumbob.scoring._repeated_rows import one_row_each
from plumbob.scoring.column_ceiling import ColumnCeiling
from plumbob.scoring.held_columns import held_columns
from plumbob.scoring.images import ImageScore, image_score
from plumbob.scoring.label_claims import LabelScore, score_labels
from plumbob.scoring.truth import Truth
from plumbob.threats import View

LABELS = "labels"  # the metric where no column is hidden, only the label: its error is the share of wrong classes
# How the reason begins why an attack failed, where that depends on the machine and the day
LIMITED = ("it ran longer than ", "it needed more than ", "it was killed by ")
# Of people without names: how much nearer a row must be than the nearest stranger, as a share of the error
THEIRS = 0.01
# A mean squared error up to which nothing varies. One outlier outside of the rows that are judged sets the range, and leaves
# the others within a billionth of it: they can be recovered all the same
FLAT = 1e-24


@dataclass(frozen=True)
class ColumnScore:
    """What was learnt about one column or, for images, about one tile as means over its pixels.

    `gain` is the share of the best baseline's error that the attack removed.
    """

    name: str
    error: float  # MSE, or share of wrong branches or bins
    best_baseline: str
    baseline_error: float
    gain: float
    gain_error: float  # standard error of the gain over rows
    exact: float  # share of cells within 1e-6 of the range (or branches that are right)
    claims: int  # cells or branches the guess speaks of
    own_correlation: float  # luo2021, Eq 16
    score_correlation: float = 0.0  # luo2021, Eq 17; training shows no scores
    rank: float = 0.0  # Spearman's correlation of guess and truth
    own_rank: float = 0.0  # the same for what the curious party guesses without a message
    r2: float = 0.0  # against the column's true mean; this and the rest for values only
    within_1: float = 0.0
    within_5: float = 0.0
    within_10: float = 0.0
    mean_error: float = 0.0  # |mean of the guess - true mean|: about the population, not about individuals
    rows_exact: int | None = None  # rows hit exactly that the best baseline misses; None where values are not scored
    rows_1: int | None = None  # the same within 1 % of the range
    rows_1_chance: float | None = None  # the same of guesses dealt to other rows
    two_values: bool = False  # whether the guess or the column has no more than two
    kind: str = ""  # of the column's values, see `kinds.Kind`; empty for pictures and in findings of older versions
    tie: float | None = None  # partial rank correlation of guess and truth beyond own columns, see `scoring.evidence`
    tie_error: float = 1.0  # its standard error where there is no leak
    effective: float | None = None  # rows that the baseline's mean error rests on
    rows_missed: int | None = None  # rows that the best baseline does not hit exactly
    rows_exact_chance: float | None = None  # how many of these luck would hit exactly
    fixed_1: float | None = None  # share of cells that the best constant hits to within 1, 5, 10 % of the range
    fixed_5: float | None = None
    fixed_10: float | None = None
    held: str = ""  # what it is of the curious parties' own columns, such as "a copy of 'income'"; empty if nothing


@dataclass(frozen=True)
class Score:
    """One guess, judged. `error` is the MSE per feature (Eq 10), 1 - CBR for branches, or the share of wrong bins."""

    metric: str  # values, branches, orders or labels; ceiling where no attack is judged
    error: float
    baselines: dict[str, float]
    gain: float
    r2: float
    bound: float  # Eq 15
    sharp_bound: float
    attack_accuracy: float | None
    constant_accuracy: float | None  # the attack accuracy of guessing every column's true mean
    row_error_quantiles: tuple[float, float, float]  # 5 %, median, 95 % over rows
    candidates: float | None  # mean number of paths left (branches only)
    rows: int
    columns: tuple[ColumnScore, ...]  # of pictures: one per tile
    images: ImageScore | None = None
    label_accuracy: float | None = None  # share of rows whose class was guessed, where the active party is not curious
    label_baseline: float | None = (
        None  # share of the most frequent class, or of what own columns tell where people or labels are known
    )
    label_tie: float | None = None  # strongest correlation of a guessed class with a true one
    label_unnamed: bool = False  # whether it was guessed who shares a class, and not which class that is
    rows_at_risk: dict[str, float] = field(
        default_factory=dict
    )  # counts of rows, see `scoring.rows`; empty if not counted
    untried: str = ""  # what the attack does not handle here, so that finding nothing means nothing
    label_held: str = ""  # what the label is of the curious parties' own columns, where the active party is not curious
    filled: int = 0  # cells that preparation filled: they are left out of everything that is counted
    ceilings: tuple[ColumnCeiling, ...] = ()  # of a ceiling, which is of no attack
    failed: str = ""  # why the attack ended without a guess: it raised, ran out of time or memory, or was killed
    branching: dict[str, float] = field(
        default_factory=dict
    )  # of values guessed for a model of trees, see `branch_claims.branching`

    @property
    def passing(self) -> bool:
        """Whether the attack failed for want of time or memory, so that another run may end otherwise."""
        return self.failed.startswith(LIMITED)

    def without_claims(self, failed: str) -> Score:
        """The score of an attack that failed: nothing was guessed, so nothing was learnt, and nothing follows from that."""
        columns = tuple(
            replace(column, claims=0, gain=0.0, gain_error=0.0, error=column.baseline_error) for column in self.columns
        )
        error = min(self.baselines.values())
        silent = replace(self, columns=columns, images=None, branching={})
        return replace(silent, error=error, gain=0.0, untried=failed, failed=failed)


def score(guess: Guess, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    """Judge a guess. The view is only used for baselines and correlations: the curious party's own columns, the scores."""
    guess, truth, view = one_row_each(dealt(finite(guess), truth, view), truth, view)
    if not truth.names:
        return _label_only(guess, truth, view)
    truth = _with_held(truth, view)
    judged = _told(replace(_score_columns(guess, truth, view, rng), untried=guess.untried), truth, view)
    if guess.untried and guess.values is not None and not np.ptp(guess.values, axis=0).any():
        # The same for all rows says nothing of any. What differs counts where it is right, whatever the attack's limits.
        judged = replace(judged, columns=tuple(replace(column, claims=0) for column in judged.columns))
    label = score_labels(guess, truth, view)
    return judged if label is None else _with_label(judged, label)


def _label_only(guess: Guess, truth: Truth, view: View) -> Score:
    """Where no column is hidden: the active party brings nothing but the label, and the curious hold the rest."""
    found = score_labels(guess, truth, view)
    usual = float(np.bincount(truth.label).max() / len(truth.label)) if truth.label is not None else 1.0
    told = LabelScore(usual, usual, 0.0, False) if found is None else found
    baselines = {"no_message": 1 - told.baseline}
    judged = Score(
        metric=LABELS,
        error=1 - told.accuracy,
        baselines=baselines,
        gain=total_gain(1 - told.accuracy, baselines),
        r2=0.0,
        bound=0.0,
        sharp_bound=0.0,
        attack_accuracy=None,
        constant_accuracy=None,
        row_error_quantiles=(0.0, 0.0, 0.0),
        candidates=None,
        rows=len(truth.values),
        columns=(),
        untried=guess.untried,
        label_held=_held_label(truth, view),
    )
    return judged if found is None else _with_label(judged, found)


def _with_label(judged: Score, label: LabelScore) -> Score:
    return replace(
        judged,
        label_accuracy=label.accuracy,
        label_baseline=label.baseline,
        label_tie=label.tie,
        label_unnamed=label.unnamed,
    )


def _with_held(truth: Truth, view: View) -> Truth:
    """The truth, with what the curious parties hold of its columns whatever is sent; of pixels nobody asks."""
    if truth.tiles:
        return truth
    held = held_columns(view.own, _own_names(truth, view), truth.values, grids=truth.grids, filled=truth.filled)
    return replace(truth, held=held)


def _held_label(truth: Truth, view: View) -> str:
    """What the label is of the curious parties' own columns, where the active party is not among them."""
    if truth.label is None or view.active in view.curious:
        return ""
    (held,) = held_columns(view.own, _own_names(truth, view), truth.label[:, None] / max(1, truth.label.max()))
    return held


def _own_names(truth: Truth, view: View) -> tuple[str, ...]:
    return truth.own_names or tuple(f"own column {i + 1}" for i in range(view.own.shape[1]))


def _told(judged: Score, truth: Truth, view: View) -> Score:
    """The score, with what is held already and how many cells were left out."""
    words = {name: held for name, held in zip(truth.names, truth.held, strict=False) if held}
    columns = tuple(replace(one, held=words[one.name]) if one.name in words else one for one in judged.columns)
    filled = 0 if truth.filled is None else int(truth.others(truth.filled).sum())
    return replace(judged, columns=columns, label_held=_held_label(truth, view), filled=filled)


def _score_columns(guess: Guess, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    if guess.vectors is not None:
        guess = replace(guess, values=named(guess.vectors, truth.values, without_scores(view), truth.seen))
    if guess.orders is not None:
        from plumbob.scoring.order_claims import score_orders  # which builds on this module

        return score_orders(guess.orders, truth, view)
    if guess.branches is not None:
        from plumbob.scoring.branch_claims import score_branches  # which builds on this module

        return score_branches(guess.branches, truth, view, rng)
    if guess.values is None or guess.values.shape != truth.values.shape:
        shape = None if guess.values is None else guess.values.shape
        raise ValueError(f"expected a guess of shape {truth.values.shape}, got {shape}")
    from plumbob.scoring.branch_claims import branching  # these two build on this module
    from plumbob.scoring.value_claims import score_values

    judged = score_values(guess.values, truth, view, rng)
    judged = replace(judged, branching=branching(guess.values, truth))
    if not truth.tiles:
        return judged
    return replace(judged, images=image_score(guess.values, truth.values, truth.tiles, guess.path))


def dealt(guess: Guess, truth: Truth, view: View) -> Guess:
    """A guess of people without names as one of rows: each person at the row that is theirs, the others as people are in the
    mean.
    """
    if guess.people is None:
        return guess
    values = np.tile(guess.people.mean(axis=0), (len(truth.values), 1))
    row = whose(guess.people, truth.values, truth.other_rows)
    found = row >= 0
    values[row[found]] = guess.people[found]
    classes = None
    if guess.labels is not None:
        classes = np.full(len(values), -1)
        classes[row[found]] = guess.labels[found]
    return replace(guess, values=values, labels=classes)


def whose(people: FloatArray, true: FloatArray, strangers: FloatArray) -> IntArray:
    """The row that each person is, -1 for those who are none: people and rows go together so that errors are least.

    Whoever knows some of a person knows which one is theirs. But choosing among many is luck, too, the more the fewer the
    columns: so a person counts only where it is far nearer to the row than to all rows of strangers, and to the mean of rows.

    >>> true = np.eye(4)[:3]
    >>> whose(true[[2, 0]], true, np.eye(4)[3:]).tolist(), whose(true[[2, 0]], true, true).tolist()
    ([2, 0], [-1, -1])
    """
    errors, others = _distances(people, true), _distances(people, np.vstack([strangers, true.mean(axis=0)]))
    who, whom = optimize.linear_sum_assignment(errors)
    close = errors[who, whom] < THEIRS * others.min(axis=1)[who]
    row = np.full(len(people), -1)
    row[who[close]] = whom[close]
    return row


def _distances(people: FloatArray, rows: FloatArray) -> FloatArray:
    """Mean squared differences, people x rows."""
    return np.array([((rows - person) ** 2).mean(axis=1) for person in people]).reshape(len(people), len(rows))


def named(vectors: FloatArray, true: FloatArray, prior: FloatArray, seen: BoolArray | None = None) -> FloatArray:
    """For every true column the vector, its opposite or the sum that is nearest, as ye2022 counts; else what is guessed anyway.

    An attacker who finds a column does not know its name; whoever knows one person in it does. Sums count, because the codes
    of one category are found together with their sums. A vector is taken only where it beats the guess without messages, and
    only so many are looked at that choosing among them and their sums tells little: one for every eight rows.
    """
    vectors = vectors[:, : len(true) // 8]
    values = np.array(np.broadcast_to(prior, true.shape), dtype=np.float64)
    for j in range(true.shape[1]):
        rows = slice(None) if seen is None else seen[:, j]
        told, column = vectors[rows], true[rows, j]
        best = float(np.mean((values[rows, j] - column) ** 2))
        for sign, wanted in ((1.0, column), (-1.0, 1.0 - column)):
            errors = np.mean((told - wanted[:, None]) ** 2, axis=0)
            least = int(errors.argmin()) if len(errors) else -1
            total = sum_of(told, wanted)
            picked = total if total is not None else told[:, least] if least >= 0 else None
            if picked is not None and float(np.mean((picked - wanted) ** 2)) < best:
                best = float(np.mean((picked - wanted) ** 2))
                values[rows, j] = picked if sign > 0 else 1.0 - picked
    return values


def sum_of(vectors: FloatArray, column: FloatArray) -> FloatArray | None:
    """The column, if it is a sum of vectors that do not overlap: the largest that fits is taken first."""
    left = column.copy()
    for j in np.argsort(-vectors.sum(axis=0), kind="stable"):
        if vectors[:, j].any() and (vectors[:, j] <= left).all():
            left = left - vectors[:, j]
    return column if column.any() and not left.any() else None


def total_gain(error: float, totals: Mapping[str, float]) -> float:
    """The share of the best baseline's error that the guess removed; 0 where that baseline is right already."""
    least = min(totals.values())
    return 1 - error / least if least > FLAT else 0.0


def above_mean(error: float, variance: float) -> float:
    """1 - MSE / variance; 0 where nothing varies."""
    return 1 - error / variance if variance > FLAT else 0.0


def share_removed(errors: FloatArray, baseline: FloatArray) -> tuple[float, float]:
    """1 - sum(errors) / sum(baseline) and its standard error over rows (that of a ratio of two sums)."""
    total = float(baseline.sum())
    if total <= FLAT * len(baseline):
        return 0.0, 0.0
    ratio = float(errors.sum()) / total
    residual = errors - ratio * baseline
    return 1 - ratio, float(np.sqrt(np.sum(residual**2))) / total


def received_scores(view: View) -> FloatArray:
    """The scores the curious parties got; withheld ones count as the mean of the others. Training sends none."""
    if not any(message.name == "scores" and message.receiver in view.curious for message in view.messages):
        return np.zeros((len(view.own), 0))
    scores = np.asarray(view.received("scores"), dtype=np.float64)
    told = ~np.isnan(scores)
    mean = np.sum(scores, axis=0, where=told) / np.maximum(1, told.sum(axis=0))
    return np.where(told, scores, mean)
