"""Bin mapping: values in place of leaked bins, by rows of known values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.base import Guess, Orders
from plumbob.attacks.sums._bin_bounds import bin_bounds, placed_by_rank, values_in_place_of_bins
from plumbob.attacks.sums.bin_mapping import BinMapping
from plumbob.errors import BadInput
from plumbob.papers.weng2022.leaked_bins import nearest_values
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, AuxiliaryRows, Schema, Threat, View, cut
from plumbob.transcript import Transcript
from tests.protocols.sums.test_secure_boost import trained

KNOWING = Threat("knowing", "", (Schema(), AuxiliaryRows(100)))


def whole(log: Transcript) -> np.ndarray:
    """Complete rows of the people attacked."""
    return np.hstack([log.sealed(party)["columns"] for party in log.parties])


def guess(view: View, **settings: object) -> Guess:
    return BinMapping(**settings).run(view, np.random.default_rng(0))  # type: ignore[arg-type]


def test_bounds_of_bins_come_from_known_rows() -> None:
    orders = Orders(np.array([[0, 1], [1, 0], [2, 0], [2, 1]]), np.array([3, 2]))
    values = np.array([[0.1, 0.9], [0.4, 0.2], [0.7, 0.3], [0.8, 0.8]])
    known = [0, 2, 3]
    bounds = bin_bounds(orders.bins[known], values[known], orders.counts)
    np.testing.assert_allclose(bounds[0], [[0.1, 0.1], [np.nan, np.nan], [0.7, 0.8]])
    guessed = values_in_place_of_bins(orders, bounds)
    np.testing.assert_allclose(guessed[:, 0], [0.1, 0.425, 0.75, 0.75], atol=1e-6)
    np.testing.assert_allclose(nearest_values(values, bounds), guessed, atol=1e-6)


def test_rows_without_a_claim_get_what_is_guessed_otherwise() -> None:
    orders = Orders(np.array([[0], [-1]]), np.array([2]))
    bounds = [np.array([[0.1, 0.3], [0.6, 0.8]])]
    assert values_in_place_of_bins(orders, bounds, np.array([0.45]))[1, 0] == pytest.approx(0.45)


def test_known_rows_that_are_attacked_tell_the_bounds_of_their_own_bins() -> None:
    log = trained(code=MagicNumbers(), packed=False)
    known = np.arange(0, 60, 2)
    view = replace(cut(log, THREATS["active-training"]), auxiliary=whole(log)[known])
    bins, truth = log.sealed("passive")["bins"], log.sealed("passive")["columns"]
    orders = Orders(bins, bins.max(axis=0) + 1)
    bounds = BinMapping(ranks=False).bounds(view, orders)
    np.testing.assert_array_equal(bounds, bin_bounds(bins[known], truth[known], orders.counts))
    strangers = replace(view, auxiliary=np.hstack([np.full((30, len(view.known)), 2.0), truth[known]]))
    assert all(np.isnan(one).all() for one in BinMapping(ranks=False).bounds(strangers, orders))


def test_people_who_look_alike_count_where_they_lie_in_the_same_bin() -> None:
    log = trained(code=MagicNumbers(), packed=False)
    view = cut(log, THREATS["active-training"])
    twins = view.own.copy()
    twins[1] = twins[0]
    orders = Orders(np.array([[2, 0, 0], [2, 1, 0]] + [[0, 0, 0]] * (len(twins) - 2)), np.array([3, 3, 3]))
    auxiliary = np.zeros((2, len(view.known) + 3))
    auxiliary[:, view.known], auxiliary[:, view.unknown] = twins[0], 0.25
    bounds = BinMapping(ranks=False).bounds(replace(view, own=twins, auxiliary=auxiliary), orders)
    assert bounds[0][2].tolist() == [0.25, 0.25]
    assert np.isnan(bounds[1]).all()  # one of both lies in bin 0, the other in bin 1
    named = BinMapping(ranks=False).bounds(replace(view, own=twins, auxiliary=auxiliary), orders, np.array([1, 1]))
    assert named[1][1].tolist() == [0.25, 0.25]  # who knows that both are the second of them


def test_other_people_lie_in_the_bin_of_their_rank() -> None:
    rng = np.random.default_rng(0)
    people, strangers = rng.normal(size=(4_000, 1)), rng.normal(size=(4_000, 1))
    cuts = np.quantile(people, np.arange(1, 8) / 8)
    orders = Orders(np.searchsorted(cuts, people), np.array([8]))
    placed = placed_by_rank(orders, strangers)
    assert (placed == np.searchsorted(cuts, strangers)).mean() > 0.9
    assert (np.diff(placed[np.argsort(strangers[:, 0]), 0]) >= 0).all()
    assert (placed_by_rank(Orders(np.full((5, 1), -1), np.array([8])), strangers) == -1).all()


@pytest.mark.parametrize(("decoder", "code"), [("reverse_sum", MagicNumbers()), ("code_decoding", LabelledGroups())])
def test_rows_of_other_people_are_enough_for_values(decoder: str, code: MagicNumbers | LabelledGroups) -> None:
    log = trained(rows=200, code=code, packed=False)
    view = cut(log, KNOWING)
    judged = score(guess(view, decoder=decoder), truth_of(log, view), view, np.random.default_rng(0))
    assert judged.metric == "values"
    assert min(column.r2 for column in judged.columns) > 0.8
    assert min(column.rank for column in judged.columns) > 0.9


def test_without_a_code_there_are_no_bins_and_nothing_is_said() -> None:
    made = guess(cut(trained(), KNOWING))
    assert "no code" in made.untried
    assert made.values is not None
    assert (made.values == 0.5).all()


def test_it_needs_complete_rows() -> None:
    assert BinMapping().why_not("secure_boost", THREATS["active-training"]) == "needs 100 complete rows of other people"
    assert "sets the low bits" in (BinMapping().why_not("secure_boost", KNOWING) or "")
    assert BinMapping().why_not("secure_boost", KNOWING, MagicNumbers.kind) is None
    with pytest.raises(BadInput, match="expected complete rows"):
        BinMapping().bounds(cut(trained(), THREATS["active-training"]), Orders(np.zeros((1, 1)), np.array([1])))
    with pytest.raises(BadInput, match="expected one of reverse_sum, code_decoding"):
        BinMapping(decoder="magic")  # type: ignore[arg-type]
