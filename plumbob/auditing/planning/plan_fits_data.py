"""Whether a plan can be run on its data: what can only be checked once they are open, and should be before the work starts."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np

from plumbob.attacks import ATTACKS
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import attack_cases, units
from plumbob.auditing.running.open_data import Source
from plumbob.errors import BadInput
from plumbob.federation import halves
from plumbob.threats import AuxiliaryRows, KnownLabels, KnownPeople, WhiteBox, cut
from plumbob.transcript import Transcript

FEWEST = 50  # predicted rows below which the normal limits of the verdicts are too lenient
FEWEST_TRAINED = 20  # rows below which no model means anything; a smaller share of the rows is not proposed
SHARES = (
    *(k / 20 for k in range(19, 0, -1)),
    *(k / 100 for k in range(99, 0, -1)),
)  # round ones first, large ones first


def check_fit(plan: Plan, source: Source) -> None:
    """One sentence where a filled plan would stop on its data, or would mean nothing."""
    used = {case.threat.name for unit in units(plan) for case in attack_cases(plan, unit)}
    if not used:
        raise BadInput("no attack of this plan fits its protocols and threats; `plumbob list matrix` shows what fits")
    rows, columns = source.values.shape
    if source.recorded is not None:
        _check_recorded(plan, source.recorded, rows)
        return
    train, others = halves(source.label, np.random.default_rng(0), plan.train_share)
    kinds = [part.protocol() for part in plan.protocols]
    for chosen, kind in zip(plan.protocols, kinds, strict=True):
        kind.ready(min(len(train), plan.rows or len(train)))
        if chosen.model is None:
            kind.fits(columns, len(source.classes))
    if len(others) < FEWEST:
        what = "for the test" if all(kind.phase == "training" for kind in kinds) else "to predict"
        raise BadInput(_too_few(plan, source, f"{len(others)} {what}"))
    counts = [max(1, round(share * columns)) for share in plan.unknown or ()]
    if counts and max(counts) >= columns:
        raise BadInput(f"'unknown': {max(plan.unknown or ())} of {columns} columns leaves the active party none")
    if len(set(counts)) < len(counts):
        raise BadInput(f"'unknown': two shares give the same number of the {columns} columns; drop one of them")
    for named in plan.threats:
        threat = named.threat()
        if source.federation is not None:
            curious = threat.curious(source.federation.active, [party.name for party in source.federation.parties])
            if threat.active and all(feature.party in curious for feature in source.federation.features):
                raise BadInput(f"threat '{threat.name}': the others have no columns, so no column is left to infer")
        else:
            threat.curious("active", ["active", "passive"])
        granted = threat.grant(AuxiliaryRows)
        if threat.name not in used or not isinstance(granted, AuxiliaryRows):
            continue
        there = max(0, len(others) - FEWEST) if granted.predicted else len(train)  # some must be left to attack
        if granted.count > there:
            raise BadInput(
                f"threat '{threat.name}' grants {granted.count:,} auxiliary rows, only {there:,} exist; "
                "name a threat with fewer ('auxiliary_rows')"
            )
        people = threat.grant(KnownPeople)
        seen = min(len(others), plan.rows or len(others))
        if threat.name in used and isinstance(people, KnownPeople) and 2 * people.count > seen:
            raise BadInput(
                f"threat '{threat.name}' knows {people.count:,} of the people, more than half of the {seen:,} rows attacked; "
                "name a threat with fewer ('known_people')"
            )
        labels = threat.grant(KnownLabels)
        if threat.name in used and isinstance(labels, KnownLabels) and 2 * labels.count * len(source.classes) > seen:
            raise BadInput(
                f"threat '{threat.name}' knows {labels.count:,} labels of each of {len(source.classes)} classes, more than half "
                f"of the {seen:,} rows attacked; name a threat with fewer ('known_labels')"
            )


def for_its_classes(plan: Plan, source: Source) -> tuple[Plan, Source]:
    """The plan without defences that are made for fewer classes, with a note of each; one sentence where none would be left."""
    classes = len(source.classes)
    unfit = [part for part in plan.defences if not part.defence().fits_classes(classes)]
    if not unfit or plan.data.recorded is not None:
        return plan, source
    left = tuple(part for part in plan.defences if part not in unfit)
    why = f"{unfit[0].title} is not made for a label of {classes} classes"
    if all(part.name == "none" for part in left):
        raise BadInput(f"'defences': {why}; name another defence")
    notes = tuple(f"Not tried: {part.title} is not made for a label of {classes} classes." for part in unfit)
    return plan.model_copy(update={"defences": left}), replace(source, notes=(*source.notes, *notes))


def fitting_share(plan: Plan, source: Source) -> float | None:
    """The plan's share of rows for training, or the next smaller one that leaves enough rows to predict; None if none does."""
    needed = 0  # the user's own choice may train on few rows, a proposal may not
    for share in (plan.train_share, *(share for share in SHARES if share < plan.train_share)):
        train, others = halves(source.label, np.random.default_rng(0), share)
        if len(others) >= FEWEST and len(train) >= needed and _ready(plan, len(train)):
            return share
        needed = _trained(plan)
    return None


