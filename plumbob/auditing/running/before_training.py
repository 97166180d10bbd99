"""The check before training of a plan's federation, and what the secure way of it costs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from plumbob.auditing.planning.joint_tables import InTheClear, JointSums, OnShares
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.pre_training_check import Caution, label_stand_ins, precheck
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.run import generator
from plumbob.errors import BadInput


@dataclass(frozen=True)
class Checked:
    """What was found, of how much, and what it took."""

    warnings: tuple[Caution, ...]
    rows: int
    columns: dict[str, int]  # by party
    secure: bool
    seconds: float  # of one processor, for the check; reading and alignment come before
    bytes_sent: int
    opened: int  # sums that were opened

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_before_training(plan: Plan, *, secure: bool = False) -> Checked:
    """Open the plan's data and check its parties; where columns are dealt at random, those of the first trial.

    What stands for the label is looked for in the clear only.
    """
    whole = plan.filled()
    if whole.data.recorded is not None:
        raise BadInput("precheck: a recorded run is trained already; name the parties' files, or a data set ('data')")
    unknown = (whole.unknown or (None,))[0]
    federation, _ = open_source(whole.data, whole.seed).deal(unknown, generator(whole.seed, "columns", unknown, 0))
    sums: JointSums = OnShares() if secure else InTheClear()
    started = time.process_time()
    found = precheck(federation, sums=sums)
    seconds = time.process_time() - started
    found += [] if secure else label_stand_ins(federation)
    columns = {party.name: len(party.columns) for party in federation.parties}
    return Checked(tuple(found), len(federation), columns, secure, seconds, sums.bytes_sent, sums.opened)
