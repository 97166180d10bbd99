"""Can people be identified? The criteria and tests of law, each with what this audit measured of it.

    recital 26 GDPR, Breyer (C-582/14), the ICO's motivated intruder    what the curious need, and what it costs them
    WP216 (Opinion 05/2014)                                             singling out, linkability, inference
    EDPB Opinion 28/2024                                                extraction and queries, in development and deployment
Every sentence is read off the plan, the messages or the findings. What was not tested or not measured says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plumbob.attacks import attack_called
from plumbob.attacks.base import NAMELESS
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.matrix import NOTHING, role
from plumbob.auditing.running.data_flows import SHUT
from plumbob.auditing.running.finding import Finding
from plumbob.report import matching, severity
from plumbob.report.answer import Answer
from plumbob.report.phrases import count, defended, label, number, sentence_list
from plumbob.report.residual import NOT_TESTED, Side, Stage
from plumbob.report.risk import above_chance, few
from plumbob.report.risk import worst as most_at_risk
from plumbob.report.severity import FOUND, LIMITED, MAXIMUM, NEGLIGIBLE, NONE_FOUND, NOT_KNOWN, SIGNIFICANT, Risk
from plumbob.report.subject import Subject
from plumbob.scoring.leak_levels import Level
from plumbob.threats import Threat

NOT_MEASURED, BY_DESIGN = "not measured", "by design"
LEARNT = {  # how many columns stand where, the worst first
    Level.EXACT: "recovered exactly",
    Level.EXACT_FOR_SOME: "recovered exactly for some people",
    Level.LEAK: "guessed better than by any baseline",
    Level.ORDER: "learnt in the order of the rows only",
    NOT_KNOWN: "not known",
    Level.NONE: "with nothing found",
    Level.HELD: "held already",
}
SHARES_OF_PEOPLE = ("all", "half", "any")  # people with so many of their hidden columns recovered
OURS = "plumbob"  # as attacks name their source where nobody has published them


@dataclass(frozen=True)
class Row:
    """One line of a table: what is asked, what the audit says, and the answer before and after measures in a word or two."""

    asked: str
    said: tuple[str, ...]
    answers: tuple[str, str]
    under: str = ""  # what the question means


def means(about: Subject, found: Sequence[Answer], findings: Sequence[Finding]) -> list[dict[str, str]]:
    """For every curious party of the plan what it needs, what an attack costs it and what it learns without a measure."""
    return [_means(threat, found, findings) for threat in about.threats]


def _means(threat: Threat, found: Sequence[Answer], findings: Sequence[Finding]) -> dict[str, str]:
    every = [a for a in found if a.situation.threat == threat.name]
    here = [a for a in every if not defended(a.situation.defence)] or every
    columns = [c for a in here for c in a.every]
    winners = tuple(dict.fromkeys(c.attack for c in columns if c.level.leaks))
    used = winners or tuple(dict.fromkeys(attack for a in here for attack in a.attacks))
    tested = [a for a in here if a.summaries]
    done = {a.situation.protocol for a in here if a.summaries or not a.judged.counts}
    missing = [label(p) for p in dict.fromkeys(a.situation.protocol for a in found if a.judged.counts) if p not in done]
    learns = [_learns(here)] if tested or not here or any(a.judged.counts for a in here) else []
    learns += ["with a measure in place"] if tested and all(defended(a.situation.defence) for a in tested) else []
    learns += [f"{NOT_TESTED} on {sentence_list(missing)}"] if tested and missing else []
    learns += list(
        dict.fromkeys(f"{a.judged.gap.state}: {a.judged.gap.why}" for a in here if a.judged.gap and not a.judged.counts)
    )
    return {
        "who": role(threat),
        "threat": label(threat.name),
        "knows": sentence_list(threat.knowledge) or NOTHING,
        "attacks": sentence_list([f"{label(name)} ({_source(name)})" for name in used]) or NOT_TESTED,
        "cost": _cost([f for f in findings if f.threat == threat.name and f.attack in used]) if tested else NOT_TESTED,
        "learns": "; ".join(learns),
    }


def _cost(findings: Sequence[Finding]) -> str:
    """What one run of an attack took at most; findings that came without their costs do not say."""
    seconds = max((f.seconds for f in findings), default=0.0)
    if seconds <= 0:
        return "not kept"
    time = "less than a second" if seconds < 1 else f"at most {number(seconds)} s"
    return f"{time} and {max(f.peak_mb for f in findings):,.0f} MB on one computer"


def _source(attack: str) -> str:
    """Where an attack can be read up."""
    known = attack_called(attack)
    paper = "" if known is None else known.paper
    return "ours" if paper == OURS else paper or "source not known"


def _learns(here: Sequence[Answer]) -> str:
    """How many columns a curious party learns, over all protocols."""
    places = group(severity.risks(here, {}), lambda risk: (risk.column.metric == "labels", risk.column.verdict.column))
    if not places:
        return NOT_TESTED
    levels = {key: {risk.level for risk in parts} for key, parts in places.items()}
    learnt = [key for key, seen in levels.items() if seen - {NOT_KNOWN, NONE_FOUND}]
    if not learnt:
        return NOT_KNOWN if any(NOT_KNOWN in seen for seen in levels.values()) else "nothing found"
    columns = sum(not of_label for of_label, _ in learnt)
    said = f"{columns} of {count(sum(not of_label for of_label, _ in places), here[0].noun)}"
    return f"{said}, and the label" if len(learnt) > columns else said


def criteria(about: Subject, stages: Sequence[Stage]) -> list[Row]:
    """Singling out, linkability and inference (WP216)."""
    return [_singling_out(about, stages), _linkability(about, stages), _inference(stages)]


def _singling_out(about: Subject, stages: Sequence[Stage]) -> Row:
    known = "The parties match rows by an identifier, so each party can single out the rows that are shared."
    if about.dealt:
        known = "The columns of one table were dealt out; each row is taken for one person."
    nameless = any(s.certificate.endswith(NAMELESS) for st in stages for a in st.before.answers for s in a.summaries)
    order = ("Some people were recovered in no order: what they have is known, but not which person it belongs to.",)
    return Row(
        "Singling out",
        (
            known,
            *_told(stages, lambda side: _people(side)[0]),
            *order * nameless,
        ),
        _steps(stages, lambda side: [_people(side)[1]]),
        "Can one person’s record be isolated?",
    )


def _people(side: Side) -> tuple[str, str]:
    """Of how many people all or some hidden values were recovered, by the attack that recovers most; and whether any were."""
    if not side.tested:
        return NOT_TESTED, NOT_TESTED
    counted = [(most, answer) for answer in side.tested if (most := most_at_risk(answer)) is not None]
    if not counted:
        return f"{NOT_MEASURED}, because no attack guessed values", NOT_MEASURED
    best, answer = max(counted, key=lambda pair: [pair[0].rows_at_risk[f"{share}_1"] for share in SHARES_OF_PEOPLE])
    rows = best.rows_at_risk
    hidden, tested = int(rows.get("columns", best.unknown_columns)), int(rows.get("rows", best.rows))
    shares = {"all": f"all {hidden} hidden values" if hidden > 1 else "the hidden value"}
    shares |= {"any": "at least one"} if hidden > 1 else {}
    parts = [
        f"{words} for {few(rows[f'{share}_1'], 'nobody')} (by chance: {few(rows[f'{share}_1_chance'], 'nobody')})"
        for share, words in shares.items()
    ]
    said = f"{tested:,} people tested; to within 1 %, beyond what guessing hits: {', '.join(parts)}"
    beyond = answer.leaking and any(above_chance(rows, share) for share in SHARES_OF_PEOPLE)
    if beyond or any(risk.column.level in severity.CERTAIN and risk.column.metric == "values" for risk in side.risks):
        return said, FOUND
    return said, NOT_KNOWN if any(risk.untested or risk.level == NOT_KNOWN for risk in side.risks) else NONE_FOUND


def _linkability(about: Subject, stages: Sequence[Stage]) -> Row:
    meaning = "Can two records of one person be linked?"
    outside = "Not tested: whether recovered values can be linked with data from elsewhere."
    if not about.alignment:
        said = "Not measured: how rows are matched. This audit started from matched rows."
        return Row("Linkability", (said, outside), _steps(stages, lambda _: [NOT_MEASURED]), meaning)
    shared = min((member.rows for member in about.members), default=0)
    private = any(flow.name.startswith("psi") for flow in about.alignment)
    opened = list(dict.fromkeys(flow.name for flow in about.alignment if flow.form not in SHUT))
    crossed = (
        f"Rows were matched {'by private set intersection' if private else 'by showing identifiers'}. "
        f"In the clear crossed: {sentence_list(opened) or 'nothing'}.",
        f"The match links the records of {shared:,} people by design.",
        *matching.sentences(about.matched),
    )
    return Row("Linkability", (*crossed, outside), _steps(stages, lambda _: [BY_DESIGN]), meaning)


def _inference(stages: Sequence[Stage]) -> Row:
    labels = [a.label for stage in stages for side in stage.sides for a in side.answers]
    attacked = any(one is not None and one.level is not Level.NOT_TESTED for one in labels)
    return Row(
        "Inference",
        (*_told(stages, lambda side: tally(side.risks)), *(() if attacked else ("The label: not tested.",))),
        _steps(stages, _learnt),
        "Can a hidden value be deduced with significant probability?",
    )


def _told(stages: Sequence[Stage], words: Callable[[Side], str]) -> list[str]:
    """One sentence for every protocol and measure."""
    where = [f"{stage.heading}, " if len(stages) > 1 else "" for stage in stages]
    said = [
        f"{at}{side.words}: {words(side)}." for stage, at in zip(stages, where, strict=True) for side in stage.sides
    ]
    return [f"{one[:1].upper()}{one[1:]}" for one in said]


def _steps(stages: Sequence[Stage], answers: Callable[[Side], list[str]]) -> tuple[str, str]:
    """One word for all protocols without a measure, and one with it, where there is one."""
    before = _overall([word for stage in stages for word in answers(stage.before)])
    after = _overall([word for stage in stages for word in answers(stage.after)])
    return before, after


def _learnt(side: Side) -> list[str]:
    """Whether anything was learnt of each column."""
    found = [risk.level if risk.level in (NOT_KNOWN, NONE_FOUND) else FOUND for risk in side.risks]
    return found or [NOT_TESTED]


def tally(found: Sequence[Risk]) -> str:
    """How many columns stand where, in words."""
    if not found:
        return NOT_TESTED
    kinds = Counter(NOT_KNOWN if risk.level == NOT_KNOWN else risk.column.level for risk in found)
    parts = [f"{kinds[kind]} {words}" for kind, words in LEARNT.items() if kinds[kind]]
    columns = sum(risk.column.metric != "labels" for risk in found)
    whole = f"{count(columns, 'column')} and the label" if columns < len(found) else count(columns, "column")
    return f"of {whole}, {sentence_list(parts)}"


def _overall(steps: Sequence[str]) -> str:
    """One word for several: found if anything was; else what is missing; else nothing found."""
    order = (FOUND, MAXIMUM, SIGNIFICANT, LIMITED, NOT_KNOWN, NOT_TESTED, NOT_MEASURED, NONE_FOUND, NEGLIGIBLE)
    return next((word for word in order if word in steps), steps[0] if steps else NOT_TESTED)


def opinion(about: Subject, stages: Sequence[Stage]) -> list[Row]:
    """What EDPB Opinion 28/2024 asks of a model, by phase."""
    training = [stage for stage in stages if about.trains(stage.protocol)]
    prediction = [stage for stage in stages if not about.trains(stage.protocol)]
    return [
        Row(
            "Direct extraction from the finished model, including probabilistic",
            ("Not tested: no attack here extracts the people of the training data from the finished model.",),
            _steps(stages, lambda _: [NOT_TESTED]),
            "of data of people whose data were used to develop it",
        ),
        _phase(
            "Development phase: what the messages of training tell",
            "Not tested: training was not played here. The model was trained centrally or taken as given.",
            training,
            "about the people of the training data",
        ),
        _phase(
            "Deployment phase: personal data obtained from queries",
            "Not tested: no prediction was attacked here.",
            prediction,
            "about the people asked about, who need not be those of the training data",
        ),
        Row(
            "Is the likelihood insignificant, with all means reasonably likely to be used?",
            (
                _likelihood(stages),
                "The answer beside it is the highest likelihood found, in the words of the risk table.",
            ),
            _steps(stages, lambda side: [risk.likelihood for risk in side.risks] or [NOT_TESTED]),
            "for the controller to decide",
        ),
    ]


def _phase(asked: str, otherwise: str, stages: Sequence[Stage], under: str) -> Row:
    said = _told(stages, lambda side: tally(side.risks)) or [otherwise]
    return Row(asked, tuple(said), _steps(stages, _learnt), under)


def _likelihood(stages: Sequence[Stage]) -> str:
    """What the likelihoods found say to a controller who has to show that the likelihood is insignificant."""
    sides = [side for stage in stages for side in stage.sides]
    steps = {risk.likelihood for side in sides for risk in side.risks}
    whole = all(side.risks and not any(risk.untested for risk in side.risks) for side in sides)
    if steps & {MAXIMUM, SIGNIFICANT}:
        return "One party by itself learnt hidden values. That speaks against an insignificant likelihood."
    if LIMITED in steps:
        said = "Hidden values were learnt only by parties that collude, or in fewer than half of the trials."
        return said if whole else f"{said} A part was not tested or not decided, so it may be higher."
    if NOT_KNOWN in steps or not steps or not whole:
        return "A part was not tested or not decided, so the likelihood is not known."
    return "The attacks that were run found nothing. That alone does not show that the likelihood is insignificant."
