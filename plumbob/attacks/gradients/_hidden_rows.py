"""Batches whose row numbers mean nothing (ours): who is in them is told by their own gradients.

Hidden indices keep from the server which rows a gradient is of. But the gradient's row space at the first fully connected layer
is spanned by what its rows put in, h_n, and they are found there one by one (`_batch_unmixing.py`). While parameters stay as
they are, a person's h_n and v_n are a mark, the same in every round:
    marks    the h_n are taken from some rounds; those that are known already are looked up, not searched for. Where they have
             no zeros, two rounds with one person in common cross in their h_n (`_shared_rows.py`);
    people   in a round that is spanned by as many marks as it has rows, each has its v_n. Same h_n, other v_n: two people;
    workers  have marks of their own. People are the same who are in the same rounds.
So batches are known up to one renaming of all people, S Z = K G stands again (`_row_gradients.py`), and all comes out but the
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumbob.attacks.gradients._batch_unmixing import unmixed, within
from plumbob.attacks.gradients._shared_rows import crossings
from plumbob.attacks.gradients._worker_uploads import Gradients, Uploads
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.threats import View

# Rounds in which someone must be seen: what is nobody's mark is not seen twice. Alone in a batch, once is enough.
ROUNDS_TO_BE_SEEN = 2
# Rounds in which someone would be who is in none of them; else it may be someone who is known already
ROUNDS_TO_BE_CERTAIN = 5.0
BARREN = 8  # rounds without a new mark after which none is looked for
SAME_DIRECTION_COSINE = 1 - 1e-8  # cosine from which two directions are one
SAME_PERSON_SHARE = 0.01  # share by which one person's v_n may differ between rounds


class Renamed(Uploads):
    """The messages, with batches by made-up numbers; only rounds are left of which all rows are known."""

    def __init__(self, view: View, members: Mapping[int, IntArray], sizes: FloatArray, marks: int) -> None:
        super().__init__(view)
        self.members, self.sizes, self.marks = members, sizes, marks

    @cached_property
    def batches(self) -> list[IntArray]:
        nobody = np.zeros(0, dtype=np.int64)
        return [self.members.get(number, nobody) for number in range(len(self.sizes))]

    def gradients(self, party: str, key: str, partial: bool = False) -> Gradients:
        return super().gradients(party, key, partial).within(list(self.members))


@dataclass(frozen=True)
class _Attendance:
    """Who is in which round, as far as one worker's gradients tell."""

    whole: BoolArray  # rounds all of whose rows are known
    present: BoolArray  # rounds x people
    marks: int  # that were found, whether or not they tell of whole rounds

    def enough(self, people: int) -> bool:
        """Whether that tells so many people apart, so that no other worker need be asked."""
        return bool(np.linalg.matrix_rank(self.present[self.whole].astype(np.float64)) == people)


def renamed(uploads: Uploads, layers: Mapping[str, str], rng: np.random.Generator) -> Renamed:
    """Batches by made-up numbers, from the gradients of each worker's first fully connected layer, which `layers` names."""
    limit, asked = len(uploads.view.own), np.array([len(np.unique(batch)) for batch in uploads.batches])
    seen: list[_Attendance] = []
    for worker, key in layers.items():
        weights = uploads.gradients(worker, f"{key}.weight")
        units = int(uploads.parameters(worker, 0)[f"{key}.weight"].shape[0])
        seen.append(_attendance(weights, asked, units, limit, rng))
        if seen[-1].enough(limit):
            break
    members = _linked(seen, limit)
    return Renamed(uploads.view, members, uploads.sizes, sum(one.marks for one in seen))


