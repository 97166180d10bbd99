"""From a plan's data section to tables ready to be dealt out to parties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from plumbob import bundle
from plumbob.auditing.planning.plan import DataPlan, ProtocolPlan
from plumbob.data import registry
from plumbob.data.align import align
from plumbob.data.files import read_frame
from plumbob.data.matched import Matched
from plumbob.data.prepare import IGNORED, complete_rows, prepare
from plumbob.data.sampling import read_sample
from plumbob.errors import BadInput, suggest
from plumbob.federation import (
    Column,
    Dropped,
    Federation,
    FloatArray,
    IntArray,
    Party,
    Table,
    halves,
    split,
    split_at_random,
    split_into_tiles,
)
from plumbob.formats import digest_of, fitted, read_model
from plumbob.protocols.base import Model
from plumbob.recorded.open_recording import federation_in, open_recorded
from plumbob.recorded.seals import defence_of, remarks_of
from plumbob.transcript import Transcript
from plumbob.trust import NO_CODE, Trust

TILES = 4  # of a picture, where the plan is silent: jin2021's four workers

Frames = Mapping[str, pd.DataFrame]  # tables in memory, by the file name that the plan gives them


@dataclass(frozen=True)
class Source:
    """Rows and columns of an audit. Either the parties are given, or each trial deals the columns out at random."""

    name: str
    federation: Federation | None
    table: Table | None
    notes: tuple[str, ...]
    alignment: Transcript | None = None  # the messages of the private set intersection, where one was run
    matched: tuple[Matched, ...] = ()  # and what it told whom
    public: bool = False  # a published data set: pictures of its rows may be shown
    recorded: Transcript | None = None  # a run that was recorded: judged as it is, not run again
    words: Mapping[str, str] = field(default_factory=dict)  # `city=Oslo` to `city=1`, for models that know the words
    models: Mapping[str, Model] = field(default_factory=dict)  # by the protocol's title: models that exist already
    trust: Trust = NO_CODE  # of the caller: whether networks of other packages may be loaded

    @property
    def values(self) -> FloatArray:
        return self.federation.values if self.federation is not None else self._table.values

    @property
    def label(self) -> IntArray:
        if self.federation is not None:
            return self.federation.label
        assert self._table.label is not None
        return self._table.label

    @property
    def classes(self) -> tuple[str, ...]:
        return self.federation.classes if self.federation is not None else self._table.classes

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Columns of the parties' files that take no part."""
        return self.federation.dropped if self.federation is not None else self._table.dropped

    @property
    def columns(self) -> tuple[Column, ...]:
        if self.federation is not None:
            return tuple(feature.column for feature in self.federation.features)
        return self._table.columns

    @property
    def _table(self) -> Table:
        assert self.table is not None
        return self.table

    def deal(self, unknown: float | None, rng: np.random.Generator) -> tuple[Federation, IntArray]:
        """The federation of one trial, and where each of its columns stands in `values`."""
        if self.federation is not None:
            return self.federation, np.arange(self.values.shape[1])
        assert unknown is not None
        federation = split_at_random(self._table, max(1, round(unknown * len(self._table.columns))), rng)
        position = {name: i for i, name in enumerate(self._table.names)}
        return federation, np.array([position[feature.column.name] for feature in federation.features])

    @property
    def _filled(self) -> list[str]:
        """Hashes of which cells preparation filled: scores leave them out."""
        tables = (
            [self.table] if self.table is not None else self.federation.parties if self.federation is not None else []
        )
        return [bundle.digest(table.filled) for table in tables if table.filled is not None]

    @property
    def digest(self) -> str:
        """A hash of every value, so that changed data never meet old findings."""
        parts = [bundle.digest(self.values), bundle.digest(self.label), bundle.canonical(list(self.classes))]
        if self.recorded is not None:
            parts += [self.recorded.head, bundle.canonical(defence_of(self.recorded))]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    @property
    def identity(self) -> str:
        """A hash of all that a finding says or knows of the data: values, names, who holds what, ranges and steps."""
        if self.federation is not None:
            known = [self.federation.active, *map(repr, self.federation.features)]
        else:
            known = [repr(column) for column in self._table.columns]
        known += self._filled
        return hashlib.sha256(bundle.canonical([self.digest, self.name, known]).encode()).hexdigest()


def open_source(plan: DataPlan, seed: int = 0, frames: Frames | None = None) -> Source:
    """Read, align and prepare what the plan names; of more rows than `sample` a random choice is taken."""
    if plan.recorded is not None:
        return _from_recording(plan.recorded)
    source = _opened(plan, seed, frames or {})
    if len(np.unique(source.label)) < 2:
        raise BadInput(f"the label '{plan.label}' takes only one value in the shared rows; a model needs two classes")
    if plan.sample is None or plan.sample >= len(source.label):
        return source
    rows = np.sort(halves(source.label, np.random.default_rng(seed), plan.sample / len(source.label))[0])
    return replace(
        source,
        federation=source.federation and source.federation.rows(rows),
        table=source.table and source.table.rows(rows),
        notes=(*source.notes, f"{len(rows):,} of {len(source.label):,} rows taken at random ('sample')"),
    )


