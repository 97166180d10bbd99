"""SecureBoost that shows passive parties only nodes that say little of the label (takahashi2023, ID-LMID).

    max( KL(classes inside a node | all classes), KL(classes outside it | all classes) ) <= bound      for every node shown
A split of a passive party is taken only if both children keep the bound. If one that the active party makes does not, both
children are grown on by the active party alone, and no message is about them. So that splits can be judged, each party adds up
encrypted class counts beside the gradients ("class counts").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto import plain
from plumbob.federation import BoolArray, IntArray
from plumbob.protocols.shared.histogram_boosting import Histogram, Split, Worth
from plumbob.protocols.sums.secure_boost import BoostingRun, Channels

COUNT_BITS = 24  # of the count of one class in a sum


def divergences(inside: IntArray, everyone: IntArray) -> Array:
    """The larger of the two divergences, in nats, of nodes (nodes x classes).

    >>> divergences(np.array([[5, 5], [10, 0]]), np.array([10, 10])).round(3).tolist()
    [0.0, 0.693]
    """
    prior = np.maximum(everyone, 1e-12) / max(1, everyone.sum())
    worst = np.zeros(len(inside))
    for counts in (inside, everyone - inside):
        shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
        worst = np.maximum(worst, (shares * np.log(np.maximum(shares, 1e-15) / prior)).sum(axis=1))
    return worst


@dataclass
class HiddenNodesRun(BoostingRun):
    """The active party at work, which hides nodes that tell too much."""

    def _encrypted_classes(self) -> Array:
        """For every row 2^(bits of a count times its class), encrypted: once for the whole training."""
        numbers = [1 << (COUNT_BITS * int(one)) for one in self.federation.label]
        return self.key.public.encrypt(numbers).to_array()

    def _sums(self, tree: int, node: int, rows: IntArray) -> dict[str, Channels]:
        found = super()._sums(tree, node, rows)
        active = self.federation.active
        if not hasattr(self, "_classes"):
            self._classes = {
                name: self.log.send(active, name, "setup", 0, "encrypted classes", self._encrypted_classes())
                for name in self.passive
            }
        for name, party in self.passive.items():
            batch = self.key.public.ciphertexts(self._classes[name])[rows]
            parts = [batch.bin_sums(party.bins.places[rows, j], n) for j, n in enumerate(party.bins.counts.tolist())]
            sent = self.log.send(
                name, active, "train", tree, "class counts", plain.joined(parts).rerandomised().to_array()
            )
            found[name].append(self.key.decrypt(self.key.public.ciphertexts(sent)))  # type: ignore[arg-type]  # key and batch are a pair
        return found

    def _opened(self, sums: dict[str, Channels]) -> dict[str, Channels]:
        return {name: channels[:-1] for name, channels in sums.items()}

    def _best(
        self, worth: Worth, rows: IntArray, first: IntArray, second: IntArray, sums: dict[str, Channels]
    ) -> tuple[str, Split | None]:
        best_owner, best = super()._best(worth, rows, first, second, {})
        for name, channels in sums.items():
            counts = self.passive[name].bins.counts
            histogram = Histogram(counts, *self.layout.sums(channels[:-1]))
            found = worth.split(histogram, self._allowed(channels[-1], counts))
            if found is not None and (best is None or found.gain > best.gain):
                best_owner, best = name, found
        return best_owner, best

    def _allowed(self, packed: list[int], counts: IntArray) -> BoolArray:
        """Bins after which a split leaves children that keep the bound."""
        everyone, mask = self._everyone(), (1 << COUNT_BITS) - 1
        table = np.array([[(n >> (COUNT_BITS * c)) & mask for c in range(len(everyone))] for n in packed])
        allowed, start = [], 0
        for count in counts.tolist():
            left = np.cumsum(table[start : start + count], axis=0)
            right = left[-1] - left
            allowed.append((self._kept(left) & self._kept(right)).astype(np.bool_))
            start += count
        return np.concatenate(allowed)

    def _kept(self, inside: IntArray) -> BoolArray:
        bound = self.settings.information_bound
        assert bound is not None
        return np.asarray(divergences(inside, self._everyone()) <= bound)

    def _everyone(self) -> IntArray:
        return np.bincount(self.federation.label, minlength=len(self.federation.classes))

    def _children(
        self, tree: int, node: int, sums: dict[str, Channels], places: IntArray, trained: Any
    ) -> dict[int, dict[str, Channels]]:
        """Hidden children have no sums."""
        pair = (2 * node + 1, 2 * node + 2)
        inside = np.array([self._inside((places == child) & trained) for child in pair])
        if not sums or not self._kept(inside).all():
            return {child: {} for child in pair}
        return super()._children(tree, node, sums, places, trained)

    def _inside(self, rows: BoolArray) -> IntArray:
        return np.bincount(self.federation.label[rows], minlength=len(self.federation.classes))
