"""Gradient inversion (GIA, jiang2022 Section 4.3.1): search for values whose scores match the observed ones.

For each row by itself, from x_target = 0, T rounds of Adam on D(c, softmax(f(x_own, x_target)))      (Algorithm 1)
within the feature space, here [0, 1] (Eq 16), or until D is almost 0
    MSE   D = mean_m (c_m - c'_m)^2                                                                  (Eq 18)
    KLD   D = sum_m c_m ln(c_m / c'_m)           (Eq 19 as printed has the opposite sign, which would be maximised)
Adam works cell by cell, so with the sum of the rows' losses all rows go at once and none feels another.

That takes Adam very long where a score is small. So in the preset `fast`, which knows no box, a few rounds of damped
Gauss-Newton finish: the shortest move to a point whose log-scores fit, kept where D did not grow by it. That is ours.
Scores that a known defence changed: D is their distance from the release (`release_likelihood.py`), and log-scores that are
not known are not followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np

from plumbob.attacks._common.differentiable_models import logits_of
from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Meaning, meaning
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.errors import BadInput, boolean, not_negative
from plumbob.federation import FloatArray
from plumbob.lazy_imports import Tensor, torch
from plumbob.setting_sources import ours, printed
from plumbob.setting_types import Count, NotNegative, Positive
from plumbob.threats import View, WhiteBox

InversionLoss = Literal["mse", "kld"]
Outputs = Callable[[Tensor, Tensor], Tensor]  # what is known of the rows, a guess of the rest -> log scores
ScoreDistance = Callable[[Tensor, Tensor], Tensor]  # log scores, what was seen -> D of every row

ROWS_SEARCHED_TOGETHER = 1024  # rows searched together: few enough to stay in the cache
ROUNDS_BETWEEN_LOOKS = 50  # rounds of Adam between two looks at which rows have arrived
DISTANCE_ROUNDING = 1e-12  # D may grow by so much while the log-scores come closer: below it D is rounding
INVERSION_ADAM_BETAS, INVERSION_ADAM_EPSILON = (0.9, 0.999), 1e-8  # Adam's


FAST = {"steps": 300, "rate": 0.01, "finish": 20, "box": False, "until": 0.0}  # ours
SEARCH_SOURCES = {
    "loss": printed("Eq 18; Eq 19 is the other"),
    "steps": ours("Section 4.3.1 stops where D approaches 0, and names no number"),
    "rate": printed("Section 4.3.1"),
    "finish": printed("Algorithm 1, which has no such rounds"),
    "box": printed("Eq 16, with features in [0, 1] (Section 5.1.1)"),
    "until": ours('Section 4.3.1 says "approaches 0"'),
    "adaptive": printed("Section 6, where defences meet the same attack"),
}


class GradientInversion(Attack):
    """White-box GIA. jiang2022: Comprehensive analysis of privacy leakage in VFL during prediction, PoPETs 2022."""

    name = "gradient_inversion"
    aliases = ("GIA",)
    identity = "GradientInversion(loss, steps, rate, finish, box=False, until=0.0)"
    summary = "GIA: minimises the distance between the observed scores and those of the guess, by Adam from zero"
    paper = "jiang2022"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression", "split_models", "neural_network")
    requires = (WhiteBox,)
    knows = SCORE_RELEASES
    outdone = {"neural_network": "linearised_posterior"}  # plumbob/P2
    cost_terms = ("1", "n d", "n u^2", "n w", "n u w")  # steps of descent, then Newton with u x u systems
    presets = {"fast": FAST, "converged": FAST | {"finish": 100}, "small": FAST | {"steps": 40, "finish": 5}}
    sources = SEARCH_SOURCES

    def __init__(
        self,
        *,
        loss: InversionLoss = "mse",
        steps: Count = 10_000,
        rate: Positive = 0.001,
        finish: Count = 0,
        box: bool = True,
        until: NotNegative = 1e-8,
        adaptive: bool = False,
    ) -> None:
        check_search(loss, steps, rate, finish)
        self.loss: InversionLoss = loss
        self.steps = steps  # T
        self.rate = rate  # lambda
        self.finish = finish  # rounds of Gauss-Newton after Adam
        self.box = boolean("gradient inversion: box", box)  # whether values stay in [0, 1]
        self.until = not_negative("gradient inversion: until", until)  # rows whose D is below it are done
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.model is None:
            raise BadInput("gradient inversion needs the model (white box)")
        joint = logits_of(view.protocol, view.model, torch.float64)
        total = len(view.known) + len(view.unknown)
        place = torch.zeros((len(view.unknown), total), dtype=torch.float64)
        place[np.arange(len(view.unknown)), view.unknown] = 1.0
        known = np.zeros((len(view.own), total))
        known[:, view.known] = view.own
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        values = invert(
            lambda rows, guess: joint(torch.addmm(rows, guess, place)),
            known,
            scores,
            len(view.unknown),
            InversionSearch(self.loss, self.steps, self.rate, self.finish, self.box, self.until),
            told=meaning(view.defence),
        )
        return Guess(view.unknown_names, values)


def check_search(loss: str, steps: int, rate: float, finish: int) -> None:
    """Refuse settings that no search can have."""
    if loss not in get_args(InversionLoss):
        raise BadInput(f"gradient inversion: expected the loss 'mse' or 'kld', got '{loss}'")
    if steps < 0 or finish < 0:
        raise BadInput(f"gradient inversion: expected steps and finish >= 0, got {min(steps, finish)}")
    if not 0 < rate < math.inf:
        raise BadInput(f"gradient inversion: expected a rate above 0, got {rate}")


class InversionSearch(NamedTuple):
    """Loss, steps and rate of Adam, rounds of Gauss-Newton that finish it, whether in [0, 1], and the D that is enough."""

    loss: InversionLoss
    steps: int
    rate: float
    finish: int
    box: bool = False
    until: float = 0.0


def invert(
    outputs: Outputs,
    known: FloatArray,
    scores: FloatArray,
    count: int,
    search: InversionSearch,
    told: Meaning | None = None,
) -> FloatArray:
    """Estimates (rows x count) of what `outputs` was not told; rows whose scores were withheld stay at zero."""
    far = distance(search.loss, told)
    values = np.zeros((len(known), count))
    answered = np.flatnonzero(~np.isnan(scores).any(axis=1))
    for begin in range(0, len(answered), ROWS_SEARCHED_TOGETHER):
        rows = answered[begin : begin + ROWS_SEARCHED_TOGETHER]
        given, seen = torch.tensor(known[rows]), torch.tensor(scores[rows])
        guess = _adam(outputs, given, seen, count, far, search)
        aim, least = (seen, 0.0) if told is None else (told.middle(seen), told.width)
        sharp = torch.nonzero((aim > least).all(dim=1))[:, 0]
        guess[sharp] = _finished(outputs, given[sharp], seen[sharp], aim[sharp], guess[sharp], far, search.finish)
        values[rows] = (guess.clamp_(0.0, 1.0) if search.box else guess).numpy()
    return values


def distance(loss: InversionLoss, told: Meaning | None) -> ScoreDistance:
    """D for scores as they were, or the distance from what a known defence made of them."""
    if told is None:
        return lambda logits, seen: distances(logits, seen, loss)
    return lambda logits, seen: told.search(torch.softmax(logits, dim=1), seen)


def distances(logits: Tensor, seen: Tensor, loss: InversionLoss) -> Tensor:
    """D of every row (Eq 18 and 19)."""
    if loss == "mse":
        return ((torch.softmax(logits, dim=1) - seen) ** 2).mean(dim=1)
    seen = seen.clamp(min=0.0)  # noise can make a score negative, which has no divergence
    return (torch.xlogy(seen, seen) - seen * torch.log_softmax(logits, dim=1)).sum(dim=1)


def _adam(
    outputs: Outputs, given: Tensor, seen: Tensor, count: int, far: ScoreDistance, search: InversionSearch
) -> Tensor:
    """Algorithm 1 for a chunk of rows. Adam is written out: its bookkeeping would cost more than the gradients.

    Rows that have arrived are left out of later rounds; none feels another, so this changes nothing for those that are left.
    """
    found = torch.zeros((len(given), count), dtype=torch.float64)
    guess, left = torch.zeros_like(found, requires_grad=True), torch.arange(len(given))
    first, second = torch.zeros_like(found), torch.zeros_like(found)
    for step in range(1, search.steps + 1):
        gaps = far(outputs(given, guess), seen)
        (slope,) = torch.autograd.grad(gaps.sum(), guess)
        with torch.no_grad():
            first.mul_(INVERSION_ADAM_BETAS[0]).add_(slope, alpha=1 - INVERSION_ADAM_BETAS[0])
            second.mul_(INVERSION_ADAM_BETAS[1]).addcmul_(slope, slope, value=1 - INVERSION_ADAM_BETAS[1])
            scale = (second / (1 - INVERSION_ADAM_BETAS[1] ** step)).sqrt_().add_(INVERSION_ADAM_EPSILON)
            guess.addcdiv_(first, scale, value=-search.rate / (1 - INVERSION_ADAM_BETAS[0] ** step))
            if search.box:
                guess.clamp_(0.0, 1.0)
        if search.until and step % ROUNDS_BETWEEN_LOOKS == 0:
            found[left] = guess.detach()
            on = torch.nonzero(gaps.detach() > search.until)[:, 0]
            if not len(on):
                return found
            if len(on) < len(left):
                left, given, seen, first, second = left[on], given[on], seen[on], first[on], second[on]
                guess = guess.detach()[on].requires_grad_()
    found[left] = guess.detach()
    return found


def _finished(
    outputs: Outputs, given: Tensor, seen: Tensor, aim: Tensor, start: Tensor, far: ScoreDistance, rounds: int
) -> Tensor:
    """Damped Gauss-Newton (Levenberg-Marquardt) on r = Q (ln c - ln c'), row by row but all at once.

    Q has orthonormal rows and takes out the common shift that softmax does not show. Rows must have scores to aim at
    that are above zero.
    """
    if rounds == 0 or not len(start):
        return start
    basis = _contrasts(seen.shape[1])
    target, here = torch.log(aim) @ basis.T, start
    damping = torch.full((len(start),), 1e-3, dtype=torch.float64)
    residual, slopes, before = _linearised(outputs, given, seen, here, target, basis, far)
    after = before
    for _ in range(rounds):
        moved = here + _damped_step(residual, slopes, damping)
        new_residual, new_slopes, new_loss = _linearised(outputs, given, seen, moved, target, basis, far)
        better = new_residual.square().sum(dim=1) <= residual.square().sum(dim=1)
        here = torch.where(better[:, None], moved, here)
        residual = torch.where(better[:, None], new_residual, residual)
        slopes = torch.where(better[:, None, None], new_slopes, slopes)
        after = torch.where(better, new_loss, after)
        damping = torch.where(better, damping / 30, damping * 10).clamp(1e-15, 1e6)
    return torch.where((after <= before + DISTANCE_ROUNDING)[:, None], here, start)


def _contrasts(classes: int) -> Tensor:
    """(classes - 1) orthonormal rows, each summing to zero (Helmert's)."""
    rows = [[1.0] * k + [-float(k)] + [0.0] * (classes - k - 1) for k in range(1, classes)]
    basis = torch.tensor(rows, dtype=torch.float64).reshape(classes - 1, classes)
    return basis / basis.square().sum(dim=1, keepdim=True).sqrt()


def _linearised(
    outputs: Outputs, given: Tensor, seen: Tensor, guess: Tensor, target: Tensor, basis: Tensor, far: ScoreDistance
) -> tuple[Tensor, Tensor, Tensor]:
    """r (rows x classes - 1), its slopes (rows x classes - 1 x columns) with the sign turned, and D."""
    point = guess.detach().requires_grad_()
    logits = outputs(given, point)
    contrasts = logits @ basis.T
    slopes = [
        torch.autograd.grad(contrasts[:, m].sum(), point, retain_graph=True)[0] for m in range(contrasts.shape[1])
    ]
    return (
        target - contrasts.detach(),
        torch.stack(slopes, dim=1),
        far(logits.detach(), seen),
    )


def _damped_step(residual: Tensor, slopes: Tensor, damping: Tensor) -> Tensor:
    """(J'J + mu I)^-1 J' r, through the smaller of the two Gram matrices; mu is relative to the largest slope."""
    wide = slopes.shape[1] <= slopes.shape[2]
    gram = slopes @ slopes.mT if wide else slopes.mT @ slopes
    size = gram.diagonal(dim1=1, dim2=2).amax(dim=1).clamp(min=1e-300)
    gram = gram + (damping * size)[:, None, None] * torch.eye(gram.shape[1], dtype=gram.dtype)
    right = residual[:, :, None] if wide else slopes.mT @ residual[:, :, None]
    solved: Tensor = torch.linalg.solve(gram, right)
    step: Tensor = slopes.mT @ solved if wide else solved
    return step[:, :, 0]
