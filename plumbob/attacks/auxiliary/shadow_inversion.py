"""Shadow inversion (jiang2022 Section 4.3.2): gradient inversion of a model that was never seen.

The curious party knows its own part phi_own (it was dealt to it), a few complete rows and what the federation answers on
them. It fits a shadow of everything else and inverts that (Algorithm 2, then Algorithm 1):
    phi' = argmin sum_aux D(c, softmax(f(x_own; phi_own) + f(x_target; phi')))
A linear shadow is least squares: softmax's log-ratios less the own part are linear in its weights, exact from d_target rows
on (Eq 21; one more if there is a bias), which the preset `fast` uses. As published, and for networks, it is fitted by Adam;
|phi'| / c rows are a network's threshold (Eq 22).
Answers that a known defence changed: D is their distance from the release (`release_likelihood.py`), in the fit and in the
inversion, and a linear shadow is fitted by Adam too, from where least squares on the middle of what fits ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from plumbob.attacks._common.differentiable_models import SQUASH, layered
from plumbob.attacks._common.release_likelihood import SCORE_RELEASES, Meaning, meaning
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores.gradient_inversion import (
    FAST,
    SEARCH_SOURCES,
    InversionLoss,
    InversionSearch,
    ScoreDistance,
    check_search,
    distance,
    invert,
)
from plumbob.bundle import Array
from plumbob.errors import BadInput, boolean, not_negative
from plumbob.federation import FloatArray
from plumbob.lazy_imports import Tensor, torch
from plumbob.protocols.scores.split_models import LocalModel
from plumbob.protocols.shared.adam import Adam
from plumbob.setting_sources import ours, printed
from plumbob.setting_types import Count, NotNegative, Positive, Whole
from plumbob.threats import AuxiliaryRows, View

SMALLEST_SHADOW_SCORE = np.finfo(np.float64).tiny
SOLVED = FAST | {"solve": True, "fitting": 600, "fitting_rate": 0.03}  # ours
Shadow = Callable[[Tensor], Tensor]


class ShadowInversion(Attack):
    """Black-box GIA. `structure`: widths of the shadow's hidden layers, () linear, None like the party's own part."""

    name = "shadow_inversion"
    identity = (
        "ShadowInversion(structure, activation, solve, fitting, fitting_rate, loss, steps, rate, finish, "
        "box=False, until=0.0)"
    )
    summary = "black-box GIA: fits a shadow model to auxiliary rows and their scores, then inverts it"
    paper = "jiang2022"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression", "split_models")
    requires = (AuxiliaryRows,)
    knows = SCORE_RELEASES
    cost_terms = ("1", "n d", "n u^2", "n w", "n u w")  # a stand-in model, then as gradient inversion
    presets = {"fast": SOLVED, "small": SOLVED | {"fitting": 60, "steps": 40, "finish": 5}}
    sources = SEARCH_SOURCES | {
        "structure": printed(
            "Section 5.3.2: the best shadow has the structure of the real part; here that of the own one"
        ),
        "activation": printed("Section 5.1.1: the same in all parts"),
        "solve": printed("Algorithm 2, which fits by descent"),
        "fitting": ours("Algorithm 2 takes T rounds, and names no number"),
        "fitting_rate": printed("Section 4.3.1, of the same optimiser"),
    }

    def __init__(
        self,
        *,
        structure: tuple[Whole, ...] | None = None,
        activation: str | None = None,
        solve: bool = False,
        fitting: Count = 10_000,
        fitting_rate: Positive = 0.001,
        loss: InversionLoss = "mse",
        steps: Count = 10_000,
        rate: Positive = 0.001,
        finish: Count = 0,
        box: bool = True,
        until: NotNegative = 1e-8,
        adaptive: bool = False,
    ) -> None:
        check_search(loss, steps, rate, finish)
        if structure is not None and any(width < 1 for width in structure):
            raise BadInput(f"shadow inversion: expected widths >= 1, got {structure}")
        if activation is not None and activation not in SQUASH:
            raise BadInput(f"shadow inversion: expected an activation of {', '.join(SQUASH)}, got '{activation}'")
        if fitting < 0 or not 0 < fitting_rate < math.inf:
            raise BadInput(f"shadow inversion: expected fitting >= 0 and a rate above 0, got {fitting}, {fitting_rate}")
        self.structure = structure
        self.activation = activation  # of the shadow's hidden layers; None: like the own part's, else sigmoid
        self.solve = solve  # a linear shadow by least squares; else by Algorithm 2 as printed
        self.fitting = fitting  # rounds of Algorithm 2
        self.fitting_rate = fitting_rate
        self.loss: InversionLoss = loss
        self.steps = steps
        self.rate = rate
        self.finish = finish
        self.box = boolean("shadow inversion: box", box)
        self.until = not_negative("shadow inversion: until", until)
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.auxiliary is None or view.auxiliary_scores is None:
            raise BadInput("shadow inversion needs auxiliary rows and their scores")
        scores = np.asarray(view.received("scores"), dtype=np.float64)
        told = ~np.isnan(view.auxiliary_scores).any(axis=1)
        if not told.any():  # nothing to learn the model from
            return Guess(view.unknown_names, np.zeros((len(view.own), len(view.unknown))))
        own, known = own_parts(view), meaning(view.defence)
        rows, answers = view.auxiliary[told], view.auxiliary_scores[told]
        shadow = self._shadow(view, own, rows[:, view.known], rows[:, view.unknown], answers, known, rng)
        values = invert(
            lambda rest, guess: rest + shadow(guess),
            outputs_of(own, view.own),
            scores,
            len(view.unknown),
            InversionSearch(self.loss, self.steps, self.rate, self.finish, self.box, self.until),
            told=known,
        )
        return Guess(view.unknown_names, values)

    def _shadow(
        self,
        view: View,
        own: list[LocalModel],
        known: FloatArray,
        unknown: FloatArray,
        scores: FloatArray,
        told: Meaning | None,
        rng: np.random.Generator,
    ) -> Shadow:
        widths = tuple(weights.shape[1] for weights in own[0].weights[:-1])
        widths = widths if self.structure is None else self.structure
        offsets = outputs_of(own, known)
        linear = not widths and self.solve
        if linear:
            bias = view.protocol == "logistic_regression"  # added by the coordinator; no local linear model has one
            aim, least = (scores, 0.0) if told is None else (told.middle(torch.tensor(scores)).numpy(), told.width)
            start = [[torch.tensor(array)] for array in linear_shadow(unknown, aim, offsets, bias, least)]
        else:
            start = random_layers((unknown.shape[1], *widths, scores.shape[1]), rng)
        rounds = 0 if linear and told is None else self.fitting
        activation = self.activation or own[0].activation
        far = distance(self.loss, told)
        return fitted_shadow(unknown, scores, offsets, start, activation, far, rounds, self.fitting_rate)


def threshold(unknown: int, classes: int, structure: tuple[int, ...] = ()) -> int:
    """tau: the auxiliary rows that determine a shadow (Eq 21 for a linear one, Eq 22 for a network, biases counted).

    >>> threshold(12, 4), threshold(12, 4, (8, 8))
    (12, 53)
    """
    if not structure:
        return unknown
    sizes = (unknown, *structure, classes)
    return math.ceil(sum((a + 1) * b for a, b in pairwise(sizes)) / classes)


def own_parts(view: View) -> list[LocalModel]:
    """The curious parties' own models, as they were dealt to them, in the order of their columns in `own`."""
    dealt: dict[str, dict[str, Array]] = {}
    for message in view.messages:
        if message.phase == "setup" and message.receiver in view.curious:
            dealt.setdefault(message.receiver, {})[message.name] = message.payload
    if len(dealt) < len(view.curious):
        raise BadInput("shadow inversion needs the curious parties' own parts of the model; this view has none")
    parts = []
    for part in dealt.values():
        if "weights" in part:  # logistic regression: its rows of the weights
            weights = np.asarray(part["weights"])
            part = {"w0": weights, "b0": np.zeros(weights.shape[1]), "activation": np.zeros(1)}
        parts.append(LocalModel.from_arrays(part, np.arange(len(part["w0"]))))
    return parts


