"""Decision trees and random forests over any number of parties.

A tree is stored as a full binary tree, node i with children 2i+1 and 2i+2, as in luo2021's Algorithm 1. Each party
says for every node it owns to which side its value falls; the coordinator alone walks the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from plumbob.bundle import Array
from plumbob.errors import whole
from plumbob.federation import FloatArray, IntArray, Party
from plumbob.protocols.base import Model, Protocol, all_classes

LEAF, ABSENT = -1, -2
DEEPEST = 14  # 32,767 nodes; a deeper full tree is not a tree anyone explains to anyone


@dataclass(frozen=True)
class Forest(Model):
    """Trees of one depth, one row each: a node's feature (or leaf, or absent), threshold and class."""

    feature: IntArray  # trees x nodes
    threshold: FloatArray
    label: IntArray
    classes: int

    def arrays(self) -> dict[str, Array]:
        return {
            "feature": self.feature,
            "threshold": self.threshold,
            "label": self.label,
            "classes": np.array([self.classes]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(
            np.asarray(arrays["feature"]),
            np.asarray(arrays["threshold"]),
            np.asarray(arrays["label"]),
            int(arrays["classes"][0]),
        )

    @property
    def depth(self) -> int:
        return int(self.feature.shape[1]).bit_length() - 1

    def scores(self, values: FloatArray) -> FloatArray:
        return self.vote(values[:, np.maximum(self.feature, 0).ravel()] > self.threshold.ravel())

    def vote(self, right: NDArray[np.bool_]) -> FloatArray:
        """Share of trees that say each class, from the side every row takes at every node (trees x nodes, flat)."""
        rows, nodes = len(right), self.feature.shape[1]
        votes = np.zeros((rows, self.classes))
        everyone = np.arange(rows)
        for tree in range(len(self.feature)):
            position = np.zeros(rows, dtype=np.int64)
            for _ in range(self.depth):
                inner = self.feature[tree, position] >= 0
                step = 2 * position + 1 + right[everyone, tree * nodes + position]
                position = np.where(inner, step, position)
            votes[everyone, self.label[tree, position]] += 1
        return votes / len(self.feature)

    def reordered(self, order: IntArray) -> Self:
        feature = np.where(self.feature >= 0, np.argsort(order)[np.maximum(self.feature, 0)], self.feature)
        return type(self)(feature, self.threshold, self.label, self.classes)

    def part(self, columns: IntArray) -> dict[str, Array]:
        own = np.isin(self.feature, columns).ravel().nonzero()[0]
        local = np.searchsorted(columns, self.feature.ravel()[own])
        return {"nodes": own, "columns": local, "thresholds": self.threshold.ravel()[own]}


def heap(tree: Any, depth: int) -> tuple[IntArray, FloatArray, IntArray]:
    """A fitted scikit-learn tree as a full binary tree of the given depth."""
    size = 2 ** (depth + 1) - 1
    feature, threshold = np.full(size, ABSENT), np.zeros(size)
    label = np.zeros(size, dtype=np.int64)
    places = np.full(tree.node_count, -1)
    places[0] = 0
    for node in range(tree.node_count):  # parents come before their children
        place = places[node]
        label[place] = int(np.argmax(tree.value[node][0]))
        left, right = tree.children_left[node], tree.children_right[node]
        feature[place] = LEAF if left < 0 else tree.feature[node]
        if left >= 0:
            threshold[place] = tree.threshold[node]
            places[left], places[right] = 2 * place + 1, 2 * place + 2
    return feature.astype(np.int64), threshold, label


class _TreeProtocol(Protocol):
    """What trees and forests share: the parties answer with sides, packed to bits."""

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        right = party.values[rows][:, part["columns"]] > part["thresholds"]
        return np.packbits(right, axis=1)

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        assert isinstance(model, Forest)
        rows = len(next(iter(answers.values())))
        right = np.zeros((rows, model.feature.size), dtype=bool)
        for party, packed in answers.items():
            nodes = model.part(columns[party])["nodes"]
            if len(nodes):
                right[:, nodes] = np.unpackbits(packed, axis=1, count=len(nodes)).astype(bool)
        return model.vote(right)


class DecisionTree(_TreeProtocol):
    """One tree; the predicted class has score 1, the others 0."""

    name = "decision_tree"
    summary = "decision tree of depth 5; the active party sees the predicted class"

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
        from sklearn.tree import DecisionTreeClassifier

        fitted = DecisionTreeClassifier(max_depth=self.depth, random_state=int(rng.integers(2**31)))
        fitted.fit(values, label)
        return _forest([fitted.tree_], fitted.classes_, self.depth, classes)


class RandomForest(_TreeProtocol):
    """Many trees; a class's score is the share of trees that say it."""

    name = "random_forest"
    summary = "random forest of 100 trees of depth 3; scores are shares of votes"

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
        from sklearn.ensemble import RandomForestClassifier

        fitted = RandomForestClassifier(self.trees, max_depth=self.depth, random_state=int(rng.integers(2**31)))
        fitted.fit(values, label)
        return _forest([one.tree_ for one in fitted.estimators_], fitted.classes_, self.depth, classes)


def _forest(trees: list[Any], seen: IntArray, depth: int, classes: int) -> Forest:
    parts = [heap(tree, depth) for tree in trees]
    feature, threshold, label = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    return Forest(feature, threshold, np.asarray(seen, dtype=np.int64)[label], classes)
