"""What a report says, apart from how it looks: every situation that was asked for, and the sentences about it.

A defender cares for the strongest attack, so a column is named by its worst verdict over all attacks and shares of unknown
columns that were tried. The page, the terminal and the assessment speak through this module; what is true they read from
`concluding.conclusion`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plumbob.attacks.base import NAMELESS
from plumbob.auditing.concluding.conclusion import Conclusion, Judged, Standing, worst_per_column
from plumbob.auditing.concluding.judging import SHARES, Verdict
from plumbob.auditing.concluding.summarise import Situation, Summary, group
from plumbob.auditing.concluding.verdict_words import UNPROVEN, order_evidence
from plumbob.report import exposure, tally
from plumbob.report.phrases import count, defence_words, defended, label, percent, plain, sentence_list, short
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS

LEVEL_WORDS = {
    Level.EXACT: "recovered",
    Level.EXACT_FOR_SOME: "recovered for some",
    Level.LEAK: "leaking",
    Level.ORDER: "order only",
    Level.UNDECIDED: "undecided",
    Level.NOT_TESTED: "not tested",
    Level.NONE: "no leak",
    Level.HELD: "held already",
}
LEVEL_ICONS = {  # as charts draw them
    Level.EXACT: "◆",
    Level.EXACT_FOR_SOME: "◈",
    Level.LEAK: "●",
    Level.ORDER: "▲",
    Level.UNDECIDED: "◐",
    Level.NOT_TESTED: "□",
    Level.NONE: "○",
    Level.HELD: "≡",
}


@dataclass(frozen=True)
class _Placed:
    """Something that is said of one situation."""

    situation: Situation

    @property
    def learner(self) -> str:
        """Who learns, in words."""
        return _threat_words(self.situation.threat)[0]

    @property
    def knowledge(self) -> str:
        """What the curious know beyond their messages, in words."""
        return _threat_words(self.situation.threat)[1]

    @property
    def where(self) -> str:
        """The situation in a few words, without the threat."""
        words, defence = f"{label(self.situation.protocol)} on {short(self.situation.data)}", self.situation.defence
        return f"{words}, {defence_words(defence)}" if defended(defence) else words


@dataclass(frozen=True)
class ColumnAnswer(_Placed, Standing):
    """The worst that is known of one column, in words."""

    @property
    def badge(self) -> str:
        """The level in a word or two; two values have no order."""
        return "high or low only" if self.level is Level.ORDER and self.verdict.two_values else LEVEL_WORDS[self.level]

    @property
    def is_label(self) -> bool:
        return self.verdict.column == LABEL


@dataclass(frozen=True)
class Answer(_Placed):
    """All that is known in one situation."""

    judged: Judged
    beside: Judged | None = (
        None  # the situation that speaks for one without an attack: of who covers it, or the same messages
    )

    @property
    def every(self) -> tuple[ColumnAnswer, ...]:
        """Columns, worst first, then the label."""
        return tuple(ColumnAnswer(**vars(one)) for one in self.judged.standings)

    @property
    def columns(self) -> tuple[ColumnAnswer, ...]:
        return tuple(one for one in self.every if not one.is_label)

    @property
    def label(self) -> ColumnAnswer | None:
        """What is known of the label, where it is hidden from the curious."""
        return next((one for one in self.every if one.is_label), None)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self.judged.summaries

    @property
    def level(self) -> Level:
        return self.judged.level

    @property
    def counts(self) -> dict[Level, int]:
        """How many columns ended at each level, worst first."""
        found = Counter(column.level for column in self.columns)
        return {level: found[level] for level in reversed(Level)}

    @property
    def noun(self) -> str:
        """What is judged one by one: columns, or of pictures the parties' tiles."""
        return "tile" if self.summaries and all(s.pictures is not None for s in self.summaries) else "column"

    @property
    def leaking(self) -> int:
        return sum(number for level, number in self.counts.items() if level.leaks)

    @property
    def untested(self) -> str:
        """Why no attack was run, in words; empty where one was."""
        gap = self.judged.gap
        if gap is None:
            return ""
        more = exposure.of_situation(self.judged.standings)
        if not more and self.beside is not None and not gap.covered_by:
            more = exposure.as_without(self.beside.standings)
        return f"{gap.state.capitalize()}: {self.why}{f'; {more}' if more else ''}"

    @property
    def why(self) -> str:
        """Why no attack was run; where another covers it, with what was found there, which bounds nothing unless all is known."""
        gap = self.judged.gap
        if gap is None or not gap.covered_by or self.beside is None:
            return "" if gap is None else gap.why
        return f"{gap.why}: {tally.brief(self.beside.standings, self.noun)}"

    @property
    def headline(self) -> str:
        if self.untested:
            return self.untested
        return tally.headline(self.every, self.noun, f" to {self.learner}")

    @property
    def tally(self) -> str:
        """The headline where it stands beside who learns."""
        return self.untested or tally.headline(self.every, self.noun, "")

    @property
    def breakdown(self) -> str:
        """What kind of leak, in one sentence."""
        kinds = {column.metric for column in self.columns if column.level is Level.EXACT}
        exact = {"branches": "placed on the right side of every threshold", "orders": "with the bin of every row known"}
        words = {
            Level.EXACT: exact.get(kinds.pop(), "recovered exactly") if len(kinds) == 1 else "recovered exactly",
            Level.EXACT_FOR_SOME: "recovered exactly for some people",
            Level.LEAK: "guessed better than any baseline",
            Level.ORDER: "with high values told from low ones only"
            if all(column.verdict.two_values for column in self.columns if column.level is Level.ORDER)
            else "in the order of their rows only",
            Level.UNDECIDED: "undecided",
            Level.NOT_TESTED: "not tested",
            Level.NONE: f"without a leak above {tally.limit(self.columns)} %",
            Level.HELD: "held already by the curious side",
        }
        parts = [f"{number} {words[level]}" for level, number in self.counts.items() if number]
        said = f"{sentence_list(parts)}." if parts else f"No {self.noun} was unknown."
        return f"{said} Of the label: {self.label.words}." if self.label else said

    @property
    def attacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(summary.setting.attack for summary in self.summaries))

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(sorted({summary.setting.unknown for summary in self.summaries}))


