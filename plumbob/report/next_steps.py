"""What to do next, with the command that does it: a defence to look for, threats to add, rows that are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.conclusion import Conclusion, Doubt, Judged, Standing, worst_per_column
from plumbob.auditing.concluding.defence_frontier import Frontier
from plumbob.auditing.concluding.failures import Failure
from plumbob.auditing.concluding.judging import LIMIT
from plumbob.auditing.concluding.summarise import Situation, group
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.errors import BadInput
from plumbob.report import exposure
from plumbob.report.facts import Asked
from plumbob.report.phrases import count, defence_words, defended, label, reduced, sentence_list, short
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS, Threat, WhiteBox

NAMED = 3  # columns and threats that are named, of many


@dataclass(frozen=True)
class Step:
    """One thing to do; `command` is empty where none does it."""

    said: str
    command: str = ""


def next_steps(conclusion: Conclusion, choices: Sequence[Frontier], asked: Asked) -> list[Step]:
    """The most useful first."""
    if not conclusion.summaries:
        return []
    standings = [one for judged in _first(conclusion, choices) for one in judged.standings]
    several = sum(judged.counts for judged in conclusion.situations) > 1
    steps = [
        _failed(conclusion.failures),
        _withhold(standings, choices, asked),
        _defence(conclusion, choices, asked.sweeps),
        _threats(conclusion, asked),
        _rows(standings, conclusion.limit, several),
        _stronger(standings, several),
        _uncovered(standings, several),
        *_unaddressed(standings, several),
        _effort(conclusion),
        None if asked.gated else _gate(conclusion),
        Step("Audit again when the data, the columns, the model or the threats change."),
    ]
    return [step for step in steps if step is not None]


def _first(conclusion: Conclusion, choices: Sequence[Frontier]) -> list[Judged]:
    """Situations to speak of: without defence and with recommended ones, where there are any."""
    taken = {"none", *(choice.recommended for choice in choices)}
    meant = [judged for judged in conclusion.situations if judged.situation.defence in taken]
    return meant or list(conclusion.situations)


def _withhold(standings: Sequence[Standing], choices: Sequence[Frontier], asked: Asked) -> Step | None:
    """What to do about columns that leak, where no defence is shown to stop it."""
    leaking = [one for one in standings if one.level.leaks and one.verdict.column != LABEL]
    if not leaking or any(choice.reason == "safe" for choice in choices):
        return None
    worst = sorted(leaking, key=lambda one: one.severity, reverse=True)
    number = len({one.verdict.column for one in worst})
    threats = [asked.threat(one.situation.threat) for one in worst]
    model = any(threat is not None and threat.grant(WhiteBox) is not None for threat in threats)
    without = [one for one in standings if not _has_model(one, asked) and one.attack]
    enough = model and not any(one.level.leaks for one in without)
    what = "these columns, or the model," if enough else "it" if number == 1 else "these columns"
    verb = "leaks" if number == 1 else "leak"
    said = f"Withhold {what} until a defence is shown to stop the leak: {_columns(worst)} {verb}."
    return Step(f"{said} {_without_model(without)}" if model else said)


def _has_model(one: Standing, asked: Asked) -> bool:
    threat = asked.threat(one.situation.threat)
    return threat is None or threat.grant(WhiteBox) is not None


def _without_model(found: Sequence[Standing]) -> str:
    """What withholding the model would leave, as far as attackers without it were tested."""
    if not found:
        return "What leaks without the model was not tested."
    targets = worst_per_column(found)
    columns = [one for one in targets if one.verdict.column != LABEL]
    leaking, unknown = sum(one.level.leaks for one in columns), sum(not one.level.known for one in targets)
    what = [f"{leaking} of {count(len(columns), 'column')}"] if leaking else []
    what += ["the label"] if any(one.level.leaks for one in targets if one.verdict.column == LABEL) else []
    telling = [one for one in found if one.level.leaks or not what]
    threats = sentence_list(list(dict.fromkeys(short(one.situation.threat) for one in telling)))
    if what:
        verb = "leaks" if not leaking else "leak"
        return f"Withholding the model is not enough: without it {sentence_list(what)} still {verb} ({threats})."
    if unknown:
        verb = "is" if unknown == 1 else "are"
        return f"Without the model {unknown} of {count(len(targets), 'target')} {verb} not known ({threats})."
    return f"Without the model no leak was found ({threats})."


def _effort(conclusion: Conclusion) -> Step | None:
    """Presets of quick audits are weaker than what the papers print."""
    if not any(reduced(summary.setting.attack) for summary in conclusion.summaries):
        return None
    return Step(
        "Run it again at full strength: attacks marked fast or small ran in weaker settings than their papers print, so what "
        "they found is a lower bound.",
        "plumbob audit plan.yaml --effort thorough --out thorough",
    )


def _defence(conclusion: Conclusion, choices: Sequence[Frontier], sweeps: bool) -> Step | None:
    """Try defences, where none was tried, or take the recommended one."""
    if choices:
        taken = [choice for choice in choices if defended(choice.recommended)]
        safe = [choice for choice in taken if choice.reason == "safe"]
        if not safe:
            return _no_defence(choices, taken)
        names = sentence_list([short(name) for name in dict.fromkeys(choice.recommended for choice in safe)])
        return Step(
            f"Take {names}, and audit it alone with more trials before you rely on it.",
            "plumbob audit plan.yaml --effort thorough --out checked",
        )
    if conclusion.level is Level.NONE:
        return None
    if not sweeps:
        return Step(
            "Look for a defence: a recorded run cannot be changed, so sweep one of Plumbob’s own protocols on such data."
        )
    return Step(
        "Look for a defence: the sweep tries every one that fits, against every usual attacker, and says which to take.",
        "plumbob audit plan.yaml --sweep --out swept",
    )


def _no_defence(choices: Sequence[Frontier], least: Sequence[Frontier]) -> Step | None:
    """Where the sweep shows nothing to be safe. A setting that leaves least to learn is not one to rely on."""
    if all(choice.reason == "unneeded" for choice in choices):
        return None
    names = sentence_list([short(name) for name in dict.fromkeys(choice.recommended for choice in least)])
    rest = f" {names} {'leaves' if len(least) == 1 else 'leave'} least to learn of those tried." if least else ""
    return Step(f"Do not rely on a defence of this sweep: none is shown to be safe.{rest}")


def _failed(failed: Sequence[Failure]) -> Step | None:
    """Attacks that ended without a guess: more time or memory, or the command that shows why."""
    if not failed:
        return None
    names = list(dict.fromkeys(label(one.attack) for one in failed))
    they = "it" if len(names) == 1 else "they"
    said = f"Run {sentence_list(names[:NAMED])} again: {they} failed, and what {they} would have found is not known."
    if all(one.passing for one in failed):
        return Step(f"{said} More time or memory may do.", "attack_seconds: 7200  # in plan.yaml; or attack_memory_mb")
    first = next(one for one in failed if not one.passing)
    return Step(f"{said} This shows why:", f"plumbob audit plan.yaml --debug-attack {first.key[:12]}")


def _threats(conclusion: Conclusion, asked: Asked) -> Step | None:
    """Threats that attacks fit and that nobody asked about, the most telling first."""
    names = list(dict.fromkeys(one.situation.threat for one in conclusion.situations))
    tried = [THREATS[name] for name in names if name in THREATS]
    fitting = dict.fromkeys(
        row.threat for block in asked.matrix for row in block.rows if row.fits and row.threat in THREATS
    )
    parties = asked.parties or ("active", "passive")
    missing = [name for name in fitting if name not in names and not any(THREATS[name].within(t) for t in tried)]
    missing = [name for name in missing if _possible(THREATS[name], asked.active or "active", parties)]
    missing = [n for n in missing if not any(n != m and THREATS[n].within(THREATS[m]) for m in missing)]
    if not missing:
        return None
    named = [f"{label(name)} ({THREATS[name].summary})" for name in missing[:NAMED]]
    wanted = ", ".join([*names, *missing[:NAMED]])
    others = [label(name) for name in fitting if name not in names and name not in missing]
    rest = f" Covered by these, or not possible with such parties: {sentence_list(others)}." if others else ""
    return Step(
        f"Ask about more attackers. Nobody asked about {sentence_list(named)}.{rest}",
        f"threats: [{wanted}]  # in plan.yaml",
    )


def _possible(threat: Threat, active: str, parties: Sequence[str]) -> bool:
    """Whether there are parties enough."""
    try:
        return bool(threat.curious(active, parties))
    except BadInput:
        return False


def _rows(standings: Sequence[Standing], limit: float, several: bool) -> Step | None:
    """Columns on which the attacks were too uncertain: more rows narrow them."""
    open_ = [one for one in standings if one.doubt is Doubt.ATTACKS and _unseen(one) < 1]
    if not open_:
        return None
    rows, needed = min(one.rows for one in open_), max(one.rows * _unseen(one) / limit for one in open_)
    return Step(
        f"Supply more rows: {_named(open_, several)} undecided, since {count(rows, 'row')} leave the attacks too uncertain. "
        f"About {_round_up(needed):,} rows would bring the limit to {whole_percent(limit)} %."
    )


def _unseen(one: Standing) -> float:
    return one.verdict.unseen or 0.0


def _stronger(standings: Sequence[Standing], several: bool) -> Step | None:
    """Columns in which no attack found what learners can reach."""
    open_ = [one for one in standings if one.doubt is Doubt.CEILING]
    if not open_:
        return None
    most = whole_percent(max(map(_unseen, open_)))
    return Step(
        f"Do not call safe what no attack found: {_named(open_, several)} undecided, since a better attack could gain up to "
        f"{most} %. Choose a defence by its ceiling."
    )


def _uncovered(standings: Sequence[Standing], several: bool) -> Step | None:
    """Columns of which neither attacks nor learners could say anything."""
    reasons = {
        Doubt.NO_CEILING: "no ceiling was computed for these findings",
        Doubt.NOT_COVERED: "learners cannot read what was sent",
        Doubt.ATTACKS: "the attacks did worse than guessing, which shows nothing",
    }
    for doubt, why in reasons.items():
        open_ = [one for one in standings if one.doubt is doubt and _unseen(one) >= 1]
        if open_:
            return Step(f"Treat as leaking until shown otherwise: {_named(open_, several)} undecided, since {why}.")
    return None


def _unaddressed(standings: Sequence[Standing], several: bool) -> list[Step]:
    """Columns that no attack looked at, reason by reason; the most exposed first."""
    reasons = group([one for one in standings if one.level is Level.NOT_TESTED], lambda one: one.verdict.why)
    ordered = sorted(reasons.items(), key=lambda pair: -max(one.exposed for one in pair[1]))
    return [_not_tested(open_, why, several) for why, open_ in ordered[:NAMED]]


def _not_tested(open_: Sequence[Standing], why: str, several: bool) -> Step:
    because, exposed = f" ({why})" if why else "", exposure.most(open_)
    ceiling = f" There {exposure.clause(exposed)}." if exposed is not None and exposed.exposed > LIMIT else ""
    return Step(f"Treat as leaking until shown otherwise: {_named(open_, several)} not tested{because}.{ceiling}")


def _gate(conclusion: Conclusion) -> Step:
    safe = conclusion.level is Level.NONE
    said = "Keep it so" if safe else "Stop a build until this is settled"
    counted = "" if safe else " It counts what is undecided or not tested as a leak."
    return Step(
        f"{said}: a gate turns the verdict into an exit code.{counted}", 'plumbob audit plan.yaml --gate "leaks==0"'
    )


def _named(found: Sequence[Standing], several: bool) -> str:
    """Columns by name, situation by situation where there are several, and their verb; of many the first few."""
    places = list(group(found, lambda one: one.situation).items())
    every = {one.verdict.column for one in found}
    verb = "is" if len(every) == 1 else "are"
    if not several:
        return f"{_columns(found)} {verb}"
    if len(places) == 1:
        return f"{_columns(found)} ({_where(places[0][0])}) {verb}"
    shown = [f"{_where(place)}: {_columns(parts)}" for place, parts in places[:NAMED]]
    more = [count(len(places) - NAMED, "more situation")] if len(places) > NAMED else []
    return f"{count(len(every), 'column')} ({'; '.join([*shown, *more])}) {verb}"


def _columns(found: Sequence[Standing]) -> str:
    names = list(dict.fromkeys(short(one.verdict.column) for one in found))
    shown = names if len(names) <= NAMED + 1 else names[:NAMED]
    more = len(names) - len(shown)
    return sentence_list([*shown, *([f"{more} more"] if more else [])])


def _where(place: Situation) -> str:
    return f"{label(place.protocol)}, {short(place.threat)}, {defence_words(place.defence)}"


def _round_up(number: float) -> int:
    """To two digits.

    >>> _round_up(1234.0), _round_up(87.2)
    (1300, 88)
    """
    step = 10 ** max(0, math.floor(math.log10(max(1.0, number))) - 1)
    return int(math.ceil(number / step) * step)
