"""Post-processing verification (luo2021, Section VII): imitate attacks before the scores are released, withhold what leaks.

Inside the trusted place that combines the answers, every fitting attack of Plumbob's own is run on the rows the active party is
about to be told about, as each threat of the plan would run it: alone, with any passive parties that may collude, with rows of
other people. A row is withheld if for some party
    a cell is hit to within the limit where the column's mean would not have hit it                       (values)
    on every path that is left, a hidden value lies on the same side of a threshold; or one path is left  (branches)
Its scores become NaN, which an attack has to take as no message at all.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from plumbob import bundle
from plumbob.attacks.base import Attack, Branches, Guess
from plumbob.defences.base import Defence
from plumbob.errors import BadInput, positive, suggest
from plumbob.federation import BoolArray, Federation, FloatArray
from plumbob.protocols.base import Model, PredictionProtocol, Release, predict
from plumbob.setting_sources import ours
from plumbob.threats import LUO2021, AuxiliaryRows, Threat, cut, describe

SIDES = ("certain", "path")


class Verification(Defence):
    """Withhold the scores of rows of which an imitated attack hits a cell to within `limit`, in units of its range.

    Of trees: rows of which the side of a hidden value is `certain`, or only those of which one `path` is left.
    """

    name = "verification"
    identity = "Verification(limit)"
    summary = (
        "scores of rows that a simulated attack recovers to within a limit, or of which it knows a branch, are withheld"
    )
    point = "scores"
    paper = "luo2021"
    sources = {
        "limit": ours("Section VII: a threshold, without a number"),
        "sides": ours("Section VII names no case of trees"),
    }

    _threats: tuple[Threat, ...] = (LUO2021,)
    _others: Federation | None = None

    def __init__(self, *, limit: float = 0.01, sides: str = "certain") -> None:
        if not 0 < positive("verification: limit", limit) < 0.5:
            raise BadInput(f"verification: expected a limit above 0 and below 0.5, got {limit}")
        if sides not in SIDES:
            raise BadInput(
                f"verification: sides: expected 'certain' or 'path', got {sides!r}{suggest(str(sides), SIDES)}"
            )
        self.limit = float(limit)
        self.sides = sides

    def facing(self, threats: Sequence[Threat], others: Federation | None = None) -> Verification:
        told = copy.copy(self)
        told._threats, told._others = tuple(threats) or (LUO2021,), others
        return told

    def identified(self) -> str:
        """With whom it imitates, where that is not the active party alone."""
        plain = [describe(threat) for threat in self._threats]
        if plain == [describe(LUO2021)]:
            return super().identified()
        return f"{super().identified()} facing {hashlib.sha256(bundle.canonical(plain).encode()).hexdigest()[:16]}"

    def release(self, protocol: PredictionProtocol, model: Model, federation: Federation) -> Release | None:
        usual = federation.values.mean(axis=0)  # not of the rows asked about: a single one would be its own mean

        def withhold(scores: FloatArray, rows: Federation) -> FloatArray:
            strangers = rows if self._others is None else _strangers(self._others, rows)
            log = predict(protocol, model, rows, strangers, acquainted=strangers)
            leaks = np.zeros(len(rows), dtype=bool)
            for threat in imitated(self._threats, federation.passive):
                auxiliary = threat.grant(AuxiliaryRows)
                if isinstance(auxiliary, AuxiliaryRows) and (self._others is None or auxiliary.count > len(strangers)):
                    continue  # whoever is asked about is among the rows that the attacker has anyway
                view = cut(log, threat)
                truth = rows.values[:, view.unknown]
                for attack in _fitting(protocol, threat):
                    guess = attack.run(view, np.random.default_rng(0))
                    leaks |= self._leaking(guess, truth, usual[view.unknown])
            return np.where(leaks[:, None], np.nan, scores)

        return withhold

    def _leaking(self, guess: Guess, truth: FloatArray, usual: FloatArray) -> BoolArray:
        """Rows of which a guess hits a cell, or of which it knows a branch."""
        leaks = np.zeros(len(truth), dtype=bool)
        if guess.values is not None:
            hit = (np.abs(guess.values - truth) < self.limit) & (np.abs(truth - usual) >= self.limit)
            leaks |= hit.any(axis=1)
        if guess.branches is not None:
            leaks |= known_branch(guess.branches, self.sides)
        return leaks


def known_branch(branches: Branches, sides: str) -> BoolArray:
    """Rows of which a side is certain whichever path was taken; or only those of which one path with a side is left."""
    one = (branches.candidates == 1) & (branches.paths[branches.chosen] > 0).any(axis=1)
    if sides == "path" or branches.certain is None:
        return np.asarray(one)
    return np.asarray(branches.certain.any(axis=1))


def imitated(threats: Sequence[Threat], passive: Sequence[str]) -> Iterator[Threat]:
    """Each threat; where some passive parties collude and it is not said which, every choice of them."""
    for threat in threats:
        if threat.colluding_all_but is None:
            yield threat
            continue
        for chosen in combinations(passive, max(0, len(passive) - threat.colluding_all_but)):
            yield replace(threat, colluding=chosen, colluding_all_but=None)


def _fitting(protocol: PredictionProtocol, threat: Threat) -> list[Attack]:
    """Plumbob's own attacks that apply, at their fast settings; what others offer would run beside the truth."""
    from plumbob.attacks import ATTACKS  # all of them, some of which know of this defence

    own = [kind.preset("fast") for kind in ATTACKS.values() if kind.__module__.startswith("plumbob.")]
    able = [attack for attack in own if attack.why_not(protocol.name, threat) is None]
    return [attack for attack in able if attack.why_not_here(protocol, threat) is None]


def _strangers(others: Federation, rows: Federation) -> Federation:
    """Rows of other people than those that are asked about."""
    asked = {row.tobytes() for row in np.ascontiguousarray(rows.values)}
    apart = [i for i, row in enumerate(np.ascontiguousarray(others.values)) if row.tobytes() not in asked]
    return others.rows(np.asarray(apart, dtype=np.int64))
