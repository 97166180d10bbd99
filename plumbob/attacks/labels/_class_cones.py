"""Several classes: clusters of a batch's gradients, finer than the classes, and joined over rounds by the rows they share.

    g_i = D_i W'(p_i - y_i)       D_i: which units of the cut are on (the gradient's support), W: the top model's slope

Rows of a class lie in a cone around -w_c. In each round they are clustered into about four times as many clusters as there are
classes, on the support that row and centre share; such clusters are nearly pure. Whoever shares a cluster in one round is dealt
to other company in the next. So rows and clusters make a graph which falls apart, nearly, into classes: the leading singular
vectors of its normalised incidence matrix, with pivoted QR for the classes (Damle, Minden and Ying 2019), which finds small ones.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from plumbob.attacks.labels._cut_gradients import Batch, joined
from plumbob.federation import FloatArray, IntArray

FINER = 4  # clusters for each class
FEWEST = 8  # rows for each class that are clustered at once, at least
TIMES = 4  # rounds of each row that are looked at, the first ones: later ones tell less of a model that is surer
STARTS, ROUNDS = 3, 20  # of a clustering
TINY = 1e-300
SMALL = 1e-6  # singular values up to it are none: there are fewer groups than classes


def class_groups(found: list[Batch], count: int, classes: int, rng: np.random.Generator) -> IntArray:
    """As many groups of rows as there are classes, -1 where nothing is told."""
    rows, clusters, total = _clusters(found, count, classes, rng)
    groups = np.full(count, -1)
    if total <= classes:
        return groups
    there = np.unique(rows)
    place = np.searchsorted(there, rows)
    basis = _leading(csr_matrix((np.ones(len(rows)), (place, clusters)), (len(there), total)), classes)
    groups[there] = _pivoted(basis)
    return groups


def _clusters(found: list[Batch], count: int, classes: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, int]:
    """Rows and the cluster that each was in, over all rounds."""
    times = np.zeros(count, dtype=np.int64)
    rows, clusters, total = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for batch in joined(found, FEWEST * classes):
        fresh = (times[batch.rows] < TIMES) & batch.gradients.any(axis=1)
        np.add.at(times, batch.rows, 1)
        here = batch.gradients[fresh]
        wanted = min(FINER * classes, len(here) // 2, len(np.unique(here, axis=0)))
        if not wanted:
            continue
        rows.append(batch.rows[fresh])
        clusters.append(total + _clustered(here, wanted, rng))
        total += wanted
    return np.concatenate(rows), np.concatenate(clusters), total


def _clustered(gradients: FloatArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Of several starts the clustering that leaves least."""
    on = (gradients != 0).astype(np.float64)
    made = [_once(gradients, on, wanted, rng) for _ in range(STARTS)]
    return min(made, key=lambda pair: pair[0])[1]


def _once(gradients: FloatArray, on: FloatArray, wanted: int, rng: np.random.Generator) -> tuple[float, IntArray]:
    energy = (gradients**2).sum(axis=1)
    seeds = [int(rng.integers(len(gradients)))]
    apart = np.full(len(gradients), np.inf)
    for _ in range(wanted - 1):  # as k-means++ does, by the distance on shared support
        apart = np.minimum(apart, _relative(gradients, on, seeds[-1:])[:, 0])
        weight = np.maximum(apart, 0.0)
        drawn = (
            rng.choice(len(gradients), p=weight / weight.sum()) if weight.sum() > 0 else rng.integers(len(gradients))
        )
        seeds.append(int(drawn))
    chosen = _relative(gradients, on, seeds).argmin(axis=1)
    left = np.zeros(len(gradients))
    for _ in range(ROUNDS):
        member = np.eye(wanted)[chosen]
        known = member.T @ on
        centres = np.divide(member.T @ gradients, known, out=np.zeros((wanted, gradients.shape[1])), where=known > 0)
        errors = (energy[:, None] - 2 * gradients @ centres.T + on @ (centres**2).T) / np.maximum(energy, TINY)[:, None]
        errors[:, ~member.any(axis=0)] = np.inf
        left, again = errors.min(axis=1), errors.argmin(axis=1)
        if (again == chosen).all():
            break
        chosen = again
    return float(left.mean()), np.asarray(chosen, dtype=np.int64)


def _relative(gradients: FloatArray, on: FloatArray, seeds: list[int]) -> FloatArray:
    """Squared distances to some of the rows on the support that both have, as a share of their sizes there."""
    centres, there = gradients[seeds], on[seeds]
    sizes = (gradients**2) @ there.T + on @ (centres**2).T
    return np.asarray((sizes - 2 * gradients @ centres.T) / np.maximum(sizes, TINY))


def _leading(incidence: csr_matrix, wanted: int) -> FloatArray:
    """Leading left singular vectors of the incidence matrix, normalised by how often rows and clusters come."""
    by_row = np.maximum(1.0, np.asarray(incidence.sum(axis=1)).ravel())
    by_cluster = np.maximum(1.0, np.asarray(incidence.sum(axis=0)).ravel())
    scaled = incidence.multiply(1 / np.sqrt(by_row)[:, None]).multiply(1 / np.sqrt(by_cluster)[None]).tocsr()
    if min(scaled.shape) <= wanted + 1:
        left, sizes, _ = np.linalg.svd(scaled.toarray(), full_matrices=False)
    else:
        start = np.sqrt(by_cluster if scaled.shape[1] <= scaled.shape[0] else by_row)
        left, sizes, _ = svds(scaled, k=wanted, v0=start)
    order = np.argsort(-sizes)[:wanted]
    return np.asarray(left[:, order[sizes[order] > SMALL]])


def _pivoted(basis: FloatArray) -> IntArray:
    """The group of every row: rows that stand furthest apart are turned onto the axes."""
    _, _, order = qr(basis.T, pivoting=True, mode="economic")
    first, _, second = np.linalg.svd(basis[order[: basis.shape[1]]].T)
    return np.asarray(np.abs(basis @ (first @ second)).argmax(axis=1), dtype=np.int64)
