"""Hidden indices against a server that makes numbers of its own: all of pictures comes out but whose they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.base import Guess
from plumbob.attacks.gradient_peeling import GradientPeeling
from plumbob.attacks.hidden_rows import _Attendance, _linked
from plumbob.defences import HiddenIndices
from plumbob.errors import BadInput
from plumbob.federation import Table, split_at_random, split_into_tiles
from plumbob.protocols import SplitTraining
from plumbob.scoring.score import Score, score, truth_of, whose
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.worlds import made_pictures, made_table, with_truth

ROWS = 20


def trained(table: Table, **changed: object) -> Transcript:
    federation = split_into_tiles(table, 4)
    choice = {"width": 32, "outputs": 8, "batch_size": 5, "rounds": 60} | changed
    protocol = HiddenIndices().protect(SplitTraining(**choice))  # type: ignore[arg-type]
    others = federation.rows(np.arange(ROWS, len(federation)))
    return protocol.train(federation.rows(np.arange(ROWS)), others, np.random.default_rng(0))


def attacked(log: Transcript) -> tuple[Guess, Score]:
    view = cut(log, THREATS["coordinator"])
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    return guess, score(guess, truth_of(log, view), view, np.random.default_rng(0))


def test_pictures_come_out_and_labels_but_not_whose_they_are() -> None:
    guess, judged = attacked(trained(made_pictures(40, side=16)))
    assert guess.values is None
    assert guess.people is not None
    assert len(guess.people) == ROWS
    assert judged.images is not None
    assert judged.images.exact >= 0.8
    assert judged.label_accuracy == 1.0
    assert guess.certificate == "20 people in no order"


def test_two_people_with_one_picture_are_two() -> None:
    """Their representations are the same; their labels, and so their gradients, are not."""
    table = made_pictures(40, side=16)
    values = table.values.copy()
    values[1] = values[0]
    assert table.label[0] != table.label[1]
    guess, judged = attacked(trained(replace(table, values=values), rounds=100))
    assert guess.people is not None
    assert len(guess.people) == ROWS
    assert judged.label_accuracy == 1.0


def test_garbage_in_place_of_the_truth_changes_nobody() -> None:
    log = trained(made_pictures(40, side=16))
    garbage = np.random.default_rng(9).random(log.sealed("tile_2")["columns"].shape)
    one, two = attacked(log)[0], attacked(with_truth(log, "tile_2", garbage))[0]
    assert one.people is not None
    assert two.people is not None
    assert (one.people == two.people).all()


def test_a_server_that_colludes_with_a_party_has_the_secret() -> None:
    """Of tables, too, and with names."""
    table = made_table(60)
    federation = split_at_random(table, 4, np.random.default_rng(0))
    protocol = HiddenIndices().protect(SplitTraining(width=32, batch_size=5))
    log = protocol.train(
        federation.rows(np.arange(ROWS)), federation.rows(np.arange(ROWS, 60)), np.random.default_rng(0)
    )
    view = cut(log, THREATS["corrupted-coordinator"])
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    assert guess.values is not None
    assert np.mean(np.abs(guess.values - truth_of(log, view).values).max(axis=1) < 1e-4) >= 0.8
    assert "rows taken" not in cut(log, THREATS["coordinator"]).notes
    short = replace(view, notes=view.notes | {"rows taken": view.notes["rows taken"][1:]})
    with pytest.raises(BadInput, match="expected 125 row numbers"):
        GradientPeeling().run(short, np.random.default_rng(0))


def test_while_parameters_move_nothing_is_claimed() -> None:
    guess, _ = attacked(trained(made_pictures(40, side=16), optimizer="sgd", learning_rate=0.1, rounds=10))
    assert guess.people is None
    assert guess.values is not None
    assert (guess.values == 0.5).all()


def attendance(rounds: np.ndarray, known: np.ndarray) -> _Attendance:
    """Of people x rounds: a worker who sees the known rounds only."""
    return _Attendance(known, rounds.T & known[:, None])


@pytest.mark.parametrize("seed", range(5))
def test_workers_agree_on_one_numbering(seed: int) -> None:
    """Each knows other rounds, and in another order; the first never sees person 0, whose units are dead there."""
    rng = np.random.default_rng(seed)
    rounds = np.zeros((9, 80), dtype=bool)
    for number in range(80):
        rounds[rng.permutation(9)[:3], number] = True
    first = ~rounds[0] & (rng.random(80) < 0.9)
    second, order = rng.random(80) < 0.6, rng.permutation(9)
    members = _linked([attendance(rounds[1:], first), attendance(rounds[order], second)], 9)
    assert set(members) == set(np.flatnonzero(first | second).tolist())
    told = np.zeros((9, 80), dtype=bool)
    for number, who in members.items():
        assert len(set(who.tolist())) == 3
        told[who, number] = True
    known = sorted(members)
    assert sorted(map(tuple, told[:, known].tolist())) == sorted(map(tuple, rounds[:, known].tolist()))


def test_nobody_is_numbered_whose_rounds_contradict() -> None:
    """The second worker's person is in rounds in which the first has nobody like that."""
    one = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    other = np.array([[1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
    every = np.ones(4, dtype=bool)
    members = _linked([attendance(one, every), attendance(other, every)], 2)
    assert {number: who.tolist() for number, who in members.items()} == {0: [0], 1: [0], 2: [1], 3: [1]}


@settings(max_examples=20)
@given(rows=st.integers(2, 60), columns=st.integers(8, 40), seed=st.integers(0, 10**6))
def test_people_who_are_none_of_the_rows_are_nobodys(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, people = rng.random((rows, columns)), rng.random((rows, columns))
    assert (whose(people, true, np.full(true.shape, 0.5)) == -1).all()
    order = rng.permutation(rows)
    assert (whose(true[order], true, np.full(true.shape, 0.5)) == order).all()


def test_few_columns_in_no_order_say_nothing_of_rows() -> None:
    """Any column in order of size is every row's, without telling whose."""
    true = np.random.default_rng(0).random((50, 7))
    assert (whose(true, true, np.full(true.shape, 0.5)) == -1).all()