def _attendance(weights: Gradients, asked: IntArray, units: int, limit: int, rng: np.random.Generator) -> _Attendance:
    """One worker's: marks first, then who has theirs in which round."""
    if not weights.values.size:
        return _Attendance(np.zeros(len(asked), dtype=bool), np.zeros((len(asked), 0), dtype=bool), 0)
    matrices = weights.values.reshape(len(weights.values), units, -1)
    marks = _marks(matrices, limit, rng)
    people: dict[int, list[tuple[FloatArray, set[int]]]] = {}  # by mark: v_n and rounds
    for number, matrix in zip(weights.rounds.tolist(), matrices, strict=True):
        inside, rank = within(matrix, marks)
        if not inside.sum() == rank == asked[number]:
            continue
        above = np.linalg.lstsq(marks[inside].T, asked[number] * matrix.T.astype(np.float64), rcond=None)[0]
        for mark, own in zip(np.flatnonzero(inside).tolist(), above, strict=True):
            bearers = people.setdefault(mark, [])
            known = [r for v, r in bearers if np.linalg.norm(v - own) < SAME_PERSON_SHARE * np.linalg.norm(own)]
            if known:
                known[0].add(number)
            else:
                bearers.append((own, {number}))
    every = [sorted(rounds) for bearers in people.values() for _, rounds in bearers]
    often = [rounds for rounds in every if len(rounds) >= ROUNDS_TO_BE_SEEN or (asked[rounds] == 1).any()]
    present = np.zeros((len(asked), len(often)), dtype=bool)
    for i, rounds in enumerate(often):
        present[rounds, i] = True
    whole = (present.sum(axis=1) == asked) & (asked > 0)
    return _Attendance(whole, present, len(marks))


def _marks(matrices: FloatArray, limit: int, rng: np.random.Generator) -> FloatArray:
    """Directions that rows put in, from rounds in which some are missing, until there are as many as there can be people, or
    round after round gives none; and those in which two rounds cross.
    """
    marks, barren = np.zeros((0, matrices.shape[2])), 0
    for matrix in matrices:
        if len(marks) >= limit or barren >= BARREN:
            break
        inside, rank = within(matrix, marks)
        if inside.sum() < rank:
            found = unmixed(matrix, None, rng, marks[inside]).directions[inside.sum() :]
            marks, barren = np.vstack([marks, found]), 0 if len(found) else barren + 1
    if len(marks) < limit:
        for found in crossings(matrices):
            if len(marks) < limit and (not len(marks) or (marks @ found).max() < SAME_DIRECTION_COSINE):
                marks = np.vstack([marks, found])
    return marks


def _usual(present: BoolArray, whole: BoolArray) -> float:
    """In which share of the rounds someone is."""
    return float(present.sum() / max(1, whole.sum()))


def _linked(seen: list[_Attendance], limit: int) -> dict[int, IntArray]:
    """The rounds' people by one numbering for all workers, who are the same if they are in the same rounds."""
    seen = sorted(seen, key=lambda one: -int(one.whole.sum()))
    there, told = seen[0].present.T[:limit], seen[0].whole  # by number: rounds; and the rounds of which that is known
    members: dict[int, IntArray] = {}
    for one in seen:
        common = told & one.whole
        own = np.full(one.present.shape[1], -1, dtype=np.int64)
        alone = one.whole & (one.present.sum(axis=1) == 1)
        for i, present in enumerate(one.present.T):
            sure = present[common].sum() >= ROUNDS_TO_BE_SEEN or bool((present & alone & common).any())
            same = (there[:, common] == present[common]).all(axis=1) & sure
            if same.sum() == 1:
                own[i] = int(same.argmax())
            elif (
                not present[common].any()
                and _usual(present, one.whole) * common.sum() > ROUNDS_TO_BE_CERTAIN
                and len(there) < limit
            ):
                own[i] = len(there)
                there = np.vstack([there, present])
        for number in np.flatnonzero(one.whole).tolist():
            who = own[one.present[number]]
            if number not in members and (who >= 0).all():
                members[number] = who
                there[:, number] = np.isin(np.arange(len(there)), who)
        told = told | np.isin(np.arange(len(told)), list(members))
    return members
