"""Attacks that failed, and whether attacks were kept from the truth: what the notes of an audit say of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plumbob.auditing.running.finding import Finding

ISOLATED = "complete"


@dataclass(frozen=True)
class Failure:
    """One attack in one situation that failed for one reason."""

    attack: str
    where: str
    reason: str
    times: int
    trials: int
    key: str  # of the first of these findings
    passing: bool = False  # for want of time or memory, so that another run may end otherwise

    @property
    def words(self) -> str:
        return f"{self.attack} failed in {self.times} of {self.trials} runs on {self.where}: {self.reason}"


def failures(findings: Sequence[Finding]) -> list[Failure]:
    """Every attack, situation and reason once, in the order of the findings."""
    runs: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        where = f"{finding.protocol}, threat {finding.threat}, defence {finding.defence}"
        runs.setdefault((finding.attack, where), []).append(finding)
    found = []
    for (attack, where), trials in runs.items():
        for reason in dict.fromkeys(trial.score.failed for trial in trials if trial.score.failed):
            alike = [trial for trial in trials if trial.score.failed == reason]
            first = alike[0]
            found.append(Failure(attack, where, reason, len(alike), len(trials), first.key, first.score.passing))
    return found


def isolation(findings: Iterable[Finding]) -> str:
    """What the systems that attacks ran on lacked to keep them from the truth, if anything.

    >>> isolation([])
    'complete'
    """
    parts = sorted({part for finding in findings for part in finding.not_isolated.split(", ") if part})
    return f"not isolated: {', '.join(parts)} missing" if parts else ISOLATED


def notes(findings: Sequence[Finding]) -> list[str]:
    """What a reader has to know of both."""
    told = [f"{failure.words}; its columns were not tested by it" for failure in failures(findings)]
    state = isolation(findings)
    if state != ISOLATED:
        told.append(f"{state}; an attack of another package that cheats could have read the truth")
    return told
