"""Tree ensembles of ONNX (TreeEnsembleClassifier and TreeEnsembleRegressor): the nodes of all trees in one list of arrays.

Inputs and thresholds have single precision. A node's mode says which comparison leads to its true branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.formats.own_model import MOST_CLASSES, MOST_NODES, averaged, checked_depth, single
from plumbob.protocols import Model
from plumbob.protocols.scores.boosted_trees import added_up
from plumbob.protocols.shared.trees import Plain

STRICT = {
    "BRANCH_LEQ": (False, True),
    "BRANCH_LT": (True, True),
    "BRANCH_GT": (False, False),
    "BRANCH_GTE": (True, False),
}


@dataclass(frozen=True)
class Ensemble:
    """Trees that add numbers to outputs; their inputs are factor x + shift."""

    trees: tuple[Plain, ...]
    adds: tuple[FloatArray, ...]  # nodes x outputs, of each tree
    base: FloatArray
    classes: int  # 0 of a regressor
    factor: FloatArray
    shift: FloatArray

    def model(self, squash: str) -> tuple[Model, str]:
        """Margins under a sigmoid or softmax, or the mean of the leaves' scores."""
        checked_depth(self.trees)
        if squash == "mean":
            return self._forest()
        if squash == "sigmoid" and len(self.base) > 1 and self.classes != 2:
            raise BadInput("expected one class per row, got a sigmoid of several outputs")
        if squash == "sigmoid":
            used = -1 if len(self.base) == 2 else 0
            leaves = [adds[:, used] for adds in self.adds]
            return added_up(
                self.trees, leaves, np.zeros(len(self.trees), dtype=np.int64), self.base[[used]]
            ), "boosted_trees"
        trees, leaves, output = [], [], []
        for tree, adds in zip(self.trees, self.adds, strict=True):
            for margin in np.flatnonzero(np.abs(adds).max(axis=0) > 0):
                trees.append(tree)
                leaves.append(adds[:, margin])
                output.append(margin)
        checked_depth(trees)  # a tree for each class it adds to
        return added_up(trees, leaves, np.array(output), self.base), "boosted_trees"

    def _forest(self) -> tuple[Model, str]:
        if self.base.any():
            raise BadInput("expected a forest without base values")
        count = len(self.trees)
        shares = [adds * count for adds in self.adds]
        used = np.flatnonzero(np.max([np.abs(share).max(axis=0) for share in shares], axis=0) > 0)
        if self.classes == 2 and len(used) == 1:  # one score of two: the other is what is missing to 1
            shares = [np.stack([1 - share[:, used[0]], share[:, used[0]]], axis=1) for share in shares]
        kind = "decision_tree" if count == 1 else "random_forest"
        return averaged(self.trees, shares, self.classes), kind


def ensemble(a: dict[str, Any], classes: int, factor: FloatArray, shift: FloatArray) -> Ensemble:
    """The trees of a node's attributes."""
    kind = "class" if "class_ids" in a else "target"
    outputs = classes if kind == "class" else int(a.get("n_targets", 1))
    only_one = kind == "class" and classes == 2 and len(np.unique(a["class_ids"])) == 1
    places = {
        key: i for i, key in enumerate(zip(a["nodes_treeids"].tolist(), a["nodes_nodeids"].tolist(), strict=True))
    }
    if not 0 < outputs <= MOST_CLASSES or len(places) * outputs > MOST_NODES:
        raise BadInput(f"expected at most {MOST_CLASSES:,} classes, or fewer if there are many nodes, got {outputs:,}")
    adds = np.zeros((len(places), outputs))
    keys = zip(a[f"{kind}_treeids"].tolist(), a[f"{kind}_nodeids"].tolist(), strict=True)
    ids = np.zeros(len(a[f"{kind}_ids"]), dtype=np.int64) + (1 if only_one else a[f"{kind}_ids"])
    np.add.at(adds, (np.array([places[key] for key in keys]), ids), a[f"{kind}_weights"])
    base = np.asarray(a.get("base_values", np.zeros(outputs)), dtype=np.float64)
    if len(base) == 1 and outputs == 2:
        base = np.array([0.0, base[0]])
    trees, each = [], []
    for tree in np.unique(a["nodes_treeids"]):
        rows = np.flatnonzero(a["nodes_treeids"] == tree)
        trees.append(_tree(a, rows))
        each.append(adds[rows])
    return Ensemble(tuple(trees), tuple(each), base if len(base) else np.zeros(outputs), classes, factor, shift)


def _tree(a: dict[str, Any], rows: Any) -> Plain:
    number = {int(node): i for i, node in enumerate(a["nodes_nodeids"][rows])}
    left, right = np.full(len(rows), -1), np.full(len(rows), -1)
    threshold = np.zeros(len(rows))
    for i, row in enumerate(rows.tolist()):
        mode = a["nodes_modes"][row]
        if mode == "LEAF":
            continue
        if mode not in STRICT:
            raise BadInput(f"expected <, <=, > or >= comparisons at its nodes, got '{mode}'")
        strict, true_is_left = STRICT[mode]
        true, false = number[int(a["nodes_truenodeids"][row])], number[int(a["nodes_falsenodeids"][row])]
        left[i], right[i] = (true, false) if true_is_left else (false, true)
        threshold[i] = single(a["nodes_values"][row : row + 1], strict=strict)[0]
    return Plain(left, right, np.asarray(a["nodes_featureids"][rows]), threshold)