def _ready(plan: Plan, rows: int) -> bool:
    """Whether every protocol can be trained on so many rows."""
    try:
        for part in plan.protocols:
            part.protocol().ready(min(rows, plan.rows or rows))
    except BadInput:
        return False
    return True


def _trained(plan: Plan) -> int:
    """Rows for training that a plan needs at least: a model's, and those that a threat grants out of them."""
    granted = [part.threat().grant(AuxiliaryRows) for part in plan.threats]
    return max(FEWEST_TRAINED, *(r.count for r in granted if isinstance(r, AuxiliaryRows) and not r.predicted), 0)


def _rows_for(share: float) -> int:
    """The fewest rows of which such a share for training leaves enough.

    >>> _rows_for(0.5), _rows_for(0.3)
    (100, 71)
    """
    return next(rows for rows in count(FEWEST) if rows - round(share * rows) >= FEWEST)


def _fewest_rows(trained: int) -> tuple[int, float]:
    """The fewest rows of which some share trains on so many and leaves enough, and that share.

    >>> _fewest_rows(20)
    (70, 0.29)
    """
    every = ((rows, share) for rows in count(FEWEST + trained) for share in SHARES)
    return next((n, share) for n, share in every if n - FEWEST >= round(share * n) >= trained)


def _too_few(plan: Plan, source: Source, left: str) -> str:
    """How many rows there are and are needed, and what to do: a smaller share for training, or more rows."""
    rows, share, enough = len(source.label), fitting_share(plan, source), _rows_for(plan.train_share)
    used = "half" if plan.train_share == 0.5 else f"{100 * plan.train_share:g} %"
    told = f"{rows:,} shared rows, {used} used for training, leave {left}; {FEWEST} are needed."
    if share is not None:
        return f"{told} Set `train_share: {share:g}` or supply {enough:,} shared rows"
    least, smaller = _fewest_rows(_trained(plan))
    also = f", or {least:,} with `train_share: {smaller:g}`" if least < enough else ""
    return f"{told} Supply {enough:,} shared rows{also}"


def _check_recorded(plan: Plan, log: Transcript, rows: int) -> None:
    """The same of a recorded run, on all of its rows."""
    if rows < FEWEST:
        raise BadInput(f"only {rows} rows were recorded; a verdict needs at least {FEWEST}")
    for case in (case for unit in units(plan) for case in attack_cases(plan, unit)):
        view = cut(log, case.threat)  # a threat that grants what was not recorded says so here
        if case.attack is not None and WhiteBox in ATTACKS[case.attack.name].requires and not view.model:
            raise BadInput(
                f"threat '{case.threat.name}' knows the model, and the recorded run holds none; name another threat"
            )
