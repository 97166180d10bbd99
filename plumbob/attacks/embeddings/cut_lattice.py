"""Lattice at the cut (ours): hidden columns of whole numbers, exactly, from the embeddings of a linear cut.

    z_i - z_0 = W (x_i - x_0)    whole columns are short vectors of a lattice, found by LLL     (_whole_functionals.py)
    W_{t+1} - W_t ~ G_t' X_t     training shows inner products of rows: of all sums of whole columns, those that are columns
                                 are orthogonal, and as long as their ranges have steps         (_column_basis.py)
Biases, rotation and roundings to 32 bits do not matter: rows are in plenty. A column is certain if all rows that were not
used are whole. Where training was not seen, or moved otherwise than by momentum, sums that have ranges of columns are offered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.embeddings._column_basis import LIKE, Column, by_products, by_values
from plumbob.attacks.embeddings._received_embeddings import BLURRING, Embedding, blurred, embeddings, noise
from plumbob.attacks.embeddings._training_products import Products, products, rounds
from plumbob.attacks.embeddings._whole_functionals import MOST, Coordinates, WholeColumns, whole_columns
from plumbob.errors import boolean
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import Kind
from plumbob.threats import View

FINEST = 1e-8  # steps of a range below which it is no grid
DEEP = "the embeddings have more dimensions than a linear cut, which this attack needs"
WIDE = f"it tries embeddings of up to {MOST} dimensions"


@dataclass(frozen=True)
class _Ranges:
    """Steps in the ranges of one sender's columns, with their names."""

    names: tuple[str, ...]
    steps: IntArray  # 0 where there is no grid

    def owners(self, reach: float, spread: float) -> tuple[int, IntArray]:
        """The range nearest to a length that holds the values, in steps of the column found, and which columns have it."""
        near = np.flatnonzero((self.steps > 0) & (np.abs(self.steps / reach - 1) < LIKE) & (self.steps >= spread))
        if len(near):
            best = int(self.steps[near[np.argmin(np.abs(self.steps[near] / reach - 1))]])
            return best, np.flatnonzero(self.steps == best)
        # All values may be multiples of more than one step: then the range has a whole number of those.
        window = np.arange(max(1, int(np.ceil(reach * (1 - LIKE)))), int(reach * (1 + LIKE)) + 1)
        window = window[window >= spread]
        for some in window[np.argsort(np.abs(window - reach))]:
            wide = np.flatnonzero((self.steps > 0) & (self.steps % some == 0))
            if len(wide):
                return int(some), wide
        return 0, np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class _Found:
    """What was found in one embedding."""

    vectors: FloatArray
    words: str
    untried: str = ""


class CutLattice(Attack):
    """All columns of whole numbers that a linear cut shows, with their directions and, where ranges differ, their names."""

    name = "cut_lattice"
    summary = "ours: finds columns of whole numbers by lattice reduction, and tells them from their sums by the steps of training"
    paper = "plumbob"
    protocols = ("split_network",)
    addresses = (Kind.TWO_VALUED, Kind.WHOLE)
    knows = BLURRING

    def __init__(self, adaptive: bool = True) -> None:
        self.adaptive = boolean("cut_lattice: adaptive", adaptive)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        anew, _ = noise(view)
        seen = embeddings(view, averaged=anew > 0)
        parts = [(one, self._found(view, one, rng)) for one in seen]
        words = [f"{one.sender + ': ' if one.sender else ''}{one.told(part.words)}" for one, part in parts]
        vectors = np.hstack([one.placed(part.vectors, len(view.own)) for one, part in parts])
        untried = next((part.untried for _, part in parts if part.untried), "")
        return Guess(view.unknown_names, vectors=vectors, certificate=". ".join(words), untried=untried)

    def _found(self, view: View, one: Embedding, rng: np.random.Generator) -> _Found:
        """The columns of one embedding, scaled to their ranges."""
        ranges = ranges_of(view, one.sender)
        nothing = np.zeros((len(one.cells), 0))
        linear = MOST if blurred(view) else len(view.unknown) + 1  # of which one is for a bias
        found = whole_columns(one.cells, max(one.sd, one.inexact), rng, most=linear)
        if not found.sound:
            why = WIDE if found.rank > MOST else DEEP
            return _Found(nothing, f"{found.rank} dimensions", why)
        if not found.columns.shape[1]:
            return _Found(nothing, f"no column of whole numbers in {found.rank} dimensions")
        told, columns = None, []
        if one.rows is None:
            at = Coordinates.of(one.cells, max(one.sd, one.inexact))
            told = products(rounds(view, one.sender), at.rows)
            columns = [] if told is None else by_products(found.columns, at.rows, told, ranges.steps)
        if not any(column.sure for column in columns):
            told, columns = None, by_values(found.columns, rng)
        return _scaled(found, columns, ranges, told)


def ranges_of(view: View, sender: str) -> _Ranges:
    """Of the columns that the sender may hold: all hidden ones if only a sum was opened, or if names are not known."""
    steps = np.zeros(len(view.unknown)) if view.steps is None else np.asarray(view.steps)
    counts = np.array([round(1 / step) if step > FINEST else 0 for step in steps], dtype=np.int64)
    held = [j for j, name in enumerate(view.unknown_names) if name.startswith(f"{sender}.")]
    if not sender or not held:
        held = list(range(len(view.unknown_names)))
    return _Ranges(tuple(view.unknown_names[j] for j in held), counts[held])


def _scaled(found: WholeColumns, columns: list[Column], ranges: _Ranges, told: Products | None) -> _Found:
    """Columns as shares of their ranges, and what is known of them in words."""
    vectors, owners = [], []
    for column in columns:
        spread = float(column.steps.max())
        reach, whose = ranges.owners(column.reach, spread)
        if told is None and ranges.steps.any() and reach != spread:
            continue
        if told is not None and not column.sure:
            continue
        vectors.append(column.steps / (reach or max(column.reach, spread)))
        owners.append(whose)
    table = np.clip(np.array(vectors).T.reshape(len(found.columns), -1), 0.0, 1.0)
    whole = found.columns.shape[1]
    words = [
        f"whole numbers in {whole} of {found.rank} dimensions, off by {found.off:.1e} of a step, by chance with a probability "
        f"below 1e-{found.digits:.0f}"
    ]
    if told is None:
        words.append(f"{len(vectors)} sums of them have ranges of columns; training does not tell columns from sums")
        return _Found(table, "; ".join(words))
    words.append(f"{len(vectors)} are columns, as {told.rounds} steps of training show (misfit {told.misfit:.1e})")
    if near := sum(column.sure and column.near for column in columns):
        words.append(f"{near} of these up to columns of far shorter ranges, which so few rounds do not tell apart")
    if names := _named(owners, ranges):
        words.append(f"named by their ranges: {', '.join(names)}")
    return _Found(table, "; ".join(words))


def _named(owners: list[IntArray], ranges: _Ranges) -> list[str]:
    """Columns that are the only ones of their range, among those hidden and among those found."""
    times = np.bincount(np.concatenate([*owners, np.zeros(0, dtype=np.int64)]), minlength=len(ranges.names))
    return [ranges.names[int(who[0])] for who in owners if len(who) == 1 and times[who[0]] == 1]
