"""Label averages (ours): classes by the gradients at the cut, averaged over rounds, for defences whose noise is drawn anew.

    start   x_i = <mean of g_i over rounds, v>,   v: first singular vector of the means; its sign is a row's side
    then    x_i = sum over rounds of <g_ib, d_b> / s_b^2,   d_b: mean of one side's gradients less that of the other in round b,
            without row i, s_b: deviation along d_b of what a side's gradients differ by; until the sides stay

A row is in every epoch, so noise shrinks with the root of the epochs, and what its class adds does not. Lengths count, not so in
`label_directions`: noise hides the direction of one gradient. Gradients of two classes point in opposite ways (p - y), so a side
is a sign. Under noise that is known to be there, the line between the sides is where two normal distributions around medians
meet. Where labels are known, several classes, and two under such noise, are learnt by `_taught_averages` from gradients and
own columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._cut_gradients import SILENT, Batch, batches, labels_only
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.attacks.labels._taught_averages import taught_classes
from plumbob.attacks.labels._two_sides import two_sides
from plumbob.errors import boolean
from plumbob.federation import BoolArray, FloatArray
from plumbob.known_label_defences import KnownMarvell, KnownMaxNormAlignment, KnownOutputGradientNoise
from plumbob.threats import View

ROUNDS = 8  # of self-teaching
TINY = 1e-300
MANY = "it tells more than two classes apart only where labels of at least two are known"


class LabelAverages(PassiveLabelAttack):
    """Sides of mean gradients for two classes; class means of every round where labels are known."""

    name = "label_averages"
    identity = "LabelAverages()"
    summary = "ours: label inference from gradients at the cut averaged over rounds, against noise that is drawn anew"
    paper = "plumbob"
    knows = (KnownMarvell, KnownMaxNormAlignment, KnownOutputGradientNoise)

    def __init__(self, *, adaptive: bool = True) -> None:
        self.adaptive = boolean("label_averages: adaptive", adaptive)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        several = len(view.classes) > 2
        if several and (view.known_labels < 0).all():
            return nothing(view, MANY)
        found, count = batches(view), len(view.own)
        width = max((batch.gradients.shape[1] for batch in found), default=0)
        found = [batch for batch in found if batch.gradients.shape[1] == width]
        if not found:
            return nothing(view, SILENT)
        noisy = bool(self.accounts_for(self.seen(view).defence.names))
        if several:
            taught = taught_classes(found, view)
            return nothing(view, MANY) if taught is None else replace(nothing(view), labels=taught)
        mean, seen = means(found, count)
        start = mean @ np.linalg.svd(mean, full_matrices=False)[2][0]
        tried = [start, refined(found, start), *([] if noisy else [refined(found, two_sides(found, count).margin)])]
        value = max(tried, key=apart)
        if noisy and (taught := taught_classes(found, view, value)) is not None:
            return replace(nothing(view), labels=taught)
        groups = np.where(seen, value > (meeting(value) if noisy else 0.0), -1)
        guess = labels_only(view, groups.astype(np.int64))
        return replace(guess, certificate=f"two sides, {apart(value):.1f} standard deviations apart")


def means(found: list[Batch], count: int) -> tuple[FloatArray, BoolArray]:
    """Each row's mean gradient, and whether it ever came."""
    total, times = np.zeros((count, found[0].gradients.shape[1])), np.zeros(count)
    for batch in found:
        np.add.at(total, batch.rows, batch.gradients)
        np.add.at(times, batch.rows, 1.0)
    return total / np.maximum(times, 1.0)[:, None], times > 0


def refined(found: list[Batch], value: FloatArray) -> FloatArray:
    """The value of every row by what the two sides' gradients differ by in each round, until the sides stay."""
    for _ in range(ROUNDS):
        side = value > 0
        told = np.zeros(len(value))
        for batch in found:
            np.add.at(told, batch.rows, _along(batch.gradients, side[batch.rows]))
        if not told.any():
            return value
        value, before = told, side
        if ((value > 0) == before).all():
            break
    return value


def _along(gradients: FloatArray, side: BoolArray) -> FloatArray:
    """How far each row lies along the difference of the two sides' means, which are taken without the row itself."""
    many = np.array([(~side).sum(), side.sum()], dtype=np.float64)
    if many.min() < 2:
        return np.zeros(len(gradients))
    sums = np.stack([gradients[~side].sum(axis=0), gradients[side].sum(axis=0)])
    mine = side.astype(np.int64)
    own = (sums[mine] - gradients) / (many[mine] - 1)[:, None]
    other = sums[1 - mine] / many[1 - mine][:, None]
    apart_by = (own - other) * np.where(side, 1.0, -1.0)[:, None]
    size = float(((sums[1] / many[1] - sums[0] / many[0]) ** 2).sum())
    spread = float((((gradients - own) * apart_by).sum(axis=1)).var()) / (size + TINY)
    return np.asarray((gradients * apart_by).sum(axis=1) / (spread + TINY))


def apart(value: FloatArray) -> float:
    """How many standard deviations the positive values lie from the others; 0 where there is one side only."""
    side = value > 0
    if min(side.sum(), (~side).sum()) < 2:
        return 0.0
    spread = (value[side].var() * side.sum() + value[~side].var() * (~side).sum()) / len(value)
    return float((value[side].mean() - value[~side].mean()) / np.sqrt(spread + TINY))


def meeting(value: FloatArray) -> float:
    """Where two normal distributions of one spread meet that the values of both signs suggest."""
    side = value > 0
    if min(side.sum(), (~side).sum()) < 2:
        return 0.0
    one, other = np.median(value[side]), np.median(value[~side])
    spread = float(np.median(np.abs(value - np.where(side, one, other))) / 0.6745) ** 2
    return float((one + other) / 2 + spread / (one - other) * np.log((~side).sum() / side.sum()))
