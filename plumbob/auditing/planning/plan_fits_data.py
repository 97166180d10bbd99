"""Whether a plan can be run on its data: what can only be checked once they are open, and should be before the work starts."""

from __future__ import annotations

import numpy as np

from plumbob.attacks import attack_named
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import attack_cases, units
from plumbob.auditing.running.open_data import Source
from plumbob.errors import BadInput
from plumbob.federation import halves
from plumbob.threats import AuxiliaryRows, WhiteBox, cut
from plumbob.transcript import Transcript

FEWEST = 50  # predicted rows below which the normal limits of the verdicts are too lenient


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
    for part, kind in zip(plan.protocols, kinds, strict=True):
        kind.ready(min(len(train), plan.rows or len(train)))
        if part.model is None:
            kind.fits(columns, len(source.classes))
    predicted = min(len(others), plan.rows or len(others))
    if predicted < FEWEST:
        what = "kept for the test" if all(kind.phase == "training" for kind in kinds) else "predicted"
        raise BadInput(f"only {predicted} of {rows:,} rows would be {what}; a verdict needs at least {FEWEST}")
    counts = [max(1, round(share * columns)) for share in plan.unknown or ()]
    if counts and max(counts) >= columns:
        raise BadInput(f"'unknown': {max(plan.unknown or ())} of {columns} columns leaves the active party none")
    if len(set(counts)) < len(counts):
        raise BadInput(f"'unknown': two shares give the same number of the {columns} columns; drop one of them")
    for named in plan.threats:
        threat = named.threat()
        if source.federation is not None:
            curious = threat.curious(source.federation.active, [party.name for party in source.federation.parties])
            if all(feature.party in curious for feature in source.federation.features):
                raise BadInput(f"threat '{threat.name}': the others have no columns, so no column is left to infer")
        else:
            threat.curious("active", ["active", "passive"])
        granted = threat.grant(AuxiliaryRows)
        if threat.name in used and isinstance(granted, AuxiliaryRows) and granted.count > len(train):
            raise BadInput(
                f"threat '{threat.name}' grants {granted.count:,} auxiliary rows, only {len(train):,} exist; "
                "name a threat with fewer ('auxiliary_rows')"
            )


def _check_recorded(plan: Plan, log: Transcript, rows: int) -> None:
    """The same of a recorded run, on all of its rows."""
    if rows < FEWEST:
        raise BadInput(f"only {rows} rows were recorded; a verdict needs at least {FEWEST}")
    for case in (case for unit in units(plan) for case in attack_cases(plan, unit)):
        view = cut(log, case.threat)  # a threat that grants what was not recorded says so here
        if WhiteBox in attack_named(case.attack).requires and not view.model:
            raise BadInput(
                f"threat '{case.threat.name}' knows the model, and the recorded run holds none; name another threat"
            )
