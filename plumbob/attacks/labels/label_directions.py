"""Label directions (ours): classes by the directions of the loss's gradients at the cut, accumulated over rounds.

    g_i = J_i'(p_i - y_i)        the gradient at row i's outputs: p_i its scores, y_i its class, J_i the top model's slope

two classes      g_i = (p_i - y_i) v_i: rows of one class lie on one side of the direction that v_i have in common
                 (`_two_sides`: signed projections, aligned by rows that recur, and a discriminant over rounds)
several classes  rows of a class lie in a cone of their own (`_class_cones`: clusters of each round, joined by shared rows)

Which side or cone is which class is not told by gradients. Labels that are known name it (`KnownLabels`, `KnownPeople`); without
them the guess says who shares a class. The certificate of two classes is how far apart the two sides lie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumbob.attacks.base import Guess, nothing
from plumbob.attacks.labels._class_cones import class_groups
from plumbob.attacks.labels._cut_gradients import SILENT, batches, labels_only
from plumbob.attacks.labels._passive_party import PassiveLabelAttack
from plumbob.attacks.labels._two_sides import two_sides
from plumbob.threats import View


class LabelDirections(PassiveLabelAttack):
    """Sides of a common direction for two classes, cones for several."""

    name = "label_directions"
    identity = "LabelDirections()"
    summary = "ours: label inference from the directions of gradients at the cut, accumulated over rounds"
    paper = "plumbob"
    protocols = ("split_network", "split_training")

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        found = batches(view)
        if not found:
            return nothing(view, SILENT)
        if len(view.classes) > 2:
            return labels_only(view, class_groups(found, len(view.own), len(view.classes), rng))
        sides = two_sides(found, len(view.own))
        guess = labels_only(view, sides.groups)
        return replace(guess, certificate=f"two sides, {sides.apart:.1f} standard deviations apart")
