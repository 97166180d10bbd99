"""Bin mapping (weng2022, Section 5.4): bins that hidden codes reveal become values, by a few rows of known values.

    L(B) the rows that were found in bin B of a column, Aux the known rows:
    left(B) = min of x over L(B) and Aux,      right(B) = max of x over L(B) and Aux,      every cell of L(B) ~ the middle

The bins are those that reverse sum reads. Known rows that are among the attacked ones are recognised by the curious parties'
own columns, as they have both. The paper also lets the known rows be simulated, or of other people; it does not say in which bin
these lie. Here they lie in the bin of their rank: as many people are below them as below that bin.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from plumbob.attacks.base import Attack, Guess, Orders, nothing
from plumbob.attacks.sums._bin_bounds import bin_bounds, bin_medians, placed_by_rank, values_in_place_of_bins
from plumbob.attacks.sums.code_decoding import CodeDecoding
from plumbob.attacks.sums.reverse_sum import ReverseSum
from plumbob.errors import BadInput, boolean, one_of, whole
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode
from plumbob.setting_sources import ours, printed
from plumbob.threats import AuxiliaryRows, LowBits, View

Decoder = Literal["reverse_sum", "code_decoding"]
Centre = Literal["middle", "median"]
DECODERS, CENTRES = ("reverse_sum", "code_decoding"), ("middle", "median")


class BinMapping(Attack):
    """Values in place of the bins that `decoder` reads: the published reverse sum with its `effort`, or our code decoding.

    A bin's value is the `centre` of the known ones in it: the middle of its bounds, or the median, which far values do not move.
    With `ranks` rows of other people tell bounds too, by their ranks; without, only rows that are attacked themselves.
    """

    name = "bin_mapping"
    identity = "BinMapping(decoder, effort, ranks, centre)"
    summary = "values in place of the bins that hidden codes reveal: bounds of the bins from a few rows of known values"
    paper = "weng2022"
    protocols = ("secure_boost",)
    requires = (AuxiliaryRows, LowBits)
    workload = "loops"
    presets = {"median": {"centre": "median"}, "small": {"effort": 20}}
    sources = {
        "decoder": printed("Section 5.4, of the orders that reverse sum leaks"),
        "effort": ours("Section 5.1.3 searches for the combination that fits, and names no bound"),
        "ranks": ours("Section 5.4 lets known rows be simulated, and does not say in which bin they lie"),
        "centre": ours("Section 5.4 gives a bin bounds and does not say which value between them"),
    }

    def __init__(
        self, *, decoder: Decoder = "reverse_sum", effort: int = 34, ranks: bool = True, centre: Centre = "middle"
    ) -> None:
        one_of("bin mapping: decoder", decoder, DECODERS)
        one_of("bin mapping: centre", centre, CENTRES)
        self.decoder, self.centre = decoder, centre
        self.effort = whole("bin mapping: effort", effort, 0, 40)
        self.ranks = boolean("bin mapping: ranks", ranks)

    def sends(self) -> HiddenCode:
        return self._reader().sends()

    def _reader(self) -> ReverseSum | CodeDecoding:
        return ReverseSum(effort=self.effort) if self.decoder == "reverse_sum" else CodeDecoding()

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        orders = self._reader().run(view, rng).orders
        assert orders is not None
        if (orders.bins < 0).all():
            return nothing(view, "no code was hidden in the gradients, so no bin is known")
        _, hidden = known_rows(view)
        places = self._places(view, orders, None)
        known = (bin_bounds if self.centre == "middle" else bin_medians)(places, hidden, orders.counts)
        return Guess(view.unknown_names, values_in_place_of_bins(orders, known, hidden.mean(axis=0)))

    def bounds(self, view: View, orders: Orders, rows: IntArray | None = None) -> list[FloatArray]:
        """Of every column's bins, given the bins of the attacked rows (bins x 2, NaN where no known row lies in one).

        `rows` are the places of the known rows among the attacked ones, for who knows these people by their ids.
        """
        return bin_bounds(self._places(view, orders, rows), known_rows(view)[1], orders.counts)

    def _places(self, view: View, orders: Orders, rows: IntArray | None) -> IntArray:
        """The bins of the known rows (rows x columns), -1 where that is open."""
        places = _of_themselves(view, orders) if rows is None else orders.bins[rows]
        return np.where(places >= 0, places, placed_by_rank(orders, known_rows(view)[1])) if self.ranks else places


def known_rows(view: View) -> tuple[FloatArray, FloatArray]:
    """The known rows' columns: those that the curious parties have of everybody, and those that are hidden from them."""
    if view.auxiliary is None:
        raise BadInput("bin mapping: expected complete rows ('auxiliary_rows' of the threat), got none")
    return view.auxiliary[:, view.known], view.auxiliary[:, view.unknown]


def _of_themselves(view: View, orders: Orders) -> IntArray:
    """The bins of known rows that are attacked themselves (rows x columns), -1 where nobody looks like them or those who do
    differ."""
    own, _ = known_rows(view)
    people: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.ascontiguousarray(view.own)):
        people.setdefault(row.tobytes(), []).append(i)
    places = np.full((len(own), orders.bins.shape[1]), -1, dtype=np.int64)
    for k, row in enumerate(np.ascontiguousarray(own)):
        bins = orders.bins[people.get(row.tobytes(), [])]
        if len(bins):
            places[k] = np.where((bins == bins[0]).all(axis=0), bins[0], -1)
    return places
