"""Forest boxes (ours): which intervals of the unknown columns reproduce the observed votes of the trees.

The thresholds of a forest cut every column into cells, and all that the votes can tell is the cell. With v(x) the votes per
class and x ~ N(m_i, S) on the box as in the linearised posterior, the posterior of a row is
    p(x | votes) ~ N(x; m_i, S) exp(-|v(x_own, x) - votes_i|^2 / 2 heat^2)
It is sampled by Gibbs: column by column, for all rows at once, over all cells of the column, with falling heat. The guess
is the average of the cells' conditional means. Where a forest puts its thresholds also tells where a column's values lie.
Leaves that say more than a class are the same algebra: v(x) sums what the leaves say, scores or, of boosted trees, numbers
that add up to the margins, which the scores give back exactly (up to a number they share, where there are several).
Where a known defence changed the scores, the distance of votes is that of their scores from what fits the release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Meaning, meaning
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores._column_prior import ColumnPrior, components, expected_means, from_complete_rows, row_factor
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.scores.boosted_trees import BoostedModel, margins_of
from plumbob.protocols.scores.boosted_trees import scores_of as scores_of_margins
from plumbob.protocols.shared.trees import LEAF, Forest, Trees
from plumbob.threats import Schema, View, WhiteBox

SWEEPS, WARM = 60, 24  # rounds over all columns, and those of them before samples count
FIRST_HEAT, LAST_HEAT = 6.0, 1.0  # heat in votes, first and last
ROWS_SAMPLED_TOGETHER = 2048  # rows sampled together
NARROW = 1e-12
FIRST_COVARIANCE_ROWS = 4.0  # weight of the first covariance, in rows per column
FIRM = 0.25  # the last heat where leaves say more than a class, in units of what a tree changes

FLATTEST = 2e-3  # the least slope of scores in margins that is reckoned with

VoteSums = NDArray[np.float32]  # what was said in sum: rows x outputs
Labels = NDArray[np.int16]
Energy = Callable[[VoteSums, float], FloatArray]  # sums of rows x cells x outputs, and the heat


class ForestBoxes(Attack):
    """The posterior mean of forests: Gibbs sampling of the cells between thresholds."""

    name = "forest_boxes"
    identity = "ForestBoxes()"
    summary = "ours: samples intervals between tree thresholds that reproduce the observed votes or sums"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("random_forest", "boosted_trees")
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n", "n u", "n w")  # boxes of t 2^h leaves
    workload = "loops"

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.model is None or view.ranges is None:
            raise BadInput("forest boxes need the model (white box) and the ranges of the unknown columns")
        boosted = view.protocol == BOOSTED
        forest = BoostedModel.from_arrays(view.model) if boosted else Forest.from_arrays(view.model)
        ballot = ballot_of(forest)
        low, high = view.ranges.T
        span = np.where(high > low, high - low, 1.0)
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        told = np.flatnonzero(~np.isnan(scores).any(axis=1))
        votes, release = ballot.read(scores), meaning(view.defence)
        if release is not None:
            votes = np.zeros_like(votes)  # sums are compared as scores
        if view.auxiliary is None:
            prior = prior_of(view, forest, low, span)
            centres, covariance, between = prior.rows(components(view.own, len(low))), prior.covariance, prior.between
        else:
            known, unknown = view.auxiliary[:, view.known], (view.auxiliary[:, view.unknown] - low) / span
            centres, covariance = from_complete_rows(view.own, known, unknown)
            centres, between = np.clip(centres, 0.0, 1.0), 0.0
        unit = centres.copy()
        columns = [cells_of(forest, int(c), low[j], span[j]) for j, c in enumerate(view.unknown)]
        for begin in range(0, len(told), ROWS_SAMPLED_TOGETHER):
            rows = told[begin : begin + ROWS_SAMPLED_TOGETHER]
            sides = sides_of(forest, view, rows, low + span * centres[rows])
            far = by_votes if release is None else by_release(ballot, release, scores[rows])
            unit[rows] = sample(
                forest, ballot, columns, covariance, centres[rows], votes[rows], sides, between, far, rng
            )
        return Guess(view.unknown_names, np.asarray(low + (high - low) * unit))


BOOSTED = "boosted_trees"


@dataclass(frozen=True)
class Ballot:
    """What trees say: the options of each, numbers that are summed over trees, and how the sum is read off scores."""

    option: IntArray  # trees x nodes: which of its tree's options a leaf takes
    says: VoteSums  # trees x options x outputs
    read: Callable[[FloatArray], VoteSums]
    scores: Callable[[FloatArray], FloatArray]  # of sums (a last axis), the other way round
    share: float  # what a change of 1 in the sums changes in scores, or in margins
    cold: float  # the last heat
    margins: bool = False  # whether the sums are margins


def ballot_of(forest: Trees) -> Ballot:
    """Votes for classes; or the leaves' own numbers, in units of what a tree changes in the mean."""
    count = len(forest.feature)
    if isinstance(forest, Forest) and forest.leaves is None:
        says = np.broadcast_to(np.eye(forest.classes, dtype=np.float32), (count, forest.classes, forest.classes))
        return Ballot(
            forest.label,
            says,
            lambda scores: _single(np.rint(np.nan_to_num(scores) * count)),
            lambda sums: sums / count,
            1.0 / count,
            LAST_HEAT,
        )
    ends = [np.flatnonzero(tree == LEAF) for tree in forest.feature]
    option = np.zeros(forest.feature.shape, dtype=np.int64)
    said = np.zeros((count, max(map(len, ends)), _outputs(forest)))
    for tree, leaves in enumerate(ends):
        option[tree, leaves] = np.arange(len(leaves))
        if isinstance(forest, Forest) and forest.leaves is not None:
            said[tree, : len(leaves)] = forest.leaves[tree, leaves]
        elif isinstance(forest, BoostedModel):
            said[tree, : len(leaves), forest.output[tree]] = forest.leaves[tree, leaves]
    base = np.zeros(said.shape[2])
    if isinstance(forest, BoostedModel):
        base = forest.base - (forest.base.mean() if len(forest.base) > 1 else 0.0)
        said -= said.mean(axis=2, keepdims=True) if len(forest.base) > 1 else 0.0
    spread = [said[tree, : len(leaves)].var(axis=0).sum() for tree, leaves in enumerate(ends)]
    unit = float(np.sqrt(2 * np.mean(spread))) or 1.0  # two leaves drawn at random are so far apart

    def read(scores: FloatArray) -> VoteSums:
        filled = np.where(np.isnan(scores), 1.0 / scores.shape[1], scores)
        sums = margins_of(filled, len(base)) - base if isinstance(forest, BoostedModel) else filled * count
        return _single(sums / unit)

    def scores(sums: FloatArray) -> FloatArray:
        if isinstance(forest, BoostedModel):
            return scores_of_margins(sums * unit + base)
        return sums * unit / count

    share = unit if isinstance(forest, BoostedModel) else unit / count
    return Ballot(option, _single(said / unit), read, scores, share, FIRM, isinstance(forest, BoostedModel))


