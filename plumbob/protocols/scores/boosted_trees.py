"""Gradient boosting over any number of parties: every tree adds a number, their sum becomes the scores.

    margin_k(x) = base_k + sum over trees t of class k of leaf_t(x),    scores = sigmoid(margin) or softmax(margins)

The exchange is that of other trees: parties say to which side their values fall, the coordinator adds up the leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from plumbob.bundle import Array
from plumbob.errors import positive, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.protocols.base import all_classes
from plumbob.protocols.shared.trees import DEEPEST, Plain, TreeProtocol, Trees, plain


@dataclass(frozen=True)
class BoostedModel(Trees):
    """Trees whose leaves add up. One margin is that of the second of two classes; more are one for each class."""

    leaves: FloatArray  # trees x nodes: what a leaf adds
    output: IntArray  # trees: the margin it adds to
    base: FloatArray  # margins: what they start from

    def arrays(self) -> dict[str, Array]:
        return {
            "feature": self.feature,
            "threshold": self.threshold,
            "leaves": self.leaves,
            "output": self.output,
            "base": self.base,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(*(np.asarray(arrays[name]) for name in ("feature", "threshold", "leaves", "output", "base")))

    @property
    def classes(self) -> int:
        return max(2, len(self.base))

    def tally(self, leaves: Iterable[IntArray], rows: int) -> FloatArray:
        margins = np.tile(self.base, (rows, 1))
        for tree, position in enumerate(leaves):
            margins[:, self.output[tree]] += self.leaves[tree, position]
        return scores_of(margins)


def scores_of(margins: FloatArray) -> FloatArray:
    """Two classes share one margin, so that both scores are exact to the last digit.

    >>> scores_of(np.array([[0.0]]))
    array([[0.5, 0.5]])
    """
    both = margins if margins.shape[1] > 1 else np.hstack([-margins, margins]) / 2
    return np.asarray(softmax(both, axis=1))


def margins_of(scores: FloatArray, margins: int) -> FloatArray:
    """The margins that give these scores: one is known exactly, several up to a number they share, so their mean is 0."""
    logs = np.log(np.maximum(scores, np.finfo(np.float64).tiny))
    return logs[:, 1:] - logs[:, :1] if margins == 1 else logs - logs.mean(axis=1, keepdims=True)


class BoostedTrees(TreeProtocol):
    """Gradient boosting of the log loss, as scikit-learn trains it."""

    name = "boosted_trees"
    identity = "Boosted(trees, depth, rate)"
    summary = "gradient boosting, 50 trees of depth 3 for each class; scores from the sum of the leaves"
    cost_terms = ("1", "t 2^h", "t h N d")  # a tree for every class in every round
    workload = "loops"
    presets = {"small": {"trees": 8}}

    def __init__(self, *, trees: int = 50, depth: int = 3, rate: float = 0.1) -> None:
        self.trees = whole("boosted trees: trees", trees, 1, 10_000)
        self.depth = whole("tree depth", depth, 1, DEEPEST)
        self.rate = positive("boosted trees: rate", rate, 1.0)

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> BoostedModel:
        all_classes("boosted trees", label, classes)

        fitted = sklearn.ensemble.GradientBoostingClassifier(
            n_estimators=self.trees,
            max_depth=self.depth,
            learning_rate=self.rate,
            random_state=int(rng.integers(2**31)),
        )
        fitted.fit(values, label)
        return boosted(fitted)


def boosted(fitted: Any) -> BoostedModel:
    """A fitted GradientBoostingClassifier that starts from the classes' shares, as it does unless told otherwise."""
    shares = np.asarray(fitted.init_.class_prior_, dtype=np.float64)
    small = np.finfo(np.float32).eps
    shares = np.clip(shares, small, 1 - small)
    base = np.log(shares[1:] / shares[:1]) if len(shares) == 2 else np.log(shares)
    trees = [(plain(one.tree_), one.tree_.value[:, 0, 0]) for stage in fitted.estimators_ for one in stage]
    leaves = [value * fitted.learning_rate for _, value in trees]
    output = np.arange(len(trees)) % len(base)
    return added_up([tree for tree, _ in trees], leaves, output, base)


def added_up(trees: Sequence[Plain], leaves: Sequence[FloatArray], output: IntArray, base: FloatArray) -> BoostedModel:
    """Trees of any shape, with what their nodes add, as one model of full binary trees."""
    depth = max(1, max(tree.depth() for tree in trees))
    whole_trees = [tree.full(depth) for tree in trees]
    adds = np.zeros((len(trees), 2 ** (depth + 1) - 1))
    for row, tree, (_, _, places), value in zip(adds, trees, whole_trees, leaves, strict=True):
        ends = (places >= 0) & (tree.left < 0)
        row[places[ends]] = value[ends]
    feature, threshold = (np.stack(arrays) for arrays in list(zip(*whole_trees, strict=True))[:2])
    return BoostedModel(
        feature, threshold, adds, np.asarray(output, dtype=np.int64), np.asarray(base, dtype=np.float64)
    )
