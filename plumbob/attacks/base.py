"""What every attack is: a view in, a guess out, and a statement of what it needs.

An attack that accounts for defences names them in `knows` and has the setting `adaptive`. Where that is off it attacks what the
defence let through, as if no defence were in place: whatever it does, it does with `seen(view)`.

An attack whose party does not follow the protocol requires a `Deviation` of the threat, and `sends` says what that party sends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.identity import Identified, Workload
from plumbob.kinds import COLUMNS, Kind
from plumbob.known_defences import KnownDefence, KnownDefences
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import Protocol
from plumbob.protocols.shared.conduct import Conduct
from plumbob.threats import Deviation, Grant, Threat, View, WhiteBox

NAMELESS = "people in no order"  # how the certificate of a guess of people ends
NOT_FINITE = "the attack ended in numbers that are not finite"
# NIST AI 100-2e2025: values worked out from messages made of them; a person's hidden value from what is known of that person
DATA_RECONSTRUCTION, ATTRIBUTE_INFERENCE = "data reconstruction", "attribute inference"


@dataclass(frozen=True)
class Branches:
    """Claims that cells lie on one side of a threshold, one bundle of claims per path of a tree.

    `paths[p, t]` is 0 (no claim), 1 (value <= threshold t) or 2 (value > threshold t); row i was given path `chosen[i]`.
    """

    column: IntArray  # position of each threshold's column among the unknown ones
    threshold: FloatArray
    paths: NDArray[np.int8]
    chosen: IntArray
    candidates: IntArray  # how many paths were possible for each row
    certain: BoolArray | None = None  # rows x thresholds: where every path that was possible takes the same side


@dataclass(frozen=True)
class Orders:
    """Claims about which bin of its column a cell lies in, bins counted from the lowest values. Rows that share a bin
    stay unordered among themselves.
    """

    bins: IntArray  # rows x unknown columns; -1 where nothing is claimed
    counts: IntArray  # bins of each column


@dataclass(frozen=True)
class Guess:
    """An attack's estimate of the unknown columns: values, sides of thresholds, places in an order, columns without names, or
    people without names.
    """

    names: tuple[str, ...]
    values: FloatArray | None = None
    branches: Branches | None = None
    orders: Orders | None = None
    vectors: FloatArray | None = None  # columns that some unknown column is, or a sum of them, without saying which
    people: FloatArray | None = None  # rows (people x unknown columns) that belong to some person, without saying which
    certificate: str = ""  # how sure the attack is of what it found, and of having found all
    labels: IntArray | None = None  # classes of the rows, or of `people`; -1 where the attack does not read them
    untried: str = ""  # what the attack does not handle here; a null result is then inconclusive
    unnamed: bool = False  # whether `labels` tell which rows share a class, and not which class that is
    path: tuple[tuple[int, FloatArray], ...] = ()  # of an attack by steps: some of them, with the values at each


def nothing(view: View, untried: str = "") -> Guess:
    """The guess without messages: the middle of the range for every cell, and no class; `untried` says why."""
    rows = len(view.own)
    values = np.full((rows, len(view.unknown)), 0.5)
    return Guess(view.unknown_names, values=values, labels=np.full(rows, -1), untried=untried)


def finite(guess: Guess) -> Guess:
    """The guess, with the middle of the range in place of NaN and infinity; where there were any, the result is inconclusive.

    >>> finite(Guess(("a",), values=np.array([[0.2], [np.nan]]))).values.tolist()
    [[0.2], [0.5]]
    """
    path = tuple((step, _mended(values)) for step, values in guess.path)
    parts = [_mended(part) for part in (guess.values, guess.people, guess.vectors)]
    mended = replace(guess, values=parts[0], people=parts[1], vectors=parts[2], path=path)
    same = all(one is other for one, other in zip(parts, (guess.values, guess.people, guess.vectors), strict=True))
    return mended if same else replace(mended, untried=guess.untried or NOT_FINITE)


@overload
def _mended(part: FloatArray) -> FloatArray: ...


@overload
def _mended(part: FloatArray | None) -> FloatArray | None: ...


def _mended(part: FloatArray | None) -> FloatArray | None:
    """The same object where every number is one."""
    return part if part is None or np.isfinite(part).all() else np.where(np.isfinite(part), part, 0.5)


def needed(kind: type[Grant]) -> str:
    """What an attack needs, in words that go on from "needs"."""
    if kind is WhiteBox:
        return "the model (white box)"
    one = kind()
    return f"{one.who} that {one.words}" if isinstance(one, Deviation) else one.words


def _out_of_place(protocol: str, threat: Threat) -> str:
    """Why a threat makes no sense in a protocol: its party may send what nobody would take; else empty."""
    taken = PROTOCOLS.get(protocol, Protocol).open_to
    impossible = [one for one in threat.deviations if not isinstance(one, taken)]
    if not impossible:
        return ""
    return f"no {impossible[0].who.partition(' ')[2]} of {protocol.replace('_', ' ')} {impossible[0].words}"


class Attack(Identified, ABC):
    """One way to turn a view into a guess. Hyper-parameters go to the constructor, data to `run`."""

    paper: ClassVar[str]
    protocols: ClassVar[tuple[str, ...]]
    requires: ClassVar[tuple[type[Grant], ...]] = ()
    corrupted: ClassVar[bool] = False  # whether it needs what the coordinator has
    by_default: ClassVar[bool] = True  # whether a plan that names no attacks runs it below effort `thorough`
    # By protocol, the attack that nearly always learns more in less time. Where that one runs too, a plan that names no attacks
    # runs this one below effort `thorough` not at all: its cost is not worth what it adds.
    outdone: ClassVar[Mapping[str, str]] = MappingProxyType({})
    needs_active: ClassVar[bool] = True  # whether it needs what the active party has: its label, its columns
    addresses: ClassVar[tuple[Kind, ...]] = COLUMNS  # kinds of targets in which it would see a leak
    nist: ClassVar[str] = DATA_RECONSTRUCTION  # its kind among the privacy attacks of NIST AI 100-2
    knows: ClassVar[tuple[type[KnownDefence], ...]] = ()  # defences that it accounts for where it is `adaptive`
    unseeded = ("adaptive",)  # who knows and who does not draw the same numbers
    adaptive: bool  # a setting of those that know any
    # Of what its seconds are made, by name in `auditing/costing/cost.py`.
    cost_terms: ClassVar[tuple[str, ...]] = ("1", "n", "n d", "n u^2", "n w")
    workload: ClassVar[Workload] = "networks"

    @abstractmethod
    def run(self, view: View, rng: np.random.Generator) -> Guess:
        """The guess this view allows. Uses nothing else."""

    def seen(self, view: View) -> View:
        """The view as this attacker reads it: nothing is known of defences, unless it is `adaptive`."""
        return view if self.adaptive else replace(view, defence=KnownDefences())

    def accounts_for(self, defences: Collection[str]) -> tuple[str, ...]:
        """Those of the defences in place of which knowing makes a difference to it."""
        return tuple(kind.name for kind in self.knows if kind.name in defences)

    def unaware_of(self, defences: Collection[str]) -> tuple[str, ...]:
        """Those that it could account for and, not being adaptive, does not: what it fails to find then means nothing."""
        return () if not self.knows or self.adaptive else self.accounts_for(defences)

    def sends(self) -> Conduct | None:
        """What its party does that the protocol does not ask for, where the threat lets it; nothing of one that only looks."""
        return None

    @classmethod
    def deviates(cls) -> bool:
        """Whether its party sends what the protocol does not ask for."""
        return any(issubclass(kind, Deviation) for kind in cls.requires)

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """None where the attack applies, else the reason in words.

        `sent`: the kind of what was sent that the protocol does not ask for ("" for nothing), where that is settled: by the
        protocol's own settings, or because the run is a recorded one. Else the attack brings it, if the threat lets it.
        """
        if protocol not in self.protocols:
            return f"works on {', '.join(p.replace('_', ' ') for p in self.protocols)} only"
        if why := _out_of_place(protocol, threat):
            return why
        code = self.sends()
        if code is not None and sent is not None and sent != code.kind:
            return code.absent(sent)
        for kind in self.requires:
            if threat.grant(kind) is None and not (sent and issubclass(kind, Deviation)):
                return f"needs {needed(kind)}"
        if self.corrupted and not threat.corrupted:
            return "needs the coordinator"
        if self.needs_active and not threat.active:
            return "needs the active party"
        return None

    def why_not_here(self, protocol: Protocol, threat: Threat) -> str | None:
        """The same for a protocol with its settings, where the attack applies to others of that name."""
        return None
