"""Rows that a table holds several times: the same person again, under another id.

Where every person is there twice, each row confirms the other. Any hidden column then looks like a code of any own one, and
whoever has all other rows has the person's own values: nothing that a message says seems to add anything. So of people who are
there several times one row counts.

Rows of few discrete columns are alike because there are few combinations. They are kept: only where a single column has many
values, nearly one for each of the different rows, does a row that comes again mean the same person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View

if TYPE_CHECKING:
    from plumbob.scoring.truth import Truth  # which builds on this module

FEW = 0.05  # share of rows that come again up to which they do not matter
DISCRETE = 50  # values of a column up to which it is discrete
TELLS = 0.5  # values of one column, as a share of the different rows, from which it tells people apart


def first_of_each(*tables: FloatArray) -> IntArray | None:
    """The first of all rows that are alike in all of these columns; None where hardly any come again.

    >>> people = np.random.default_rng(0).random((60, 2))
    >>> len(first_of_each(np.repeat(people, 3, axis=0))), first_of_each(people)
    (60, None)
    """
    table = np.ascontiguousarray(np.hstack(tables))
    if not table.shape[1] or len(table) < 2:
        return None
    kept = np.sort(np.unique(table.view([("", table.dtype)] * table.shape[1]).ravel(), return_index=True)[1])
    if len(table) - len(kept) <= FEW * len(table):
        return None
    values = max(len(np.unique(column)) for column in table.T)
    return kept if values > max(DISCRETE, TELLS * len(kept)) else None


def one_row_each(guess: Guess, truth: Truth, view: View) -> tuple[Guess, Truth, View]:
    """Guess, truth and view without rows that come again: five rows of one person are no five people who were hit."""
    if truth.tiles or guess.orders is not None:
        return guess, truth, view
    kept = first_of_each(view.own, truth.values)
    if kept is None:
        return guess, truth, view
    count = len(view.own)
    branches = guess.branches
    if branches is not None:
        certain = None if branches.certain is None else branches.certain[kept]
        branches = replace(
            branches, chosen=branches.chosen[kept], candidates=branches.candidates[kept], certain=certain
        )
    view, truth = _known(view, truth, kept)
    guess = replace(
        guess,
        values=None if guess.values is None else guess.values[kept],
        vectors=None if guess.vectors is None else guess.vectors[kept],
        labels=None if guess.labels is None else guess.labels[kept],
        branches=branches,
    )
    truth = replace(
        truth,
        values=truth.values[kept],
        label=None if truth.label is None else truth.label[kept],
    )
    messages = tuple(
        replace(m, payload=m.payload[kept]) if m.name == "scores" and len(m.payload) == count else m
        for m in view.messages
    )
    return guess, truth, replace(view, own=view.own[kept], messages=messages)


def _known(view: View, truth: Truth, kept: IntArray) -> tuple[View, Truth]:
    """Whoever is known in full is known in every row: those people, by their places among the rows that are kept."""
    filled = None if truth.filled is None else truth.filled[kept]
    table = np.hstack([view.own, truth.values]) + 0.0  # one zero, not two
    place = {row.tobytes(): i for i, row in enumerate(table[kept])}
    if view.labelled is not None and view.labelled_classes is not None:
        rows, first = np.unique([place[table[row].tobytes()] for row in view.labelled], return_index=True)
        view = replace(view, labelled=rows, labelled_classes=view.labelled_classes[first])
        truth = replace(truth, labelled=rows)
    if view.people is None or view.people_rows is None:
        return view, replace(truth, filled=filled)
    people, first = np.unique([place[table[row].tobytes()] for row in view.people], return_index=True)
    if filled is not None:
        filled[people] = True
    labels = None if view.people_labels is None else view.people_labels[first]
    view = replace(view, people=people, people_rows=view.people_rows[first], people_labels=labels)
    return view, replace(truth, filled=filled, known_people=people)
