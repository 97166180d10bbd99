"""Rows of training read off opened products: in doubles as published, and exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.sums._product_equations import read
from plumbob.attacks.sums.exact_multiplication import ExactMultiplication, in_box, independent, modular
from plumbob.attacks.sums.reverse_multiplication import ReverseMultiplication
from plumbob.federation import Column, Federation, Table, split
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.threats import THREATS, Schema, Threat, View, cut
from plumbob.transcript import Transcript
from tests.worlds import built_in, made_table

CORRUPTED = THREATS["corrupted-coordinator"]


def federation(table: Table, own: int, parties: int = 1) -> Federation:
    rest = np.array_split(np.array(table.names[own:]), parties)
    passive = {"passive" if parties == 1 else f"p{i}": part.tolist() for i, part in enumerate(rest)}
    return split(table, {"active": list(table.names[:own])} | passive, "active")


def trained(table: Table, own: int, parties: int = 1, **choices: object) -> Transcript:
    made = {"key_bits": 0, "batch_size": 40, "epochs": 12, "learning_rate": 0.3} | choices
    whole = federation(table, own, parties)
    cutoff = int(0.8 * len(whole))
    protocol = EncryptedLogisticRegression(**made)
    return protocol.train(
        whole.rows(np.arange(cutoff)), whole.rows(np.arange(cutoff, len(whole))), np.random.default_rng(1)
    )


def error(
    attack: ReverseMultiplication | ExactMultiplication, log: Transcript, threat: Threat = CORRUPTED
) -> np.ndarray:
    view = cut(log, threat)
    values = attack.run(view, np.random.default_rng(0)).values
    truth = np.hstack([log.sealed(party)["columns"] for party in log.parties])[:, view.unknown]
    return np.abs(values - truth)


@pytest.mark.parametrize("attack", [ReverseMultiplication(), ExactMultiplication()], ids=str)
@pytest.mark.parametrize("returns", ["gradients", "coefficients"])
def test_ciphertexts_do_not_protect_the_rows(attack: ReverseMultiplication, returns: str) -> None:
    log = trained(
        made_table(rows=100, classes=4), 4, key_bits=1_024, epochs=6, returns=returns, penalty=0.01, decay=0.1
    )
    assert error(attack, log).max() < 1e-6


@given(st.integers(1, 4), st.integers(2, 4), st.integers(1, 3), st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_full_rank_means_all_rows(own: int, classes: int, parties: int, seed: int) -> None:
    log = trained(made_table(rows=60, columns=own + 4, classes=classes, seed=seed), own, parties)
    attack = ReverseMultiplication()
    analysis = attack.analyse(cut(log, CORRUPTED))
    found = error(attack, log)
    for batch in analysis.batches:
        if batch.rank == analysis.columns:
            assert batch.determined.all()
            assert found[batch.rows].max() < max(1e-6, 1e-14 * batch.condition)
    assert error(ExactMultiplication(), log).max() < 1e-9


def test_the_equations_hold_in_integers() -> None:
    log = trained(made_table(classes=3), 3)
    view = cut(log, CORRUPTED)
    whole = log.sealed("passive")["columns"]
    for equations in read(view):
        left, right = equations.stacked()
        assert (left @ equations.rule.encode(whole[equations.rows]).T == right).all()


def test_colluding_passive_parties_leave_the_rest_unknown() -> None:
    log = trained(made_table(), 3, parties=2)
    threat = Threat("both", "", (Schema(),), colluding=("p0",), corrupted=True)
    assert error(ReverseMultiplication(), log, threat).shape[1] == 2
    assert error(ReverseMultiplication(), log, threat).max() < 1e-6


@pytest.mark.needs_data("vehicle")
@pytest.mark.parametrize("attack", [ReverseMultiplication(), ExactMultiplication()], ids=str)
def test_vehicle_falls_in_twenty_epochs(attack: ReverseMultiplication) -> None:
    assert error(attack, trained(built_in("vehicle"), 9, batch_size=64, epochs=20, learning_rate=0.05)).max() < 1e-6


def test_breast_keeps_its_rank_from_doubles_but_not_from_integers() -> None:
    log = trained(built_in("breast"), 10, batch_size=64, epochs=25, learning_rate=0.05, fraction_bits=52)
    view = cut(log, CORRUPTED)
    assert ReverseMultiplication().analyse(view).rank < 12
    assert ExactMultiplication().analyse(view).rank == 20
    assert error(ReverseMultiplication(), log).max() > 0.1
    assert error(ExactMultiplication(), log).max() < 1e-12


@pytest.mark.parametrize(
    ("one", "other"), [({"batch_size": 10}, {"batch_size": 320}), ({"learning_rate": 0.5}, {"learning_rate": 0.005})]
)
def test_large_batches_and_small_steps_help_against_doubles(one: dict[str, object], other: dict[str, object]) -> None:
    """And against doubles only: the exact attack recovers every row in all four cases."""
    table = made_table(classes=2)
    common = {"epochs": 20, "fraction_bits": 52, "learning_rate": 0.03}
    easy, hard = (trained(table, 3, **common | choice) for choice in (one, other))
    assert error(ReverseMultiplication(), easy).mean() < 1e-6 < error(ReverseMultiplication(), hard).mean()
    assert error(ExactMultiplication(), easy).max() < 1e-9
    assert error(ExactMultiplication(), hard).max() < 1e-9


@pytest.mark.needs_data("vehicle")
def test_whole_numbers_need_fewer_epochs_than_columns() -> None:
    """Two epochs, nine columns on a grid: each batch has at most eight equations, some only four."""
    log = trained(built_in("vehicle"), 9, batch_size=64, epochs=2, learning_rate=0.05)
    assert ReverseMultiplication().analyse(cut(log, CORRUPTED)).rank < 9
    assert error(ExactMultiplication(), log).max() < 1e-6


def test_columns_that_are_equal_or_zero_are_found_as_such() -> None:
    table = made_table(columns=7)
    values = table.values.copy()
    values[:, 4], values[:, 5] = values[:, 3], 0.0
    log = trained(Table("twins", table.columns, values, table.label, table.classes), 3)
    assert ReverseMultiplication().analyse(cut(log, CORRUPTED)).rank == 2
    assert error(ExactMultiplication(), log).max() < 1e-9


def test_without_enough_equations_nothing_is_claimed() -> None:
    log = trained(made_table(classes=2), 3, epochs=2)
    view = cut(log, CORRUPTED)
    for attack in (ReverseMultiplication(), ExactMultiplication()):
        analysis = attack.analyse(view)
        assert analysis.rank < analysis.columns
        assert analysis.share < 1.0
        values = attack.run(view, np.random.default_rng(0)).values
        assert (values >= 0.0).all()
        assert (values <= 1.0).all()


def test_masks_defeat_both(monkeypatch: pytest.MonkeyPatch) -> None:
    log = trained(made_table(rows=100, classes=2), 3, key_bits=1_024, masked=True, epochs=8)
    for attack in (ReverseMultiplication(), ExactMultiplication()):
        assert (attack.run(cut(log, CORRUPTED), np.random.default_rng(0)).values == 0.5).all()


def test_a_box_solution_is_told_only_where_it_is_the_only_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2**16, (5, 6)).astype(object)
    few, many = (rng.integers(-(2**40), 2**40, (count, 6)).astype(object) for count in (1, 3))
    assert not in_box(few, few @ truth.T, 16)[1]
    found, only = in_box(many, many @ truth.T, 16)
    assert only
    assert (found == truth).all()


@given(st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_one_prime_is_enough_to_solve(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left = rng.integers(-(2**50), 2**50, (size + 2, size)).astype(object) * 2**40 + 1
    truth = rng.integers(-(2**52), 2**52, (4, size)).astype(object)
    chosen = independent(left)
    assert len(chosen) == np.linalg.matrix_rank(left.astype(float))
    if len(chosen) == size:
        assert (modular(left[chosen], (left @ truth.T)[chosen]) == truth).all()


def test_the_published_attack_needs_the_coordinator() -> None:
    name = "encrypted_logistic_regression"
    assert ReverseMultiplication().why_not(name, CORRUPTED) is None
    assert ReverseMultiplication().why_not(name, THREATS["active-training"]) == "needs the coordinator"


def test_a_grid_that_fixed_point_cannot_tell_apart_is_left_alone() -> None:
    table = made_table(columns=6, classes=3)
    fine = tuple(Column(c.name, step=2.0**-40) for c in table.columns)
    log = trained(Table("fine", fine, table.values, table.label, table.classes), 3)
    assert error(ExactMultiplication(), log).max() < 2.0**-32


def test_a_view_without_opened_residuals_has_no_equations() -> None:
    view: View = cut(trained(made_table(), 3, open_all=False), CORRUPTED)
    assert ReverseMultiplication().analyse(view).rank == 0
