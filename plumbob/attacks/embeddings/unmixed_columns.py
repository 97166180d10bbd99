"""Unmixed columns (ours): hidden columns of any kind, from the embeddings of a linear cut.

    one column      every embedding is a multiple of it: its order is plain, and with its range its values
    several         steps of training show the inner products of hidden rows (_training_products.py), so rows are known up to a
                    rotation; only one rotation puts them into the box of the columns' ranges              (_box_rotation.py)
    otherwise       independent components that all starts agree on (_fast_ica.py); scaled to the range that they reach
Which column one is, is open but where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.embeddings._box_rotation import unrotated
from plumbob.attacks.embeddings._fast_ica import stable_components
from plumbob.attacks.embeddings._received_embeddings import BLURRING, Embedding, blurred, embeddings, noise
from plumbob.attacks.embeddings._training_products import Products, products, rounds
from plumbob.attacks.embeddings._whole_functionals import Coordinates
from plumbob.errors import boolean
from plumbob.federation import FloatArray
from plumbob.threats import View

MOST = 60  # dimensions up to which rotations are looked for in seconds
LIKE = 0.9  # correlation from which a component is a column found already
CONSTANT = 1e-3  # distance of the constant from the span below which it lies in it
DEEP = "the embeddings have more dimensions than a linear cut, which this attack needs"
NARROW = "the embeddings are narrower than the columns they hide"
WIDE = f"it tries embeddings of up to {MOST} dimensions"


@dataclass(frozen=True)
class _Found:
    vectors: FloatArray
    words: str
    untried: str = ""


class UnmixedColumns(Attack):
    """Columns by their ranges where training shows inner products of rows, else by their independence."""

    name = "unmixed_columns"
    summary = "ours: turns embeddings of a linear cut back into columns, by their ranges and by their independence"
    paper = "plumbob"
    protocols = ("split_network",)
    knows = BLURRING

    def __init__(self, adaptive: bool = True) -> None:
        self.adaptive = boolean("unmixed_columns: adaptive", adaptive)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        view = self.seen(view)
        anew, _ = noise(view)
        parts = [(one, _found(view, one, rng)) for one in embeddings(view, averaged=anew > 0)]
        words = [f"{one.sender + ': ' if one.sender else ''}{one.told(part.words)}" for one, part in parts]
        vectors = np.hstack([one.placed(part.vectors, len(view.own)) for one, part in parts])
        untried = next((part.untried for _, part in parts if part.untried), "")
        return Guess(view.unknown_names, vectors=vectors, certificate=". ".join(words), untried=untried)


def _found(view: View, one: Embedding, rng: np.random.Generator) -> _Found:
    """The columns of one embedding."""
    sd = max(one.sd, one.inexact)
    cells = one.cells.astype(np.float64)
    nothing = np.zeros((len(cells), 0))
    varying = Coordinates.of(one.cells, sd, cells.mean(axis=0))
    if varying.rank == 0:
        return _Found(nothing, "the embeddings are the same for all rows")
    why = _out_of_reach(view, one, varying.rank)
    if why:
        return _Found(nothing, f"{varying.rank} dimensions", why)
    at = Coordinates.of(one.cells, sd)
    told = products(rounds(view, one.sender), at.rows) if one.rows is None else None
    if varying.rank == 1:
        return _single(varying.rows, None if told is None else _rotated(at.rows, told))
    columns, words = nothing, []
    if told is not None:
        turned = unrotated(_rotated(at.rows, told), rng)
        columns = turned.columns
        words.append(
            f"{columns.shape[1]} of {varying.rank} columns by their ranges: {turned.agreeing} of {turned.starts} starts end "
            f"there, {turned.outside:.1e} outside of them"
        )
    if columns.shape[1] < varying.rank:
        others = _others(stable_components(varying.rows, rng), columns)
        columns = np.hstack([columns, _to_range(others)])
        words.append(
            f"{others.shape[1]} independent components in {varying.rank} dimensions, which nearly all starts find"
        )
    return _Found(columns, "; ".join(words))


def _others(components: FloatArray, columns: FloatArray) -> FloatArray:
    """The components that are none of the columns."""
    if not components.shape[1] or not columns.shape[1]:
        return components
    joint = np.abs(np.corrcoef(components.T, columns.T))[: components.shape[1], components.shape[1] :]
    return np.asarray(components[:, joint.max(axis=1) < LIKE])


def _out_of_reach(view: View, one: Embedding, rank: int) -> str:
    """Why embeddings of so many dimensions are none of a linear cut that holds all columns; empty if they may be."""
    hidden = sum(name.startswith(f"{one.sender}.") for name in view.unknown_names) or len(view.unknown)
    if rank > MOST:
        return WIDE
    if rank > hidden and not blurred(view):
        return DEEP
    return NARROW if rank == one.cells.shape[1] < hidden else ""


def _rotated(q: FloatArray, told: Products) -> FloatArray:
    """Rows whose inner products are those of the hidden rows. A bias is a column of ones, and taken out."""
    values, vectors = np.linalg.eigh(told.matrix)
    root = vectors * np.sqrt(values)
    rows = q @ root
    ones = np.ones(len(q))
    constant = np.linalg.lstsq(rows, ones, rcond=None)[0]
    if np.sqrt(np.mean((ones - rows @ constant) ** 2)) > CONSTANT or rows.shape[1] == 1:
        return np.asarray(rows)
    basis = np.linalg.qr(np.column_stack([constant, np.eye(len(constant))]))[0]
    return np.asarray(rows @ basis[:, 1 : len(constant)])


def _single(varying: FloatArray, turned: FloatArray | None) -> _Found:
    """One dimension: the column itself. Its direction is known where training shows inner products."""
    values = varying[:, 0]
    if turned is not None and turned.shape[1] == 1 and np.corrcoef(values, turned[:, 0])[0, 1] * turned.sum() < 0:
        values = -values
    words = "one dimension: every embedding is a multiple of one column"
    return _Found(_to_range(values[:, None]), words if turned is not None else f"{words}, its direction open")


def _to_range(columns: FloatArray) -> FloatArray:
    """From 0 to 1, as if both ends were reached."""
    low, spread = columns.min(axis=0, initial=0.0), 1.0
    if columns.size:
        low, spread = columns.min(axis=0), np.ptp(columns, axis=0)
    return np.asarray((columns - low) / spread)
