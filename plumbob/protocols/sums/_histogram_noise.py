"""Laplace noise on the sums of SecureBoost: how much, where in a plaintext, and what it cannot be combined with.

With a budget for the whole training: a row whose values change leaves one bin and enters another, in each column, level and
tree, so that its sums of g change by up to 2 |g| each, and those of h by 2 |h|. Either has half of the budget:
    scale = 4 |g| columns depth trees / budget,        4 |h| columns depth trees / budget
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from plumbob.errors import BadInput, positive
from plumbob.federation import Federation
from plumbob.known_defences import (
    KnownBlinding,
    KnownDefence,
    KnownDpHistograms,
    KnownGraftingLdp,
    KnownIdLmid,
    KnownOpBoost,
    KnownSharedIndicators,
)
from plumbob.protocols.shared.gradient_plaintexts import Layout

if TYPE_CHECKING:
    from plumbob.protocols.sums.secure_boost import SecureBoost

NOISE_REACH = 60  # scales of Laplace noise that a draw goes beyond once in e^60
Scales = tuple[float, float]  # on sums of g and of h; 0 for none


def check_together(epsilon: float | None, budget: float | None, blinding: bool, shared_indicators: bool) -> None:
    """Refuse settings that exclude each other."""
    if epsilon is not None and budget is not None:
        raise BadInput("secure boost: expected epsilon (of one histogram) or budget (of the training), got both")
    if shared_indicators and (blinding or epsilon is not None or budget is not None):
        raise BadInput(
            "secure boost: shared_indicators open the sums to the active party alone, so no passive party can add blinding "
            "or noise to them; use one of them"
        )


GUARDS = ("label_epsilon", "information_bound", "order_epsilon")


def guards_of(shared_indicators: bool, *values: float | None) -> tuple[float | None, ...]:
    """Settings that guard labels or orders, each positive where it is given; they cannot be had on shares."""
    given = [name for name, value in zip(GUARDS, values, strict=True) if value is not None]
    if given and shared_indicators:
        raise BadInput(
            f"secure boost: {given[0]} needs an active party that knows the rows of nodes, and shared_indicators hide them "
            "from it; use one of them"
        )
    pairs = zip(GUARDS, values, strict=True)
    return tuple(None if value is None else positive(f"secure boost: {name}", value) for name, value in pairs)


def known_guards(settings: SecureBoost) -> list[KnownDefence]:
    """The guards in place, as everybody knows them."""
    found: list[KnownDefence] = [KnownBlinding()] if settings.blinding else []
    found += [KnownDpHistograms(settings.epsilon)] if settings.epsilon else []
    found += [KnownDpHistograms(settings.budget, total=True)] if settings.budget else []
    found += [KnownSharedIndicators()] if settings.shared_indicators else []
    found += [KnownGraftingLdp(settings.label_epsilon)] if settings.label_epsilon else []
    found += [KnownIdLmid(settings.information_bound)] if settings.information_bound else []
    return found + ([KnownOpBoost(settings.order_epsilon)] if settings.order_epsilon else [])


def noise_scales(settings: SecureBoost, columns: int, largest: float) -> Scales:
    """Of a party with so many columns; no |g| is above `largest`."""
    if settings.epsilon:
        return largest / settings.epsilon, largest / settings.epsilon / 4
    if not settings.budget:
        return 0.0, 0.0
    cells = columns * settings.depth * settings.trees
    steepest = 0.25 if settings.loss == "logistic" else 1.0
    return 4 * largest * cells / settings.budget, 4 * steepest * cells / settings.budget


def room_for_noise(settings: SecureBoost, federation: Federation, largest: float) -> int:
    """Rows whose sums would be as large as noise within a budget may become."""
    if not settings.budget:
        return 0
    widest = max(len(federation[name].columns) for name in federation.passive)
    return math.ceil(NOISE_REACH * max(noise_scales(settings, widest, largest)))


def laplace(layout: Layout, scales: Scales, count: int, rng: np.random.Generator) -> list[int]:
    """In units of the gradients' precision, where a party that knows of nothing below would draw it."""
    unit = 1 << layout.precision
    first, second = (rng.laplace(scale=scale, size=count) for scale in scales)
    if layout.packed:
        pairs = zip(first, second, strict=True)
        return [((round(g * unit) << layout.slot) + round(h * unit)) << layout.low for g, h in pairs]
    half = count // 2
    return [round(x * unit) << layout.low for x in (*first[:half], *second[half:])]
