"""Parties, their columns, and the federation they form once their rows are aligned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from plumbob.errors import BadInput, suggest

FILLED = "filled"  # what a party seals of its columns: which cells were missing, and preparation filled them
COORDINATOR = "coordinator"  # neutral helper of a protocol; holds no columns, and may be the curious one
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]


@dataclass(frozen=True)
class Column:
    """One feature as the model sees it: scaled to [0, 1], with its range before scaling."""

    name: str
    kind: str = "number"  # number, binary, category (ordinal code), indicator (one of a one-hot group), date
    source: str = ""  # the raw column it was made from, when that has another name
    low: float = 0.0  # raw value that became 0
    high: float = 1.0  # raw value that became 1
    step: float = 0.0  # raw values are low plus whole multiples of this (1 for counts and codes); 0 if of no such grid
    place: tuple[int, int, int] | None = None  # of a pixel: its channel, row and column in the whole picture

    @property
    def grid(self) -> float:
        """The step in units of the range; 0 if there is none."""
        return self.step / (self.high - self.low) if self.high > self.low else 0.0


@dataclass(frozen=True)
class Dropped:
    """A column of a party's file that takes no part, so that nothing is found out about it."""

    party: str  # empty where no party is said to hold it
    column: str
    why: str  # a few words without values, such as `constant`


@dataclass(frozen=True)
class Table:
    """A prepared table: every feature a number in [0, 1], the label (if it has one) a class index.

    >>> table = Table("toy", (Column("age"),), np.array([[0.0], [1.0]]), np.array([0, 1]), ("no", "yes"))
    >>> table.values.shape
    (2, 1)
    """

    name: str
    columns: tuple[Column, ...]
    values: FloatArray
    label: IntArray | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what preparation did, one sentence each, no raw values
    public: bool = False  # a published data set: pictures of its rows may be shown
    words: Mapping[str, str] = field(default_factory=dict)  # `city=Oslo` to `city=1`; never part of a report
    filled: BoolArray | None = None  # cells that were missing and preparation filled, rows x columns; None if none were
    dropped: tuple[Dropped, ...] = ()  # raw columns that are none of the table's, in the order of the file

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def rows(self, index: IntArray) -> Table:
        """The same table with the given rows, in the given order."""
        label = None if self.label is None else self.label[index]
        filled = None if self.filled is None else self.filled[index]
        return replace(self, values=self.values[index], label=label, filled=filled)

    def only(self, index: Sequence[int]) -> Table:
        """The same rows, with some of the columns."""
        columns, filled = tuple(self.columns[i] for i in index), self.filled
        return replace(
            self,
            columns=columns,
            values=self.values[:, index],
            filled=None if filled is None else filled[:, index],
        )


@dataclass(frozen=True)
class Party:
    """A party: it holds some columns of the shared rows."""

    name: str
    columns: tuple[Column, ...]
    values: FloatArray
    filled: BoolArray | None = None  # as in a table

    @classmethod
    def holding(cls, name: str, table: Table) -> Party:
        """A party with the columns of a table."""
        return cls(name, table.columns, table.values, table.filled)

    def rows(self, index: IntArray) -> Party:
        """The same party, restricted to the given rows."""
        filled = None if self.filled is None else self.filled[index]
        return replace(self, values=self.values[index], filled=filled)

    def __post_init__(self) -> None:
        if self.values.shape[1] != len(self.columns):
            raise BadInput(
                f"party '{self.name}': expected {len(self.columns)} columns of values, got {self.values.shape[1]}"
            )


@dataclass(frozen=True)
class Feature:
    """Which party holds a column of the joint model."""

    party: str
    column: Column

    @property
    def name(self) -> str:
        return f"{self.party}.{self.column.name}"


@dataclass(frozen=True)
class Federation:
    """Parties with their rows aligned; the active one holds the label. The model's columns are theirs, in party order.

    The active party may hold nothing but the label; every other party holds columns.
    """

    parties: tuple[Party, ...]
    active: str
    label: IntArray
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()  # columns of the parties' files that take no part

    def __post_init__(self) -> None:
        names = [party.name for party in self.parties]
        if len(self.parties) < 2:
            raise BadInput(f"a federation needs at least two parties, got {len(self.parties)}")
        if len(set(names)) != len(names):
            raise BadInput(f"party names must be unique, got {', '.join(names)}")
        if COORDINATOR in names:
            raise BadInput(f"a party cannot be called '{COORDINATOR}': protocols use that name; choose another one")
        if self.active not in names:
            raise BadInput(f"the active party '{self.active}' is not among the parties{suggest(self.active, names)}")
        for party in self.parties:
            if not party.columns and party.name != self.active:
                raise BadInput(f"party '{party.name}' has no columns; give it at least one feature")
            if len(party.values) != len(self.label):
                raise BadInput(
                    f"party '{party.name}' has {len(party.values)} rows, the label has {len(self.label)}; align them first"
                )

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(Feature(party.name, column) for party in self.parties for column in party.columns)

    @property
    def passive(self) -> tuple[str, ...]:
        return tuple(party.name for party in self.parties if party.name != self.active)

    @property
    def values(self) -> FloatArray:
        """All columns side by side; only central training and scoring may use this."""
        return np.hstack([party.values for party in self.parties])

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, name: str) -> Party:
        for party in self.parties:
            if party.name == name:
                return party
        raise BadInput(f"no party '{name}'{suggest(name, [party.name for party in self.parties])}")

    def rows(self, index: IntArray) -> Federation:
        """The same parties, restricted to the given rows."""
        parties = tuple(party.rows(index) for party in self.parties)
        return replace(self, parties=parties, label=self.label[index])


