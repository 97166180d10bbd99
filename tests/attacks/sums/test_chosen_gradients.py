"""Chosen gradients: every row's bin by its own bit, through blinding, and honest trees afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks.sums.chosen_gradients import ChosenGradients
from plumbob.defences.hidden_code_audit import audit_gradients
from plumbob.protocols.shared.gradient_plaintexts import Layout
from plumbob.protocols.shared.hidden_codes import RowBits
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.protocols.sums.test_secure_boost import trained, trees

THREAT = THREATS["active-any-gradient"]


def claimed(log: Transcript) -> np.ndarray:
    orders = ChosenGradients().run(cut(log, THREAT), np.random.default_rng(0)).orders
    assert orders is not None
    return orders.bins


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("blinding", [False, True])
def test_every_row_that_had_its_turn_is_in_the_bin_that_its_bit_says(packed: bool, blinding: bool) -> None:
    log = trained(code=RowBits(), packed=packed, blinding=blinding, trees=2)
    bins, truth = claimed(log), log.sealed("passive")["bins"]
    slot = Layout.from_array(log.sealed("active")["notes/layout"]).slot
    turns = min(len(truth), 2 * 2 * (slot - 1))  # two trees of two slots each
    assert (bins[:turns] == truth[:turns]).all()
    assert (bins[turns:] == -1).all()


def test_real_ciphertexts_and_blinding_do_not_help() -> None:
    log = trained(rows=40, code=RowBits(), key_bits=1_024, blinding=True, trees=1)
    assert (claimed(log) == log.sealed("passive")["bins"]).all()


def test_once_all_rows_had_their_turn_gradients_are_sent_again() -> None:
    log = trained(rows=60, code=RowBits(), trees=2)
    names = {name for name in log.sealed("active") if name.startswith("notes/code/")}
    assert names == {"notes/code/0/powers"}
    features = log.sealed(COORDINATOR)["model/feature"]
    passive = np.arange(len(log.features))[[feature.party == "passive" for feature in log.features]]
    assert not np.isin(features[0], passive).any()  # its sums told rows, no gradients
    assert np.isin(features[1], passive).any()


def test_an_honest_run_says_nothing_to_it() -> None:
    assert (claimed(trained()) == -1).all()
    assert trees(trained(code=RowBits())) != trees(trained())


def test_an_auditor_who_sees_the_sums_finds_the_tree() -> None:
    audited = audit_gradients(trained(rows=60, code=RowBits(), trees=2))
    assert [tree.honest for tree in audited] == [False, True]


def test_low_bits_are_not_enough() -> None:
    why = ChosenGradients().why_not("secure_boost", THREATS["active-low-bits"])
    assert why == "needs an active party that sends any gradient"
    assert ChosenGradients().why_not("secure_boost", THREAT) is None
