"""Latent leaves (ours): the class of a row is the hidden cause of the leaves that it is in, tree by tree.

    P(leaves of a row, class c) = p_c  product over trees t of  q_t(leaf_t | c)^(3 / trees)
Rows, class shares p and leaf shares q are fitted in turn (expectation maximisation), known labels stay as they are. The exponent
says that trees repeat each other: together they count as three. The start is a classifier of node memberships taught by the
known labels; without any, two or more clusters of the largest directions in which memberships differ, and then nobody knows
which class is which. Shares come out of the fit, so that rare classes need not be as frequent as their known labels.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.labels._instance_space import NO_NODES, SeenTree, holds_no_label, memberships, seen_trees
from plumbob.attacks.labels.id2graph import clustered
from plumbob.errors import positive, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import Kind
from plumbob.lazy_imports import sklearn
from plumbob.threats import Threat, View

FIRST = 0.8  # of a row's probability that its first cluster has
PENALTY = 0.1  # of the classifier of node memberships, inverse
RAREST = 0.005  # a class never gets rarer in the fit


class LatentLeaves(Attack):
    """A mixture of classes over the leaves. `worth`: how many independent trees all trees together count as."""

    name = "latent_leaves"
    identity = "LatentLeaves(worth, steps)"
    summary = "ours: the label as the hidden cause of the leaves that rows are in, with or without a few known labels"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("secure_boost",)
    addresses = (Kind.LABEL,)
    needs_active = False
    presets = {"small": {"steps": 10}}
    cost_terms = ("1", "n", "n d")
    workload = "loops"

    def __init__(self, *, worth: float = 3.0, steps: int = 60) -> None:
        self.worth = positive("latent leaves: worth", worth)
        self.steps = whole("latent leaves: steps", steps, 1)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Only parties that are told nodes and have no label."""
        own = holds_no_label(threat) if protocol in self.protocols else None
        return own or super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        trees = seen_trees(view)
        nodes = memberships(trees) if trees else np.zeros((len(view.own), 0))
        if not nodes.shape[1]:
            return nothing(view, NO_NODES if not trees else "no tree was split, so that all rows share all nodes")
        known = view.known_labels
        taught = len(np.unique(known[known >= 0])) > 1
        start = _taught(nodes, known, len(view.classes)) if taught else _apart(nodes, len(view.classes), rng)
        chances = self._fitted(trees, start, known if taught else np.full(len(known), -1))
        return replace(nothing(view), labels=chances.argmax(axis=1), unnamed=not taught)

    def _fitted(self, trees: list[SeenTree], chances: FloatArray, known: IntArray) -> FloatArray:
        weight = min(1.0, self.worth / len(trees))
        fixed = np.eye(chances.shape[1])[np.maximum(known, 0)]
        for _ in range(self.steps):
            shares = np.maximum(chances.mean(axis=0), RAREST)
            shares = shares / shares.sum()
            told = np.tile(np.log(shares), (len(chances), 1))
            for tree in trees:
                told += weight * _told(tree.leaves, chances, shares)
            told -= told.max(axis=1, keepdims=True)
            after = np.exp(told) / np.exp(told).sum(axis=1, keepdims=True)
            after = np.where(known[:, None] >= 0, fixed, after)
            if np.abs(after - chances).max() < 1e-6:
                break
            chances = after
        return chances


def _told(leaves: IntArray, chances: FloatArray, shares: FloatArray) -> FloatArray:
    """log q(leaf | class) of every row; rows that the tree left out tell nothing."""
    here = leaves >= 0
    count = (
        np.array([np.bincount(leaves[here], weights=c[here], minlength=leaves.max() + 1) for c in chances.T])
        + shares[:, None]
    )
    logs = np.log(count / count.sum(axis=1, keepdims=True))
    return np.asarray(np.where(here[:, None], logs[:, np.maximum(leaves, 0)].T, 0.0))


def _taught(nodes: FloatArray, known: IntArray, classes: int) -> FloatArray:
    """Chances of the classes by logistic regression on known labels; a class that none of them has starts small."""
    some = known >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it has not converged it is still a start
        model = sklearn.linear_model.LogisticRegression(C=PENALTY, max_iter=300).fit(nodes[some], known[some])
    chances = np.full((len(nodes), classes), RAREST)
    chances[:, model.classes_] += model.predict_proba(nodes)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _apart(nodes: FloatArray, classes: int, rng: np.random.Generator) -> FloatArray:
    """Clusters of the directions in which memberships differ most."""
    centred = nodes - nodes.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    directions = left[:, : classes - 1] * values[: classes - 1]
    groups = clustered(np.asarray(directions), classes, rng) if classes > 2 else (directions[:, 0] > 0).astype(np.int64)
    return np.asarray((1 - FIRST) / classes + FIRST * np.eye(classes)[groups])
