"""What can be learnt from complete rows: features of rows that are known in full, and the same features of all others.

people known in full      row k of the view: own columns, and all that the messages say of row k
rows of other people      own columns, and the scores that the federation answered on them, or their embeddings at a cut
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumbob.attacks.auxiliary._told_embeddings import told as told_embeddings
from plumbob.attacks.row_messages import WIDE, reduced, row_messages
from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.threats import View
from plumbob.views import AUXILIARY_ANSWERS


@dataclass(frozen=True)
class Lesson:
    """Features of the rows known in full (`taught`) and of all rows of the view (`asked`), and what is hidden of the former."""

    own_taught: FloatArray
    own_asked: FloatArray
    told_taught: FloatArray  # what messages say of them; no column where they say nothing row by row
    told_asked: FloatArray
    hidden: FloatArray  # rows known in full x unknown columns
    labels: IntArray | None = None  # classes of the rows known in full, where these are unknown of the others


def lesson(view: View, told: bool = True) -> Lesson:
    """Of the people known in full where the threat grants some, else of the other people's rows; with messages, or without."""
    if view.people is not None and view.people_rows is not None:
        people = view.people_rows
        said = row_messages(view).features if told else np.zeros((len(view.own), 0))
        labels = None if view.active in view.curious else view.people_labels
        return Lesson(people[:, view.known], view.own, said[view.people], said, people[:, view.unknown], labels)
    if view.auxiliary is None:
        raise BadInput("expected complete rows, and this view holds none")
    rows, own = view.auxiliary, view.auxiliary[:, view.known]
    if view.protocol == "split_network" and any(name.startswith(AUXILIARY_ANSWERS) for name in view.notes):
        seen = _embeddings_of_both(view) if told else np.zeros((len(rows) + len(view.own), 0))
        return Lesson(own, view.own, seen[: len(rows)], seen[len(rows) :], rows[:, view.unknown])
    none, silent = np.zeros((len(rows), 0)), np.zeros((len(view.own), 0))
    if view.auxiliary_scores is None or not told:
        return Lesson(own, view.own, none, silent, rows[:, view.unknown])
    asked = ~np.isnan(view.auxiliary_scores).any(axis=1)
    if asked.sum() < 2:
        return Lesson(own, view.own, none, silent, rows[:, view.unknown])
    said = _scores_of_both(view, view.auxiliary_scores[asked])
    count = int(asked.sum())
    return Lesson(own[asked], view.own, said[:count], said[count:], rows[asked][:, view.unknown])


def _embeddings_of_both(view: View) -> FloatArray:
    """What embeddings say of the other people, and below them of the rows of the view, on one scale."""
    seen = told_embeddings(view)
    if seen is None or seen.others is None:
        return np.zeros(((0 if view.auxiliary is None else len(view.auxiliary)) + len(view.own), 0))
    return reduced(np.vstack([seen.others, seen.asked]), WIDE)


def _scores_of_both(view: View, answers: FloatArray) -> FloatArray:
    """What scores say of the other people, and below them of the rows of the view, on one scale."""
    scores = [m for m in view.messages if m.name == "scores" and m.receiver in view.curious]
    if not scores:
        return np.zeros((len(answers) + len(view.own), 0))
    payload = np.concatenate([answers, *(np.asarray(m.payload, dtype=np.float64) for m in scores)])
    everyone = replace(
        view,
        own=np.zeros((len(payload), 0)),
        messages=(replace(scores[0], payload=payload),),
        notes={},
    )
    return row_messages(everyone).features
