"""Chebyshev centre (rassouli2022): the point that is least far from every row that fits the scores and the ranges.

Scores of a logistic regression are linear equations A x = b for the hidden columns, which lie in their ranges:
    x_hat = argmin over y of   max over x in [0, 1]^d with A x = b   of |x - y|^2
The largest distance is hard to find, so it is relaxed (Eldar, Beck and Teboulle 2008), with one multiplier for each
x_i^2 <= x_i (`_relaxed_centre.py`). Where no column outweighs the others, the result is the projection of 1/2 on the
solutions; where one direction is left open, it is the middle of a segment, without a relaxation. Where a defence changed
the scores, `adaptive` puts in the place of b its mean given the release (`_defended_equations.py`).
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks._common.release_likelihood import SCORE_RELEASES
from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess
from plumbob.attacks.scores._box_equations import reduce
from plumbob.attacks.scores._defended_equations import adapted
from plumbob.attacks.scores._relaxed_centre import relaxed_centre
from plumbob.attacks.scores.equation_solving import equations
from plumbob.errors import BadInput
from plumbob.setting_sources import ours
from plumbob.threats import Schema, View, WhiteBox


class ChebyshevCentre(Attack):
    """The relaxed Chebyshev centre of the rows that fit. `adaptive`: it accounts for a known defence."""

    name = "chebyshev_centre"
    identity = "ChebyshevCentre(adaptive)"
    summary = "the point least far from every row that fits the scores of a logistic regression and the ranges"
    paper = "rassouli2022"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("logistic_regression",)
    requires = (WhiteBox, Schema)
    knows = SCORE_RELEASES
    by_default = False  # the posterior mean learns more from the same messages: plumbob/P36
    cost_terms = ("1", "n", "n u^2")
    workload = "matrices"
    sources = {"adaptive": ours("as in ESA, nothing is known of a defence")}

    def __init__(self, *, adaptive: bool = False) -> None:
        self.adaptive = adaptive

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        if view.ranges is None:
            raise BadInput("the Chebyshev centre needs the ranges of the unknown columns")
        system = adapted(view, rng) if self.adaptive else equations(view)
        low, high = view.ranges.T
        values = np.empty((len(view.own), len(low)))
        values[:] = (low + high) / 2.0  # withheld rows: the centre of the box
        if system.told.any():
            matrix, targets = reduce(system.left * (high - low), system.right[system.told] - system.left @ low)
            values[system.told] = low + (high - low) * relaxed_centre(matrix, targets)
        return Guess(view.unknown_names, values)
