"""The answer in a few short sentences: who learns it, of how many people, what taking part adds, and what is not known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from plumbob.auditing.concluding.ceilings import Ceiling
from plumbob.auditing.concluding.conclusion import worst_per_column
from plumbob.auditing.concluding.failures import Failure
from plumbob.auditing.concluding.judging import LIMIT
from plumbob.auditing.planning.matrix import Block
from plumbob.data.matched import Matched
from plumbob.federation import Dropped
from plumbob.report import answer as words
from plumbob.report import exposure, matching, risk, tally
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.bars import floor_above, lanes
from plumbob.report.phrases import count, defended, label, percent, plain, reduced, sentence_list, short
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS, AuxiliaryRows, Threat


@dataclass(frozen=True)
class Asked:
    """What a plan asked for, as far as a report needs it."""

    parties: tuple[str, ...] = ()  # empty where columns are dealt out at random
    active: str = ""
    threats: tuple[Threat, ...] = ()
    matrix: tuple[Block, ...] = ()  # its protocols against every threat that is known
    gated: bool = False
    sweeps: bool = True  # whether defences can be tried: not on a recorded run
    dropped: tuple[Dropped, ...] = ()  # columns of the parties' files that took no part
    matched: tuple[Matched, ...] = ()  # what matching their rows told whom
    inapplicable: tuple[str, ...] = ()  # attacks that read what nobody of the plan sends, each with the reason

    def threat(self, name: str) -> Threat | None:
        """A threat of the plan, or one of those that are known."""
        return next((one for one in self.threats if one.name == name), THREATS.get(name))


@dataclass(frozen=True)
class Fact:
    """One line of the answer."""

    name: str
    said: str


def facts(found: Sequence[Answer], asked: Asked, failed: Sequence[Failure] = ()) -> list[Fact]:
    """What somebody should know who reads nothing else; the worst situation stands for all."""
    tested = [answer for answer in found if answer.summaries]
    if not tested:
        return []
    worst = tested[0]
    noun = words.nouns(tested)
    lines = [
        (
            "Who learns it" if worst.judged.level.leaks else "Who was curious",
            f"{_who(worst, len(found) > 1)} {_also(worst, tested)}".strip(),
        ),
        ("Not cleared", not_cleared(found, asked)),
        ("People", risk.people(worst)),
        (f"Worst {noun}", _worst_column(worst, tested)),
        ("Label", _of_label(tested)),
        ("Matching", matching.in_short(asked.matched)),
        ("Pictures", words.pictures(worst)),
        ("Taking part adds", taking_part([answer for answer in found if answer.judged.counts], asked)),
        ("Attacked", f"{holdings(worst, asked)} {_twice(found)}".strip()),
        ("Evidence", " ".join(filter(None, (words.sure(worst), _reduced(tested))))),
        ("Failed", broken(failed)),
        ("Not known", not_known(found)),
    ]
    return [Fact(name, said) for name, said in lines if said]


def holdings(answer: Answer, asked: Asked) -> str:
    """Who holds what: which columns were known, which were attacked."""
    if not answer.summaries:
        return ""
    threat, total = asked.threat(answer.situation.threat), _total(answer)
    if asked.parties and threat is not None and asked.active:
        curious = threat.curious(asked.active, asked.parties)
        others = [name for name in asked.parties if name not in curious]
        holders = [name for name in asked.parties if name in curious]
        hidden = answer.summaries[0].unknown_columns
        if others and holders:
            verb = "holds" if len(holders) == 1 else "hold"
            said = f"{sentence_list([_party(name) for name in holders])} {verb} {total - hidden} of the {total} columns"
            return _sentence(f"{said}; {_owned(others, hidden)} {'was' if hidden == 1 else 'were'} attacked.")
    cells = "pixels" if answer.noun == "tile" else "columns"
    known = sorted({s.known_columns for s in answer.summaries}, reverse=True)
    span = f"{known[0]}" if len(known) == 1 else f"{known[-1]} to {known[0]}"
    said = f"The curious side holds {span} of the {total} {cells}; the others were attacked."
    if known == [0]:
        said = f"The curious side holds none of the {total} {cells}; all were attacked."
    shifting = any(len(summary.verdicts) > summary.unknown_columns for summary in answer.summaries)
    if len(answer.shares) > 1:
        shares = f"{percent(answer.shares[0])} to {percent(answer.shares[-1])}"
        said += f" {len(answer.shares)} shares of unknown {cells} were tried, {shares}; each column counts by its worst case."
    if shifting:
        said += f" Which ones were unknown changed from trial to trial, and all count{_hidden(answer)}."
    if shifting and not asked.parties:
        said += " The plan names no parties: these are random splits of one table, not a real federation."
    return said


def _hidden(answer: Answer) -> str:
    """In how many trials a column was hidden: the worst may stand on one."""
    times = sorted({one.verdict.trials for one in answer.columns if one.attack and one.verdict.trials})
    if not times or times[0] == max(summary.trials for summary in answer.summaries):
        return ""
    span = f"{times[0]}" if len(times) == 1 else f"{times[0]} to {times[-1]}"
    return f"; a {answer.noun} was hidden in {span} of the trials, and its range is what was seen in these"


def _twice(found: Sequence[Answer]) -> str:
    """Whether a column of one table that is dealt out is counted for either party that may hold it."""
    names = {one.verdict.column for answer in found for one in answer.columns}
    both = any(f"active.{name.removeprefix('passive.')}" in names for name in names if name.startswith("passive."))
    if not both:
        return ""
    said = "A column counts once as the passive party’s and once as the active party’s"
    told = worst_per_column(one for answer in found if answer.judged.counts for one in answer.columns)
    run = {one.verdict.column: one.level.leaks for one in told if one.attack}
    idle = [party for party in ("passive", "active") if not any(name.startswith(f"{party}.") for name in run)]
    if len(idle) != 1:
        return f"{said}."
    rest = sum(one.verdict.column.startswith(f"{idle[0]}.") for one in told)
    leak = f"{sum(run.values())} of the {len(run)} columns attacked leak"
    return f"{said}: {leak}; the {idle[0]} party’s {rest} were not attacked."


def not_cleared(found: Sequence[Answer], asked: Asked) -> str:
    """Who was attacked and on what, and what is known of the others all the same: nobody else is cleared."""
    tested = [answer for answer in found if answer.summaries]
    who = sentence_list(list(dict.fromkeys(answer.learner for answer in tested)))
    protocols = {answer.situation.protocol for answer in tested}
    phases = {block.phase for block in asked.matrix if block.protocol in protocols}
    scope = f", and only on {phases.pop()}" if len(phases) == 1 else ""
    said = [f"Only {who} was attacked{scope}. Nobody else is cleared."] if asked.matrix else []
    gaps = [answer for answer in found if answer.judged.counts and not answer.summaries]
    for learner, worst in exposure.by_learner((answer.learner, answer.every) for answer in gaps):
        if worst.exposed > LIMIT:
            here = f"{short(worst.situation.threat)}, {label(worst.situation.protocol)}"
            said.append(
                f"{_sentence(learner)} ({here}): no attack of this plan says anything of it, yet "
                f"{exposure.clause(worst)}. Treat it as leaking."
            )
    return " ".join(said)


def _reduced(tested: Sequence[Answer]) -> str:
    some = any(reduced(name) for answer in tested for name in answer.attacks)
    return "Attacks marked fast or small run at reduced strength: what they find is a lower bound." if some else ""


def taking_part(found: Sequence[Answer], asked: Asked) -> str:
    """What the messages add for an attacker with complete rows of other people, and for one without, before any defence."""
    without = [a for a in found if (t := asked.threat(a.situation.threat)) is None or t.grant(AuxiliaryRows) is None]
    bare = [column for answer in _undefended(without) for column in answer.every]
    found = _undefended(found)
    capped = [(column, column.ceiling) for answer in found for column in answer.every if column.ceiling is not None]
    armed = [a for a in found if a not in without and a.summaries]
    with_rows = _attacked_with_rows(armed) or (_with_rows(capped) if capped else "")
    imputed = {column.verdict.column for column in bare if column.level.leaks}
    return " ".join(filter(None, (_without_rows(bare), with_rows, _imputed(found, imputed))))


def _attacked_with_rows(found: Sequence[Answer]) -> str:
    """What attacks with complete rows took, where they were run and took anything."""
    learnt = [c for answer in found for c in answer.columns if c.level.leaks and c.level.rank >= Level.LEAK.rank]
    if not learnt:
        return ""
    worst = max(learnt, key=lambda column: column.severity)
    return f"With complete rows, and what else such attackers know: {short(worst.verdict.column)} ({worst.words})."


def _undefended(found: Sequence[Answer]) -> Sequence[Answer]:
    """Those without defence, where there are any: a defence may be chosen or not, the federation comes first."""
    return [answer for answer in found if not defended(answer.situation.defence)] or found


def broken(failed: Sequence[Failure]) -> str:
    """Attacks that ended without a guess, so that nothing follows from what they did not find."""
    if not failed:
        return ""
    first = failed[0]
    more = f" {count(len(failed) - 1, 'other failure')} in the notes." if len(failed) > 1 else ""
    where = f"{first.times} of {count(first.trials, 'run')} on {plain(first.where)}"
    return (
        f"{_sentence(label(first.attack))} failed in {where}: {plain(first.reason)}.{more} What an attack that failed would have "
        f"found is not known."
    )


def not_known(found: Sequence[Answer]) -> str:
    """In how many situations something is not known, and what."""
    meant = [answer for answer in found if answer.judged.counts]
    open_ = [[c for c in answer.every if not c.level.known] for answer in meant if answer.summaries]
    open_ = [columns for columns in open_ if columns]
    of = f"of {count(len(found), 'situation')}"
    parts = [untested] if (untested := words.untested_words(found)) else []
    if open_ and len(meant) == 1:
        parts.append(_open_words(open_[0], words.nouns(meant)))
    elif open_:
        parts.append(f"in {len(open_)} {of} some {words.nouns(meant)}s are undecided or not tested")
    covered = any(answer.judged.gap is not None and answer.judged.gap.covered_by for answer in found)
    meaning = (
        " Of what was not run no more is known than of a tested attacker who sees the same and knows no less."
        if covered
        else ""
    )
    return _sentence(f"{'; '.join(parts)}.{meaning} Not known is not safe.") if parts else ""


def _open_words(columns: Sequence[ColumnAnswer], noun: str) -> str:
    """Columns, and the label, of which no answer is known."""
    number = sum(not column.is_label for column in columns)
    parts = [count(number, noun)] if number else []
    parts += ["the label"] if any(column.is_label for column in columns) else []
    return f"{sentence_list(parts)} {'is' if len(columns) == 1 else 'are'} undecided or not tested"


def _who(answer: Answer, several: bool) -> str:
    knows = f", which {answer.knowledge}" if answer.knowledge else ""
    where = f". Worst of all situations: {answer.where}" if several else f". {_sentence(answer.where)}"
    return _sentence(f"{answer.learner}{knows}{where}.")


def _also(worst: Answer, tested: Sequence[Answer]) -> str:
    """Everybody else to whom something leaks, each at its worst: who needs less than the worst is no smaller risk."""
    others = [a for a in _undefended(tested) if a.situation.threat != worst.situation.threat and a.judged.level.leaks]
    said = []
    for answer in {a.situation.threat: a for a in reversed(others)}.values():
        knows = f", which {answer.knowledge}" if answer.knowledge else ""
        told = tally.brief(answer.every, answer.noun)
        most = answer.columns[0] if answer.columns and answer.columns[0].level.leaks else None
        at_worst = f"; {short(most.verdict.column)}: {most.words}" if most is not None else ""
        said.append(f"Also {answer.learner}{knows}: {told} ({label(answer.situation.protocol)}{at_worst}).")
    return " ".join(said)


def _worst_column(answer: Answer, found: Sequence[Answer]) -> str:
    if not answer.columns:
        return ""
    worst = answer.columns[0]
    name = short(worst.verdict.column)
    if not worst.level.leaks:
        return f"{name}: {worst.words}."
    close = words.hits(worst.verdict, answer.noun)
    told = worst.metric == "values" and not worst.verdict.two_values and worst.level is not Level.EXACT
    return f"{name}: {worst.words}, by {label(worst.attack)}{f'; {close}' if told else ''}."


def _of_label(found: Sequence[Answer]) -> str:
    """The label at its worst."""
    told = [answer.label for answer in found if answer.label is not None]
    if not told:
        return ""
    worst = max(told, key=lambda one: one.severity)
    who = f", by {label(worst.attack)}" if worst.attack and worst.level.leaks else ""
    return _sentence(f"{worst.words}{who}.")


def _with_rows(capped: Sequence[tuple[ColumnAnswer, Ceiling]]) -> str:
    """What whoever has complete rows could learn: the ceiling of learners, or what attacks showed where that is more."""
    read = [(column, ceiling) for column, ceiling in capped if ceiling.covers]
    if not read:
        return "With complete rows of other people: not known, since no learner reads these messages."
    column, ceiling = max(read, key=lambda pair: pair[1].gain)
    name = "the label" if column.is_label else short(column.verdict.column)
    what = "mistakes of naming the most frequent class" if column.is_label else "variance"
    beyond = [one for one, ceiling in capped if floor_above(one, ceiling)]
    if beyond and (ceiling.gain < 0.005 or lanes(beyond[0]).floor > ceiling.full):
        said = "at least what attacks take without them, since attacks solve equations that learners do not"
    elif ceiling.gain < 0.005:
        said = f"at most {percent(max(0.0, *(ceiling.possible for _, ceiling in read)))} in any column"
    else:
        said = (
            f"{100 * ceiling.gain:.0f} points of the {what} of {name} (own columns alone {percent(ceiling.own)}, with the "
            f"messages {percent(ceiling.full)}){_seen_by(column)}"
        )
    missed = len(capped) - len(read)
    blind = f" Messages that no learner reads leave {count(missed, 'column')} open." if missed else ""
    return f"For whoever has complete rows of other people: {said}.{blind}"


def _seen_by(column: ColumnAnswer) -> str:
    """Whose messages these are, where no attack was run on them."""
    return "" if column.attack else f", in what {column.learner} sees, on which no attack was run"


def _without_rows(columns: Sequence[ColumnAnswer]) -> str:
    """What attacks showed that need no complete rows."""
    learnt = [column for column in columns if column.level.leaks]
    if not learnt:
        return "Without complete rows of other people: nothing that attacks found." if columns else ""
    worst = max(learnt, key=lambda column: column.severity)
    name = "the label" if worst.is_label else short(worst.verdict.column)
    return f"Without complete rows of other people: {name} ({worst.words})."


def _imputed(found: Sequence[Answer], through: Collection[str]) -> str:
    """Leaking columns of which own columns alone would tell as much to whoever has complete rows."""
    leaking = [c for c in words.worst_columns(found) if c.level.leaks and not c.is_label and c.metric == "values"]
    known = [c for c in leaking if c.ceiling is not None and c.ceiling.own >= lanes(c).floor > 0]
    learnt = sum(c.verdict.column in through for c in known)
    if not known:
        return ""
    verb = "leaks" if len(leaking) == 1 else "leak"
    return (
        f"Of {count(len(leaking), 'column')} that {verb}, whoever has complete rows could impute {len(known)} as well from own "
        f"columns alone{f'; without such rows, {learnt} of these leak through the messages' if learnt else ''}."
    )


def _total(answer: Answer) -> int:
    return answer.summaries[0].known_columns + answer.summaries[0].unknown_columns


def _party(name: str) -> str:
    """A party as one speaks of it: an ordinary word gets its article."""
    return f"the {name}" if name.isascii() and name.isalpha() and name.islower() else short(name)


def _owned(names: Sequence[str], number: int) -> str:
    owners = sentence_list([_party(name) for name in names])
    return f"{owners}'s {number}"


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:]
