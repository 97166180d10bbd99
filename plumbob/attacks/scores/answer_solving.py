"""Answer solving (ours): without a coordinator the active party sees each party's answer, and solves it for that party's row.

    z_p = f(x_p; phi_p)                                                        (jiang2022, Section 3.2, Eq 9)
Scores hold only the sum of all answers, less what softmax hides: c - 1 equations a row for all parties. An answer is c equations
for its own party's columns alone. With two classes it is one equation, as the score is. The answers of linear parts are solved
as linear equations, those of networks from many starts; a row can have several solutions, and the certificate says how many
rows do. With fewer equations than columns a posterior mean fills what is left open (`_party_answers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.base import ATTRIBUTE_INFERENCE, Attack, Guess, nothing
from plumbob.attacks.scores._party_answers import AnsweringParty, answers_received, solved
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.protocols.base import Protocol
from plumbob.protocols.scores.split_models import SplitModel, SplitModels
from plumbob.setting_types import Whole
from plumbob.threats import Threat, View, WhiteBox

__all__ = [
    "UNSEEN",
    "AnswerSolving",
    "AnsweringParty",
    "answering_parties",
    "answers_hidden",
    "answers_received",
    "said",
    "solved",
]

UNSEEN = "the parties' answers go to the coordinator, so the curious do not see them"


def answers_hidden(protocol: Protocol, threat: Threat) -> str | None:
    """Why no single answer of a party reaches the curious; None where it does."""
    if not isinstance(protocol, SplitModels):
        return None
    if protocol.sums != "clear":
        return "the parties' answers are added up unseen"
    return UNSEEN if protocol.coordinator and not threat.corrupted else None


class AnswerSolving(Attack):
    """Values whose answers are those that were sent, row by row. `starts`: for each row of a network."""

    name = "answer_solving"
    summary = "ours: without a coordinator, solves each party's answers for the values of its rows"
    paper = "plumbob"
    nist = ATTRIBUTE_INFERENCE
    protocols = ("split_models",)
    requires = (WhiteBox,)
    cost_terms = ("1", "n u^2", "n w", "n u w")
    presets = {"small": {"starts": 4}}

    def __init__(self, *, starts: Whole = 24) -> None:
        if starts < 1:
            raise BadInput(f"answer solving: expected at least 1 start, got {starts}")
        self.starts = starts

    def why_not_here(self, protocol: Protocol, threat: Threat) -> str | None:
        return answers_hidden(protocol, threat)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        if view.model is None:
            raise BadInput("answer solving needs the model (white box)")
        parties = answering_parties(view)
        if not parties:
            return nothing(view, UNSEEN)
        found = solved(view, parties, self.starts, rng)
        return Guess(view.unknown_names, found.values, certificate=said(found.counts))


def answering_parties(view: View) -> list[AnsweringParty]:
    """The other parties' models beside their answers. Models and answers come in the order of the parties."""
    assert view.model is not None
    place = {int(column): i for i, column in enumerate(view.unknown)}
    models = [local for local in SplitModel.from_arrays(view.model).locals if int(local.columns[0]) in place]
    answers = answers_received(view)
    if len(models) != len(answers):
        return []
    pairs = zip(models, answers.items(), strict=True)
    return [AnsweringParty(name, _places(place, local.columns), local, sent) for local, (name, sent) in pairs]


def _places(place: Mapping[int, int], columns: IntArray) -> IntArray:
    return np.array([place[int(column)] for column in columns], dtype=np.int64)


def said(counts: Mapping[str, NDArray[np.intp]]) -> str:
    """How many rows had one solution, several or none; empty where nothing was looked for.

    >>> said({"shop": np.array([1, 1, 1, 3])})
    'of 4 rows 3 have one solution, 1 several, 0 none that was found'
    """
    if not counts:
        return ""
    each = np.stack(list(counts.values()))
    none, one = (each == 0).any(axis=0), (each == 1).all(axis=0)
    several = int((~none & ~one).sum())
    total = each.shape[1]
    return f"of {total:,} rows {int(one.sum()):,} have one solution, {several:,} several, {int(none.sum()):,} none that was found"
