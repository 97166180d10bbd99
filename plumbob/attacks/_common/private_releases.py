"""What releases with local differential privacy say of scores: misfits that are -2 log likelihoods, and middles.

    Laplace noise of scale b        sum |r - v| / b               of the mean of k answers: about normal, variance 2 b^2 / k
    randomised response             -sum_j n_j log P(j | class)   n_j of k answers named class j; P is p for v's class, else q
The class of v is taken as a steep softmax, so that a search has a slope at the border between classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from plumbob.lazy_imports import Tensor, torch

STEEP = 0.05  # how far a score must lead to count as the class
FLATTEST = 1e-12

PrivateMisfit = Callable[[Tensor, Tensor], Tensor]
PrivateMiddle = Callable[[Tensor], Tensor]


def laplace_misfit(scale: float) -> PrivateMisfit:
    """2 b sum |r - v|: in units of b^2 it is twice the negative log likelihood."""
    return lambda scores, released: 2.0 * scale * (released - scores).abs().sum(dim=1)


def laplace_middle(scale: float) -> PrivateMiddle:
    """The mean of a score in 0..1 given its noisy release, all values being alike before; made to add up to 1."""

    def partial(length: Tensor) -> tuple[Tensor, Tensor]:
        """Integrals of e^(-t / b) and t e^(-t / b) from 0 to a length."""
        fall = torch.exp(-length / scale)
        mass = -scale * torch.expm1(-length / scale)
        return mass, scale * mass - scale * length * fall

    def middle(released: Tensor) -> Tensor:
        inside = released.clamp(0.0, 1.0)
        below, above = partial(inside), partial(1.0 - inside)
        # Outside of 0..1 only the shape within it counts, which is that of a release at the border.
        mean = inside + (above[1] - below[1]) / (above[0] + below[0]).clamp(min=FLATTEST)
        mean = mean.clamp(min=FLATTEST)
        return mean / mean.sum(dim=1, keepdim=True)

    return middle


def response_misfit(epsilon: float, repeats: int) -> PrivateMisfit:
    """2 k epsilon (max_j r_j - r_class): 0 for the class that was named most often."""

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        named = (torch.softmax(scores / STEEP, dim=1) * released).sum(dim=1)
        return 2.0 * repeats * epsilon * (released.amax(dim=1) - named)

    return misfit


def response_middle(epsilon: float, repeats: int) -> PrivateMiddle:
    """Each class as likely as the answers make it; of a class, half of the score on it and the rest even."""

    def middle(released: Tensor) -> Tensor:
        likely = torch.softmax(repeats * epsilon * released, dim=1)
        return 0.5 * likely + 0.5 / released.shape[1]

    return middle


def answers_width(epsilon: float, repeats: int) -> float:
    """The standard deviation of the mean of many answers with Laplace noise."""
    return 2.0 * math.sqrt(2.0 / repeats) / epsilon
