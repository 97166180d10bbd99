"""Rows seen through a network that changes between rounds (ours): what training adds to an attack, and does not take away.

Gradients of different parameters do not add up to one linear system over rounds. But each round alone gives what its rows put
into the first fully connected layer (`_batch_unmixing.py`), in no order. What stays the same is the row's input x:
    link    x is sought from one round, by descent; where it is put into the network of another round, the row of that round
            that comes out is the same person. The rounds a person is seen in tell its number, as the server chose the batches.
    agree   h(x, parameters of round t) is known for several t: more equations for the same x, with other winners of the
            pooling, so that Gauss-Newton on all of them runs into the exact answer where one round alone has many near it.
So a larger learning rate makes rounds more different, and x easier to find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from plumbob.attacks.gradients._batch_unmixing import Unmixed
from plumbob.attacks.gradients._block_inversion import Sight, agree
from plumbob.attacks.gradients._network_blocks import ConvolutionBlock
from plumbob.attacks.gradients._representation_descent import descend, descended
from plumbob.attacks.gradients._row_gradients import Inputs
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.lazy_imports import Tensor, optimize, torch

SIGHTS, SIGHTS_TO_AGREE = 6, 5  # rounds in which a row is looked for, and of them those that are brought to agree
LIVE = 0.8  # share of the most live cells from which a round tells as much as any
# 1 - cosine of what a row should put in and what one did: by a rough guess, and by a good one
NEAR_BY_ROUGH_GUESS, SAME_BY_GOOD_GUESS = 3e-3, 1e-6
MISS_OF_A_FOUND_INPUT = 1e-4  # share of a representation that an input may miss when it counts as found
# Times that all rounds are brought to agree, the first ones without asking how exact each is
AGREEMENT_PASSES, ROUGH_PASSES = 4, 1
FLOOR = 1e-6  # errors of directions below which they do not count
MIXED = 30.0  # times the row's usual miss at which a round's own counts as that of several rows in one


@dataclass(frozen=True)
class Round:
    """One round's network up to the layer, and what its batch put into that layer."""

    batch: IntArray
    forward: Callable[[Tensor], Tensor]
    blocks: list[ConvolutionBlock] | None
    unmixed: Unmixed

    @property
    def directions(self) -> FloatArray:
        return self.unmixed.directions

    @property
    def lengths(self) -> FloatArray:
        return self.unmixed.lengths


@dataclass
class _Person:
    """Someone seen in some rounds: the input as far as it is known, and as which of a round's rows it was seen."""

    x: Tensor
    seen: dict[int, int] = field(default_factory=dict)  # by place of the round: which of its directions
    miss: float = np.inf


def followed(rounds: list[Round], rows: int, shape: tuple[int, ...]) -> Inputs:
    """The rows' inputs in [0, 1], as far as rounds give them."""
    with torch.no_grad():
        people = _linked(rounds, shape)
        _looked_for_together(rounds, people)
        for turn in range(AGREEMENT_PASSES):
            _brought_to_agree(rounds, people, exact=turn >= ROUGH_PASSES)
            if turn < AGREEMENT_PASSES - 1:
                _linked_again(rounds, people)
            if all(person.miss < MISS_OF_A_FOUND_INPUT for person in people):
                break
    return _numbered(rounds, people, rows, shape)


def _linked(rounds: list[Round], shape: tuple[int, ...]) -> list[_Person]:
    """Round by round: who is there again, and who is new. Those new are looked for by descent, from this round alone."""
    people: list[_Person] = []
    for place, one in enumerate(rounds):
        for person, which in _matches(rounds, place, people, NEAR_BY_ROUGH_GUESS):
            people[person].seen[place] = which
        again = {person.seen[place] for person in people if place in person.seen}
        new = [i for i in range(len(one.directions)) if i not in again]
        if new:
            x = _looked_for(one, new, shape)
            people += [_Person(x[i], {place: which}) for i, which in enumerate(new)]
    return people


def _looked_for(one: Round, which: list[int], shape: tuple[int, ...]) -> Tensor:
    """Inputs of some of a round's rows, from this round alone: themselves if nothing is before the layer, else by descent."""
    targets = _targets(one, which)
    if one.blocks == []:
        return targets.reshape(len(which), *shape)
    return descend(one.forward, shape, targets, lengths_open=torch.from_numpy(np.isnan(one.lengths[which])))


