"""Pieces of work: which cases one worker takes at a time.

A piece holds cases of one unit that share a trained model, cut between transcripts and small enough for even shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import Case, Todo, Unit, keyed
from plumbob.auditing.running.open_data import Source
from plumbob.protocols.base import predicting

SHARES = 4  # pieces that a worker gets at least, if the plan has as many transcripts


@dataclass(frozen=True)
class Piece:
    """Cases of one unit that one worker takes together."""

    unit: Unit
    todo: Todo
    home: str  # the same for pieces of the same unit of the same plan and data

    def only(self, keys: Iterable[str]) -> Piece:
        """What is left of it."""
        left = set(keys)
        return replace(self, todo=tuple((case, key) for case, key in self.todo if key in left))


def pieces(plan: Plan, source: Source, workers: int) -> list[Piece]:
    """The work of a plan: whole units in order for one worker; for several, by what was trained, and what is large is cut."""
    work, identity = keyed(plan, source), source.identity
    total = sum(len(todo) for _, todo in work)
    return [
        Piece(unit, part, f"{identity} {plan.digest} {unit!r}")
        for unit, todo in work
        for part in parts(unit, todo, total, workers)
    ]


def parts(unit: Unit, todo: Todo, total: int, workers: int) -> list[Todo]:
    """The cases of a unit as they are handed out, of a plan with so many."""
    if workers == 1:
        return [todo] if todo else []
    return [part for model in _by_model(unit, todo) for part in _cut(model, total / (SHARES * workers))]


def _by_model(unit: Unit, todo: Todo) -> list[Todo]:
    """Cases that share a trained model, together: another worker would have to train it again."""
    found: dict[object, Todo] = {}
    for case, key in todo:
        model = model_of(unit, case)
        found[model] = (*found.get(model, ()), (case, key))
    return list(found.values())


def model_of(unit: Unit, case: Case) -> object:
    """What is trained for a case, in words."""
    protocol, defence = unit.protocol.protocol(), case.defence.defence()
    defended = defence.protect(protocol)
    if defended.phase == "training":
        return case.place
    return repr(defended), case.unknown if predicting(defended).by_party else None


def _cut(todo: Todo, most: float) -> Iterator[Todo]:
    """Between transcripts, into parts of at most so many cases where a single transcript has not more."""
    part: Todo = ()
    for _, group in groupby(todo, key=lambda one: one[0].place):
        place = tuple(group)
        if part and len(part) + len(place) > most:
            yield part
            part = ()
        part += place
    if part:
        yield part
