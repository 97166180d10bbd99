"""Published label inference at the cut: norms, directions beside known labels, logits, and a completed model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.attacks.labels._model_completion import completed
from plumbob.attacks.labels.direct_label_inference import NO_LOGITS
from plumbob.attacks.labels.model_completion import ONE_CLASS, ModelCompletion
from plumbob.attacks.labels.norm_scoring import TWO_CLASSES
from plumbob.errors import BadInput
from plumbob.federation import IntArray, split_at_random
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.label_claims import named_accuracy
from plumbob.threats import THREATS, View, cut
from tests.attacks.labels.test_label_directions import log
from tests.worlds import made_table

KNOWN = THREATS["passive-known-labels"]


def view(classes: int = 2) -> View:
    return cut(log(classes), KNOWN)


def label(classes: int = 2) -> IntArray:
    return log(classes).sealed("active")["label"]


def labels(name: str, seen: View) -> IntArray:
    guess = attack_named(name).run(seen, np.random.default_rng(0))
    assert guess.labels is not None
    return guess.labels


@cache
def logits_cross(classes: int) -> View:
    """A cut at the output: the parties' shares of the logits are added up."""
    table = made_table(rows=200, classes=classes)
    protocol = SplitNetwork(hidden=(classes,), top="sum", epochs=2, batch_size=40)
    rng = np.random.default_rng(0)
    federation = split_at_random(table, 0.5, rng)
    return cut(protocol.train(federation, federation, rng), THREATS["passive-training"])


def test_rows_of_a_known_class_have_gradients_of_its_direction() -> None:
    assert (labels("direction_scoring", view()) == label()).all()


def test_one_known_class_is_enough_where_there_are_two() -> None:
    seen = view()
    assert seen.labelled is not None
    assert seen.labelled_classes is not None
    ones = seen.labelled_classes == 1
    one = replace(seen, labelled=seen.labelled[ones], labelled_classes=seen.labelled_classes[ones])
    told = labels("direction_scoring", one)
    assert (told == label())[told >= 0].all()


def test_rows_of_the_rarer_class_have_longer_gradients() -> None:
    rng = np.random.default_rng(0)
    positive = (rng.random(len(label())) < 0.1).astype(np.int64)
    seen = cut(log(), THREATS["passive-training"])
    steps = iter([positive[message.payload] for message in seen.messages if message.name == "rows"])
    told = [
        replace(m, payload=(0.1 - next(steps))[:, None] * np.ones(3)) if m.name == "output gradients" else m
        for m in seen.messages
    ]
    assert named_accuracy(labels("norm_scoring", replace(seen, messages=tuple(told))), positive) == 1.0


@pytest.mark.parametrize("classes", [2, 4])
def test_logits_that_cross_the_cut_tell_every_class(classes: int) -> None:
    seen = logits_cross(classes)
    true = made_table(rows=200, classes=classes).label
    assert (labels("direct_label_inference", seen) == true).all()


def untried(name: str, seen: View) -> str:
    return attack_named(name).run(seen, np.random.default_rng(0)).untried


def test_what_does_not_fit_is_said() -> None:
    seen = view(4)
    assert untried("norm_scoring", seen) == TWO_CLASSES
    assert untried("direct_label_inference", seen) == NO_LOGITS
    alike = replace(seen, labelled_classes=np.zeros_like(seen.labelled_classes))
    assert untried("model_completion", alike) == ONE_CLASS
    with pytest.raises(BadInput, match="steps"):
        ModelCompletion(steps=0)


def test_a_head_learns_from_few_labels() -> None:
    rng = np.random.default_rng(0)
    true = np.arange(200) % 2
    known = np.where(np.arange(200) < 20, true, -1)
    found = completed(rng.normal(size=(200, 6)) + 2.0 * true[:, None], known, 2, 300, 16, 0, weight=1.0)
    assert (found == true).mean() > 0.95