def _matches(rounds: list[Round], place: int, people: list[_Person], near: float) -> list[tuple[int, int]]:
    """Pairs of people and directions of a round that go together: as near as asked, and the batches allow it."""
    one = rounds[place]
    possible = [i for i, person in enumerate(people) if (_numbers(rounds, person) & _members(rounds, one)).any()]
    if not possible or not len(one.directions):
        return []
    reached = one.forward(torch.stack([people[i].x for i in possible])).flatten(1).double().numpy()
    reached /= np.maximum(np.linalg.norm(reached, axis=1, keepdims=True), 1e-30)
    off = np.nan_to_num(1 - reached @ one.directions.T, nan=2.0)
    chosen = zip(*optimize.linear_sum_assignment(np.minimum(off, 2 * near)), strict=True)
    return [(possible[i], int(j)) for i, j in chosen if off[i, j] < near]


def _members(rounds: list[Round], one: Round) -> BoolArray:
    inside = np.zeros(1 + max(int(other.batch.max()) for other in rounds), dtype=bool)
    inside[one.batch] = True
    return inside


def _numbers(rounds: list[Round], person: _Person) -> BoolArray:
    """The row numbers that someone may have who was seen in these rounds; none for one who is seen no more."""
    every = [_members(rounds, rounds[place]) for place in person.seen]
    allowed: BoolArray = np.logical_and.reduce(every) if every else np.zeros_like(_members(rounds, rounds[0]))
    return allowed


def _targets(one: Round, which: list[int]) -> Tensor:
    """Representations of some of a round's rows; those of unknown length are as long as the others."""
    usual = np.nanmedian(one.lengths) if not np.isnan(one.lengths).all() else 1.0
    lengths = np.where(np.isnan(one.lengths[which]), usual, one.lengths[which])
    return torch.from_numpy(one.directions[which] * lengths[:, None]).to(torch.get_default_dtype())


def _looked_for_together(rounds: list[Round], people: list[_Person], steps: int = 300, rate: float = 0.01) -> None:
    """Descent with another of its rounds for each person in every step."""
    if not people or rounds[0].blocks == []:
        return
    used = [_chosen(rounds, person) for person in people]
    targets = [
        {place: _seen(rounds[place], [person.seen[place]], person.x[None])[0] for place in places}
        for person, places in zip(people, used, strict=True)
    ]

    def loss(x: Tensor, step: int) -> Tensor:
        turn = [places[step % len(places)] for places in used]
        total = torch.zeros(())
        for place in sorted(set(turn)):
            rows = [i for i, its in enumerate(turn) if its == place]
            wanted = torch.stack([targets[i][place] for i in rows])
            off = (rounds[place].forward(x[rows]).flatten(1) - wanted) / wanted.std().clamp_min(1e-12)
            total = total + off.pow(2).sum()
        return total

    found = descended(torch.stack([person.x for person in people]), loss, steps, rate)
    for person, its in zip(people, found, strict=True):
        person.x = its


def _brought_to_agree(rounds: list[Round], people: list[_Person], exact: bool) -> None:
    """Inputs that give what was seen of them in several rounds at once, for all who are not found yet."""
    open_ = [person for person in people if person.miss > MISS_OF_A_FOUND_INPUT]
    if not open_:
        return
    if rounds[0].blocks == []:
        for person in open_:
            person.x, person.miss = _mean(rounds, person), 0.0 if len(person.seen) > 1 else np.inf
        return
    x = torch.stack([person.x for person in open_])
    used = [_chosen(rounds, person) for person in open_]
    sights = []
    for place, one in enumerate(rounds):
        rows = [i for i, places in enumerate(used) if place in places]
        if rows and one.blocks:
            which = [open_[i].seen[place] for i in rows]
            y = _seen(one, which, x[rows])
            weight = 1 / y.pow(2).sum(dim=1).clamp_min(1e-30)
            if exact:
                weight = (
                    weight * (FLOOR / torch.from_numpy(one.unmixed.errors[which]).clamp_min(FLOOR)).to(y.dtype) ** 2
                )
            sights.append(Sight.of(one.blocks, y, torch.tensor(rows), tuple(x.shape[1:]), weight))
    if sights:
        x = agree(sights, x)
    for i, person in enumerate(open_):
        person.x = x[i]
        missed = {place: _missed(rounds[place], person.x, which) for place, which in person.seen.items()}
        usual = float(np.min(list(missed.values())) if len(missed) < 3 else np.sort(list(missed.values()))[1])
        for place, miss in missed.items():
            if miss > max(MIXED * usual, MISS_OF_A_FOUND_INPUT) and len(person.seen) > 1:
                del person.seen[place]
        person.miss = (
            usual if len(person.seen) > 1 else max(usual, 2 * MISS_OF_A_FOUND_INPUT)
        )  # one round proves nothing


