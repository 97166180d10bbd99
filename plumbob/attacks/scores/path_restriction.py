"""Path restriction (PRA, luo2021 Algorithm 1): the class of a row and the known columns leave few paths of the tree.

beta marks the nodes a row can reach as far as the curious party can tell, alpha the leaves of the predicted class;
their product marks the paths that remain. One is drawn at random; it says on which side of each threshold the unknown
values lie. Level by level for all rows at once. Where leaves release scores of their own (a user's tree), alpha marks the
leaves of exactly these scores, which says more than their class. Scores that a defence changed name their largest class,
and where no path leads to it (noise), the largest one that a path leads to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Branches, Guess
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.shared.trees import LEAF, Forest
from plumbob.threats import View, WhiteBox

WITHHELD = -1
SCORE_GAP_OF_A_LEAF = 1e-9  # by how much scores of one leaf may differ
ROWS_RESTRICTED_TOGETHER = 2**14  # rows worked on at a time, so that their marks stay in the cache

Marks = NDArray[np.bool_]


def reachable(tree: Forest, known: IntArray, own: FloatArray) -> Marks:
    """beta: nodes x rows, the nodes each row may pass given the known columns (lines 1 to 14)."""
    feature, threshold = tree.feature[0], tree.threshold[0]
    position = {int(column): i for i, column in enumerate(known)}
    beta = np.zeros((len(feature), len(own)), dtype=bool)
    beta[0] = True
    columns = np.ascontiguousarray(own.T)
    for node in np.flatnonzero(feature >= 0):  # parents come before their children
        mine = position.get(int(feature[node]))
        left, right = beta[2 * node + 1], beta[2 * node + 2]
        left[:] = right[:] = beta[node]
        if mine is not None:
            below = columns[mine] <= threshold[node]
            left &= below
            right &= ~below
    return beta


def leaves_of(tree: Forest, label: NDArray[np.integer[Any]]) -> Marks:
    """alpha: nodes x rows, the leaves whose class is the predicted one (line 15); all of them if it was withheld."""
    fits = (tree.label[0][:, None].astype(label.dtype) == label) | (label == WITHHELD)
    return np.asarray((tree.feature[0] == LEAF)[:, None] & fits)


def narrowed(possible: Marks, said: FloatArray, scores: FloatArray) -> Marks:
    """Of the leaves marked for a row, those that say its scores; all of them where none does."""
    same = np.stack([(np.abs(scores - leaf) <= SCORE_GAP_OF_A_LEAF).all(axis=1) for leaf in said]) & possible
    return np.where(same.any(axis=0), same, possible)


def path_claims(tree: Forest, leaves: IntArray, unknown: IntArray) -> tuple[IntArray, NDArray[np.int8]]:
    """Inner nodes on unknown columns, and for each leaf the side its path takes there: 0 none, 1 left, 2 right."""
    nodes = np.flatnonzero(np.isin(tree.feature[0], unknown))
    claims = np.zeros((len(leaves), len(nodes)), dtype=np.int8)
    order = {int(node): i for i, node in enumerate(nodes)}
    for row, leaf in enumerate(leaves):
        node = int(leaf)
        while node:
            parent = (node - 1) // 2
            if parent in order:
                claims[row, order[parent]] = 1 if node == 2 * parent + 1 else 2
            node = parent
    return nodes, claims


class PathRestriction(Attack):
    """PRA as published, over all rows at once."""

    name = "path_restriction"
    aliases = ("PRA",)
    identity = "PathRestriction()"
    summary = "PRA: restricts the paths of a decision tree to those that fit the predicted class and the known columns"
    paper = "luo2021"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("decision_tree",)
    requires = (WhiteBox,)
    cost_terms = ("1", "n", "n w")
    workload = "loops"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if view.model is None:
            raise BadInput("path restriction needs the model (white box)")
        tree = Forest.from_arrays(view.model)
        scores = view.received("scores")
        withheld = np.isnan(scores).any(axis=1)
        label = np.where(withheld, WITHHELD, np.argmax(scores, axis=1)).astype(np.int16)
        leaves = np.flatnonzero(tree.feature[0] == LEAF)
        draws = rng.random(len(label))
        nodes, paths = path_claims(tree, leaves, view.unknown)
        certain = np.zeros((len(label), len(nodes)), dtype=bool)
        chosen, candidates = np.empty(len(label), dtype=np.int64), np.empty(len(label), dtype=np.int64)
        for start in range(0, len(label), ROWS_RESTRICTED_TOGETHER):
            rows = slice(start, start + ROWS_RESTRICTED_TOGETHER)
            open_to = reachable(tree, view.known, view.own[rows])[leaves]
            possible = open_to & leaves_of(tree, label[rows])[leaves]
            if tree.leaves is not None:
                possible = narrowed(possible, tree.leaves[0, leaves], scores[rows])
            lost = ~possible.any(axis=0)
            if lost.any():
                second = likeliest(tree.label[0][leaves], open_to[:, lost], scores[rows][lost])
                possible[:, lost] = open_to[:, lost] & leaves_of(tree, second)[leaves]
            chosen[rows], candidates[rows] = _draw(possible, draws[rows])
            certain[rows] = agreed(possible, paths)
        columns = np.searchsorted(view.unknown, tree.feature[0, nodes])
        branches = Branches(columns, tree.threshold[0, nodes], paths, chosen, candidates, certain)
        return Guess(view.unknown_names, branches=branches)


def agreed(possible: Marks, paths: NDArray[np.int8]) -> Marks:
    """Rows x thresholds: where all marked leaves of a row lie on the same side."""
    marks, count = possible.T.astype(np.float32), possible.sum(axis=0)[:, None]
    same = [marks @ (paths == side).astype(np.float32) == count for side in (1, 2)]
    return np.asarray((same[0] | same[1]) & (count > 0))


def likeliest(label: IntArray, reached: Marks, scores: FloatArray) -> IntArray:
    """The class of the largest score among those of the leaves that each row can reach."""
    classes = np.arange(scores.shape[1])
    offered = (label == classes[:, None]).astype(np.int64) @ reached.astype(np.int64) > 0
    return np.asarray(np.argmax(np.where(offered.T, scores, -np.inf), axis=1))


def _draw(possible: Marks, draws: FloatArray) -> tuple[IntArray, IntArray]:
    """One of each row's marked leaves, each equally likely, and how many were marked."""
    counts = possible.sum(axis=0, dtype=np.int16)
    wanted = np.floor(draws * counts).astype(np.int16)
    passed, chosen = np.zeros_like(counts), np.zeros_like(counts)
    for marks in possible:  # the leaf before which exactly `wanted` marks were passed
        passed += marks
        chosen += passed <= wanted
    return chosen.astype(np.int64), counts.astype(np.int64)
