"""Complete rows: what is linear comes out exactly, labels come out of gradients, and silence teaches nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.attacks.auxiliary.complete_rows import CompleteRows, labels_alone, learnt_alone
from plumbob.attacks.base import Guess
from plumbob.errors import BadInput
from plumbob.federation import Table, split_at_random
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.score import Score, score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, AuxiliaryRows, KnownPeople, Schema, Threat, View, cut
from plumbob.transcript import Transcript
from tests.worlds import built_in, made_table, world


def insider(count: int, active: bool = True) -> Threat:
    return Threat("insider", "", (Schema(), KnownPeople(count)), active=active)


def judged(log: Transcript, threat: Threat) -> tuple[View, Guess, Score]:
    view = cut(log, threat)
    guess = CompleteRows().run(view, np.random.default_rng(0))
    return view, guess, score(guess, truth_of(log, view), view, np.random.default_rng(0))


def others(view: View, table: np.ndarray) -> np.ndarray:
    assert view.people is not None
    return np.delete(table, view.people, axis=0)


def test_a_linear_cut_is_undone_by_two_people_more_than_it_has_columns() -> None:
    """Z = X W' + b has k + 1 terms for each of k columns; one more row shows that they are right."""
    federation = split_at_random(made_table(), 4, np.random.default_rng(0))
    log = SplitNetwork(hidden=(8,), epochs=2).train(
        federation.rows(np.arange(200)), federation.rows(np.arange(200, 400)), np.random.default_rng(0)
    )
    view, guess, _ = judged(log, insider(6))
    assert guess.values is not None
    assert np.abs(others(view, guess.values - truth_of(log, view).values)).max() < 1e-4


def test_one_hidden_column_comes_out_of_answers_on_other_people() -> None:
    """With one hidden column a logit less the own part is a multiple of it; a stranger to the model finds the factors."""
    log = world("logistic_regression", unknown=1)
    _, _, found = judged(log, Threat("rows", "", (Schema(), AuxiliaryRows(100))))
    assert found.error < 1e-6 * min(found.baselines.values())


def test_a_passive_party_learns_labels_from_gradients() -> None:
    view, guess, found = judged(world("split_network", built_in("breast"), 0.3), insider(20, active=False))
    assert guess.labels is not None
    assert found.label_accuracy is not None
    alone = labels_alone(view)
    assert alone is not None
    assert 0.8 < np.mean(guess.labels == alone) < 0.9  # own columns tell most of them: that is the baseline
    assert found.label_accuracy > 0.95 > found.label_baseline  # type: ignore[operator]  # there where the accuracy is


def test_people_known_in_full_count_nowhere() -> None:
    log = world("split_network")
    view, guess, found = judged(log, insider(20))
    assert view.people is not None
    assert guess.values is not None
    assert all(column.claims == len(view.own) - 20 for column in found.columns)
    assert found.filled == 0
    wrong = guess.values.copy()
    wrong[view.people] = 1 - wrong[view.people]
    again = score(replace(guess, values=wrong), truth_of(log, view), view, np.random.default_rng(0))
    assert again.error == found.error
    assert [(one.gain, one.rows_exact) for one in again.columns] == [
        (one.gain, one.rows_exact) for one in found.columns
    ]


@pytest.mark.parametrize("active", [True, False])
def test_people_who_come_again_are_known_in_every_row(active: bool) -> None:
    """200 people, each there twice: 20 rows known in full are not counted, nor are those people's other rows."""
    table = made_table(rows=200)
    twice = np.repeat(np.arange(200), 2)
    again = Table(table.name, table.columns, table.values[twice], table.label[twice], table.classes)
    federation = split_at_random(again, 4, np.random.default_rng(0))
    log = SplitNetwork(hidden=(8,), epochs=2).train(federation, federation, np.random.default_rng(0))
    view, _, found = judged(log, insider(20, active=active))
    assert view.people is not None
    assert len(view.own) == 400
    people = len(np.unique(twice[view.people]))
    assert {column.claims for column in found.columns} == {200 - people}
    assert found.error < (1e-6 if active else 1)


def test_where_no_message_speaks_of_rows_nothing_was_tried() -> None:
    view = cut(world("logistic_regression"), THREATS["active-auxiliary"])
    silent = replace(view, messages=(), auxiliary_scores=None)
    guess = CompleteRows().run(silent, np.random.default_rng(0))
    assert "no message" in guess.untried
    assert guess.values is not None
    alone = learnt_alone(silent)
    assert alone is not None
    assert np.array_equal(guess.values, alone)


def test_the_baseline_knows_rows_and_no_message() -> None:
    view = cut(world("logistic_regression"), THREATS["active-auxiliary"])
    alone = learnt_alone(view)
    assert alone is not None
    assert np.array_equal(alone, learnt_alone(replace(view, messages=(), auxiliary_scores=None)))  # type: ignore[arg-type]


def test_known_people_are_saved_with_a_view(tmp_path: Path) -> None:
    view = cut(world("split_network"), insider(20, active=False))
    view.save(tmp_path / "view.zip")
    again = View.load(tmp_path / "view.zip")
    assert again.digest == view.digest
    assert again.people is not None
    assert np.array_equal(again.people_labels, view.people_labels)  # type: ignore[arg-type]  # both have some


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"people": np.array([0, 10**6])}, "'people'"),
        ({"people_rows": np.zeros((2, 3))}, "'people'"),
        ({"people_rows": None}, "'people'"),
        ({"people_labels": np.array([99])}, "'people'"),
        ({"people": np.zeros(20, dtype=np.int64)}, "'people'"),
    ],
)
def test_people_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, np.ndarray | None], words: str) -> None:
    replace(cut(world("split_network"), insider(20)), **change).save(tmp_path / "view.zip")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=words):
        View.load(tmp_path / "view.zip")


def test_knowing_more_than_half_is_refused() -> None:
    with pytest.raises(BadInput, match="more than half"):
        cut(world("logistic_regression"), insider(150))
    with pytest.raises(BadInput, match="at least 2"):
        KnownPeople(1)
