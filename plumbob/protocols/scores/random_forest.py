"""A random forest over any number of parties: each reports on which side of its own thresholds a row lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.errors import whole
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.protocols.base import all_classes
from plumbob.protocols.shared.trees import DEEPEST, Forest, TreeProtocol, forest_of


class RandomForest(TreeProtocol):
    """Many trees; a class's score is the share of trees that vote for it."""

    name = "random_forest"
    identity = "RandomForest(trees, depth)"
    summary = "random forest of 100 trees of depth 3; scores are shares of votes"
    cost_terms = ("t", "t N sqrt(d) h log N")  # t trees, of sqrt(d) columns at a node
    workload = "loops"
    presets = {"small": {"trees": 15}}

    def __init__(self, *, trees: int = 100, depth: int = 3) -> None:
        self.trees = whole("random forest: trees", trees, 1, 10_000)
        self.depth = whole("tree depth", depth, 1, DEEPEST)

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Forest:
        all_classes("random forest", label, classes)

        fitted = sklearn.ensemble.RandomForestClassifier(
            self.trees, max_depth=self.depth, random_state=int(rng.integers(2**31))
        )
        fitted.fit(values, label)
        return forest_of([one.tree_ for one in fitted.estimators_], fitted.classes_, self.depth, classes)
