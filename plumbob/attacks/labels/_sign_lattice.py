"""Signs from a few sums of them: the shortest vectors of a lattice, by LLL (a knapsack with several sums).

    C y = q,  y = -1 or 1:   with bits b, y = 1 - 2 b, the lattice of   (2 e_i, 2 K c_i)   and   (1 ... 1, K (C 1 - q))
holds (y, K (C y - q)), which is short where K is one over the noise of q. Of all signs that reduction finds, those with the least
left over are taken if they are far more likely than that any others come as near: by their chances as own columns tell them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, log2, pi

import numpy as np

from plumbob.federation import FloatArray
from plumbob.lazy_imports import flint
from plumbob.protocols.shared.taylor_regression import BigIntegers

MOST_ROWS = 128  # of a batch; LLL takes their fourth power
NOISES = (0.01, 0.03, 0.003, 0.1)
GRAIN = 16  # steps of the lattice's coordinates
LEAST_CHANCE = 0.02  # of either sign of a row


@dataclass(frozen=True)
class Signs:
    """`odds`: log2 of how many other signs are expected to come as near, weighed by their chances."""

    signs: FloatArray
    left: float
    odds: float


def exact_signs(columns: BigIntegers, sums: BigIntegers, chance: FloatArray, rng: np.random.Generator) -> Signs | None:
    """y with X' y = sums in whole numbers. `columns`: rows x columns, `chance` of a 1 by row."""
    units = [int(np.gcd.reduce(column)) if np.any(column) else 1 for column in columns.T]
    scaled = np.array([[int(x) // u for x, u in zip(row, units, strict=True)] for row in columns], dtype=object)
    wanted = [int(s) // u for s, u in zip(sums, units, strict=True)]
    if any(int(s) % u for s, u in zip(sums, units, strict=True)):
        return None
    weight = 1 << 12
    for _ in range(2):
        for signs in _reduced(scaled * weight, [s * weight for s in wanted], rng):
            if all(int(s) == w for s, w in zip(signs.astype(np.int64).astype(object) @ scaled, wanted, strict=True)):
                return Signs(signs, 0.0, _exact_odds(signs, scaled, chance))
    return None


def likely_signs(sums_by: FloatArray, sums: FloatArray, chance: FloatArray, rng: np.random.Generator) -> Signs | None:
    """y with C y near q; C (directions x rows) has orthonormal rows."""
    best: Signs | None = None
    for noise in NOISES:
        scale = GRAIN / noise
        columns = np.rint(sums_by.T * scale).astype(np.int64).astype(object)
        for signs in _reduced(columns, [round(float(q) * scale) for q in sums], rng, unit=GRAIN):
            left = float(np.sqrt(np.mean((sums_by @ signs - sums) ** 2)))
            if best is None or left < best.left:
                best = Signs(signs, left, _odds(signs, sums_by, left, chance))
        if best is not None and best.odds < -16:
            break
    return best


def _reduced(columns: BigIntegers, wanted: list[int], rng: np.random.Generator, unit: int = 1) -> list[FloatArray]:
    """Signs among the vectors of a reduced basis; `columns` are rows x sums."""
    rows, sums = columns.shape
    order = rng.permutation(rows)
    basis = np.zeros((rows + 1, rows + 1 + sums), dtype=object)
    for place, row in enumerate(order):
        basis[place, place] = 2 * unit
        basis[place, rows + 1 :] = 2 * columns[row]
    basis[rows, : rows + 1] = unit
    basis[rows, rows + 1 :] = columns.sum(axis=0) - np.array(wanted, dtype=object)
    short = flint.fmpz_mat([[int(x) for x in row] for row in basis]).lll().tolist()
    found = []
    for vector in short:
        ends = int(vector[rows])
        if abs(ends) == unit:
            signs = np.empty(rows)
            signs[order] = [1.0 if int(x) * ends > 0 else -1.0 for x in vector[:rows]]
            found.append(signs)
    return found


def _surprise(signs: FloatArray, chance: FloatArray) -> float:
    """-log2 of the chance of these signs."""
    likely = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    return float(-np.log2(np.where(signs > 0, likely, 1 - likely)).sum())


def _odds(signs: FloatArray, sums_by: FloatArray, left: float, chance: FloatArray) -> float:
    """The volume of the ball of what is left over, times the density there of sums of signs, over the chance of these."""
    count = len(sums_by)
    likely = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    spread = np.linalg.slogdet((sums_by * (4 * likely * (1 - likely))) @ sums_by.T)[1]
    radius = max(left, 1e-12) * np.sqrt(count)
    volume = count * log(radius) + count / 2 * log(pi) - lgamma(count / 2 + 1)
    return float(_surprise(signs, chance) + (volume - count / 2 * log(2 * pi) - spread / 2) / log(2))


def _exact_odds(signs: FloatArray, columns: BigIntegers, chance: FloatArray) -> float:
    """The same where sums are whole: the cell of the lattice that the rows generate stands for the ball."""
    generated = flint.fmpz_mat([[int(x) for x in row] for row in columns]).hnf()
    rank = generated.rank()
    pivots = [next(int(x) for x in row if int(x)) for row in generated.tolist()[:rank]]
    likely = np.clip(chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    values = columns.astype(np.float64)
    largest = np.maximum(np.abs(values).max(axis=0), 1.0)
    scaled = values / largest
    spread = np.linalg.svd(scaled * np.sqrt(4 * likely * (1 - likely))[:, None], compute_uv=False)[:rank]
    if rank < columns.shape[1]:  # the cell and the spread are not in the same coordinates
        return _surprise(signs, chance) - rank
    cell = sum(log2(abs(p)) + 1 for p in pivots)
    density = -rank / 2 * log2(2 * pi) - float(np.log2(np.maximum(spread, 1e-12)).sum()) - float(np.log2(largest).sum())
    return float(_surprise(signs, chance) + cell + density)
