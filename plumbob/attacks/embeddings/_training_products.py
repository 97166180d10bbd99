"""Inner products of hidden rows, from how training moves a linear cut (ours).

The active party computes the gradients G_t = dL/dz that it sends, so of every step of a first layer's weights by momentum
    W_{t+1} - W_t = m (W_t - W_{t-1}) - rate (G_t' X_t + decay W_t)
it knows all but X_t, and sees Z_t = X_t W_t'. In coordinates Q of the embeddings of prediction, X = Q B, that is
    V_{t+1} - V_t = m (V_t - V_{t-1}) - rate (A Q_t' G_t + decay V_t),   V_t = B W_t' by least squares from Z_t = Q_t V_t
with one unknown matrix A = B B': a least squares problem in A, m and decay. Then x_i.x_j = q_i' A q_j is known for all rows: the
hidden columns are known up to a rotation, and each is a functional b with b' A^-1 b = 1, orthogonal to the others.
A is known up to the learning rate, which may change between rounds. What fits badly (another optimiser, noise, a bottom of more
layers) is not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.crypto.masking import opened_sum
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.embeddings.split_network import BITS
from plumbob.threats import View

FIRST = (12, 30, 60, 6, 3)  # rounds that a fit starts from: as long as the learning rate stays the same
PASSES = 6
SLOWEST = 1e-4  # learning rate of a step, as a share of the first one's, below which it says nothing
LIKE_THE_MEDIAN = 3.0  # times the median misfit at most
EXPLAINED = 1e-5  # share of the steps that may stay unexplained
ROUNDS = 400  # rounds at most
SEEN = 1e-3  # smallest singular value of a batch in units of the whole


@dataclass(frozen=True)
class Round:
    """One round: its rows, their embeddings and the gradients of the loss at them."""

    number: int
    rows: IntArray
    cells: FloatArray
    gradients: FloatArray


@dataclass(frozen=True)
class Products:
    """A of the header up to a factor, and how well it explains the steps of training."""

    matrix: FloatArray
    misfit: float
    rounds: int
    error: FloatArray  # half the difference of what two halves of the rounds say


def rounds(view: View, sender: str) -> list[Round]:
    """Rounds of which everything was kept, of one sender or of the sum where masked outputs were opened ('')."""
    rows: dict[int, IntArray] = {}
    cells: dict[int, FloatArray] = {}
    gradients: dict[int, FloatArray] = {}
    masked: dict[int, dict[str, FloatArray]] = {}
    for message in view.messages:
        if message.phase != "train" or message.whole:
            continue
        if message.name == "rows":
            rows[message.round] = np.asarray(message.payload).ravel().astype(np.int64)
        elif message.name == "outputs" and message.sender == sender:
            cells[message.round] = message.payload
        elif message.name == "masked outputs" and not sender:
            masked.setdefault(message.round, {})[message.sender] = message.payload
        elif message.name == "output gradients" and (not sender or message.receiver == sender):
            gradients[message.round] = np.asarray(message.payload, dtype=np.float64)
    senders = {name for parts in masked.values() for name in parts}
    cells |= {r: opened_sum(list(parts.values()), BITS) for r, parts in masked.items() if len(parts) == len(senders)}
    found = [
        Round(r, rows[r], np.asarray(cells[r], dtype=np.float64), gradients[r])
        for r in sorted(set(rows) & set(cells) & set(gradients))[:ROUNDS]
    ]
    return [one for one in found if _fits(one, len(view.own))]


def _fits(one: Round, count: int) -> bool:
    return (
        one.cells.ndim == 2
        and one.cells.shape == one.gradients.shape
        and len(one.rows) == len(one.cells) > 0
        and 0 <= one.rows.min() <= one.rows.max() < count
        and bool(np.isfinite(one.cells).all() and np.isfinite(one.gradients).all())
    )


def products(some: list[Round], q: FloatArray) -> Products | None:
    """From the rounds of one sender; q are its rows in coordinates of mean square 1. None where training is no such thing."""
    steps = _steps(some, q)
    width = 0 if not steps else steps[0].size
    if len(steps) * width < 4 * (q.shape[1] + 2) or len(steps) < 2:
        return None
    best: Products | None = None
    for first in FIRST:
        found = _fitted(steps, first)
        if found is not None and (best is None or found.misfit < best.misfit):
            best = found
    if best is None or not best.misfit < EXPLAINED or np.linalg.eigvalsh(best.matrix)[0] <= 0:
        return None
    return best


@dataclass(frozen=True)
class _Step:
    """V_{t+1} - V_t, and what it is made of: Q_t' G_t, V_t - V_{t-1} and V_t."""

    step: FloatArray
    slope: FloatArray
    before: FloatArray
    weights: FloatArray

    @property
    def size(self) -> int:
        return int(self.step.shape[1])


