"""Defences that changed nothing: under them every readable message, the model and what is known are as without a defence.

They were run and not tried: what was found is what is found without. So their findings are left out of verdicts and of the
choice of a defence, and reports say why. Seen by comparing runs of the same seed, so only where `none` was run beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.running.finding import Finding

CHANGES_NOTHING = "it changes nothing here: messages, model and what is known are as without it, for every row"


def effective(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, without those under defences that changed nothing."""
    every = list(findings)
    idle = set(idle_places(every))
    return [one for one in every if (one.data, one.protocol, one.defence) not in idle]


def idle(findings: Iterable[Finding]) -> list[Untried]:
    """Those defences, one sentence each."""
    return [
        Untried(f"{defence} on {protocol}", CHANGES_NOTHING) for _, protocol, defence in idle_places(list(findings))
    ]


def idle_places(findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    """Data, protocol and defence, where in every trial, split and threat the run was that without a defence."""
    runs = {(f.data, f.protocol, f.defence, f.trial, f.unknown, f.threat): f.exchange for f in findings}
    found = []
    for (data, protocol, defence), cells in group(runs, lambda cell: cell[:3]).items():
        plain = [runs.get((data, protocol, "none", *cell[3:]), "") for cell in cells]
        same = [bool(other) and other == runs[cell] for cell, other in zip(cells, plain, strict=True)]
        if defence != "none" and all(same):
            found.append((data, protocol, defence))
    return found
