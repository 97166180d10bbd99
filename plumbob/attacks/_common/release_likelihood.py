"""What a release says of the scores behind it, as a distance with a gradient: for attacks that search, train or draw.

A defence that is known to have changed the scores (`view.defence`) leaves some scores v that fit a release r. The misfit
is zero, or least, for those and grows with the squared distance from them:
    rounding     v to the interval [r, r + 10^-b), or half of that to each side of r
    label only   the largest other score over the named one
    codebook     v to the farthest border of the word's cell that it lies beyond
    purifier     purify(v) to r
    noise        v to r; where scores were cut at 0, a cut one says only that it was below
    dp_scores, randomised_response    see `private_releases.py`
A search that stopped where the misfit ends would end at the border of what fits. So its distance adds |v - middle|^2, the
middle being scores in the midst of those that fit: the interval filled up, the word, a noisy score's mean given v >= 0.
A fit to many rows adds it only where the middle is right on average: errors of one sign would add up.
Where several defences changed the scores it is that of the coarsest. Not changed: there is no meaning but the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.attacks._common.private_releases import (
    answers_width,
    laplace_middle,
    laplace_misfit,
    response_middle,
    response_misfit,
)
from plumbob.bundle import Array
from plumbob.known_defences import (
    KnownCodebook,
    KnownDefences,
    KnownDpScores,
    KnownLabelOnly,
    KnownNoise,
    KnownPurifier,
    KnownRandomisedResponse,
    KnownRounding,
)
from plumbob.lazy_imports import Tensor, torch

PURIFIED = 0.005  # how exactly a purified score is matched
UNDOING = 30  # rounds that take the effect of cutting out of averaged answers
SCORE_NEAR_ZERO = 1e-3  # what a score that must have been about 0 is taken for

Misfit = Callable[[Tensor, Tensor], Tensor]  # scores, what was released of them -> squared distance of every row
Middle = Callable[[Tensor], Tensor]  # what was released -> scores in the midst of those that fit


@dataclass(frozen=True)
class Meaning:
    """What is known of the way from scores to their release."""

    misfit: Misfit
    middle: Middle
    width: float  # about how far the real score is from the middle; scores below it have no known logarithm
    hard: bool  # scores fit or do not; else they are the less likely the farther, on the scale of `width`
    fair: bool  # whether the middle is about the mean of what fits

    def search(self, scores: Tensor, released: Tensor) -> Tensor:
        """What the search for one row makes small: the misfit, and among scores that fit the way to their middle."""
        return self.misfit(scores, released) + squared(scores, self.middle(released))

    def training(self, scores: Tensor, released: Tensor) -> Tensor:
        """What a fit to many rows makes small."""
        return self.search(scores, released) if self.fair else self.misfit(scores, released)


def squared(scores: Tensor, others: Tensor) -> Tensor:
    """Squared distance of every row."""
    return ((scores - others) ** 2).sum(dim=1)


SCORE_RELEASES = (
    KnownLabelOnly,
    KnownDpScores,
    KnownRandomisedResponse,
    KnownCodebook,
    KnownPurifier,
    KnownRounding,
    KnownNoise,
)  # whose meaning is known here


def meaning(defence: KnownDefences) -> Meaning | None:
    """What a known defence says of scores; None if it left them as they were."""
    response, private = defence.get(KnownRandomisedResponse), defence.get(KnownDpScores)
    if response is not None:
        told = response.epsilon, response.repeats
        return Meaning(response_misfit(*told), response_middle(*told), 1.0, hard=False, fair=False)
    if private is not None:
        return _private(private)
    if KnownLabelOnly in defence:
        return Meaning(_beyond_class, _half_named, math.inf, hard=True, fair=False)
    codebook, purifier = defence.get(KnownCodebook), defence.get(KnownPurifier)
    rounding, noise = defence.get(KnownRounding), defence.get(KnownNoise)
    if codebook is not None and codebook.words is not None:
        words = torch.tensor(np.asarray(codebook.words, dtype=np.float64))
        return Meaning(_codebook(words), lambda r: words.to(r)[_nearest(r, words)], 0.0, hard=True, fair=True)
    if rounding is not None:
        step, sigma = 10.0**-rounding.digits, 0.0 if noise is None else noise_width(noise)
        if rounding.nearest:
            return Meaning(_interval(step, step / 2), _around(step), step / 2 + sigma, hard=sigma == 0.0, fair=True)
        return Meaning(_interval(step), _filled_up, step + sigma, hard=sigma == 0.0, fair=True)
    if purifier is not None and purifier.layers is not None:
        return Meaning(_purified(purifier.layers), _above_zero, PURIFIED, hard=False, fair=False)
    return None if noise is None else _noise(noise)


def noise_width(noise: KnownNoise) -> float:
    """The scale of the noise that is left after averaging all answers about a row."""
    return noise.sigma / math.sqrt(noise.repeats)


def _over(scores: Tensor, named: Tensor) -> Tensor:
    """How far the largest other score exceeds that of the named class; below 0 where it does not."""
    place = named[:, None]
    others = scores.scatter(1, place, -torch.inf)
    return others.amax(dim=1) - scores.gather(1, place)[:, 0]


def _beyond_class(scores: Tensor, released: Tensor) -> Tensor:
    return torch.relu(_over(scores, released.argmax(dim=1))) ** 2


def _half_named(released: Tensor) -> Tensor:
    even = torch.full_like(released, 0.5 / released.shape[1])
    return even.scatter_add(1, released.argmax(dim=1)[:, None], torch.full_like(released[:, :1], 0.5))


def _nearest(released: Tensor, words: Tensor) -> Tensor:
    return torch.cdist(released, words.to(released)).argmin(dim=1)


def _codebook(words: Tensor) -> Misfit:
    """Borders to other words of the class lie halfway; the one to another class where its score becomes the largest."""
    label, apart = words.argmax(dim=1), torch.cdist(words, words)
    rival = (label[:, None] == label) & (apart > 0)

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        mine, known = _nearest(released, words), words.to(scores)
        close = scores @ known.T - known.square().sum(dim=1) / 2
        over = (close - close.gather(1, mine[:, None])) / apart.to(scores)[mine].clamp(min=1e-12)
        worst = torch.where(rival[mine], over, -torch.inf).amax(dim=1)
        class_border = _over(scores, label[mine]) / math.sqrt(2)
        return torch.relu(torch.maximum(worst, class_border)) ** 2

    return misfit


def _interval(step: float, shift: float = 0.0) -> Misfit:
    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        least = released - shift
        below, above = torch.relu(least - scores), torch.relu(scores - least - step)
        return (below**2 + above**2).sum(dim=1)

    return misfit


def _around(step: float) -> Middle:
    """Scores rounded to the nearest: each as far along its interval as all of them, so that they add up to 1.

    >>> _around(0.1)(torch.tensor([[0.5, 0.4, 0.0]], dtype=torch.float64)).round(decimals=6).tolist()
    [[0.53, 0.43, 0.04]]
    """

    def middle(released: Tensor) -> Tensor:
        low, high = (released - step / 2).clamp(min=0.0), released + step / 2
        width = (high - low).sum(dim=1, keepdim=True)
        share = ((1.0 - low.sum(dim=1, keepdim=True)) / width).clamp(1e-3, 1.0)
        return low + share * (high - low)

    return middle


def _filled_up(released: Tensor) -> Tensor:
    """The rounded parts add up to 1 - sum(r); dealt out evenly, each is below one step."""
    rest = (1.0 - released.sum(dim=1, keepdim=True)).clamp(min=0.0)
    return released + rest / released.shape[1]


def _purified(layers: Sequence[Array]) -> Misfit:
    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        encode, encode_bias, decode, decode_bias = (torch.tensor(np.asarray(layer)).to(scores) for layer in layers)
        out = torch.relu(torch.relu(scores @ encode + encode_bias) @ decode + decode_bias)
        total = out.sum(dim=1, keepdim=True)
        made = torch.where(total > 0, out / total.clamp(min=1e-12), 1.0 / out.shape[1])
        return squared(made, released)

    return misfit


def _noise(noise: KnownNoise) -> Meaning:
    sigma, left = noise.sigma, noise_width(noise)
    if not noise.clip:
        return Meaning(squared, lambda r: _denoised(r, left), left, hard=False, fair=False)
    if left == sigma:
        return Meaning(_cut_once(sigma), lambda r: _denoised(r, sigma), sigma, hard=False, fair=False)
    return Meaning(_cut_often(sigma), lambda r: _uncut(r, sigma), left, hard=False, fair=False)


def _cut_once(sigma: float) -> Misfit:
    """A score cut to 0 was below with probability Phi(-v / sigma); the scale that was divided out is the best fitting."""

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        size = released.square().sum(dim=1, keepdim=True).clamp(min=1e-12)
        scale = (released * scores).sum(dim=1, keepdim=True) / size
        cut = -2.0 * sigma**2 * torch.special.log_ndtr(-scores / sigma)
        return torch.where(released <= 0.0, cut, (released * scale - scores) ** 2).sum(dim=1)

    return misfit


def _cut_often(sigma: float) -> Misfit:
    """Cutting moves the mean of many answers, in a known way."""
    return lambda scores, released: squared(_mean_answer(scores, sigma), released)


def _mean_answer(scores: Tensor, sigma: float) -> Tensor:
    """About the mean of many answers cut at 0: that of max(v + noise, 0) is v Phi(v / sigma) + sigma phi(v / sigma)."""
    share = scores / sigma
    bell = torch.exp(-0.5 * share**2) / math.sqrt(2.0 * math.pi)
    mean: Tensor = scores * torch.special.ndtr(share) + sigma * bell
    return mean / mean.sum(dim=1, keepdim=True)


def _uncut(released: Tensor, sigma: float) -> Tensor:
    """Scores whose mean answer is the released one, by adding what is missing again and again."""
    scores = released
    for _ in range(UNDOING):
        scores = (scores + released - _mean_answer(scores, sigma)).clamp(min=SCORE_NEAR_ZERO)
        scores = scores / scores.sum(dim=1, keepdim=True)
    return scores


def _denoised(released: Tensor, sigma: float) -> Tensor:
    """The mean of r + noise given that it is not negative: r + sigma phi(r / sigma) / Phi(r / sigma)."""
    share = released / sigma
    bell = torch.exp(-0.5 * share**2 - torch.special.log_ndtr(share)) / math.sqrt(2.0 * math.pi)
    mean = (released + sigma * bell).clamp(min=1e-12)
    return mean / mean.sum(dim=1, keepdim=True)


def _private(private: KnownDpScores) -> Meaning:
    """One answer has Laplace noise, and the mean of many is about normal."""
    width = answers_width(private.epsilon, private.repeats)
    if private.repeats > 1:
        return Meaning(squared, lambda r: _denoised(r, width), width, hard=False, fair=False)
    scale = 2.0 / private.epsilon
    return Meaning(laplace_misfit(scale), laplace_middle(scale), scale, hard=False, fair=False)


def _above_zero(released: Tensor) -> Tensor:
    above = released.clamp(min=SCORE_NEAR_ZERO)
    return above / above.sum(dim=1, keepdim=True)
