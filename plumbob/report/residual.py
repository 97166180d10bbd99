"""Before and after measures: the initial risk of every column, the residual one, and what Art. 36 GDPR makes of it.

A stage is one protocol on one data set: what was found without a measure, and under the recommended one. Where no measure was
tried or none is recommended, the residual risk is the initial one. Where nothing was run without a measure, the initial one is
not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.defence_frontier import Frontier
from plumbob.auditing.concluding.summarise import group
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.phrases import defence_words, defended, label, short
from plumbob.report.severity import HIGH, NOT_KNOWN, RISKS, Risk, counts, risks
from plumbob.threats import Threat

NOT_TESTED = "not tested"
PRIOR_CONSULTATION = {
    HIGH: "By this rule the residual risk stays high. If the controller agrees and takes no further measures, Art. 36 GDPR asks "
    "for prior consultation of the supervisory authority.",
    NOT_KNOWN: "The residual risk is not known, because a part was not tested or not decided. It may be high. Have that part "
    "tested, or treat the risk as high and consider prior consultation (Art. 36 GDPR).",
    "": "By this rule the residual risk is not high. The controller weighs the harm to people and may still find a high risk. "
    "Then Art. 36 GDPR (prior consultation) applies.",
}


@dataclass(frozen=True)
class Pair:
    """One column before and after; None where nothing was run."""

    before: Risk | None
    after: Risk | None

    @property
    def column(self) -> ColumnAnswer:
        one = self.after if self.before is None else self.before
        assert one is not None
        return one.column

    @property
    def residual(self) -> str:
        return NOT_KNOWN if self.after is None else self.after.level

    @property
    def rank(self) -> tuple[int, ...]:
        return tuple(RISKS.index(NOT_KNOWN if one is None else one.level) for one in (self.before, self.after))


@dataclass(frozen=True)
class Side:
    """What was found with one measure, or with none."""

    measure: str  # empty: none
    answers: tuple[Answer, ...]
    risks: tuple[Risk, ...]

    @property
    def words(self) -> str:
        return defence_words(self.measure) if self.measure else "without a measure"

    @property
    def tested(self) -> tuple[Answer, ...]:
        """The answers under whose threat an attack was run."""
        return tuple(answer for answer in self.answers if answer.summaries)


@dataclass(frozen=True)
class Stage:
    """One protocol on one data set, before and after its measure."""

    data: str
    protocol: str
    before: Side
    after: Side  # the same side where no measure was tried or none is recommended
    compared: bool  # whether several ways to run the protocol were compared
    targets: frozenset[tuple[bool, str]] = frozenset()  # columns, and the label, that were judged under any measure

    @property
    def heading(self) -> str:
        return f"{label(self.protocol)} on {short(self.data)}"

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both, where they differ."""
        return (self.before, self.after) if self.after.measure else (self.before,)

    @property
    def measure(self) -> str:
        """The measure in words."""
        if self.after.measure:
            return self.after.words
        return "no measure recommended" if self.compared else "no measure tried"

    @property
    def pairs(self) -> list[Pair]:
        """Every column once, the highest initial risk first."""
        before, after = ({_key(risk): risk for risk in side.risks} for side in (self.before, self.after))
        found = [Pair(before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after))]
        return sorted(found, key=lambda pair: pair.rank, reverse=True)

    @property
    def residual(self) -> str:
        """The residual risk of the stage: high if it is so for a column; else not known if it is so for any; else the highest."""
        left = self.after.risks
        if any(risk.level == HIGH for risk in left):
            return HIGH
        whole = self.targets <= {_key(risk) for risk in left} and all(risk.settled for risk in left)
        return max((risk.level for risk in left), key=RISKS.index) if whole and left else NOT_KNOWN

    @property
    def consultation(self) -> str:
        return PRIOR_CONSULTATION.get(self.residual, PRIOR_CONSULTATION[""])


def stages(found: Sequence[Answer], choices: Sequence[Frontier], threats: Mapping[str, Threat]) -> list[Stage]:
    """A stage for every protocol and data set, in the order of the answers; without situations in which nothing can be learnt."""
    found = [answer for answer in found if answer.judged.counts]
    recommended = {(choice.data, choice.protocol): choice.recommended for choice in choices}
    made = []
    for (data, protocol), parts in group(found, lambda a: (a.situation.data, a.situation.protocol)).items():
        asked = group(parts, lambda a: a.situation.defence)
        tried = {defence: some for defence, some in asked.items() if any(a.summaries for a in some)}
        bare = [a for a in parts if not defended(a.situation.defence)]
        measure = next(iter(tried)) if len(tried) == 1 else recommended.get((data, protocol), "")
        before, after = Side("", tuple(bare), tuple(risks(bare, threats))), None
        if defended(measure):
            after = Side(measure, tuple(asked[measure]), tuple(risks(asked[measure], threats)))
        targets = frozenset((one.is_label, one.verdict.column) for answer in parts for one in answer.every)
        made.append(Stage(data, protocol, before, after or before, len(tried) > 1, targets))
    return made


def counted(sides: Iterable[Side]) -> dict[str, int]:
    """How many columns stand at each risk on some sides; where one was not tested at all, no column is said to be whole."""
    every = list(sides)
    return counts([risk for side in every for risk in side.risks], whole=all(side.risks for side in every))


def _key(risk: Risk) -> tuple[bool, str]:
    return risk.column.is_label, risk.column.verdict.column