def with_models(source: Source, protocols: Sequence[ProtocolPlan], *, trust: Trust = NO_CODE) -> Source:
    """The source with the models that the plan names, over its columns; what does not fit is one sentence."""
    models, notes = dict(source.models), list(source.notes)
    for protocol in protocols:
        if protocol.model is None:
            continue
        if source.recorded is not None:
            raise BadInput("a recorded run contains its own model, so 'model' cannot be combined with 'recorded'")
        name = protocol.model.name
        if digest_of(protocol.model) != protocol.sha256:
            raise BadInput(f"model '{name}' is not the file the plan was made for: its SHA-256 differs; drop 'sha256'")
        own = read_model(protocol.model, trust=trust)
        if own.kind != protocol.name:
            raise BadInput(f"model '{name}' is a {own.kind}, the plan says {protocol.name}; leave out 'name'")
        try:
            models[protocol.title], told = fitted(own, source.columns, source.classes, protocol.columns, source.words)
        except BadInput as error:
            raise BadInput(f"model '{name}': {error}") from error
        notes += [f"model '{name}': {note}" for note in told]
    return replace(source, models=models, notes=tuple(notes), trust=trust)


def _from_recording(path: Path) -> Source:
    """The parties of a run that was recorded, and the run."""
    log = open_recorded(path)
    return Source(path.name, federation_in(log), None, remarks_of(log), recorded=log)


def _opened(plan: DataPlan, seed: int, given: Frames) -> Source:
    if plan.name is not None:
        table = registry.load(plan.name, rules=plan.rules.rules() if plan.rules != type(plan.rules)() else None)
        if plan.pictures:
            federation = split_into_tiles(_without(table, plan.ignore), plan.tiles or TILES)
            return Source(table.name, federation, None, table.notes, public=table.public)
        return _from_table(plan, _without(table, plan.ignore))
    if plan.file is not None:
        assert plan.label is not None
        frames, notes = _frames(plan, {plan.file.name: plan.file}, seed, given)
        frame = frames[plan.file.name]
        _require(frame, plan.label, f"{plan.file.name}")
        wanted = {name: name for party in plan.parties.values() for name in party.columns or ()}
        for party, part in plan.parties.items():
            for name in part.columns or ():
                _require(frame, name, f"party '{party}'")
        ignore = [c for c in frame.columns if c not in wanted and c != plan.label]
        table = prepare(
            frame,
            name=plan.file.name,
            label=plan.label,
            label_bins=plan.label_bins,
            ignore=[*ignore, *plan.ignore],
            rules=plan.rules.rules(),
            where=plan.file.name,
        )
        return _from_table(plan, replace(table, notes=(*notes, *table.notes)))
    return _from_files(plan, seed, given)


def _frames(
    plan: DataPlan, files: dict[str, Path], seed: int, given: Frames
) -> tuple[dict[str, pd.DataFrame], tuple[str, ...]]:
    """The files read, or of each the rows of the sample: then no more than these need fit in memory."""
    if given:
        return {n: _given(n, given, file, plan.id) for n, file in files.items()}, ()
    if plan.sample is not None:
        return read_sample(files, rows=plan.sample, seed=seed, id_column=plan.id)
    return {n: read_frame(file, text=[plan.id] if plan.id else []) for n, file in files.items()}, ()


def _given(party: str, given: Frames, file: Path, id_column: str | None) -> pd.DataFrame:
    """A party's table that is in memory already, as if it had been read from a file; or its file."""
    if file.name not in given:
        return read_frame(file, text=[id_column] if id_column else [])
    frame = given[file.name].reset_index(drop=True)
    names = [str(name) for name in frame.columns]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise BadInput(f"party '{party}': duplicate column '{repeated}' in its DataFrame; rename one")
    return frame.set_axis(names, axis=1)


def _without(table: Table, ignore: tuple[str, ...]) -> Table:
    """A table less the columns of these names, and those made from them."""
    for name in ignore:
        if name not in {c.source or c.name for c in table.columns}:
            raise BadInput(f"'{table.name}' has no column '{name}' to ignore{suggest(name, table.names)}")
    keep = [i for i, column in enumerate(table.columns) if (column.source or column.name) not in ignore]
    dropped = tuple(Dropped("", name, IGNORED) for name in ignore)
    return replace(table.only(keep), dropped=(*table.dropped, *dropped))