def by_votes(excess: VoteSums, heat: float) -> FloatArray:
    """Squared distance of sums from those that were read, of rows x cells."""
    return np.asarray((excess**2).sum(axis=2) / (2.0 * heat**2))


def by_release(ballot: Ballot, known: Meaning, scores: FloatArray) -> Energy:
    """Squared distance of the sums' scores from what fits a changed release."""
    width = 0.0 if known.hard or not np.isfinite(known.width) else known.width
    share = np.full((len(scores), 1), ballot.share)
    if ballot.margins:  # which change scores by the less the nearer these are to 0 and 1
        middle = known.middle(torch.from_numpy(scores)).numpy().clip(0.0, 1.0)
        share *= np.maximum((middle * (1.0 - middle)).max(axis=1, keepdims=True), FLATTEST)

    def far(sums: VoteSums, heat: float) -> FloatArray:
        rows, cells, _ = sums.shape
        made = ballot.scores(np.asarray(sums, dtype=np.float64).reshape(rows * cells, -1))
        released = np.repeat(scores, cells, axis=0)
        off = known.misfit(torch.from_numpy(np.ascontiguousarray(made)), torch.from_numpy(released)).numpy()
        return np.asarray(off.reshape(rows, cells) / (2.0 * (width**2 + (heat * share) ** 2)))

    return far


def _outputs(forest: Trees) -> int:
    return len(forest.base) if isinstance(forest, BoostedModel) else int(getattr(forest, "classes", 0))


def _single(numbers: FloatArray) -> VoteSums:
    return np.asarray(numbers, dtype=np.float32)


