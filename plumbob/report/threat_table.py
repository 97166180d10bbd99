"""The threats that were asked for, by how plausible they are: who is curious, what it must know, what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.matrix import NOTHING, role
from plumbob.report import answer as words
from plumbob.report.answer import Answer
from plumbob.report.phrases import defence_words, label, short
from plumbob.scoring.leak_levels import Level
from plumbob.threats import AuxiliaryRows, Threat, WhiteBox

TIERS = (
    "One party by itself, from the messages that it gets anyway",
    "One party by itself, which also knows the model",
    "One party by itself, which also has complete rows of other people",
    "Parties that collude, or a corrupted coordinator",
    "Threats that this report cannot describe",
)
NEEDLESS = "not needed"


@dataclass(frozen=True)
class Row:
    """One situation: a threat against one protocol under one defence."""

    threat: str
    who: str
    knows: str
    where: str
    level: Level | None  # none where no answer is needed
    verdict: str
    evidence: str

    @property
    def badge(self) -> str:
        return NEEDLESS if self.level is None else words.LEVEL_WORDS[self.level]


@dataclass(frozen=True)
class Tier:
    """Situations that take as much of the curious."""

    heading: str
    rows: tuple[Row, ...]

    @property
    def size(self) -> int:
        return len(self.rows)


def tier(threat: Threat | None) -> int:
    """How much a threat takes for granted: 0 for one party that only reads what it is sent; more is less likely."""
    if threat is None:
        return len(TIERS) - 1
    if threat.colluding or threat.colluding_all_but is not None or threat.corrupted:
        return 3
    if threat.grant(AuxiliaryRows) is not None:
        return 2
    return 1 if threat.grant(WhiteBox) is not None else 0


def tiers(found: Sequence[Answer], threats: Sequence[Threat]) -> list[Tier]:
    """Every situation, the most plausible threats first, the worst verdict first among them."""
    known = {threat.name: threat for threat in threats}
    ordered = sorted(group(found, lambda a: tier(known.get(a.situation.threat))).items())
    several = len({answer.situation.data for answer in found}) > 1
    return [
        Tier(TIERS[place], tuple(_row(answer, known.get(answer.situation.threat), several) for answer in answers))
        for place, answers in ordered
    ]


def _row(answer: Answer, threat: Threat | None, several: bool) -> Row:
    place = answer.situation
    where = [label(place.protocol), defence_words(place.defence)] + ([short(place.data)] if several else [])
    knowledge = ", ".join(threat.knowledge) if threat else answer.knowledge
    return Row(
        threat=short(place.threat),
        who=role(threat) if threat else answer.learner,
        knows=knowledge or NOTHING,
        where=", ".join(where),
        level=answer.level if answer.judged.counts else None,
        verdict=answer.untested.partition(": ")[2] if answer.untested else answer.tally,
        evidence=" ".join(filter(None, (words.how(answer), words.sure(answer)))),
    )
