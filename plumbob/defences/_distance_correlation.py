"""Distance correlation (Székely 2007) of two tables of the same rows, as a number that has a gradient.

    dCor^2 = dCov(x, y) / sqrt(dCov(x, x) dCov(y, y)),   dCov(x, y) = mean of A * B,
    A, B: distances of all pairs of rows, less the mean of their row, less that of their column, plus that of all
It is 0 where the tables are independent, 1 where one is a rotation and a multiple of the other.
"""

from __future__ import annotations

from plumbob.lazy_imports import torch

SMALL = 1e-9


def distance_correlation(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The squared distance correlation; 0 where a table is constant."""
    first, second = _centred(one), _centred(other.to(one.dtype))
    scale = (first.pow(2).mean() * second.pow(2).mean()).clamp_min(SMALL).sqrt()
    found: torch.Tensor = (first * second).mean() / scale
    return found


def _centred(rows: torch.Tensor) -> torch.Tensor:
    squares = (rows[:, None, :] - rows[None, :, :]).pow(2).sum(dim=2)
    apart = (squares + SMALL).sqrt()  # the root of 0 has no gradient
    return apart - apart.mean(dim=0, keepdim=True) - apart.mean(dim=1, keepdim=True) + apart.mean()