def prior_of(view: View, forest: Trees, low: FloatArray, span: FloatArray) -> ColumnPrior:
    """Exchangeable columns; their means follow the forest's thresholds as far as those of the known columns do."""
    parts = components(view.own, len(low))
    marks = np.full(len(view.known) + len(view.unknown), np.nan)
    for column in range(len(marks)):
        used = forest.feature == column
        if used.any():
            marks[column] = forest.threshold[used].mean()
    marks[view.unknown] = (marks[view.unknown] - low) / span
    means = view.own.mean(axis=0)
    mean, between = expected_means(marks, view, means)
    relative = (view.own.var(axis=0).sum() + 1 / 12) / ((means * (1 - means)).sum() + 1 / 4)
    shared, slope = row_factor(view.own, parts)
    deviation = np.sqrt(relative * mean * (1 - mean) + between)
    common = min(0.95, max(0.0, shared - float((slope**2).sum())) / float((deviation**2).mean()))
    covariance = np.outer(deviation, deviation) * ((1 - common) * np.eye(len(low)) + common)
    return ColumnPrior(mean, np.tile(slope[:, None], len(low)), covariance, between)


@dataclass(frozen=True)
class ColumnCells:
    """One unknown column: the cells its thresholds cut, and in which trees which of its nodes matter."""

    edges: FloatArray  # 0, thresholds, 1
    uses: tuple[tuple[int, IntArray, IntArray], ...]  # tree, its nodes on this column, the first cell right of each


def cells_of(forest: Trees, column: int, low: float, span: float) -> ColumnCells:
    trees, nodes = np.nonzero(forest.feature == column)
    thresholds = (forest.threshold[trees, nodes] - low) / span
    inner = np.unique(thresholds[(thresholds > 0) & (thresholds < 1)])
    first = np.searchsorted(inner, thresholds, side="left") + 1  # cells from here on lie above the threshold
    first = np.where(thresholds <= 0, 0, np.where(thresholds >= 1, len(inner) + 1, first))
    uses = tuple((int(t), nodes[trees == t], first[trees == t]) for t in np.unique(trees))
    return ColumnCells(np.concatenate([[0.0], inner, [1.0]]), uses)


def sides_of(forest: Trees, view: View, rows: NDArray[np.intp], values: FloatArray) -> NDArray[np.bool_]:
    """trees x nodes x rows: whether a row goes right."""
    complete = np.empty((len(view.known) + len(view.unknown), len(rows)))
    complete[view.known], complete[view.unknown] = view.own[rows].T, values.T
    sides = np.zeros((*forest.feature.shape, len(rows)), dtype=bool)
    inner = forest.feature >= 0
    sides[inner] = complete[forest.feature[inner]] > forest.threshold[inner][:, None]
    return sides


def tree_labels(
    feature: IntArray, option: IntArray, sides: NDArray[np.bool_], fixed: dict[int, bool], node: int = 0
) -> Labels:
    """The option every row gets from one tree, a class if it votes; nodes in `fixed` take that side for all rows."""
    if feature[node] < 0:
        return np.asarray(option[node], dtype=np.int16)
    left, right = 2 * node + 1, 2 * node + 2
    if node in fixed:
        return tree_labels(feature, option, sides, fixed, right if fixed[node] else left)
    one, two = (tree_labels(feature, option, sides, fixed, child) for child in (left, right))
    if one.ndim == 0 and two.ndim == 0 and one == two:
        return one
    return np.where(sides[node], two, one)