def _steps(some: list[Round], q: FloatArray) -> list[_Step]:
    weights: dict[int, FloatArray] = {}
    slopes: dict[int, FloatArray] = {}
    for one in some:
        here = q[one.rows]
        slopes[one.number] = here.T @ one.gradients
        sizes = np.linalg.svd(here, compute_uv=False)
        if len(sizes) == q.shape[1] and sizes[-1] > SEEN * np.sqrt(len(here)):
            weights[one.number] = np.asarray(np.linalg.lstsq(here, one.cells, rcond=None)[0])
    return [
        _Step(
            weights[t + 1] - weights[t],
            slopes[t],
            weights[t] - weights[t - 1] if t else np.zeros_like(weights[t]),
            weights[t],
        )
        for t in sorted(weights)
        if t + 1 in weights and (t == 0 or t - 1 in weights)
    ]


def _fitted(steps: list[_Step], first: int) -> Products | None:
    """Fitted to the first steps, then to all that it explains with a learning rate, momentum and decay of their own."""
    matrix = _solved(steps[:first])
    for _ in range(PASSES):
        fits = [_scalars(step, matrix) for step in steps]
        misfits = np.array([misfit for *_, misfit in fits])
        rates = np.array([rate for (rate, *_), _ in fits])
        most = max(LIKE_THE_MEDIAN * float(np.median(misfits[:first])), 1e-12)
        used = np.flatnonzero((misfits <= most) & (rates > SLOWEST * rates[0]))
        if len(used) < 2 or not np.isfinite(matrix).all():
            return None
        left = np.hstack(
            [(steps[i].step - fits[i][0][1] * steps[i].before - fits[i][0][2] * steps[i].weights) for i in used]
        )
        slopes = np.hstack([fits[i][0][0] * steps[i].slope for i in used])
        matrix = -np.linalg.lstsq(slopes @ slopes.T, slopes @ left.T, rcond=1e-14)[0].T
    # Of the two estimates of each product the better one counts more.
    noise = np.sum((left + matrix @ slopes) ** 2, axis=1) + 1e-300
    weight = 1 / np.outer(noise, np.diag(np.linalg.pinv(slopes @ slopes.T)))
    matrix = (weight * matrix + (weight * matrix).T) / (weight + weight.T)
    width = steps[0].size
    half = np.arange(slopes.shape[1]) // width % 2 == 0
    first_half, second_half = (
        -np.linalg.lstsq(slopes[:, own] @ slopes[:, own].T, slopes[:, own] @ left[:, own].T, rcond=1e-14)[0]
        for own in (half, ~half)
    )
    error = (first_half + first_half.T - second_half - second_half.T) / 4
    return Products(matrix, float(np.median(misfits[used])), len(used), np.asarray(error))


def _scalars(step: _Step, matrix: FloatArray) -> tuple[FloatArray, float]:
    """Learning rate, momentum and decay of one step, and the share of it that they do not explain."""
    parts = np.stack([-(matrix @ step.slope), step.before, step.weights], axis=-1).reshape(-1, 3)
    scale = np.linalg.norm(parts, axis=0) + 1e-300
    goal = step.step.ravel()
    found = np.linalg.lstsq(parts / scale, goal, rcond=None)[0] / scale
    left = goal - parts @ found
    return found, float(left @ left / max(1e-300, goal @ goal))


def _solved(steps: list[_Step]) -> FloatArray:
    """The matrix by least squares over steps of one learning rate: a row of it, momentum and decay for each coordinate."""
    slope, before, weights, step = (
        np.hstack([getattr(one, name) for one in steps]) for name in ("slope", "before", "weights", "step")
    )
    rank = len(slope)
    matrix = np.zeros((rank, rank))
    inside = slope @ slope.T
    for a in range(rank):
        more = np.vstack([before[a], weights[a]])
        across = slope @ more.T
        normal = np.block([[inside, across], [across.T, more @ more.T]])
        right = np.concatenate([slope @ step[a], more @ step[a]])
        scale = np.sqrt(np.diag(normal)) + 1e-300
        solved = np.linalg.lstsq(normal / np.outer(scale, scale), right / scale, rcond=1e-14)[0] / scale
        matrix[a] = -solved[:rank]
    return matrix
