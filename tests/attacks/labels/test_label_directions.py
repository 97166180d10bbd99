"""Label directions read the classes off gradients at the cut, and say what they cannot name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks.base import Guess
from plumbob.attacks.labels._cut_gradients import SILENT
from plumbob.attacks.labels.label_directions import LabelDirections
from plumbob.bundle import Array
from plumbob.federation import IntArray, halves, split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.label_claims import LabelScore, score_labels
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, world


@cache
def log(classes: int = 2, parties: int = 1, hidden: tuple[int, ...] = (12, 8)) -> Transcript:
    table = made_table(rows=400, classes=classes, seed=1)
    names = [column.name for column in table.columns]
    passive = {f"p{k}": names[2 + k :: parties] for k in range(parties)}
    federation = split(table, {"active": names[:2], **passive}, "active")
    train, rows = halves(federation.label, np.random.default_rng(0))
    protocol = SplitNetwork(hidden=hidden, epochs=6, batch_size=50)
    return protocol.train(federation.rows(train), federation.rows(rows), np.random.default_rng(0))


def view(threat: str = "passive-training", **settings: int) -> View:
    return cut(log(**settings), THREATS[threat])


def attacked(seen: View) -> Guess:
    return LabelDirections().run(seen, np.random.default_rng(0))


def judged(seen: View, of: Transcript) -> LabelScore:
    found = score_labels(attacked(seen), truth_of(of, seen), seen)
    assert found is not None
    return found


def label(classes: int = 2) -> IntArray:
    return log(classes).sealed("active")["label"]


@pytest.mark.parametrize("parties", [1, 3])
def test_two_classes_are_told_apart_in_every_row(parties: int) -> None:
    found = judged(view(parties=parties), log(parties=parties))
    assert (found.accuracy, found.unnamed) == (1.0, True)


def test_known_labels_name_them() -> None:
    guess = attacked(view("passive-known-labels"))
    assert not guess.unnamed
    assert guess.labels is not None
    assert (guess.labels == label()).all()


def test_several_classes_are_told_apart_in_most_rows() -> None:
    found = judged(view("passive-known-labels", classes=4), log(classes=4))
    assert found.accuracy > 0.8
    assert not found.unnamed


def test_one_row_of_a_hundred_is_found() -> None:
    table = made_table(rows=800, seed=2, classes=2)
    rare = table.values[:, 3] > np.quantile(table.values[:, 3], 0.99)
    federation = split(
        replace(table, label=rare.astype(np.int64)), {"active": ["c0"], "p": ["c1", "c2", "c3"]}, "active"
    )
    made = SplitNetwork(hidden=(12, 8), epochs=5, batch_size=50)
    run = made.train(federation, federation, np.random.default_rng(0))
    assert judged(cut(run, THREATS["passive-known-labels"]), run).accuracy == 1.0


def changed(seen: View, change: Callable[[Array], Array]) -> View:
    """The same messages with other gradients."""
    messages = [
        replace(message, payload=change(np.array(message.payload))) if message.name == "output gradients" else message
        for message in seen.messages
    ]
    return replace(seen, messages=tuple(messages))


def test_rows_whose_gradients_are_no_numbers_are_left_to_other_rounds() -> None:
    rng = np.random.default_rng(0)
    broken = changed(view("passive-known-labels"), lambda g: np.where(rng.random((len(g), 1)) < 0.1, np.nan, g))
    guess = attacked(broken)
    assert guess.labels is not None
    assert (guess.labels == label()).all()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("constant", [0.0, 1.0, np.nan])
def test_gradients_that_say_nothing_give_nothing(classes: int, constant: float) -> None:
    seen = changed(view(classes=classes), lambda g: np.full_like(g, constant))
    guess = attacked(seen)
    assert guess.labels is not None
    assert (guess.labels == -1).all()
    assert guess.untried == SILENT


def test_a_class_without_a_known_label_is_the_one_left_over() -> None:
    seen = view("passive-known-labels")
    assert seen.labelled_classes is not None
    assert seen.labelled is not None
    ones = seen.labelled_classes == 1
    guess = attacked(replace(seen, labelled=seen.labelled[ones], labelled_classes=seen.labelled_classes[ones]))
    assert guess.labels is not None
    assert (guess.labels == label()).all()


def test_gradients_of_split_training_are_read_too() -> None:
    made = world("split_training", made_table(rows=120, classes=2))
    guess = attacked(cut(made, THREATS["passive-known-labels"]))
    assert (guess.labels == made.sealed(made.active)["label"]).all()


def test_a_cut_at_which_one_number_crosses_is_read_too() -> None:
    true = [label()[message.payload] for message in view().messages if message.name == "rows"]
    steps = iter(true)
    assert judged(changed(view(), lambda g: (0.3 - next(steps))[:, None] / len(g)), log()).accuracy == 1.0