def sample(
    forest: Trees,
    ballot: Ballot,
    columns: list[ColumnCells],
    covariance: FloatArray,
    centres: FloatArray,
    votes: VoteSums,
    sides: NDArray[np.bool_],
    between: float,
    far: Energy,
    rng: np.random.Generator,
) -> FloatArray:
    """Posterior means of rows by Gibbs sampling."""
    count, size = centres.shape
    first, first_centres = covariance, centres
    precision = np.linalg.inv(covariance + 1e-9 * np.eye(size))
    state, total = centres.copy(), np.zeros_like(centres)
    everyone = np.arange(count)
    labels = np.empty((len(forest.feature), count), dtype=np.int16)
    excess = -votes
    for tree in range(len(labels)):
        labels[tree] = tree_labels(forest.feature[tree], ballot.option[tree], sides[tree], {})
        excess += ballot.says[tree, labels[tree]]
    for sweep in range(SWEEPS):
        if 2 <= sweep < WARM:
            centres, covariance = relearnt(state, centres, first_centres, first, between)
            precision = np.linalg.inv(covariance + 1e-9 * np.eye(size))
        heat = FIRST_HEAT * (ballot.cold / FIRST_HEAT) ** min(1.0, sweep / WARM)
        for j, cells in enumerate(columns):
            spread = 1.0 / np.sqrt(precision[j, j])
            gap = state - centres
            middle = centres[:, j] - (gap @ precision[j] - gap[:, j] * precision[j, j]) * spread**2
            change = vote_changes(forest, ballot, cells, labels, sides)
            energy = far(excess[:, None] + change, heat)
            chosen, state[:, j], mean = draw(cells.edges, middle, spread, energy, rng)
            excess += change[everyone, chosen]
            total[:, j] += mean if sweep >= WARM else 0.0
            for tree, nodes, above in cells.uses:
                sides[tree, nodes] = chosen >= above[:, None]
                labels[tree] = tree_labels(forest.feature[tree], ballot.option[tree], sides[tree], {})
    return total / (SWEEPS - WARM)


def relearnt(
    state: FloatArray, centres: FloatArray, first_centres: FloatArray, first: FloatArray, between: float
) -> tuple[FloatArray, FloatArray]:
    """Means and covariance of the prior from the samples of all rows (stochastic EM), pulled to the first ones."""
    count, size = state.shape
    error = state - centres
    pull = np.diag(first) / max(between, NARROW)
    shift = (count * error.mean(axis=0) + pull * (first_centres - centres).mean(axis=0)) / (count + pull)
    error = error - error.mean(axis=0)
    pseudo = FIRST_COVARIANCE_ROWS * size
    return centres + shift, (pseudo * first + error.T @ error) / (pseudo + count)


def vote_changes(
    forest: Trees, ballot: Ballot, cells: ColumnCells, labels: Labels, sides: NDArray[np.bool_]
) -> VoteSums:
    """rows x cells x outputs: how the sums change if a row's value moves to a cell."""
    count = labels.shape[1]
    everyone = np.arange(count)
    jumps = np.zeros((count, len(cells.edges) - 1, ballot.says.shape[2]), dtype=np.float32)
    for tree, nodes, first in cells.uses:
        before = labels[tree]
        for begin in np.unique(np.concatenate([[0], first])):
            if begin >= jumps.shape[1]:
                continue
            fixed = {int(node): bool(begin >= start) for node, start in zip(nodes, first, strict=True)}
            after = np.broadcast_to(tree_labels(forest.feature[tree], ballot.option[tree], sides[tree], fixed), count)
            moved = everyone[after != before]
            jumps[moved, begin] += ballot.says[tree, after[moved]] - ballot.says[tree, before[moved]]
            before = after
    return np.asarray(np.cumsum(jumps, axis=1))


def draw(
    edges: FloatArray, middle: FloatArray, spread: float, energy: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """A cell and a value in it for every row, and the mean over all cells: normal prior times exp(-energy)."""
    middle = np.clip(middle, -3.0 * spread, 1.0 + 3.0 * spread)  # keeps some mass in the box
    bounds = (edges - middle[:, None]) / spread
    below = ndtr(bounds)
    mass = np.diff(below, axis=1)
    density = np.exp(-0.5 * bounds**2) / np.sqrt(2 * np.pi)
    inside = np.clip(middle[:, None] - spread * np.diff(density, axis=1) / (mass + NARROW), edges[:-1], edges[1:])
    weight = (mass + NARROW) * np.exp(energy.min(axis=1, keepdims=True) - energy)
    weight /= weight.sum(axis=1, keepdims=True)
    picks = rng.random((2, len(middle)))
    chosen = (np.cumsum(weight, axis=1) < picks[0][:, None]).sum(axis=1).clip(0, len(edges) - 2)
    everyone = np.arange(len(middle))
    level = below[everyone, chosen] + picks[1] * mass[everyone, chosen]
    value = middle + spread * ndtri(np.clip(level, 1e-9, 1 - 1e-9))
    value = np.clip(value, edges[chosen], edges[chosen + 1])
    return chosen, value, (weight * inside).sum(axis=1)
