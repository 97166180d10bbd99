"""Hidden indices against a server that makes numbers of its own: all of pictures comes out but whose they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.attacks.base import Guess
from plumbob.attacks.gradients._hidden_rows import _Attendance, _linked
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.data import registry
from plumbob.defences.gradients.hidden_indices import HiddenIndices
from plumbob.errors import BadInput
from plumbob.federation import Table, split_at_random, split_into_tiles
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.report.answer import answers, how
from plumbob.scoring.score import Score, score, whose
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.worlds import made_pictures, made_table, with_truth

ROWS = 20


def trained(table: Table, **changed: object) -> Transcript:
    federation = split_into_tiles(table, 4)
    choice = {"width": 32, "outputs": 8, "batch_size": 5, "rounds": 60} | changed
    protocol = HiddenIndices().protect(SplitTraining(**choice))
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


def attendance(rounds: np.ndarray, known: np.ndarray) -> _Attendance:
    """Of people x rounds: a worker who sees the known rounds only."""
    return _Attendance(known, rounds.T & known[:, None], len(rounds))


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
@given(rows=st.integers(2, 60), columns=st.integers(3, 40), seed=st.integers(0, 10**6))
def test_people_go_to_their_rows_whatever_their_order(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, strangers = rng.random((rows, columns)), rng.random((2 * rows, columns))
    order = rng.permutation(rows)
    assert (whose(true[order], true, strangers) == order).all()


@pytest.mark.parametrize("columns", [4, 8, 15, 30])
def test_other_people_are_hardly_ever_taken_for_rows(columns: int) -> None:
    """Real rows of others, which are like the rows in everything."""
    values = registry.load("breast").values[:, :columns]
    parts = np.split(np.random.default_rng(0).permutation(len(values))[:480], [60, 120])
    people, true, strangers = (values[part] for part in parts)
    assert (whose(people, true, strangers) >= 0).sum() <= 1
    assert (whose(true, true, strangers) >= 0).sum() >= 58


def test_rows_that_strangers_have_as_well_are_nobodys() -> None:
    """Exact, and yet it says nothing of anyone: codes that many people share."""
    true = np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float)
    assert (whose(true, true, true[::-1]) == -1).all()


def test_alone_in_a_batch_everybody_comes_out() -> None:
    """Seen once is enough: of 20 people 15 are in some of 30 rounds, five of them in one only."""
    log = trained(made_pictures(40, side=16), batch_size=1, rounds=30)
    taken = cut(log, THREATS["corrupted-coordinator"]).notes["rows taken"]
    there = len(np.unique(taken))
    assert (np.unique(taken, return_counts=True)[1] == 1).any()
    guess, judged = attacked(log)
    assert guess.people is not None
    assert len(guess.people) == there
    assert judged.images is not None
    assert judged.images.exact >= 0.8 * there / ROWS


def test_tables_without_zeros_come_out_where_batches_cross() -> None:
    """Two rounds with one person in common meet in that person's columns; all come out, with their labels."""
    federation = split_at_random(registry.load("breast"), 15, np.random.default_rng(0))
    protocol = HiddenIndices().protect(SplitTraining(width=32, outputs=4, batch_size=4, rounds=80))
    parts = federation.rows(np.arange(ROWS)), federation.rows(np.arange(ROWS, 100))
    guess, judged = attacked(protocol.train(*parts, np.random.default_rng(0)))
    assert guess.people is not None
    assert len(guess.people) == ROWS
    assert judged.error < 1e-6
    assert judged.label_accuracy == 1.0


def test_batches_that_fill_the_space_are_not_called_safe() -> None:
    federation = split_at_random(registry.load("breast"), 15, np.random.default_rng(0))
    protocol = HiddenIndices().protect(SplitTraining(width=32, outputs=4, batch_size=12))
    parts = federation.rows(np.arange(ROWS)), federation.rows(np.arange(ROWS, 100))
    guess, _ = attacked(protocol.train(*parts, np.random.default_rng(0)))
    assert guess.people is None
    assert "no two batches cross in one" in guess.untried


@pytest.mark.parametrize(
    ("defence", "settings", "reason"),
    [
        ("hidden_indices", {"optimizer": "sgd", "learning_rate": 0.1}, "while parameters move"),
        ("hidden_indices+quantised_gradients", {}, "second defence"),
        ("hidden_indices+secure_aggregation", {}, "second defence"),
    ],
)
def test_what_is_not_tried_is_not_called_safe(defence: str, settings: dict[str, object], reason: str) -> None:
    plan = make_plan(
        {
            "data": "breast",
            "unknown": [0.5],
            "rows": 50,
            "trials": 1,
            "protocols": [{"name": "split_training", "settings": {"width": 16, "outputs": 4, "rounds": 8} | settings}],
            "threats": ["coordinator"],
            "attacks": ["gradient_peeling"],
            "defences": ["none", defence],
        }
    ).filled()
    findings = run(plan, open_source(plan.data, 0))
    (choice,) = frontiers(findings)
    option = choice.option(choice.options[-1].defence)
    assert option is not None
    assert option.unknown
    assert not option.safe
    assert choice.recommended != option.defence
    defended = next(a for a in answers(conclude(findings)) if a.situation.defence != "none")
    assert defended.headline.startswith("Not known")
    assert reason in how(defended)