def outputs_of(parts: list[LocalModel], own: FloatArray) -> FloatArray:
    """What the curious parties' models add to the linear scores."""
    ends = np.cumsum([len(part.weights[0]) for part in parts])
    blocks = np.split(own, ends[:-1], axis=1)
    return np.asarray(sum(part.outputs(block) for part, block in zip(parts, blocks, strict=True)))


def linear_shadow(
    unknown: FloatArray, scores: FloatArray, offsets: FloatArray, bias: bool, least: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Weights and bias by least squares on centred log-scores; the shortest ones if the rows are too few.

    Softmax hides a shift that is common to all classes, so the weights' mean over classes is set to zero. Rows with a
    score that is not above `least` say nothing exact and are left out, unless all are like that.
    """
    full = (scores > least).all(axis=1)
    full = full if full.any() else ~full
    unknown, scores, offsets = unknown[full], scores[full], offsets[full]
    logs = np.log(np.maximum(scores, SMALLEST_SHADOW_SCORE)) - offsets
    inputs = np.hstack([unknown, np.ones((len(unknown), 1))]) if bias else unknown
    fitted = np.linalg.lstsq(inputs, logs - logs.mean(axis=1, keepdims=True), rcond=None)[0]
    return (fitted[:-1], fitted[-1]) if bias else (fitted, np.zeros(scores.shape[1]))


def random_layers(sizes: tuple[int, ...], rng: np.random.Generator) -> list[list[Tensor]]:
    """Weights and biases to start from (Glorot's)."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    weights = []
    for before, after in pairwise(sizes):
        raw = torch.rand((before, after), generator=generator, dtype=torch.float64) * 2 - 1
        weights.append(raw * math.sqrt(6 / (before + after)))
    return [weights, [torch.zeros(after, dtype=torch.float64) for after in sizes[1:]]]


def fitted_shadow(
    unknown: FloatArray,
    scores: FloatArray,
    offsets: FloatArray,
    start: list[list[Tensor]],
    activation: str,
    far: ScoreDistance,
    rounds: int,
    rate: float,
) -> Shadow:
    """Algorithm 2: Adam on the mean distance over the auxiliary rows."""
    inputs, seen, known = (torch.tensor(array) for array in (unknown, scores, offsets))
    weights, biases = ([tensor.requires_grad_() for tensor in part] for part in start)
    optimiser = Adam([*weights, *biases], lr=rate)
    for _ in range(rounds):
        optimiser.zero_grad()
        outputs = known + layered(inputs, weights, biases, activation)
        far(outputs, seen).mean().backward()  # type: ignore[no-untyped-call]  # torch leaves this untyped
        optimiser.step()
    fixed = [tensor.detach() for tensor in weights], [tensor.detach() for tensor in biases]
    return lambda x: layered(x, *fixed, activation)
