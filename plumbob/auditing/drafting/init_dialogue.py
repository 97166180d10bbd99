"""Questions at the terminal, for what the options of `plumbob init` leave open."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from plumbob.auditing.drafting.init_choices import (
    Wishes,
    common,
    fitting_defences,
    fitting_threats,
    named_files,
    opened,
    usual_threats,
)
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.plan import EFFORTS, Plan
from plumbob.data import registry
from plumbob.defences import defence_named
from plumbob.errors import BadInput, suggest
from plumbob.protocols import PROTOCOLS, protocol_named

Ask = Callable[[str, str], str]  # a question and its default, to the answer
Tell = Callable[[str], None]


def completed(wishes: Wishes, ask: Ask | None, tell: Tell) -> Wishes:
    """Complete the wishes: ask for what is missing in a terminal, else refuse and name the option."""
    if wishes.data and wishes.parties:
        raise BadInput("name a data set (--data) or a file for each party (--party), not both")
    if ask is not None and not wishes.enough:
        return _dialogue(wishes, ask, tell)
    if not (wishes.data or wishes.parties):
        raise BadInput("nothing to audit; give --party NAME=FILE for each party, or --data NAME")
    if wishes.parties:
        frames = opened(wishes.parties, sample=wishes.sample)
        if not wishes.id:
            likely = f"; columns in every file: {', '.join(common(frames))}" if common(frames) else ""
            raise BadInput(f"name the id column (--id), the same in every file{likely}")
        if not wishes.label:
            raise BadInput("name the label column (--label)")
    return wishes


def _dialogue(wishes: Wishes, ask: Ask, tell: Tell) -> Wishes:
    """Ask every open question; after an invalid answer, say why and ask again."""

    def asked(question: str, default: str, use: Callable[[str], Wishes]) -> Wishes:
        while True:
            said = ask(question, default).strip() or default
            try:
                return use(said)
            except BadInput as error:
                tell(str(error))

    if not (wishes.data or wishes.parties):
        question = "What should be audited? Your files as party=file party=file, or a data set from `plumbob data list`"
        wishes = asked(question, "breast", lambda said: _with_data(wishes, said))
    if wishes.parties:
        frames = opened(wishes.parties, sample=wishes.sample)
        if not wishes.id:
            ids = "Which column holds the ids (the same in every file)?"
            wishes = asked(ids, next(iter(common(frames)), ""), lambda said: _with_id(wishes, said, frames))
        if not wishes.label:
            wishes = asked("Which column is the label?", "", lambda said: _with_label(wishes, said, frames))
        holders = [name for name, frame in frames.items() if wishes.label in frame.columns]
        if not wishes.active and len(holders) > 1:
            active = "Several files have it. Which party is active, so that its label counts?"
            wishes = asked(active, holders[0], lambda said: _with_active(wishes, said, holders))
    if not wishes.protocols and not wishes.models:
        protocols = f"How do the parties train and predict? {', '.join(PROTOCOLS)}"
        usual = " ".join(part.name for part in Plan().protocols)
        wishes = asked(protocols, usual, lambda said: _with_protocols(wishes, _words(said)))
    if not wishes.threats:
        fitting = fitting_threats(wishes.kinds, wishes.active, tuple(wishes.parties))
        threats = f"Who is curious? {', '.join(fitting)}"
        first = " ".join(name for name in usual_threats(wishes.kinds) if name in fitting) or next(
            iter(fitting), "active"
        )
        wishes = asked(threats, first, lambda said: _with_threats(wishes, _words(said)))
    if not wishes.defences:
        defences = f"Which defences? sweep (try all), or {', '.join(fitting_defences(wishes))}"
        wishes = asked(defences, "none", lambda said: _with_defences(wishes, _words(said)))
    if not wishes.effort:
        wishes = asked(f"How much effort? {', '.join(EFFORTS)}", "standard", lambda said: _with_effort(wishes, said))
    return wishes


def _words(said: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[\s,]+", said) if word)


def _with_data(wishes: Wishes, said: str) -> Wishes:
    if "=" not in said:
        return replace(wishes, data=registry.find(said).name)
    try:
        parties = named_files(shlex.split(said))
    except ValueError as error:
        raise BadInput("a quotation mark is not closed") from error
    opened(parties)
    return replace(wishes, parties=parties)


def _with_id(wishes: Wishes, said: str, frames: Mapping[str, pd.DataFrame]) -> Wishes:
    for name, frame in frames.items():
        if said not in frame.columns:
            raise BadInput(f"party '{name}': no id column '{said}'{suggest(said, list(frame.columns))}")
    return replace(wishes, id=said)


def _with_label(wishes: Wishes, said: str, frames: Mapping[str, pd.DataFrame]) -> Wishes:
    columns = [column for frame in frames.values() for column in frame.columns]
    if said not in columns:
        raise BadInput(f"no party has a label column '{said}'{suggest(said, columns)}")
    return replace(wishes, label=said)


def _with_active(wishes: Wishes, said: str, holders: Sequence[str]) -> Wishes:
    if said not in holders:
        raise BadInput(f"'{said}' does not have the label{suggest(said, holders)}")
    return replace(wishes, active=said)


def _with_protocols(wishes: Wishes, said: tuple[str, ...]) -> Wishes:
    for name in said:
        protocol_named(name)
    return replace(wishes, protocols=said)


def _with_threats(wishes: Wishes, said: tuple[str, ...]) -> Wishes:
    fitting = fitting_threats(wishes.kinds, wishes.active, tuple(wishes.parties))
    for name in said:
        if name not in fitting:
            raise BadInput(f"no applicable threat '{name}'{suggest(name, fitting)}")
    return replace(wishes, threats=said)


def _with_defences(wishes: Wishes, said: tuple[str, ...]) -> Wishes:
    if said != (sweep.NAME,):
        for name in said:
            defence_named(name)
    return replace(wishes, defences=said)


def _with_effort(wishes: Wishes, said: str) -> Wishes:
    if said not in EFFORTS:
        raise BadInput(f"no effort '{said}'{suggest(said, list(EFFORTS))}")
    return replace(wishes, effort=said)
