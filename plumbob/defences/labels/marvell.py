"""Marvell (li2022): the Gaussian noise by class that keeps the two classes' gradients nearest, for so much noise.

    sent_i = g_i + e_i,   e_i ~ N(0, S_y),   S_y = (a_y - b_y) D D' / |D|^2 + b_y I,   D = mean gradient of class 1 - of class 0
    a_0, a_1, b_0, b_1 minimise  KL(class 1 || class 0) + KL(class 0 || class 1)
        = (d-1) [(b_0+u)/(b_1+v) + (b_1+v)/(b_0+u)] + (a_0+u+|D|^2)/(a_1+v) + (a_1+v+|D|^2)/(a_0+u), up to constants,
    with  p (a_1 + (d-1) b_1) + (1-p) (a_0 + (d-1) b_0) <= scale |D|^2,   a_y >= b_y >= 0
u and v are the variances of a cell in class 0 and 1, p the share of class 1 in the batch. Of the b, only the one of the narrower
class is worth anything, so two numbers are left to search: it, and the share of the rest that goes to a_1.

That bounds what one message tells. A row is in every epoch and the noise is drawn anew, so what T messages tell is T times that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.defences.labels._label_guards import LabelDefence, normal, two_classes
from plumbob.errors import positive
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours

POINTS, ZOOMS = 33, 5  # of the search: a grid of so many by so many, drawn closer around its best point so many times


class Marvell(LabelDefence):
    """Noise of power `scale` times the squared distance of the classes' mean gradients. For two classes."""

    name = "marvell"
    identity = "Marvell(scale)"
    summary = "the active party adds the Gaussian noise that makes gradients of two classes hardest to tell apart"
    paper = "li2022"
    sources = {
        "scale": ours("the paper compares several powers"),
    }
    most_classes = 2
    sweep_settings = ({"scale": 1.0}, {"scale": 10.0})

    def __init__(self, *, scale: float = 4.0) -> None:
        self.scale = positive("marvell: scale", scale)

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[Marvell]:
        two_classes(self.name, outline)
        return _Shaped(self)


class _Shaped(LabelGuard[Marvell]):
    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        gradients, one = backward.gradients, backward.label == 1
        if one.all() or not one.any():  # a batch of one class has no distance to hide
            return gradients
        apart = gradients[one].mean(dim=0) - gradients[~one].mean(dim=0)
        size = float(apart.double().pow(2).sum())
        if not size > 0:
            return gradients
        cells = gradients.double()
        spread = [float((cells[of] - cells[of].mean(dim=0)).pow(2).mean()) for of in (~one, one)]
        best = least_telling(
            Spread(gradients.shape[1], size, float(one.double().mean()), *spread), self.defence.scale * size
        )
        along, across = (torch.where(one, second**0.5, first**0.5) for first, second in best)
        noise = across[:, None] * normal(gradients, rng)
        drawn = torch.from_numpy(rng.standard_normal(len(gradients)))
        noise = noise + (along * drawn)[:, None] * apart / size**0.5
        noisy: torch.Tensor = gradients + noise.to(gradients.dtype)
        return noisy


@dataclass(frozen=True)
class Spread:
    """Gradients of a batch, as the optimisation needs them."""

    width: int  # d
    apart: float  # |D|^2
    share: float  # p, of class 1
    first: float  # u
    second: float  # v


def least_telling(spread: Spread, power: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """((a_0 - b_0, a_1 - b_1), (b_0, b_1)): the variances along D beyond the others, and those in all directions."""
    p, d = spread.share, spread.width
    narrow = spread.second <= spread.first  # whether class 1 is the narrower one
    weight = (p if narrow else 1 - p) * d  # of raising its variance in all directions by 1
    most = min(abs(spread.first - spread.second), power / weight)
    low, high = np.zeros(2), np.array([most, 1.0])
    point = np.zeros(2)
    for _ in range(ZOOMS):
        raised, split = np.meshgrid(*(np.linspace(a, b, POINTS) for a, b in zip(low, high, strict=True)), indexing="ij")
        found = _told(spread, *_variances(spread, power, raised, split))
        at = np.unravel_index(int(np.argmin(found)), found.shape)
        point = np.array([raised[at], split[at]])
        step = 2 * (high - low) / (POINTS - 1)
        low, high = np.maximum([0.0, 0.0], point - step), np.minimum([most, 1.0], point + step)
    a0, a1, b0, b1 = (float(one) for one in _variances(spread, power, point[0], point[1]))
    return (max(0.0, a0 - b0), max(0.0, a1 - b1)), (b0, b1)


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]] | np.float64


def _variances(
    spread: Spread, power: float, raised: Numbers, split: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """a_0, a_1, b_0 and b_1: the narrower class raised so far in all directions, the rest of the power along D."""
    narrow = spread.second <= spread.first
    b0, b1 = (0.0 * raised, raised) if narrow else (raised, 0.0 * raised)
    left = np.maximum(0.0, power - spread.width * (spread.share * b1 + (1 - spread.share) * b0))
    return b0 + (1 - split) * left / (1 - spread.share), b1 + split * left / spread.share, b0, b1


def _told(spread: Spread, a0: Numbers, a1: Numbers, b0: Numbers, b1: Numbers) -> Numbers:
    """The two divergences together, up to constants."""
    tiny = 1e-12 * spread.apart
    first, second = b0 + spread.first + tiny, b1 + spread.second + tiny
    along0, along1 = a0 + spread.first + tiny, a1 + spread.second + tiny
    return (
        (spread.width - 1) * (first / second + second / first)
        + (along0 + spread.apart) / along1
        + (along1 + spread.apart) / along0
    )
