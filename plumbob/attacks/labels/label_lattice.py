"""Label lattice (ours): labels from the gradients that a passive party of encrypted regression gets for its own columns.

    G = X' d,  d = z / 4 - y / 2:   a regression over all rounds tells X' y of every batch, and LLL the signs y from X' y

Encryption hides d of each row, and G opens as many sums of it as the party has columns. In the first round z is 0, so that G is
a sum of labels times own cells, to all digits: of 64 rows 10 columns are enough. Later rounds add the other parties' scores,
which follow the same smooth curve in all batches and are regressed away (`_label_regression.py`). Where batches are drawn anew,
rows come in ever other sums, and the regression alone finds them. Where the same batches recur, a batch tells as many sums as
there are own columns: the lattice finds about four times as many labels (`_sign_lattice.py`), which go back into the regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.labels._label_regression import Regression
from plumbob.attacks.labels._opened_gradients import opened_gradients
from plumbob.attacks.labels._sign_lattice import MOST_ROWS, Signs, exact_signs, likely_signs
from plumbob.errors import whole
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.kinds import Kind
from plumbob.protocols.shared.taylor_regression import BigIntegers
from plumbob.threats import Threat, View

CLEAR = 0.2  # largest distance of all of a batch's rows from -1 or 1 at which nothing is left to solve
SURE = -5.0  # log2 of the odds of other signs, from which a batch counts as solved


class LabelLattice(Attack):
    """Regression over all rounds, and LLL batch by batch. `passes`: how often what was solved is put back."""

    name = "label_lattice"
    identity = "LabelLattice(passes)"
    summary = (
        "ours: the labels behind a passive party's own gradients, by regression over the rounds and lattice reduction"
    )
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("encrypted_logistic_regression",)
    addresses = (Kind.LABEL,)
    needs_active = False
    presets = {"small": {"passes": 1}}
    cost_terms = ("1", "n", "n d")
    workload = "matrices"

    def __init__(self, *, passes: int = 3) -> None:
        self.passes = whole("label lattice: passes", passes, 1, 20)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """Only parties that get gradients of own columns and have no label."""
        if protocol in self.protocols and (threat.active or threat.corrupted):
            return "needs a passive party alone: the active party has the label, the coordinator no columns"
        return super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        columns, rounds = opened_gradients(view)
        regression = Regression.of(view.own, rounds)
        models = len(rounds[0].sums)
        values, solved = np.zeros((models, len(view.own))), np.zeros((models, len(view.own)), dtype=np.bool_)
        for model in range(models):
            values[model], solved[model] = self._model(model, columns, regression, rng)
        labels = (values[0] > 0).astype(np.int64) if models == 1 else values.argmax(axis=0)
        return nothing_but(view, labels, f"{solved.all(axis=0).mean():.0%} of the labels are determined")

    def _model(
        self, model: int, columns: BigIntegers, regression: Regression, rng: np.random.Generator
    ) -> tuple[FloatArray, BoolArray]:
        """y of every row, and whether it is determined."""
        settled = np.full(len(columns), np.nan)
        batches = _covering([one.rows for one in regression.rounds], len(columns))
        for _ in range(self.passes):
            values, by_columns = regression.solve(model, settled)
            chance, before = (1 + by_columns) / 2, np.isnan(settled).sum()
            for k in batches:
                rows = regression.rounds[k].rows
                clear = np.abs(np.abs(values[rows]) - 1).max() < CLEAR
                if len(rows) <= MOST_ROWS and np.isnan(settled[rows]).any() and not clear:
                    found = self._batch(model, k, columns, regression, values, chance, rng)
                    if found is not None and found.odds < SURE:
                        settled[rows] = found.signs
            if np.isnan(settled).sum() == before:
                break
        values, _ = regression.solve(model, settled)
        return values, ~np.isnan(settled) | (np.abs(np.abs(values) - 1) < CLEAR)

    def _batch(
        self,
        model: int,
        place: int,
        columns: BigIntegers,
        regression: Regression,
        values: FloatArray,
        chance: FloatArray,
        rng: np.random.Generator,
    ) -> Signs | None:
        one, directions = regression.rounds[place], regression.directions[place]
        if one.exact is not None:
            return exact_signs(columns[one.rows], one.exact[model], chance[one.rows], rng)
        sums = directions.rows_by @ values[one.rows]
        return likely_signs(directions.rows_by, sums, chance[one.rows], rng)


def _covering(rounds: Sequence[IntArray], count: int) -> list[int]:
    """Places of rounds, the first ones, that together hold all rows that any round holds."""
    held, places = np.zeros(count, dtype=np.bool_), []
    for k, rows in enumerate(rounds):
        if not held[rows].all():
            held[rows] = True
            places.append(k)
    return places


def nothing_but(view: View, labels: IntArray, certificate: str) -> Guess:
    """A guess of labels alone: of columns it says the middle of the range, the same for all rows."""
    return replace(nothing(view), labels=np.asarray(labels, dtype=np.int64), certificate=certificate)
