"""Communities of a graph of cliques, by greedy modularity (Louvain): rows that share leaves are joined.

    A[i, j] = sum over trees t of weight_t if rows i and j share a leaf of tree t
Rows that share all leaves are one vertex from the start, which keeps the graph small; it changes no modularity gain between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.federation import FloatArray, IntArray

LEAST_GAIN = 1e-12


def communities(
    leaves: Sequence[IntArray], weights: Sequence[float], rng: np.random.Generator, passes: int
) -> IntArray:
    """The community of every row; of `leaves` -1 stands for a row that a tree left out."""
    table = np.stack(leaves, axis=1)
    alike, which, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    graph = np.zeros((len(alike), len(alike)))
    for leaf, weight in zip(alike.T, weights, strict=True):
        graph += weight * ((leaf[:, None] == leaf) & (leaf[:, None] >= 0))
    graph = graph * counts[:, None] * counts
    own = np.arange(len(graph))
    graph[own, own] -= sum(
        w * counts * (leaf >= 0) for leaf, w in zip(alike.T, weights, strict=True)
    )  # no row with itself
    found = np.arange(len(graph))
    while True:
        moved = _one_level(graph, rng, passes)
        if len(np.unique(moved)) == len(graph):
            return found[which.ravel()]
        groups = np.unique(moved, return_inverse=True)[1]
        found = groups[found]
        joined = np.zeros((len(graph), groups.max() + 1))
        joined[np.arange(len(graph)), groups] = 1.0
        graph = joined.T @ graph @ joined


def _one_level(graph: FloatArray, rng: np.random.Generator, passes: int) -> IntArray:
    """Vertices move to the neighbouring community of the largest gain until none gains."""
    degree, total = graph.sum(axis=1), graph.sum()
    home = np.arange(len(graph))
    if total <= 0:
        return home
    inside = degree.copy()
    for _ in range(passes):
        changed = False
        for vertex in rng.permutation(len(graph)):
            links = np.bincount(home, weights=graph[vertex], minlength=len(graph))
            links[home[vertex]] -= graph[vertex, vertex]
            inside[home[vertex]] -= degree[vertex]
            gain = links - inside * degree[vertex] / total
            best = int(np.argmax(gain))
            if gain[best] <= gain[home[vertex]] + LEAST_GAIN * total:
                best = int(home[vertex])
            inside[best] += degree[vertex]
            changed |= best != home[vertex]
            home[vertex] = best
        if not changed:
            break
    return home
