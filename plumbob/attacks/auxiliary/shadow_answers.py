"""Shadow answers (ours): black box and without a coordinator, a stand-in for each party's model is fitted to its answers.

The curious party holds complete rows of other people, asks about them as about any row, and gets each party's answer:
    phi'_p = argmin sum_aux |z_p - f(x_p; phi')|^2,   then z_p = f(x_p; phi'_p) is solved for every row
Shadow inversion (jiang2022, Section 4.3.2) fits scores, which hold the sum of all parties. An answer is c exact numbers of
one party's columns, so a linear part is known exactly from as many rows as it has columns, and a network by Gauss-Newton on its
weights (Levenberg-Marquardt, several starts) from about as many numbers as it has weights. What is solved then, and how, is
that of answer solving; where the stand-in misses the answers, its equations are met only as closely as it meets them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from plumbob.attacks.auxiliary.shadow_inversion import own_parts
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.scores.answer_solving import (
    UNSEEN,
    AnsweringParty,
    answers_hidden,
    answers_received,
    said,
    solved,
)
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.protocols.base import Protocol
from plumbob.protocols.scores.split_models import ACTIVATIONS, SLOPES, LocalModel
from plumbob.setting_types import Count, Whole
from plumbob.threats import AuxiliaryRows, Threat, View
from plumbob.views import AUXILIARY_ANSWERS, COLUMNS_OF

FITTED = 1e-8  # root mean square miss, of the answers' spread, at which a stand-in is the model
MOST_FITTED_WEIGHTS = 1_500  # of a stand-in: each round solves a system of that size
GAINS = {"sigmoid": 4.0, "tanh": 5 / 3, "relu": 2.0**0.5}


class ShadowAnswers(Attack):
    """`structure`: widths of the stand-in's hidden layers, () linear, None like the curious party's own part."""

    name = "shadow_answers"
    summary = "ours: without a coordinator, fits a stand-in to each party's answers about auxiliary rows, and solves it"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("split_models",)
    requires = (AuxiliaryRows,)
    cost_terms = ("1", "n u^2", "n w", "n u w")
    presets = {"small": {"starts": 4, "fits": 1, "rounds": 20}}

    def __init__(
        self, *, structure: tuple[Whole, ...] | None = None, fits: Whole = 12, rounds: Count = 1_000, starts: Whole = 24
    ) -> None:
        if fits < 1 or starts < 1 or rounds < 0:
            raise BadInput(f"shadow answers: expected at least 1 fit and 1 start, got {min(fits, starts)}")
        self.structure = structure
        self.fits = fits  # starts of the stand-in's weights, until one meets all answers
        self.rounds = rounds  # of Levenberg-Marquardt on the weights
        self.starts = starts  # of each row

    def why_not_here(self, protocol: Protocol, threat: Threat) -> str | None:
        return answers_hidden(protocol, threat)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if view.auxiliary is None:
            raise BadInput("shadow answers needs auxiliary rows")
        sent = answers_received(view)
        named = [name for name in sent if f"{AUXILIARY_ANSWERS}{name}" in view.notes]
        if not named:
            return nothing(view, UNSEEN)
        own = own_parts(view)[0]
        widths = tuple(weights.shape[1] for weights in own.weights[:-1]) if self.structure is None else self.structure
        parties, misses = [], []
        for name in named:
            told, places = view.notes[f"{AUXILIARY_ANSWERS}{name}"], view.notes[f"{COLUMNS_OF}{name}"]
            known = view.auxiliary[: len(told), view.unknown[places]]
            model, miss = self._stand_in(known, np.asarray(told, dtype=np.float64), widths, own.activation, rng)
            parties.append(AnsweringParty(name, places, model, sent[name], miss=miss))
            misses.append(miss)
        found = solved(view, parties, self.starts, rng)
        close = f"stand-ins miss the answers by {max(misses):.1g} of their spread"
        return Guess(view.unknown_names, found.values, certificate="; ".join(filter(None, (close, said(found.counts)))))

    def _stand_in(
        self, known: FloatArray, told: FloatArray, widths: tuple[int, ...], activation: str, rng: np.random.Generator
    ) -> tuple[LocalModel, float]:
        """The best of several fits, and its root mean square miss in units of the spread of the answers."""
        sizes = (known.shape[1], *widths, told.shape[1])
        best: tuple[LocalModel, float] | None = None
        for _ in range(1 if not widths else self.fits):
            model = first_weights(sizes, activation, rng)
            rounds = self.rounds if weights_of(model).size <= MOST_FITTED_WEIGHTS else 0
            fitted, miss = linear_fit(known, told, activation) if not widths else fit(model, known, told, rounds)
            best = (fitted, miss) if best is None or miss < best[1] else best
            if miss < FITTED:
                break
        assert best is not None
        return best


def linear_fit(known: FloatArray, told: FloatArray, activation: str) -> tuple[LocalModel, float]:
    """Least squares; no party's linear part has a bias."""
    weights = np.linalg.lstsq(known, told, rcond=None)[0].astype(np.float64)
    model = LocalModel(np.arange(known.shape[1]), (weights,), (np.zeros(told.shape[1]),), activation)
    return model, _miss(told - model.outputs(known), told)


