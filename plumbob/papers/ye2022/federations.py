"""The federations of ye2022 (its Table I): five tables, a network cut at its first layer, and what is found of binary columns.

The paper says how many columns the passive party has and which of them are binary; the others are drawn here. It trains 100
epochs 20 times; the sizes below are fewer, and every outcome says how many.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.base import Attack, Guess
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import defence_named
from plumbob.federation import Federation, FloatArray, Party
from plumbob.papers.claims import Part, Scale, part
from plumbob.protocols.base import training
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript

THREAT = THREATS["active-training"]


@dataclass(frozen=True)
class YeCase:
    """One line of Table I."""

    passive: int  # columns of the passive party
    hidden: tuple[int, ...]
    binary: int  # binary columns among them
    vectors: int  # binary vectors that the paper finds
    epochs: int  # of training at the paper's size


TABLE_1 = {
    "bank": YeCase(8, (60, 30, 10), 1, 1, 40),
    "credit": YeCase(10, (100, 50, 20), 1, 1, 40),
    "mushroom": YeCase(15, (300, 200, 100), 5, 5, 40),
    "nursery": YeCase(6, (200, 100), 1, 1, 40),
    "covertype": YeCase(10, (200, 200, 200), 4, 15, 2),
}


@dataclass(frozen=True)
class YeSize:
    """Rows at most, share of the epochs of TABLE_1, and trials."""

    rows: int
    epochs: float
    trials: int


SIZES: dict[Scale, YeSize] = {"smoke": YeSize(2_000, 0.1, 1), "paper": YeSize(10**7, 1.0, 2)}


def epochs(name: str, scale: Scale) -> int:
    """Of training on one table."""
    return max(1, round(TABLE_1[name].epochs * SIZES[scale].epochs))


def words(scale: Scale, names: tuple[str, ...]) -> str:
    """The size of a run in a line."""
    rows = SIZES[scale].rows
    told = ", ".join(f"{name} {epochs(name, scale)}" for name in names)
    return f"{'all' if rows >= 10**6 else f'{rows:,}'} rows; epochs: {told} (the paper: 100)"


@lru_cache(maxsize=6)
def federation(name: str, rows: int, seed: int) -> tuple[Federation, Federation]:
    """90 % of the rows to train on and the rest; the passive party has the binary columns and others at random."""
    table, case = registry.load(name), TABLE_1[name]
    rng = generator(seed, "ye2022", name)
    order = rng.permutation(len(table.values))[:rows]
    table = table.rows(np.sort(order))
    binary = [j for j in range(table.values.shape[1]) if set(np.unique(table.values[:, j])) == {0.0, 1.0}]
    binary = binary[: case.binary]
    others = [j for j in range(table.values.shape[1]) if j not in binary and np.ptp(table.values[:, j]) > 0]
    wide = [j for j in others if len(np.unique(table.values[:, j])) > 2]
    drawn = sorted(rng.permutation(wide)[: case.passive - len(binary)].tolist())
    passive = [*binary, *drawn]
    active = [j for j in others if j not in drawn]
    parties = tuple(
        Party(who, tuple(table.columns[j] for j in columns), table.values[:, columns])
        for who, columns in (("active", active), ("passive", passive))
    )
    assert table.label is not None
    whole = Federation(parties, "active", table.label, table.classes)
    mixed, cut_at = rng.permutation(len(whole)), int(0.9 * len(whole))
    return whole.rows(np.sort(mixed[:cut_at])), whole.rows(np.sort(mixed[cut_at:]))


def trained(name: str, scale: Scale, seed: int, defence: str = "none", **settings: object) -> Transcript:
    """One training under a defence with these settings, and its messages. Rows and initial weights do not depend on it."""
    return _trained(name, scale, seed, defence, json.dumps(settings, sort_keys=True))


@lru_cache(maxsize=2)  # half a gigabyte for the largest table
def _trained(name: str, scale: Scale, seed: int, defence: str, settings: str) -> Transcript:
    target, others = federation(name, SIZES[scale].rows, seed)
    protocol = SplitNetwork(hidden=TABLE_1[name].hidden, epochs=epochs(name, scale), archive_mb=1)
    protected = defence_named(defence, **json.loads(settings)).protect(protocol)
    return training(protected).train(target, others, generator(seed, "training", name))


def by_table(work: Callable[[str, Scale, int], Part], sets: tuple[str, ...], scale: Scale, seed: int) -> Part:
    """A check made table by table, each kept as soon as it is done: all figures, answers and curves of it."""
    parts = [part(name, partial(work, name, scale, seed)) for name in sets]
    measured = {"size": words(scale, sets)} | {key: value for one in parts for key, value in one.measured.items()}
    answers = [answer for one in parts for answer in one.answers]
    return Part(measured, answers, [curve for one in parts for curve in one.curves])


def found(log: Transcript, attack: Attack, seed: int) -> Guess:
    """What the active party finds."""
    return attack.run(cut(log, THREAT), generator(seed, "attack", attack))


def sent(log: Transcript) -> FloatArray:
    """The passive party's embeddings of all rows, as the active party got them."""
    return np.concatenate([m.payload for m in log.messages if m.name == "embeddings"])


def binaries(log: Transcript) -> FloatArray:
    """The passive parties' columns of 0 and 1 (n x count)."""
    columns = np.hstack([log.sealed(party)["columns"] for party in log.parties if party != log.active])
    return columns[:, ((columns == 0) | (columns == 1)).all(axis=0)]


def with_sums(columns: FloatArray) -> FloatArray:
    """The columns, and of those that never overlap all sums that are not the same in every row."""
    overlap = columns.T @ columns
    apart = [j for j in range(columns.shape[1]) if np.delete(overlap[j], j).max(initial=0.0) == 0]
    if len(apart) < 2:
        return columns
    sums = [
        columns[:, list(some)].sum(axis=1) for size in range(2, len(apart) + 1) for some in combinations(apart, size)
    ]
    return np.column_stack([columns, *(total for total in sums if np.ptp(total) > 0)])


def combined(vectors: FloatArray, columns: FloatArray) -> NDArray[np.bool_]:
    """Which vectors are sums and differences of the columns and of the constant 1."""
    basis = np.column_stack([np.ones(len(columns)), columns])
    left = vectors - basis @ np.linalg.lstsq(basis, vectors, rcond=None)[0]
    return np.asarray(np.abs(left).max(axis=0, initial=0.0) < 1e-6)


def attack_accuracy(vectors: FloatArray, columns: FloatArray) -> FloatArray:
    """vectors x columns: the share of rows that are equal. Its maximum for one vector over the columns, and over sums of codes of
    one category, is the attack accuracy of Section VI-D: a column's opposite is wrong in every row."""
    if not vectors.shape[1]:
        return np.zeros((0, columns.shape[1]))
    return np.asarray((vectors.T @ columns + (1 - vectors).T @ (1 - columns)) / len(columns))


def agreement_either_way(vectors: FloatArray, columns: FloatArray) -> FloatArray:
    """Ours: the same with 0 and 1 swapped where that is better, so never below a half. With a bias, or other values than 0 and 1,
    nobody can tell which of the two is 1."""
    same = attack_accuracy(vectors, columns)
    return np.asarray(np.maximum(same, 1 - same))


def usual(columns: FloatArray) -> FloatArray:
    """The share of each column's more frequent value: what guessing it everywhere gets right."""
    ones = columns.mean(axis=0)
    return np.asarray(np.maximum(ones, 1 - ones))
