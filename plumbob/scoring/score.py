"""Score a guess against the truth, next to the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from plumbob.attacks.base import Guess, finite
from plumbob.attacks.scores.posterior_mean import without_scores
from plumbob.federation import FloatArray, IntArray
from plumbob.scoring import baselines, metrics
from plumbob.scoring.images import ImageScore, Tile, image_score, tiles_of
from plumbob.scoring.rows_at_risk import AtRisk, at_risk
from plumbob.threats import View
from plumbob.transcript import Transcript

# How the reason begins why an attack failed, where that depends on the machine and the day
LIMITED = ("it ran longer than ", "it needed more than ", "it was killed by ")
# Of people without names: how much nearer a row must be than the nearest stranger, as a share of the error
THEIRS = 0.01


@dataclass(frozen=True)
class Truth:
    """The true unknown columns, and other rows of them for the classifier that measures attack accuracy."""

    names: tuple[str, ...]
    values: FloatArray
    other_rows: FloatArray
    other_labels: IntArray
    bins: IntArray | None = None  # of training protocols that put columns into bins, counted from the lowest values
    label: IntArray | None = None  # the rows' classes, where the active party put them away
    tiles: tuple[Tile, ...] = ()  # of pictures: what each party holds of them


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


@dataclass(frozen=True)
class Score:
    """One guess, judged. `error` is the MSE per feature (Eq 10), 1 - CBR for branches, or the share of wrong bins."""

    metric: str  # values, branches or orders
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
    label_baseline: float | None = None  # share of the most frequent class
    rows_at_risk: dict[str, float] = field(
        default_factory=dict
    )  # counts of rows, see `scoring.rows`; empty if not counted
    untried: str = ""  # what the attack does not handle here, so that finding nothing means nothing
    failed: str = ""  # why the attack ended without a guess: it raised, ran out of time or memory, or was killed

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
        return replace(self, error=error, gain=0.0, columns=columns, images=None, untried=failed, failed=failed)


def truth_of(transcript: Transcript, view: View) -> Truth:
    """Open the sealed columns that the view does not contain."""
    values = np.hstack([transcript.sealed(party)["columns"] for party in transcript.parties])
    coordinator = transcript.sealed("coordinator")
    names = tuple(transcript.features[i].name for i in view.unknown)
    other = coordinator.get("other rows", values[:0])[:, view.unknown]  # a recorded run need not have any
    other_labels = coordinator.get("other labels", np.zeros(0, dtype=np.int64))
    binned = [
        sealed["bins"]
        for p in transcript.parties
        if p not in view.curious and "bins" in (sealed := transcript.sealed(p))
    ]
    bins = np.hstack(binned) if binned else None
    label = transcript.sealed(transcript.active).get("label")
    tiles = tiles_of([transcript.features[i] for i in view.unknown])
    return Truth(names, values[:, view.unknown], other, other_labels, bins, label, tiles)


def score(guess: Guess, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    """Judge a guess. The view is only used for baselines and correlations: the curious party's own columns, the scores."""
    guess = dealt(finite(guess), truth, view)
    judged = replace(_score_columns(guess, truth, view, rng), untried=guess.untried)
    if guess.untried and guess.values is not None and not np.ptp(guess.values, axis=0).any():
        # The same for all rows says nothing of any. What differs counts where it is right, whatever the attack's limits.
        judged = replace(judged, columns=tuple(replace(column, claims=0) for column in judged.columns))
    if guess.labels is None or truth.label is None or view.active in view.curious:
        return judged
    if guess.untried and (guess.labels < 0).all():
        return judged
    usual = int(np.bincount(truth.label).max())
    right = float(np.mean(guess.labels == truth.label))  # a row of which nothing is said counts as wrong
    return replace(judged, label_accuracy=right, label_baseline=usual / len(truth.label))


