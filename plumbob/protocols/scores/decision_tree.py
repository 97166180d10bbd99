"""A decision tree over any number of parties: each reports on which side of its own thresholds a row lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.errors import whole
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.protocols.base import all_classes
from plumbob.protocols.shared.trees import DEEPEST, Forest, TreeProtocol, forest_of


class DecisionTree(TreeProtocol):
    """One tree; the predicted class has score 1, the others 0."""

    name = "decision_tree"
    identity = "DecisionTree(depth)"
    summary = "decision tree of depth 5; the active party sees the predicted class"
    cost_terms = ("1", "N d h log N")  # every column is sorted at every depth
    workload = "loops"
    uses_torch = False

    def __init__(self, *, depth: int = 5) -> None:
        self.depth = whole("tree depth", depth, 1, DEEPEST)

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Forest:
        all_classes("decision tree", label, classes)

        fitted = sklearn.tree.DecisionTreeClassifier(max_depth=self.depth, random_state=int(rng.integers(2**31)))
        fitted.fit(values, label)
        return forest_of([fitted.tree_], fitted.classes_, self.depth, classes)
