"""ID2Graph (takahashi2023): rows that share leaves form a graph, its communities and own columns together are clustered.

    A[i, j] = sum over trees t of tau^t [i and j share a node of tree t that is split no further, as far as the party sees]
    labels = k-means of (own columns scaled to 0..1, community of the row as zeros and ones times a weight), k: the classes
Communities are those of the largest modularity that Louvain finds. Which cluster is which class is not told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.labels._instance_space import NO_NODES, holds_no_label, seen_trees
from plumbob.attacks.labels._louvain import communities
from plumbob.errors import not_negative, positive, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import Kind
from plumbob.lazy_imports import sklearn
from plumbob.setting_sources import authors
from plumbob.threats import Threat, View

STARTS = 10  # of the clustering, as in the authors' code


class ID2Graph(Attack):
    """Communities of the instance space. `discount`: tau, the weight of a tree after the one before; 1 for forests."""

    name = "id2graph"
    identity = "ID2Graph(discount, community_weight, passes)"
    summary = (
        "communities of rows that share leaves, clustered with own columns, are taken for the classes of the label"
    )
    paper = "takahashi2023"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("secure_boost",)
    addresses = (Kind.LABEL,)
    needs_active = False
    presets = {"small": {"passes": 20}, "forest": {"discount": 1.0}}
    cost_terms = ("1", "n", "n d")
    workload = "loops"
    sources = {
        "discount": authors("README.md, -e: 0.6 for boosting and 1.0 for forests"),
        "community_weight": authors("script/run.sh, -k"),
        "passes": authors("script/run.sh, -l"),
    }

    def __init__(self, *, discount: float = 0.6, community_weight: float = 3.0, passes: int = 100) -> None:
        self.discount = positive("id2graph: discount", discount)
        self.community_weight = not_negative("id2graph: community_weight", community_weight)
        self.passes = whole("id2graph: passes", passes, 1)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Only parties that are told nodes and have no label."""
        own = holds_no_label(threat) if protocol in self.protocols else None
        return own or super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        trees = seen_trees(view)
        if not trees:
            return nothing(view, NO_NODES)
        leaves = [tree.leaves for tree in trees]
        found = communities(leaves, [self.discount**t for t in range(len(trees))], rng, self.passes)
        which = np.eye(found.max() + 1)[found] * self.community_weight
        labels = clustered(np.hstack([_scaled(view.own), which]), len(view.classes), rng)
        certificate = f"{found.max() + 1} communities in {len(trees)} trees"
        return replace(nothing(view), labels=labels, unnamed=True, certificate=certificate)


def clustered(table: FloatArray, classes: int, rng: np.random.Generator) -> IntArray:
    """As many clusters as there are classes; one for each distinct row where these are fewer."""
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    if len(distinct) <= classes:
        return np.asarray(which.ravel(), dtype=np.int64)
    model = sklearn.cluster.KMeans(classes, n_init=STARTS, random_state=int(rng.integers(2**31)))
    return np.asarray(model.fit(table).labels_, dtype=np.int64)


def _scaled(own: FloatArray) -> FloatArray:
    width = np.ptp(own, axis=0)
    return np.asarray((own - own.min(axis=0)) / np.where(width > 0, width, 1.0))
