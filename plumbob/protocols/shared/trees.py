"""Decision trees and random forests over any number of parties.

A tree is stored as a full binary tree, node i with children 2i+1 and 2i+2, as in luo2021's Algorithm 1. Each party
says for every node it owns to which side its value falls; the coordinator alone walks the tree.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from plumbob.bundle import Array
from plumbob.federation import FloatArray, IntArray, Party
from plumbob.protocols.base import Model, PredictionProtocol

LEAF, ABSENT = -1, -2
DEEPEST = 14  # 32,767 nodes; a deeper full tree is not a tree anyone explains to anyone
Side = Callable[[int, IntArray], NDArray[np.bool_]]  # a tree and a node of every row -> who goes right


@dataclass(frozen=True)
class Trees(Model):
    """Trees of one depth, one row each: a node's feature (or leaf, or absent) and threshold."""

    feature: IntArray  # trees x nodes
    threshold: FloatArray

    @abstractmethod
    def tally(self, leaves: Iterable[IntArray], rows: int) -> FloatArray:
        """Scores from the leaf that every row ends in, tree by tree."""

    @property
    def depth(self) -> int:
        return int(self.feature.shape[1]).bit_length() - 1

    def scores(self, values: FloatArray) -> FloatArray:
        everyone = np.arange(len(values))

        def side(tree: int, node: IntArray) -> NDArray[np.bool_]:
            below = self.threshold[tree, node]
            return np.asarray(values[everyone, np.maximum(self.feature[tree, node], 0)] > below)

        return self.tally(self._leaves(side, len(values)), len(values))

    def told(self, right: NDArray[np.bool_]) -> FloatArray:
        """Scores from the side every row takes at every inner node: rows x inner nodes, in the order of `inner`."""
        slot, everyone = np.zeros(self.feature.size, dtype=np.int64), np.arange(len(right))
        slot[self.inner] = np.arange(len(self.inner))
        nodes = self.feature.shape[1]
        return self.tally(self._leaves(lambda t, n: right[everyone, slot[t * nodes + n]], len(right)), len(right))

    @property
    def inner(self) -> IntArray:
        """The places of all inner nodes, tree by tree."""
        return np.flatnonzero(self.feature >= 0)

    def _leaves(self, side: Side, rows: int) -> Iterator[IntArray]:
        for tree in range(len(self.feature)):
            position = np.zeros(rows, dtype=np.int64)
            for _ in range(self.depth):
                inner = np.flatnonzero(self.feature[tree, position] >= 0)
                if not len(inner):
                    break
                step = 2 * position + 1 + side(tree, np.where(self.feature[tree, position] >= 0, position, 0))
                position[inner] = step[inner]
            yield position

    def reordered(self, order: IntArray) -> Self:
        feature = np.where(self.feature >= 0, np.argsort(order)[np.maximum(self.feature, 0)], self.feature)
        return replace(self, feature=feature)

    def part(self, columns: IntArray) -> dict[str, Array]:
        own = np.isin(self.feature, columns).ravel().nonzero()[0]
        local = np.searchsorted(columns, self.feature.ravel()[own])
        return {"nodes": own, "columns": local, "thresholds": self.threshold.ravel()[own]}


@dataclass(frozen=True)
class Forest(Trees):
    """Trees that vote: each for the class of the leaf a row ends in, or with the scores of that leaf."""

    label: IntArray
    classes: int
    leaves: FloatArray | None = None  # trees x nodes x classes: scores; without them a leaf has one vote for its class

    def arrays(self) -> dict[str, Array]:
        found: dict[str, Array] = {
            "feature": self.feature,
            "threshold": self.threshold,
            "label": self.label,
            "classes": np.array([self.classes]),
        }
        return found if self.leaves is None else found | {"leaves": self.leaves}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(
            np.asarray(arrays["feature"]),
            np.asarray(arrays["threshold"]),
            np.asarray(arrays["label"]),
            int(arrays["classes"][0]),
            np.asarray(arrays["leaves"]) if "leaves" in arrays else None,
        )

    def tally(self, leaves: Iterable[IntArray], rows: int) -> FloatArray:
        """The mean over trees of what their leaves say: shares of votes where leaves have no scores of their own."""
        votes = np.zeros((rows, self.classes))
        everyone = np.arange(rows)
        for tree, position in enumerate(leaves):
            if self.leaves is None:
                votes[everyone, self.label[tree, position]] += 1
            else:
                votes += self.leaves[tree, position]
        return votes / len(self.feature)


@dataclass(frozen=True)
class Plain:
    """One tree as libraries keep it: children by number, below zero for a leaf; `x <= threshold` goes left."""

    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray

    def depth(self) -> int:
        """The longest way down; refuses nothing, so that a caller can say what is too deep."""
        return max(deep for _, _, deep in self.walk())

    def walk(self) -> Iterator[tuple[int, int, int]]:
        """Nodes from the root on: number, place in the full binary tree, depth. A node is met once, or it is no tree."""
        waiting, met = [(0, 0, 0)], 0
        while waiting:
            node, place, deep = waiting.pop()
            met += 1
            if met > len(self.left) or not 0 <= node < len(self.left):
                raise ValueError("the children do not form a tree")
            yield node, place, deep
            if self.left[node] >= 0:
                waiting.append((int(self.right[node]), 2 * place + 2, deep + 1))
                waiting.append((int(self.left[node]), 2 * place + 1, deep + 1))

    def full(self, depth: int) -> tuple[IntArray, FloatArray, IntArray]:
        """Feature and threshold of a full binary tree of that depth, and each node's place in it (-1 if not reached)."""
        size = 2 ** (depth + 1) - 1
        feature, threshold = np.full(size, ABSENT, dtype=np.int64), np.zeros(size)
        places = np.full(len(self.left), -1)
        for node, place, _ in self.walk():
            places[node] = place
            feature[place] = LEAF if self.left[node] < 0 else self.feature[node]
            threshold[place] = 0.0 if self.left[node] < 0 else self.threshold[node]
        return feature, threshold, places


def plain(tree: Any) -> Plain:
    """A fitted tree of scikit-learn."""
    return Plain(tree.children_left, tree.children_right, tree.feature, tree.threshold)


def heap(tree: Any, depth: int) -> tuple[IntArray, FloatArray, IntArray]:
    """A fitted scikit-learn tree as a full binary tree of the given depth, with the class of every node."""
    feature, threshold, places = plain(tree).full(depth)
    label = np.zeros(len(feature), dtype=np.int64)
    label[places] = np.argmax(tree.value[:, 0], axis=1)
    return feature, threshold, label


class TreeProtocol(PredictionProtocol):
    """What models of trees share: the parties answer with sides, packed to bits."""

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        right = party.values[rows][:, part["columns"]] > part["thresholds"]
        return np.packbits(right, axis=1)

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        assert isinstance(model, Trees)
        rows = len(next(iter(answers.values())))
        right = np.zeros((rows, len(model.inner)), dtype=bool)
        for party, packed in answers.items():
            nodes = model.part(columns[party])["nodes"]
            if len(nodes):
                sides = np.unpackbits(packed, axis=1, count=len(nodes)).astype(bool)
                right[:, np.searchsorted(model.inner, nodes)] = sides
        return model.told(right)


def forest_of(trees: list[Any], seen: IntArray, depth: int, classes: int) -> Forest:
    parts = [heap(tree, depth) for tree in trees]
    feature, threshold, label = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    return Forest(feature, threshold, np.asarray(seen, dtype=np.int64)[label], classes)