def halves(label: IntArray, rng: np.random.Generator, share: float = 0.5) -> tuple[IntArray, IntArray]:
    """Random rows for training, and the rest, both in random order; the first row of every class is used for training.

    So the model sees every class, however rare.
    """
    order = rng.permutation(len(label))
    first = np.unique(label[order], return_index=True)[1]
    order = np.concatenate([order[first], np.delete(order, first)])
    cut = max(len(first), min(len(order) - 1, round(share * len(order))))
    return order[:cut], order[cut:]


def split(table: Table, owners: Mapping[str, Sequence[str]], active: str) -> Federation:
    """Split one table among parties by column name; the active party keeps the label."""
    if table.label is None:
        raise BadInput(f"table '{table.name}' has no label; name the label column")
    position = {name: i for i, name in enumerate(table.names)}
    taken: dict[str, str] = {}
    parties = []
    for party, names in owners.items():
        for name in names:
            if name not in position:
                raise BadInput(f"party '{party}': no column '{name}' in '{table.name}'{suggest(name, table.names)}")
            if name in taken:
                raise BadInput(
                    f"column '{name}' is given to both '{taken[name]}' and '{party}'; columns must not overlap"
                )
            taken[name] = party
        index = [position[name] for name in names]
        parties.append(Party.holding(party, table.only(index)))
    return Federation(tuple(parties), active, table.label, table.classes, table.notes, table.dropped)


def shape_of(columns: Sequence[Column]) -> tuple[int, int, int] | None:
    """Channels, height and width if these columns are the pixels of an image, channel by channel and row by row; else None.

    >>> shape_of([Column(f"p{i}", place=(0, i // 2, 7 + i % 2)) for i in range(6)])
    (1, 3, 2)
    """
    places = [column.place for column in columns if column.place is not None]
    if not places or len(places) < len(columns):
        return None
    corner = np.array(places).min(axis=0)
    channels, height, width = np.array(places).max(axis=0) - corner + 1
    order = np.stack(np.unravel_index(np.arange(channels * height * width), (channels, height, width)), axis=1)
    whole = len(order) == len(places) and (np.array(places) - corner == order).all()
    return (int(channels), int(height), int(width)) if whole else None


def split_into_tiles(table: Table, count: int, active: str = "server") -> Federation:
    """jin2021's federation: each worker holds one tile of every image, the active party the labels and no columns."""
    shape = shape_of(table.columns)
    if shape is None or table.label is None:
        raise BadInput(f"'{table.name}' is not a data set of labelled images, so it cannot be split into tiles")
    side = math.isqrt(count)
    _, height, width = shape
    if side * side != count or side < 2 or height % side or width % side:
        fits = [n * n for n in range(2, 9) if height % n == 0 and width % n == 0]
        raise BadInput(
            f"tiles: {height} x {width} pixels can be split into {', '.join(map(str, fits))} square tiles, not {count}"
        )
    parties = [Party(active, (), np.zeros((len(table.values), 0)))]
    tile = np.array(
        [(c.place[1] * side // height) * side + c.place[2] * side // width for c in table.columns if c.place]
    )
    for number in range(count):
        index = np.flatnonzero(tile == number)
        parties.append(Party(f"tile_{number + 1}", tuple(table.columns[i] for i in index), table.values[:, index]))
    return Federation(tuple(parties), active, table.label, table.classes, table.notes, table.dropped)


def split_at_random(table: Table, unknown: float | int, rng: np.random.Generator) -> Federation:
    """The papers' two parties: a random share (or number) of the columns goes to `passive`, the rest to `active`."""
    total = len(table.columns)
    count = unknown if isinstance(unknown, int) else round(unknown * total)
    if not 0 < count < total:
        raise BadInput(f"unknown columns: expected 1 to {total - 1} of {total}, got {count}")
    hidden = set(rng.permutation(total)[:count].tolist())
    owners = {
        "active": [name for i, name in enumerate(table.names) if i not in hidden],
        "passive": [name for i, name in enumerate(table.names) if i in hidden],
    }
    return split(table, owners, "active")