def _mean(rounds: list[Round], person: _Person) -> Tensor:
    """An input that was seen itself: the mean over its rounds."""
    seen = [rounds[place].directions[which] * rounds[place].lengths[which] for place, which in person.seen.items()]
    return torch.from_numpy(np.mean(seen, axis=0)).to(person.x.dtype).reshape(person.x.shape)


def _chosen(rounds: list[Round], person: _Person) -> list[int]:
    """The rounds that tell most of someone: those with many live cells, from the first to the last of them."""
    live = {place: np.count_nonzero(rounds[place].directions[which]) for place, which in person.seen.items()}
    most = max(live.values())
    good = sorted(live, key=lambda place: -live[place])
    good = sorted(place for i, place in enumerate(good) if i < SIGHTS_TO_AGREE or live[place] > LIVE * most)
    return [good[i] for i in np.linspace(0, len(good) - 1, min(SIGHTS_TO_AGREE, len(good))).round().astype(int)]


def _seen(one: Round, which: list[int], x: Tensor) -> Tensor:
    """What was seen of people, with the lengths that a round leaves open as they are at the inputs so far."""
    directions = torch.from_numpy(one.directions[which]).to(x.dtype)
    lengths = torch.from_numpy(one.lengths[which]).to(x.dtype)
    reached = (one.forward(x).flatten(1) * directions).sum(dim=1)
    return directions * torch.where(lengths.isnan(), reached, lengths)[:, None]


def _missed(one: Round, x: Tensor, which: int) -> float:
    """The share of a representation by which an input misses it."""
    wanted = _seen(one, [which], x[None])
    return float((one.forward(x[None]).flatten(1) - wanted).norm() / wanted.norm().clamp_min(1e-30))


def _linked_again(rounds: list[Round], people: list[_Person]) -> None:
    """Whoever is found well is seen in all rounds that hold them, and what they are there is no one else's. The others are
    looked for again among those that nobody is.
    """
    good = [person for person in people if person.miss < MISS_OF_A_FOUND_INPUT]
    for place in range(len(rounds)):
        for i, which in _matches(rounds, place, good, SAME_BY_GOOD_GUESS):
            good[i].seen[place] = which
            for person in people:
                if person is not good[i] and person.seen.get(place) == which:
                    del person.seen[place]
    people[:] = [person for person in people if person.seen]
    for place in range(len(rounds)):
        taken = {person.seen[place] for person in people if place in person.seen}
        rest = [person for person in people if place not in person.seen and person.miss >= MISS_OF_A_FOUND_INPUT]
        for i, which in _matches(rounds, place, rest, NEAR_BY_ROUGH_GUESS):
            if which not in taken:
                rest[i].seen[place] = which


def _numbered(rounds: list[Round], people: list[_Person], rows: int, shape: tuple[int, ...]) -> Inputs:
    """Each row gets who was seen in its rounds and in no others; rows that are alike may share one. Rows that stand in the same
    rounds as another are not told apart.
    """
    values, found = np.full((rows, int(np.prod(shape))), 0.5), np.zeros(rows, dtype=bool)
    if not people:
        return Inputs(values, found)
    inside = np.zeros((rows, len(rounds)), dtype=bool)
    for place, one in enumerate(rounds):
        inside[one.batch, place] = True
    seen = np.array([[place in person.seen for place in range(len(rounds))] for person in people])
    absent = (inside[:, None] & ~seen[None]).sum(axis=2)  # rows x people
    extra = (~inside[:, None] & seen[None]).sum(axis=2)
    both = (inside[:, None] & seen[None]).sum(axis=2)
    cost = absent + 2.0 * extra
    own = np.full(rows, -1)
    who, whom = optimize.linear_sum_assignment(cost)
    own[who] = whom
    best = cost.argmin(axis=1)
    each = np.arange(rows)
    own = np.where((own >= 0) & (cost[each, own] <= cost[each, best]), own, best)
    _, kind, count = np.unique(inside, axis=0, return_inverse=True, return_counts=True)
    found = (both[each, own] > extra[each, own]) & (count[kind.ravel()] == 1)
    if rounds[0].blocks == []:
        found &= np.array([np.isfinite(person.miss) for person in people])[own]
    every = torch.stack([person.x for person in people]).flatten(1).double().numpy()
    return Inputs(np.where(found[:, None], every[own], values), found)