def answers(conclusion: Conclusion) -> list[Answer]:
    """One answer for every situation that was asked for, the worst first."""
    found = [Answer(judged.situation, judged, _beside(judged, conclusion)) for judged in conclusion.situations]
    return sorted(
        found, key=lambda a: (a.judged.counts, a.level.rank, a.leaking / max(1, len(a.columns))), reverse=True
    )


def _beside(judged: Judged, conclusion: Conclusion) -> Judged | None:
    """Of a situation without an attack, the one that speaks for it: who covers it, or the run without a defence that is idle."""
    place, gap = judged.situation, judged.gap
    if gap is None:
        return None
    if gap.covered_by:
        place = replace(place, threat=gap.covered_by)
    if (place.data, place.protocol, place.defence) in conclusion.idle:
        place = replace(place, defence="none")
    if place == judged.situation:
        return None
    return next((one for one in conclusion.situations if one.situation == place), None)


def worst_columns(found: Iterable[Answer]) -> list[ColumnAnswer]:
    """Every column, and the label, of every data set once per defence: its worst case over threats, protocols and attacks."""
    columns = (column for answer in found for column in answer.every)
    groups = group(columns, lambda c: (c.situation.data, c.situation.defence, c.verdict.column))
    each = (max(parts, key=lambda c: c.severity) for parts in groups.values())
    return sorted(each, key=lambda c: c.severity, reverse=True)


def overall(found: Sequence[Answer]) -> str:
    """The first sentence of a report, without its full stop: all columns and all situations that were asked for."""
    if not found:
        return "Nothing was measured, so there is no answer"
    if len(found) == 1:
        return found[0].headline
    meant = [answer for answer in found if answer.judged.counts]
    tested = [answer for answer in meant if not answer.untested]
    rest = untested_words(found) if len(tested) < len(found) else ""
    if not meant:
        return "Nothing of what the plan asks about can tell anybody anything"
    if not tested:
        return f"Not known: no attack of this plan applies in any of {count(len(meant), 'situation')}"
    worsts = worst_per_column(one for answer in meant for one in answer.every)
    every = "" if len(tested) == len(found) else " tested"
    where = f" in at least one of {count(len(tested), 'situation')}{every}" if len(tested) > 1 else ""
    said = tally.headline(worsts, nouns(tested), "", where)
    if len(tested) == len(meant) or said.startswith(("Yes", "Not known")):
        return f"{said}; {rest}" if rest else said
    return f"Not known: {rest}; elsewhere {said[0].lower()}{said[1:]}"  # of which nothing follows for the others


def untested_words(found: Sequence[Answer]) -> str:
    """How many of all situations were not tested, and how many not run because another covers them."""
    missing = sum(answer.judged.counts and not answer.summaries for answer in found)
    covered = sum(answer.judged.gap is not None and bool(answer.judged.gap.covered_by) for answer in found)
    parts = (
        [f"{missing} of {count(len(found), 'situation')} {'was' if missing == 1 else 'were'} not tested"]
        if missing
        else []
    )
    parts += [f"{covered} {'was' if covered == 1 else 'were'} not run"] if covered else []
    return sentence_list(parts)


def nouns(found: Iterable[Answer]) -> str:
    """What the answers have in common: tiles if all are about pictures, else columns."""
    kinds = {answer.noun for answer in found}
    return kinds.pop() if len(kinds) == 1 else "column"


