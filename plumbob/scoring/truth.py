"""The truth that guesses are judged by: the sealed columns that a view does not contain, and which of their cells count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plumbob.federation import FILLED, BoolArray, FloatArray, IntArray
from plumbob.kinds import Kind, kind_of
from plumbob.scoring.images import Tile, tiles_of
from plumbob.threats import View
from plumbob.transcript import Transcript


@dataclass(frozen=True)
class Truth:
    """The true unknown columns, and other rows of them for the classifier that measures attack accuracy."""

    names: tuple[str, ...]
    values: FloatArray
    other_rows: FloatArray
    other_labels: IntArray
    bins: IntArray | None = None  # of training protocols that put columns into bins, counted from the lowest values
    label: IntArray | None = None  # the rows' classes, where the active party put them away
    tiles: tuple[Tile, ...] = ()  # of pictures: what each party holds of them
    kinds: tuple[Kind, ...] = ()  # of the columns
    own_names: tuple[str, ...] = ()  # of the curious parties' own columns
    grids: FloatArray | None = None  # steps of the columns' values, 0 where there is no grid
    held: tuple[
        str, ...
    ] = ()  # what each column is of own columns, where that was looked at; see `scoring.held_columns`
    filled: BoolArray | None = (
        None  # cells that count nowhere: preparation filled them, or their people are known in full
    )
    known_people: IntArray | None = None  # rows that the curious know in full
    labelled: IntArray | None = None  # rows whose label they know
    nodes: tuple[IntArray, FloatArray] | None = None  # of a model of trees: column and threshold of its nodes on them

    @property
    def seen(self) -> BoolArray | None:
        """The other cells, which scoring counts; None if that is all of them."""
        return None if self.filled is None else ~self.filled

    @property
    def cells(self) -> FloatArray:
        """The values that count: all as a table, or one after the other those that were seen."""
        return self.values if self.filled is None or self.filled.all() else self.values[~self.filled]

    def column(self, j: int) -> FloatArray:
        """The values of one column that count."""
        return self.values[:, j] if self.filled is None else self.values[~self.filled[:, j], j]

    def others(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The rows of people whom the curious do not know in full."""
        return rows if self.known_people is None else np.delete(rows, self.known_people, axis=0)

    def unlabelled(self, rows: IntArray) -> IntArray:
        """The rows of people whose label the curious do not know by their threat."""
        known = [part for part in (self.known_people, self.labelled) if part is not None]
        return np.delete(rows, np.concatenate(known)) if known else rows

    def only(self, columns: IntArray) -> Truth:
        """The truth of some columns."""
        return replace(
            self,
            names=tuple(self.names[j] for j in columns),
            values=self.values[:, columns],
            other_rows=self.other_rows[:, columns],
            kinds=tuple(self.kinds[j] for j in columns) if self.kinds else (),
            grids=None if self.grids is None else self.grids[columns],
            held=tuple(self.held[j] for j in columns) if self.held else (),
            filled=None if self.filled is None else self.filled[:, columns],
            nodes=None,  # what is judged node by node is judged of all columns together
        )


def truth_of(transcript: Transcript, view: View) -> Truth:
    """Open the sealed columns that the view does not contain."""
    values = np.hstack([transcript.sealed(party)["columns"] for party in transcript.parties])
    coordinator = transcript.sealed("coordinator")
    names = tuple(transcript.features[i].name for i in view.unknown)
    other = coordinator.get("other rows", values[:0])[:, view.unknown]  # a recorded run need not have any
    other_labels = coordinator.get("other labels", np.zeros(0, dtype=np.int64))
    binned = [
        sealed["bins"]
        for p in transcript.parties
        if p not in view.curious and "bins" in (sealed := transcript.sealed(p))
    ]
    bins = np.hstack(binned) if binned else None
    label = transcript.sealed(transcript.active).get("label")
    if label is None and transcript.active not in view.curious:
        label = coordinator.get("row labels")
    features = [transcript.features[i] for i in view.unknown]
    kinds = tuple(kind_of(values[:, i], f.column.grid) for i, f in zip(view.unknown, features, strict=True))
    mine = [transcript.features[i] for i in view.known]
    several = len({feature.party for feature in mine}) > 1
    return Truth(
        names,
        values[:, view.unknown],
        other,
        other_labels,
        bins,
        label,
        tiles_of(features),
        kinds,
        own_names=tuple(feature.name if several else feature.column.name for feature in mine),
        grids=np.array([feature.column.grid for feature in features]),
        filled=_uncounted(_filled(transcript, view), values[:, view.unknown], view.people),
        known_people=view.people,
        labelled=view.labelled,
        nodes=_nodes(coordinator, view),
    )


def _nodes(coordinator: Mapping[str, NDArray[Any]], view: View) -> tuple[IntArray, FloatArray] | None:
    """The nodes of the model's trees that ask for an unknown column; scoring knows the model, whatever the curious know."""
    feature, threshold = coordinator.get("model/feature"), coordinator.get("model/threshold")
    if feature is None or threshold is None:
        return None
    mine = np.isin(feature, view.unknown)
    position = np.argsort(view.unknown)
    column = position[np.searchsorted(view.unknown, feature[mine], sorter=position)]
    return np.asarray(column, dtype=np.int64), np.asarray(threshold[mine], dtype=np.float64)


def _filled(transcript: Transcript, view: View) -> BoolArray | None:
    """Which cells of the unknown columns preparation filled; None if it filled none."""
    sealed = [transcript.sealed(party) for party in transcript.parties]
    if not any(FILLED in state for state in sealed):
        return None
    filled = np.hstack([state.get(FILLED, np.zeros(state["columns"].shape, dtype=np.bool_)) for state in sealed])
    return filled[:, view.unknown] if filled[:, view.unknown].any() else None


def _uncounted(filled: BoolArray | None, values: FloatArray, people: IntArray | None) -> BoolArray | None:
    """Filled cells, and all of the people whom the curious know in full."""
    if people is None:
        return filled
    every = np.zeros(values.shape, dtype=np.bool_) if filled is None else filled.copy()
    every[people] = True
    return every
