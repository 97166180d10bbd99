"""A passive party of SecureBoost at work: it adds up ciphertexts in the bins of its columns and tells sides of splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto import plain
from plumbob.federation import IntArray, Party
from plumbob.protocols.shared.gradient_plaintexts import Layout
from plumbob.protocols.shared.histogram_boosting import Bins
from plumbob.protocols.sums._histogram_noise import laplace


@dataclass
class PassiveParty:
    """A passive party at work: its bins, and the ciphertexts of the tree that is being grown."""

    party: Party
    bins: Bins
    public: plain.AnyPublicKey
    layout: Layout
    scales: tuple[float, float]  # of Laplace noise on the sums of g and of h, for differential privacy
    blinding: bool
    draw: Callable[[int], bytes]
    rng: np.random.Generator
    _batches: list[plain.Batch] = field(default_factory=list)
    _place: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # of each row among the ciphertexts

    def take(self, rows: IntArray, payloads: list[Array]) -> None:
        self._batches = [self.public.ciphertexts(payload) for payload in payloads]
        self._place = np.full(len(self.party.values), -1)
        self._place[rows] = np.arange(len(rows))

    def sums(self, rows: IntArray) -> Array:
        """Channel by channel, column by column, bin by bin."""
        made = []
        for batch in self._batches:
            chosen = batch[self._place[rows]]
            made += [
                chosen.bin_sums(self.bins.places[rows, j], count) for j, count in enumerate(self.bins.counts.tolist())
            ]
        sums = plain.joined(made)
        if any(self.scales):
            sums = sums + laplace(self.layout, self.scales, len(sums), self.rng)
        if self.blinding:
            sums = sums + [self.layout.noise(self.public.largest, self.draw) for _ in range(len(sums))]
        return sums.rerandomised().to_array()  # else its mask, a product of known ones, would name the rows

    def goes_left(self, rows: IntArray, column: int, place: int) -> Array:
        return np.packbits(self.bins.places[rows, column] <= place)


def desensitised(bins: Bins, epsilon: float, rng: np.random.Generator) -> Bins:
    """Every cell in a bin b' drawn with weight exp(-epsilon |b - b'| / 2): near its own, so that orders stay on the whole."""
    places = []
    for j, count in enumerate(bins.counts.tolist()):
        gaps = np.abs(np.arange(count)[:, None] - np.arange(count))
        weights = np.exp(-epsilon * gaps / 2)
        running = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        drawn = rng.random(len(bins.places))[:, None]
        places.append(np.minimum((running[bins.places[:, j]] < drawn).sum(axis=1), count - 1))
    return Bins(bins.edges, np.stack(places, axis=1).astype(np.int64))
