"""The threats that were asked for, by how plausible they are: who is curious, what it must know, what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.matrix import NOTHING, role
from plumbob.report import answer as words
from plumbob.report import exposure, tally
from plumbob.report.answer import Answer
from plumbob.report.phrases import defence_words, label, sentence_list, short
from plumbob.scoring.leak_levels import Level
from plumbob.threats import AuxiliaryRows, Threat, WhiteBox

TIERS = (
    "One party by itself, from the messages that it gets anyway",
    "One party by itself, which also knows the model",
    "One party by itself, which also has complete rows of other people",
    "Parties that collude, or a corrupted coordinator",
    "Threats that this report cannot describe",
)


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
    state: str = ""  # of a situation without an attack
    classes: tuple[tuple[str, str], ...] = ()  # every level with its columns

    @property
    def badge(self) -> str:
        return self.state if self.level is None else words.LEVEL_WORDS[self.level]


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
        evidence=" ".join(filter(None, (words.how(answer), words.sure(answer), _before(answer)))),
        state=answer.judged.gap.state if answer.judged.gap else "",
        classes=_classes(answer) if answer.summaries else (),
    )


def _before(answer: Answer) -> str:
    return exposure.known_before_all(answer.columns, answer.noun) if answer.summaries else ""


def _classes(answer: Answer) -> tuple[tuple[str, str], ...]:
    """Every level that a column ended at, and which columns."""
    levels = sorted(group(answer.columns, lambda one: one.level).items(), key=lambda pair: -pair[0].rank)
    return tuple(
        (
            f"{len(some)} {words.LEVEL_WORDS[level]}{f' above {tally.limit(some)} %' if level is Level.NONE else ''}",
            ", ".join(short(one.verdict.column) for one in some),
        )
        for level, some in levels
    )


def not_known(found: Sequence[Answer]) -> list[tuple[str, str]]:
    """Every situation in which something is not known, and what; those without an attack once for all defences."""
    several = len({answer.situation.data for answer in found}) > 1
    open_ = [answer for answer in found if not answer.summaries or any(not one.level.known for one in answer.every)]
    told: dict[tuple[str, str], list[Answer]] = group(open_, lambda a: (_place(a, several), _open(a)))
    return [
        (f"{place}, {sentence_list([defence_words(answer.situation.defence) for answer in some])}", said)
        for (place, said), some in told.items()
    ]


def _place(answer: Answer, several: bool) -> str:
    parts = [short(answer.situation.threat), label(answer.situation.protocol)]
    return ", ".join([*parts, *([short(answer.situation.data)] if several else [])])


def _open(answer: Answer) -> str:
    if answer.judged.gap is not None and not answer.summaries:
        return answer.judged.gap.state + ": " + answer.why
    return tally.unknown_words(answer.columns, answer.label)