def first_weights(sizes: tuple[int, ...], activation: str, rng: np.random.Generator) -> LocalModel:
    """Glorot's, with the activation's gain; biases that put the middle of the box in the middle of the activation."""
    weights, biases = [], []
    for place, (before, after) in enumerate(pairwise(sizes)):
        gain = GAINS[activation] if place < len(sizes) - 2 else 1.0
        made = (rng.random((before, after)) * 2 - 1) * np.sqrt(6 / (before + after)) * gain
        weights.append(made)
        biases.append(-0.5 * made.sum(axis=0) if place == 0 else np.zeros(after))
    return LocalModel(np.arange(sizes[0]), tuple(weights), tuple(biases), activation)


def fit(model: LocalModel, known: FloatArray, told: FloatArray, rounds: int) -> tuple[LocalModel, float]:
    """Levenberg-Marquardt on all weights and biases."""
    spread = np.maximum(told.std(axis=0), 1e-12 + 1e-3 * float(told.std(axis=0).max(initial=0.0)))
    damping, misses = 1e-2, (told - model.outputs(known)) / spread
    for _ in range(rounds):
        slopes = (slopes_of_weights(model, known) / spread[:, None]).reshape(misses.size, -1)
        gram, pull = slopes.T @ slopes, slopes.T @ misses.ravel()
        gram[np.diag_indices_from(gram)] += damping * gram.diagonal().max() + 1e-300
        moved = with_weights(model, weights_of(model) + np.linalg.solve(gram, pull))
        missed = (told - moved.outputs(known)) / spread
        better = float((missed**2).sum()) < float((misses**2).sum())
        if better:
            model, misses = moved, missed
        damping = max(damping / 10, 1e-15) if better else damping * 4
        if np.sqrt((misses**2).mean()) < FITTED / 10 or damping > 1e6:
            break
    return model, _miss(misses * spread, told)


def slopes_of_weights(model: LocalModel, known: FloatArray) -> FloatArray:
    """dz/dphi, rows x classes x weights, in the order of `weights_of`."""
    inputs, hidden, bends = [known], known @ model.weights[0] + model.biases[0], []
    for weights, bias in zip(model.weights[1:], model.biases[1:], strict=True):
        bends.append(SLOPES[model.activation](hidden))
        inputs.append(ACTIVATIONS[model.activation](hidden))
        hidden = inputs[-1] @ weights + bias
    classes = hidden.shape[1]
    back = np.broadcast_to(np.eye(classes), (len(known), classes, classes))  # dz / d(this layer's sums)
    parts: list[FloatArray] = []
    for place in range(len(model.weights) - 1, -1, -1):
        of_weights = np.einsum("ni,nko->nkio", inputs[place], back).reshape(len(known), classes, -1)
        parts = [of_weights, back, *parts]
        if place:
            back = (back @ model.weights[place].T) * bends[place - 1][:, None]
    return np.concatenate(parts, axis=2)


def weights_of(model: LocalModel) -> FloatArray:
    """All weights and biases, layer by layer."""
    layers = zip(model.weights, model.biases, strict=True)
    return np.concatenate([array.ravel() for layer in layers for array in layer])


def with_weights(model: LocalModel, flat: FloatArray) -> LocalModel:
    """The same model with other weights and biases."""
    shapes = [array.shape for layer in zip(model.weights, model.biases, strict=True) for array in layer]
    parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
    arrays = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    return replace(model, weights=tuple(arrays[::2]), biases=tuple(arrays[1::2]))


def _miss(gaps: FloatArray, told: FloatArray) -> float:
    return float(np.sqrt((gaps**2).mean()) / max(float(told.std()), 1e-300))
