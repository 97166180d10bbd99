"""SecureBoost on secret-shared indicator vectors (weng2022, Section 6, after Fang et al. 2020): no party sees a node's rows.

A node is a vector s of zeros and ones over all rows, a bin of a column a vector b, both in shares on three servers: the active
party, the first passive one and a helper. The gradients g are dealt to them too. Then, on shares,
    sums of a bin     sum over i of s_i g_i b_i, opened to the active party       split     s_left = s l,  s_right = s - s_left
where l are the answers of the split's owner, dealt as shares. Sums and trees are those without sharing, integer for integer.

The active party works out the next tree's gradients itself, so the weight that a row got is opened to it, and tells its leaf.
That of the last tree is not, and none where trees do not build on each other. Of shares the transcript has the number of bytes
only: each by itself is uniform. Two servers together could read all vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbob.crypto.sharing import (
    SHARING_PRIME,
    dealt,
    integer_product_of,
    joined_limbs,
    limbs_of,
    multiplied,
    revealed,
)
from plumbob.federation import IntArray
from plumbob.protocols.shared.histogram_boosting import Bins, Histogram, Split, Worth
from plumbob.protocols.sums.secure_boost import BoostingRun, Channels
from plumbob.transcript import COORDINATOR

SHARE_BYTES = 16  # of a number below the prime
WEIGHT_BITS = 40  # after the binary point of a leaf's weight
Shares = list[Any]  # one matrix of integers for each server


@dataclass
class SharedIndicatorRun(BoostingRun):
    """All parties at work on shares. What stands in the base class in clear (the rows of a node) is bookkeeping of the run."""

    _bins: dict[str, Shares] = field(default_factory=dict)
    _gradients: list[Shares] = field(default_factory=list)  # one for each channel, rows x limbs
    _nodes: dict[int, Shares] = field(default_factory=dict)  # rows x 1

    @property
    def servers(self) -> tuple[str, str, str]:
        return self.federation.active, self.federation.passive[0], COORDINATOR

    def _send_gradients(
        self, tree: int, first: IntArray, second: IntArray, rows: IntArray, rng: np.random.Generator
    ) -> bool:
        total, active = len(first), self.federation.active
        if not self._bins:
            for name, bins in self._columns():
                places = [bins.places[:, [j]] == np.arange(count) for j, count in enumerate(bins.counts.tolist())]
                if places:  # a party may hold the label alone
                    self._bins[name] = self._deal(tree, name, np.hstack(places).astype(np.int64).astype(object))
        self._gradients = []
        made, telling = self._plaintexts(tree, first, second, rows, rng)
        for channel in made:
            everyone = [0] * total
            for row, number in zip(rows.tolist(), channel, strict=True):
                everyone[row] = number
            self._gradients.append(self._deal(tree, active, limbs_of(everyone)))
        self._nodes = {0: [np.ones((total, 1), dtype=object)] * len(self.servers)}
        return telling

    def _sums(self, tree: int, node: int, rows: IntArray) -> dict[str, Channels]:
        """The opened sums of all parties' columns, the active party's own among them: it does not know the rows either."""
        inside = []
        for numbers in self._gradients:
            inside.append(multiplied(self._nodes[node], numbers))
            self._exchanged(tree, numbers[0].size)
        found: dict[str, Channels] = {}
        for name, bins in self._bins.items():
            found[name] = [joined_limbs(integer_product_of(bins, numbers)) for numbers in inside]
            size = bins[0].shape[1] * sum(numbers[0].shape[1] for numbers in inside)
            self._exchanged(tree, size)  # the masks
            for server in self.servers[1:]:
                self._counted(tree, server, self.federation.active, "sums", size)
        return found

    def _best(
        self, worth: Worth, rows: IntArray, first: IntArray, second: IntArray, sums: dict[str, Channels]
    ) -> tuple[str, Split | None]:
        active = self.federation.active
        if not sums:  # the active party sent other numbers than gradients, and knows no node's rows to split by itself
            return active, None
        own = self.layout.sums(sums[active]) if active in sums else None
        best, owner = None if own is None else worth.split(Histogram(self.own.counts, *own)), active
        for name, party in self.passive.items():
            found = worth.split(Histogram(party.bins.counts, *self.layout.sums(sums[name])))
            if found is not None and (best is None or found.gain > best.gain):
                best, owner = found, name
        return owner, best

    def _ask(self, tree: int, node: int, owner: str, split: Split, rows: IntArray) -> IntArray:
        if owner != self.federation.active:
            asked = np.array([node, split.column, split.bin])
            self.log.send(self.federation.active, owner, "train", tree, "split", asked)
        left = np.asarray(dict(self._columns())[owner].places[:, split.column] <= split.bin, dtype=np.int64)
        answers = self._deal(tree, owner, left[:, None].astype(object))
        inside = self._nodes[node]
        self._nodes[2 * node + 1] = multiplied(inside, answers)
        self._exchanged(tree, len(left))
        self._nodes[2 * node + 2] = [
            (a - b) % SHARING_PRIME for a, b in zip(inside, self._nodes[2 * node + 1], strict=True)
        ]
        return left[rows]

    def _leaves(self, tree: int, places: IntArray) -> IntArray:
        """By the opened weights; the root for everybody where none is opened."""
        if not self.settings.boosting or tree == self.settings.trees - 1:
            return np.zeros_like(places)
        ends = [node for node in self._nodes if 2 * node + 1 not in self._nodes]
        weights = [round(float(self.model.weight[tree, node]) * 2**WEIGHT_BITS) for node in ends]
        total = [
            sum(self._nodes[node][k] * weight for node, weight in zip(ends, weights, strict=True)) % SHARING_PRIME
            for k in range(len(self.servers))
        ]
        for server in self.servers[1:]:
            self._counted(tree, server, self.federation.active, "weights", len(places))
        first = {weight: node for node, weight in reversed(list(zip(ends, weights, strict=True)))}
        return np.array([first[int(weight)] for weight in revealed(total).ravel()], dtype=np.int64)

    def _columns(self) -> Sequence[tuple[str, Bins]]:
        return [(self.federation.active, self.own), *((name, party.bins) for name, party in self.passive.items())]

    def _deal(self, tree: int, owner: str, matrix: Any) -> Shares:
        for server in self.servers:
            if server != owner:
                self._counted(tree, owner, server, "shares", matrix.size)
        return dealt(matrix)

    def _exchanged(self, tree: int, count: int) -> None:
        """Every server deals so many numbers to both others."""
        for sender in self.servers:
            for receiver in self.servers:
                if sender != receiver:
                    self._counted(tree, sender, receiver, "shares", count)

    def _counted(self, tree: int, sender: str, receiver: str, name: str, count: int) -> None:
        """A message whose bytes are counted and not kept."""
        nothing = np.zeros(0, dtype=np.int64)
        payload = np.zeros((count, SHARE_BYTES), dtype=np.uint8)
        self.log.send(sender, receiver, "train", tree, name, payload, kept=nothing)
