"""Batches that are drawn anew: equations are collected row by row, and gradients tell of the rows that are short."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from plumbob.attacks.base import Attack
from plumbob.attacks.sums._product_equations import opened_rounds, read
from plumbob.attacks.sums.exact_multiplication import ExactMultiplication, solved_rows
from plumbob.attacks.sums.reverse_multiplication import ReverseMultiplication
from plumbob.federation import split
from plumbob.papers.ours.redrawn_batches import expected_epochs
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table

CORRUPTED = THREATS["corrupted-coordinator"]
ANEW = ("epoch", "iteration")


@cache
def trained(batches: str, epochs: int = 16, parties: int = 1, **choices: object) -> Transcript:
    table = made_table(rows=120, columns=8, classes=2)
    names = np.array_split(np.array(table.names[3:]), parties)
    owners = {"active": list(table.names[:3])} | {f"p{i}": part.tolist() for i, part in enumerate(names)}
    whole = split(table, owners, "active")
    made = {"key_bits": 0, "batch_size": 30, "learning_rate": 0.3, "epochs": epochs, "batches": batches} | choices
    protocol = EncryptedLogisticRegression(**made)  # type: ignore[arg-type]
    return protocol.train(whole.rows(np.arange(100)), whole.rows(np.arange(100, 120)), np.random.default_rng(0))


def recovered(attack: Attack, log: Transcript) -> np.ndarray:
    """The rows that were found to 1e-6."""
    values = attack.run(cut(log, CORRUPTED), np.random.default_rng(0)).values
    truth = np.hstack([log.sealed(name)["columns"] for name in log.parties if name != "active"])
    assert values is not None
    return np.asarray(np.abs(values - truth).max(axis=1) < 1e-6)


def drawn(view: View) -> np.ndarray:
    """How often each row was."""
    return np.bincount(np.concatenate([one.rows for one in opened_rounds(view)]), minlength=len(view.own))


@pytest.mark.parametrize("batches", ANEW)
@pytest.mark.parametrize("returns", ["gradients", "coefficients"])
def test_equations_hold_in_integers_row_by_row(batches: str, returns: str) -> None:
    log = trained(batches, epochs=3, returns=returns, decay=0.1, penalty=0.01)
    equations = read(cut(log, CORRUPTED))
    whole = log.sealed("p0")["columns"]
    assert sorted(np.concatenate([one.rows for one in equations]).tolist()) == list(range(100))
    for one in equations:
        left, right = one.stacked()
        assert (left @ one.rule.encode(whole[one.rows]).T == right).all()


def test_gradients_are_sums_over_the_rows_of_their_round() -> None:
    log = trained("iteration", epochs=2)
    whole = log.sealed("p0")["columns"]
    for one in opened_rounds(cut(log, CORRUPTED)):
        assert (one.residual @ read(cut(log, CORRUPTED))[0].rule.encode(whole[one.rows]) == one.gradient).all()


@pytest.mark.parametrize("batches", ANEW)
@pytest.mark.parametrize("attack", [ReverseMultiplication(), ExactMultiplication()], ids=str)
@pytest.mark.parametrize("parties", [1, 2])
def test_enough_rounds_give_every_row(attack: Attack, batches: str, parties: int) -> None:
    assert recovered(attack, trained(batches, epochs=24, parties=parties)).all()


def test_the_published_attack_needs_a_row_once_more_than_columns() -> None:
    """Five unknown columns, one model: six rounds for five differences."""
    log = trained("iteration", epochs=6)
    often = drawn(cut(log, CORRUPTED))
    assert (often < 6).any()
    assert (recovered(ReverseMultiplication(), log) == (often >= 6)).all()


def test_gradients_tell_of_rows_whose_own_equations_do_not() -> None:
    """Fewer than five own equations leave a row open; with as many gradients as cells are open it is solved all the same."""
    log = trained("iteration", epochs=8)
    view = cut(log, CORRUPTED)
    short = drawn(view) < 5
    assert short.any()
    own = ExactMultiplication().analyse_equations(read(view), None)
    assert own.share < 1.0
    assert recovered(ExactMultiplication(), log).all()
    assert ExactMultiplication().analyse(view).share == 1.0


def test_too_few_gradients_leave_rows_open_and_nothing_wrong_is_certain() -> None:
    log = trained("iteration", epochs=2)
    view = cut(log, CORRUPTED)
    found, certain = solved_rows(view, read(view))
    assert not certain.all()
    truth = read(view)[0].rule.encode(log.sealed("p0")["columns"])
    assert (found[certain] == truth[certain]).all()


def test_without_opened_residuals_there_are_no_equations() -> None:
    view = cut(trained("iteration", epochs=2, open_all=False), CORRUPTED)
    assert ReverseMultiplication().analyse(view).rank == 0
    assert (ReverseMultiplication().run(view, np.random.default_rng(0)).values == 0.5).all()
    assert not solved_rows(view, read(view))[1].any()


def test_rows_that_no_round_drew_are_guessed_by_the_middle() -> None:
    log = trained("iteration", epochs=1, batch_size=10)
    view = cut(log, CORRUPTED)
    never = drawn(view) == 0
    values = ReverseMultiplication().run(view, np.random.default_rng(0)).values
    assert never.any()
    assert values is not None
    assert (values[never] == 0.5).all()


def test_the_expected_number_of_epochs_is_the_binomial_one() -> None:
    rng = np.random.default_rng(0)
    epochs = expected_epochs(100, 30, 5)
    left = []
    for _ in range(300):
        counts = np.zeros(100, dtype=np.int64)
        for _ in range(epochs * 4):
            counts[rng.permutation(100)[:30]] += 1
        left.append((counts <= 5).sum())
    assert np.mean(left) < 1.0 + 4 * np.std(left) / np.sqrt(300)
    assert expected_epochs(100, 100, 3) == 4