def pictures(answer: Answer) -> str:
    """How good the best pictures are that an attack recovered; empty without any."""
    drawn = [(s.pictures, s.setting.attack) for s in answer.summaries if s.pictures is not None and not s.untried]
    if not drawn:
        return ""
    best, attack = max(drawn, key=lambda pair: pair[0].psnr)
    return f"{best.words} by {label(attack)}; the mean picture reaches {best.constant_psnr:.1f} dB."


def how(answer: Answer) -> str:
    """By which attack, and how exactly at worst."""
    if answer.untested:
        return ""
    if not answer.leaking:
        limits = {s.setting.attack: s.untried.why for s in answer.summaries if s.untried}
        spoke = dict.fromkeys(s.setting.attack for s in answer.summaries if s.claims and s.setting.attack not in limits)
        mute = [label(attack) for attack in answer.attacks if attack not in spoke and attack not in limits]
        untried = " ".join(f"Not tried: {label(attack)}, because {reason}." for attack, reason in limits.items())
        without = f"Tried without success{f' on {answer.noun}s' if answer.label else ''}"
        tried = f"{without}: {sentence_list([label(attack) for attack in spoke])}." if spoke else ""
        silent = f"Found nothing to read: {sentence_list(mute)}." if mute else ""
        return " ".join(filter(None, (tried, silent, untried)))
    winners = Counter(column.attack for column in answer.columns if column.level.leaks).most_common()
    named = [f"{label(attack)} ({count(number, answer.noun)})" for attack, number in winners]
    found = f"Strongest attack: {sentence_list(named)}. {_worst_case(answer.columns[0], answer.noun)}"
    nameless = next((s.certificate for s in answer.summaries if s.certificate.endswith(NAMELESS)), "")
    return (
        f"{found} These are {nameless}: what they have is known, but not which person it belongs to."
        if nameless
        else found
    )


def sure(answer: Answer) -> str:
    """On how much evidence the answer stands."""
    if not answer.summaries:
        return ""
    trials = sorted({summary.trials for summary in answer.summaries})
    rows = sorted({summary.rows for summary in answer.summaries})
    words = f"{_span(trials)} {'trial' if trials[-1] == 1 else 'trials'} of each attack, {_span(rows)} rows."
    strongest = answer.columns[0].verdict if answer.columns else None
    if strongest and strongest.level is Level.EXACT:
        times = "every trial"
        if strongest.recovered != strongest.trials:
            times = f"{strongest.recovered} of {strongest.trials} trials"
        words += f" The worst {answer.noun} was recovered in {times}."
    elif strongest and strongest.level.leaks:
        low, high = strongest.low, strongest.high
        words += f" Largest gain over guessing: {percent(strongest.gain)}"
        words += f" (95 % interval {percent(low)} to {percent(high)})."
        if strongest.level.rank < Level.LEAK.rank and low > 0:
            words += f" That {UNPROVEN}, so it does not count as a leak of values."
    if trials[0] == 1:
        words += " One trial shows the error of sampling rows only; run more before you rely on it."
    return words


def _threat_words(name: str) -> tuple[str, str]:
    summary = THREATS[name].summary if name in THREATS else plain(name)
    who, _, knows = summary.partition(", which ")
    return who, knows


def _worst_case(column: ColumnAnswer, noun: str) -> str:
    verdict, name = column.verdict, short(column.verdict.column)
    if column.metric in SHARES:
        what = "its branches right" if column.metric == "branches" else "the rows spoken of in the right bin"
        return f"Worst {noun}: {name}, {percent(verdict.exact)} of {what}."
    if verdict.level is Level.EXACT:
        return f"Worst {noun}: {name}, recovered exactly."
    if verdict.level is Level.ORDER and verdict.two_values:
        return f"Worst {noun}: {name}, high values told from low ones, {order_evidence(verdict.rank, verdict.tie)}."
    if verdict.level is Level.ORDER:
        return f"Worst {noun}: {name}, {order_evidence(verdict.rank, verdict.tie)}."
    if verdict.two_values:  # a guess between two values is close to neither
        return f"Worst {noun}: {name}, {verdict.words}."
    return f"Worst {noun}: {name}, {verdict.words}; {hits(verdict, noun)}."


def hits(verdict: Verdict, noun: str = "column") -> str:
    """How close the guesses come, beside what a fixed guess hits where that is known."""
    fixed = f"; a fixed guess hits {percent(verdict.fixed_5)}" if verdict.fixed_5 is not None else ""
    return f"{percent(verdict.within_5)} of the values were hit to within 5 % of {_range(noun)}{fixed}"


def _range(noun: str) -> str:
    return "the range from black to white" if noun == "tile" else "the range"


def _span(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"