def _score_columns(guess: Guess, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    if guess.vectors is not None:
        guess = replace(guess, values=named(guess.vectors, truth.values, without_scores(view)))
    if guess.orders is not None:
        from plumbob.scoring.order_claims import score_orders  # which builds on this module

        return score_orders(guess.orders, truth, view)
    if guess.branches is not None:
        from plumbob.scoring.branch_claims import score_branches  # which builds on this module

        return score_branches(guess.branches, truth, view, rng)
    if guess.values is None or guess.values.shape != truth.values.shape:
        shape = None if guess.values is None else guess.values.shape
        raise ValueError(f"expected a guess of shape {truth.values.shape}, got {shape}")
    judged = _score_values(guess.values, truth, view, rng)
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
    who, whom = linear_sum_assignment(errors)
    close = errors[who, whom] < THEIRS * others.min(axis=1)[who]
    row = np.full(len(people), -1)
    row[who[close]] = whom[close]
    return row


def _distances(people: FloatArray, rows: FloatArray) -> FloatArray:
    """Mean squared differences, people x rows."""
    return np.array([((rows - person) ** 2).mean(axis=1) for person in people]).reshape(len(people), len(rows))


def named(vectors: FloatArray, true: FloatArray, prior: FloatArray) -> FloatArray:
    """For every true column the vector, its opposite or the sum that is nearest, as ye2022 counts; else what is guessed anyway.

    An attacker who finds a column does not know its name; whoever knows one person in it does. Sums count, because the codes
    of one category are found together with their sums. A vector is taken only where it beats the guess without messages, and
    only so many are looked at that choosing among them and their sums tells little: one for every eight rows.
    """
    vectors = vectors[:, : len(true) // 8]
    values = np.array(np.broadcast_to(prior, true.shape), dtype=np.float64)
    for j in range(true.shape[1]):
        column, best = true[:, j], float(np.mean((values[:, j] - true[:, j]) ** 2))
        for sign, wanted in ((1.0, column), (-1.0, 1.0 - column)):
            errors = np.mean((vectors - wanted[:, None]) ** 2, axis=0)
            least = int(errors.argmin()) if len(errors) else -1
            total = sum_of(vectors, wanted)
            picked = total if total is not None else vectors[:, least] if least >= 0 else None
            if picked is not None and float(np.mean((picked - wanted) ** 2)) < best:
                best = float(np.mean((picked - wanted) ** 2))
                values[:, j] = picked if sign > 0 else 1.0 - picked
    return values


def sum_of(vectors: FloatArray, column: FloatArray) -> FloatArray | None:
    """The column, if it is a sum of vectors that do not overlap: the largest that fits is taken first."""
    left = column.copy()
    for j in np.argsort(-vectors.sum(axis=0), kind="stable"):
        if vectors[:, j].any() and (vectors[:, j] <= left).all():
            left = left - vectors[:, j]
    return column if column.any() and not left.any() else None


def _score_values(values: FloatArray, truth: Truth, view: View, rng: np.random.Generator) -> Score:
    true = truth.values
    squared = (values - true) ** 2
    errors = squared.mean(axis=0)
    prior = without_scores(view)
    guesses = baselines.squared_errors(true, view.own, prior)
    # Of pixels, nobody asks for single ones. A generator of its own, so that other draws stay as they were.
    risk = None if truth.tiles else at_risk(values, true, guesses, np.random.default_rng(len(true)))
    totals = {name: float(cells.mean()) for name, cells in guesses.items()}
    low, middle, high = np.quantile(squared.mean(axis=1), [0.05, 0.5, 0.95])
    judges = not truth.tiles and len(np.unique(truth.other_labels)) > 1  # too slow on thousands of pixels
    accuracy = _attack_accuracies(values, truth, rng) if judges else None
    return Score(
        metric="values",
        error=float(errors.mean()),
        baselines=totals,
        gain=total_gain(float(errors.mean()), totals),
        r2=_above_mean(float(errors.mean()), float(true.var(axis=0).mean())),
        bound=metrics.norm_bound(true),
        sharp_bound=metrics.sharp_bound(true),
        attack_accuracy=None if accuracy is None else accuracy[0],
        constant_accuracy=None if accuracy is None else accuracy[1],
        row_error_quantiles=(float(low), float(middle), float(high)),
        candidates=None,
        rows=len(true),
        columns=_value_columns(values, truth, view, prior, guesses, risk),
        rows_at_risk={} if risk is None else risk.rows,
    )


def _value_columns(
    values: FloatArray,
    truth: Truth,
    view: View,
    prior: FloatArray,
    guesses: Mapping[str, FloatArray],
    risk: AtRisk | None,
) -> tuple[ColumnScore, ...]:
    """Every column by itself, or of pictures every tile, against the best of the guesses that need no message."""
    true = truth.values
    squared = (values - true) ** 2
    errors, variances = squared.mean(axis=0), true.var(axis=0)
    rank = metrics.rank_correlation(values, true)
    own_rank = _own_rank(view, prior, true)
    shares = {t: metrics.within(values, true, t) for t in (metrics.EXACT_CELL, 0.01, 0.05, 0.10)}
    mean_error = np.abs(values.mean(axis=0) - true.mean(axis=0))
    own_correlation = metrics.mean_correlation(view.own, true)
    score_correlation = metrics.mean_correlation(received_scores(view), true)
    two_values = np.array([min(map(len, map(np.unique, pair))) <= 2 for pair in zip(values.T, true.T, strict=True)])
    columns = []
    for name, part in _parts(truth):
        cells = {baseline: guess[:, part].mean(axis=1) for baseline, guess in guesses.items()}
        best = min(cells, key=lambda baseline: float(cells[baseline].mean()))
        gain, gain_error = share_removed(squared[:, part].mean(axis=1), cells[best])
        error = float(errors[part].mean())
        columns.append(
            ColumnScore(
                name=name,
                error=error,
                best_baseline=best,
                baseline_error=float(cells[best].mean()),
                gain=gain,
                gain_error=gain_error,
                r2=_above_mean(error, float(variances[part].mean())),
                rank=float(rank[part].mean()),
                own_rank=float(own_rank[part].mean()),
                exact=float(shares[metrics.EXACT_CELL][part].mean()),
                within_1=float(shares[0.01][part].mean()),
                within_5=float(shares[0.05][part].mean()),
                within_10=float(shares[0.10][part].mean()),
                mean_error=float(mean_error[part].mean()),
                own_correlation=float(own_correlation[part].mean()),
                score_correlation=float(score_correlation[part].mean()),
                claims=true[:, part].size,
                rows_exact=None if risk is None else int(risk.exact[part[0]]),
                rows_1=None if risk is None else int(risk.within_1[part[0]]),
                rows_1_chance=None if risk is None else float(risk.chance_1[part[0]]),
                two_values=bool(two_values[part].all()) and not truth.tiles,
            )
        )
    return tuple(columns)


def total_gain(error: float, totals: Mapping[str, float]) -> float:
    """The share of the best baseline's error that the guess removed; 0 where that baseline is right already."""
    least = min(totals.values())
    return 1 - error / least if least > 1e-15 else 0.0


def _parts(truth: Truth) -> list[tuple[str, IntArray]]:
    """What is judged by itself: every column, or of pictures every tile."""
    if truth.tiles:
        return [(tile.name, tile.pixels) for tile in truth.tiles]
    return [(name, np.array([j])) for j, name in enumerate(truth.names)]


def _own_rank(view: View, prior: FloatArray, true: FloatArray) -> FloatArray:
    """The better rank correlation of what the curious party guesses without a message."""
    if not view.own.shape[1] and view.auxiliary is None:
        return np.zeros(true.shape[1])  # a constant orders nothing
    own_row_mean = view.own.mean(axis=1, keepdims=True) if view.own.shape[1] else np.zeros((len(true), 1))
    ranks = [metrics.rank_correlation(np.broadcast_to(g, true.shape), true) for g in (own_row_mean, prior)]
    return np.asarray(np.max(np.abs(ranks), axis=0))


def _attack_accuracies(values: FloatArray, truth: Truth, rng: np.random.Generator) -> tuple[float, float]:
    """Of the guess, and of guessing every column's true mean."""
    seed = int(rng.integers(2**31))
    constant = np.broadcast_to(truth.values.mean(axis=0), truth.values.shape)
    of, mean = (
        metrics.attack_accuracy(v, truth.values, truth.other_rows, truth.other_labels, np.random.default_rng(seed))
        for v in (values, constant)
    )
    return of, mean


def _above_mean(error: float, variance: float) -> float:
    """1 - MSE / variance; 0 where nothing varies."""
    return 1 - error / variance if variance > 1e-15 else 0.0


def share_removed(errors: FloatArray, baseline: FloatArray) -> tuple[float, float]:
    """1 - sum(errors) / sum(baseline) and its standard error over rows (that of a ratio of two sums)."""
    total = float(baseline.sum())
    if total <= 1e-15 * len(baseline):
        return 0.0, 0.0
    ratio = float(errors.sum()) / total
    residual = errors - ratio * baseline
    return 1 - ratio, float(np.sqrt(np.sum(residual**2))) / total


def received_scores(view: View) -> FloatArray:
    """The scores the curious parties got; withheld ones count as the mean of the others. Training sends none."""
    if not any(message.name == "scores" for message in view.messages):
        return np.zeros((len(view.own), 0))
    scores = np.asarray(view.received("scores"), dtype=np.float64)
    told = ~np.isnan(scores)
    mean = np.sum(scores, axis=0, where=told) / np.maximum(1, told.sum(axis=0))
    return np.where(told, scores, mean)
