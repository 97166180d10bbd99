"""What a release says of the scores behind it, as a distance with a gradient: for attacks that search, train or draw.

A defence that is known to have changed the scores (`view.defence`) leaves some scores v that fit a release r. The misfit
is zero, or least, for those and grows with the squared distance from them:
    rounding     v to the interval [r, r + 10^-b)
    label only   the largest other score over the named one
    codebook     v to the farthest border of the word's cell that it lies beyond
    purifier     purify(v) to r
    noise        v to r; where scores were cut at 0, a cut one says only that it was below
Where several defences changed the scores it is that of the coarsest. Not changed: there is no meaning but the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from plumbob.bundle import Array

SHARP = 100.0  # a score of so many widths has a logarithm known to about 1 %
PURIFIED = 0.005  # how exactly a purified score is matched
LEAST = 1e-3  # what a score that was told as 0 or less is taken for, to start from

Misfit = Callable[[Tensor, Tensor], Tensor]  # scores, what was released of them -> squared distance of every row
Start = Callable[[Tensor], Tensor]  # what was released -> scores that fit it


@dataclass(frozen=True)
class Meaning:
    """What is known of the way from scores to their release."""

    misfit: Misfit
    start: Start
    width: float  # about how far a released score is from the real one; infinite where that cannot be said
    hard: bool  # scores fit or do not; else they are the less likely the farther, on the scale of `width`

    def sharp(self, released: Tensor) -> Tensor:
        """Rows whose log-scores may be taken as they are."""
        return (released > SHARP * self.width).all(dim=1)


def meaning(defence: Mapping[str, Array]) -> Meaning | None:
    """What a known defence says of scores; None if it left them as they were."""
    if "label_only/on" in defence:
        return Meaning(_beyond_class, _half_named, math.inf, True)
    if "codebook/words" in defence:
        words = torch.tensor(np.asarray(defence["codebook/words"], dtype=np.float64))
        return Meaning(_codebook(words), lambda r: words.to(r)[_nearest(r, words)], math.inf, True)
    if "rounding/on" in defence:
        step, sigma = 10.0 ** -int(defence["rounding/digits"]), noise_width(defence)
        return Meaning(_interval(step), _filled_up, step + sigma, sigma == 0.0)
    if "purifier/encode" in defence:
        return Meaning(_purified(defence), _as_scores, PURIFIED, False)
    if "noise/on" in defence:
        return Meaning(_noise(defence), _as_scores, noise_width(defence), False)
    return None


def noise_width(defence: Mapping[str, Array]) -> float:
    """The scale of the noise that is left after averaging all answers about a row; 0 without noise."""
    if "noise/on" not in defence:
        return 0.0
    return float(defence["noise/sigma"]) / math.sqrt(_repeats(defence))


def _repeats(defence: Mapping[str, Array]) -> int:
    return int(defence.get("noise/repeats", np.array(1)))


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


def _interval(step: float) -> Misfit:
    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        below, above = torch.relu(released - scores), torch.relu(scores - released - step)
        return (below**2 + above**2).sum(dim=1)

    return misfit


def _filled_up(released: Tensor) -> Tensor:
    """The rounded parts add up to 1 - sum(r); dealt out evenly, each is below one step."""
    rest = (1.0 - released.sum(dim=1, keepdim=True)).clamp(min=0.0)
    return released + rest / released.shape[1]


def _purified(defence: Mapping[str, Array]) -> Misfit:
    layers = [np.asarray(defence[f"purifier/{n}"]) for n in ("encode", "encode_bias", "decode", "decode_bias")]

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        encode, encode_bias, decode, decode_bias = (torch.tensor(layer).to(scores) for layer in layers)
        out = torch.relu(torch.relu(scores @ encode + encode_bias) @ decode + decode_bias)
        total = out.sum(dim=1, keepdim=True)
        made = torch.where(total > 0, out / total.clamp(min=1e-12), 1.0 / out.shape[1])
        return ((made - released) ** 2).sum(dim=1)

    return misfit


def _noise(defence: Mapping[str, Array]) -> Misfit:
    sigma = float(defence["noise/sigma"])
    if not bool(defence["noise/clip"]):
        return lambda scores, released: ((scores - released) ** 2).sum(dim=1)
    return _cut_once(sigma) if _repeats(defence) == 1 else _cut_often(sigma)


def _cut_once(sigma: float) -> Misfit:
    """A score cut to 0 was below with probability Phi(-v / sigma); the scale that was divided out is the best fitting."""

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        size = released.square().sum(dim=1, keepdim=True).clamp(min=1e-12)
        scale = (released * scores).sum(dim=1, keepdim=True) / size
        cut = -2.0 * sigma**2 * torch.special.log_ndtr(-scores / sigma)
        return torch.where(released <= 0.0, cut, (released * scale - scores) ** 2).sum(dim=1)

    return misfit


def _cut_often(sigma: float) -> Misfit:
    """Cutting moves the mean of many answers: that of max(v + noise, 0) is v Phi(v / sigma) + sigma phi(v / sigma)."""

    def misfit(scores: Tensor, released: Tensor) -> Tensor:
        share = scores / sigma
        bell = torch.exp(-0.5 * share**2) / math.sqrt(2.0 * math.pi)
        mean: Tensor = scores * torch.special.ndtr(share) + sigma * bell
        return ((mean / mean.sum(dim=1, keepdim=True) - released) ** 2).sum(dim=1)

    return misfit


def _as_scores(released: Tensor) -> Tensor:
    above = released.clamp(min=LEAST)
    return above / above.sum(dim=1, keepdim=True)