def _from_table(plan: DataPlan, table: Table) -> Source:
    if not plan.parties:
        return Source(table.name, None, table, table.notes, words=table.words)
    # A category may have become several columns, or none: the party that names the source owns what came of it.
    owners = {
        party: [
            c.name
            for c in table.columns
            if (c.source or c.name) in (part.columns or ()) or c.name in (part.columns or ())
        ]
        for party, part in plan.parties.items()
    }
    made = {c.source or c.name for c in table.columns} | set(table.names)
    for party, part in plan.parties.items():
        for name in part.columns or ():
            if plan.name is not None and name not in made:
                raise BadInput(f"party '{party}': no column '{name}' in '{table.name}'{suggest(name, sorted(made))}")
    assert plan.active is not None
    holder = {name: party for party, part in plan.parties.items() for name in part.columns or ()}
    dropped = tuple(replace(one, party=holder.get(one.column, "")) for one in table.dropped)
    federation = split(replace(table, dropped=dropped), owners, plan.active)
    return Source(table.name, federation, None, table.notes, words=table.words)


def _from_files(plan: DataPlan, seed: int, given: Frames) -> Source:
    assert plan.label is not None
    assert plan.id is not None
    files = {name: party.file for name, party in plan.parties.items() if party.file is not None}
    frames, sampled = _frames(plan, files, seed, given)
    columns = [str(column) for frame in frames.values() for column in frame.columns]
    for name in plan.ignore:
        if name not in columns:
            raise BadInput(f"no party has a column '{name}' to ignore{suggest(name, columns)}")
    active = _active(plan, frames)
    left_out: dict[str, list[str]] = {}
    for name, party in plan.parties.items():
        if party.columns is not None:
            for column in party.columns:
                _require(frames[name], column, f"party '{name}'")
            keep = [plan.id, *party.columns] + (
                [plan.label] if name == active and plan.label not in party.columns else []
            )
            left_out[name] = [column for column in map(str, frames[name].columns) if column not in keep]
            frames[name] = frames[name][[column for column in keep if column in frames[name].columns]]
    log = Transcript("alignment", active, tuple(frames), (), ())
    aligned = align(
        frames,
        id_column=plan.id,
        active=active,
        how=plan.align,
        rules=plan.rules.rules(),
        send=lambda sender, receiver, name, payload: log.send(sender, receiver, "align", 0, name, payload),
    )
    source = _federate(plan, aligned.frames, active, (*sampled, *aligned.notes), left_out)
    return replace(source, alignment=log, matched=aligned.matched)


def _federate(
    plan: DataPlan,
    frames: Mapping[str, pd.DataFrame],
    active: str,
    notes: tuple[str, ...],
    left_out: Mapping[str, Sequence[str]],
) -> Source:
    """The parties with their prepared tables; `left_out` are columns of files that the plan does not list."""
    rules = plan.rules.rules()
    if rules.missing == "drop_rows":  # a row that one party drops is dropped by all
        whole = [
            complete_rows(
                frame,
                label=plan.label if name == active else None,
                ignore=_present(plan.ignore, frame),
                rules=rules,
                where=f"party '{name}'",
            )
            for name, frame in frames.items()
        ]
        keep = np.logical_and.reduce(whole)
        frames = {name: frame.loc[keep] for name, frame in frames.items()}
        if not keep.all():
            notes = (*notes, f"{int((~keep).sum()):,} rows with missing values dropped at every party")
    parties: list[Party] = []
    dropped: list[Dropped] = []
    words: dict[str, str] = {}
    label: IntArray | None = None
    classes: tuple[str, ...] = ()
    for name, frame in frames.items():
        table = prepare(
            frame.reset_index(drop=True),
            name=name,
            label=plan.label if name == active else None,
            label_bins=plan.label_bins if name == active else None,
            ignore=_present(plan.ignore, frame),
            rules=rules,
            where=f"party '{name}'",
            label_alone=name == active,
        )
        notes = (*notes, *table.notes)
        words |= table.words
        parties.append(Party.holding(name, table))
        dropped += [Dropped(name, column, IGNORED) for column in left_out.get(name, ())]
        dropped += [replace(one, party=name) for one in table.dropped]
        if name == active:
            label, classes = table.label, table.classes
    assert label is not None
    federation = Federation(tuple(parties), active, label, classes, notes, tuple(dropped))
    return Source(" + ".join(frames), federation, None, notes, words=words)


def _active(plan: DataPlan, frames: Mapping[str, pd.DataFrame]) -> str:
    """The party that holds the label: the one the plan names, or the only one whose file has the column."""
    assert plan.label is not None
    if plan.active is not None:
        _require(frames[plan.active], plan.label, f"party '{plan.active}'")
        return plan.active
    holders = [name for name, frame in frames.items() if plan.label in frame.columns]
    if len(holders) == 1:
        return holders[0]
    if not holders:
        columns = sorted({str(column) for frame in frames.values() for column in frame.columns})
        raise BadInput(f"no party has a label column '{plan.label}'{suggest(plan.label, columns)}")
    raise BadInput(f"parties {', '.join(holders)} all have a column '{plan.label}'; say whose it is ('active')")


def _present(names: tuple[str, ...], frame: pd.DataFrame) -> list[str]:
    return [name for name in names if name in frame.columns]


def _require(frame: pd.DataFrame, column: str, where: str) -> None:
    if column not in frame.columns:
        raise BadInput(f"{where}: no column '{column}'{suggest(column, [str(c) for c in frame.columns])}")
