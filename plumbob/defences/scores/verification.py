"""Post-processing verification (luo2021, Section VII): simulate attacks before the scores are released, withhold what leaks.

Inside the trusted place that combines the answers, every fitting attack of Plumbob's own is run on the rows the active
party is about to be told about. A row is withheld if an attack hits one of its cells to within the limit where the column's
mean would not have; its scores become NaN, which an attack has to take as no message at all.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.base import Defence
from plumbob.errors import BadInput, positive
from plumbob.federation import Federation, FloatArray
from plumbob.protocols.base import Model, PredictionProtocol, Release, predict
from plumbob.threats import LUO2021, cut


class Verification(Defence):
    """Withhold the scores of rows of which a simulated attack hits a cell to within `limit`, in units of its range."""

    name = "verification"
    identity = "Verification(limit)"
    summary = "scores of rows that a simulated attack recovers to within a limit are withheld"
    point = "scores"
    paper = "luo2021"

    def __init__(self, *, limit: float = 0.01) -> None:
        if not 0 < positive("verification: limit", limit) < 0.5:
            raise BadInput(f"verification: expected a limit above 0 and below 0.5, got {limit}")
        self.limit = float(limit)

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        from plumbob.attacks import attacks  # all of them: the defence simulates whatever applies

        every = [a for a in attacks().values() if type(a).__module__.startswith("plumbob.")]  # it runs beside the truth
        fitting = [a for a in every if a.why_not(protocol.name, LUO2021) is None]

        usual = federation.values.mean(axis=0)  # not of the rows asked about: a single one would be its own mean

        def withhold(scores: FloatArray, rows: Federation) -> FloatArray:
            view = cut(predict(protocol, model, rows, rows), LUO2021)
            truth = rows.values[:, view.unknown]
            guessable = np.abs(truth - usual[view.unknown]) < self.limit
            leaks = np.zeros(len(rows), dtype=bool)
            for attack in fitting:
                guess = attack.run(view, np.random.default_rng(0)).values
                if guess is not None:
                    leaks |= ((np.abs(guess - truth) < self.limit) & ~guessable).any(axis=1)
            return np.where(leaks[:, None], np.nan, scores)

        return withhold
