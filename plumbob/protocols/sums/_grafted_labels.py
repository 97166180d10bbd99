"""Trees on noisy labels, with subtrees grafted on by the active party alone (takahashi2023, Grafting-LDP).

    LP-MST       half of the labels by randomised response; a model of the active party's columns on these gives the other half's
                 priors, of which a row keeps the likeliest classes (Ghazi et al. 2021): epsilon-private for each label
    grafting     where a node and all nodes below it have another majority among true labels than among noisy ones, the active
                 party grows the subtree anew, on true labels and its own columns, and tells nobody
All that passive parties see follows from the noisy labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbob.federation import BoolArray, Federation, FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.protocols.shared import histogram_boosting as boosting
from plumbob.protocols.shared.histogram_boosting import Bins, Histogram, HistogramModel, Worth
from plumbob.protocols.shared.trees import ABSENT, LEAF

if TYPE_CHECKING:
    from plumbob.protocols.sums.secure_boost import BoostingRun

FOREST = {"n_estimators": 5, "max_depth": 6}  # of the second stage, as in the authors' code


def noisy_labels(label: IntArray, classes: int, epsilon: float, own: FloatArray, rng: np.random.Generator) -> IntArray:
    """LP-MST in two stages."""
    half = len(label) // 2
    order = rng.permutation(len(label))
    first, second = order[:half], order[half:]
    told = np.array(label)
    told[first] = responses(label[first], np.full((half, classes), 1 / classes), epsilon, rng)
    priors = np.full((len(second), classes), 1 / classes)
    if len(np.unique(told[first])) > 1 and own.shape[1]:  # without columns of its own it has no better prior
        model = sklearn.ensemble.RandomForestClassifier(**FOREST, random_state=int(rng.integers(2**31)))
        model.fit(own[first], told[first])
        priors = np.zeros((len(second), classes))
        priors[:, model.classes_] = model.predict_proba(own[second])
    told[second] = responses(label[second], priors, epsilon, rng)
    return told


def responses(label: IntArray, priors: FloatArray, epsilon: float, rng: np.random.Generator) -> IntArray:
    """Randomised response with a prior for each row: among its k likeliest classes, with the k that is right most often.

    >>> rng = np.random.default_rng(0)
    >>> responses(np.array([0, 1, 0]), np.array([[0.5, 0.5], [0.99, 0.01], [0.5, 0.5]]), 30.0, rng).tolist()[::2]
    [0, 0]
    """
    told = np.zeros(len(label), dtype=np.int64)
    sure = np.exp(min(epsilon, 50.0))
    for i, prior in enumerate(priors):
        order = np.argsort(-prior, kind="stable")
        worth = sure / (sure + np.arange(len(prior))) * np.cumsum(prior[order])
        kept = order[: int(worth.argmax()) + 1]
        if label[i] not in kept:
            told[i] = rng.choice(kept)
            continue
        others = kept[kept != label[i]]
        right = rng.random() < sure / (sure + len(others))
        told[i] = label[i] if right or not len(others) else rng.choice(others)
    return told


def taught_labels(
    epsilon: float | None, federation: Federation, label: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """The label that trees are grown on, which passive parties see the trees of."""
    if not epsilon:
        return label
    own = federation[federation.active].values
    return noisy_labels(federation.label, len(federation.classes), epsilon, own, rng).astype(np.float64)


def graft(run: BoostingRun, leaves: list[IntArray], true: FloatArray, noisy: FloatArray) -> None:
    """Replace what noisy labels spoilt in the trees of a run."""
    settings, names = run.settings, [party.name for party in run.federation.parties]
    before = sum(len(party.columns) for party in run.federation.parties[: names.index(run.federation.active)])
    columns = before + np.arange(len(run.own.counts))
    worth = Worth(settings.penalty, settings.gamma, run.layout.precision)
    shrinkage = settings.shrinkage if settings.boosting else 1 / settings.trees
    made = Graft(run.model, run.own, columns, worth, shrinkage, settings.boosting)
    made.grown(leaves, true, noisy, lambda label, scores: boosting.gradients(settings.loss, label, scores))


@dataclass(frozen=True)
class Graft:
    """The trees that were trained on noisy labels, and what the active party grows on them."""

    model: HistogramModel
    own: Bins
    columns: IntArray  # of the active party in the joint model
    worth: Worth
    shrinkage: float
    boosted: bool

    def grown(
        self,
        leaves: list[IntArray],
        true: FloatArray,
        noisy: FloatArray,
        gradients: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    ) -> HistogramModel:
        """The model with its subtrees replaced. `leaves`: of each tree, that of every row."""
        scores = np.full(len(true), self.model.start)
        for tree, places in enumerate(leaves):
            base = scores if self.boosted else np.full(len(true), self.model.start)
            parts = tuple(boosting.whole_numbers(part, self.worth.precision) for part in gradients(true, base))
            places = places.copy()
            for node in self._roots(tree, places, true, noisy):
                self._regrown(tree, node, places, np.flatnonzero(_under(places, node)), parts)
            scores = scores + self.model.weight[tree, places]
        return self.model

    def _roots(self, tree: int, places: IntArray, true: FloatArray, noisy: FloatArray) -> list[int]:
        """The uppermost nodes that are wrong with all below them."""
        size = self.model.feature.shape[1]
        wrong = np.zeros(size, dtype=np.bool_)
        for node in reversed(range(size)):
            here = _under(places, node)
            below = [child for child in (2 * node + 1, 2 * node + 2) if child < size and _under(places, child).any()]
            other = bool(here.any()) and _majority(true[here]) != _majority(noisy[here])
            wrong[node] = other and all(wrong[child] for child in below)
        return [node for node in range(size) if wrong[node] and not (node and wrong[(node - 1) // 2])]

    def _regrown(self, tree: int, node: int, places: IntArray, rows: IntArray, parts: tuple[IntArray, ...]) -> None:
        """A subtree on true labels and own columns; rows get their new leaves."""
        model, size = self.model, self.model.feature.shape[1]
        first, second = parts
        model.feature[tree, node] = LEAF
        model.weight[tree, node] = self.shrinkage * self.worth.leaf(int(first[rows].sum()), int(second[rows].sum()))
        places[rows] = node
        for child in (2 * node + 1, 2 * node + 2):
            if child < size:
                _cleared(model, tree, child)
        if 2 * node + 2 >= size or len(rows) < 2:
            return
        sums = [
            [
                s
                for j, count in enumerate(self.own.counts.tolist())
                for s in boosting.bin_sums(part[rows], self.own.places[rows, j], count)
            ]
            for part in (first, second)
        ]
        split = self.worth.split(Histogram(self.own.counts, *sums))
        if split is None:
            return
        model.feature[tree, node] = self.columns[split.column]
        model.bin[tree, node], model.weight[tree, node] = split.bin, 0.0
        model.threshold[tree, node] = self.own.edges[split.column][split.bin]
        left = self.own.places[rows, split.column] <= split.bin
        self._regrown(tree, 2 * node + 1, places, rows[left], parts)
        self._regrown(tree, 2 * node + 2, places, rows[~left], parts)


def _majority(labels: FloatArray) -> float:
    values, counts = np.unique(labels, return_counts=True)
    return float(values[counts.argmax()])


def _under(places: IntArray, node: int) -> BoolArray:
    """Rows whose leaf is a node or lies below it."""
    up, found = np.array(places), np.zeros(len(places), dtype=np.bool_)
    while (up >= node).any():
        found |= up == node
        up = np.where(up > node, (up - 1) // 2, -1)
    return found


def _cleared(model: HistogramModel, tree: int, node: int) -> None:
    """No node there and below."""
    if node < model.feature.shape[1]:
        model.feature[tree, node], model.weight[tree, node] = ABSENT, 0.0
        _cleared(model, tree, 2 * node + 1)
        _cleared(model, tree, 2 * node + 2)
