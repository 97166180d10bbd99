"""Label averages: noise that is drawn anew in every round averages out, and what is the same in all stays."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks.labels._cut_gradients import Batch
from plumbob.attacks.labels.label_averages import MANY, LabelAverages, apart, means, meeting, refined
from plumbob.attacks.own_column_labels import labels_of_own_columns
from plumbob.defences import defence_named
from plumbob.federation import split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.label_claims import named_accuracy
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_table


def noisy(rounds: int, scale: float, rows: int = 300) -> tuple[list[Batch], np.ndarray]:
    """Gradients of two classes along one direction, under noise that is longer than they are."""
    rng = np.random.default_rng(0)
    label = (rng.random(rows) < 0.4).astype(np.int64)
    clean = np.outer(0.4 - label, rng.normal(size=12))
    every = np.arange(rows)
    return [Batch(every, clean + scale * rng.normal(size=clean.shape)) for _ in range(rounds)], label


def by_sign(found: list[Batch], label: np.ndarray) -> float:
    mean, seen = means(found, len(label))
    assert seen.all()
    value = refined(found, mean @ np.linalg.svd(mean)[2][0])
    return named_accuracy((value > meeting(value)).astype(np.int64), label)


def test_more_rounds_tell_more_under_noise_that_hides_each() -> None:
    accuracy = [by_sign(*noisy(rounds, 4.0)) for rounds in (1, 40)]
    assert accuracy[0] < 0.75
    assert accuracy[1] > 0.95


def test_the_line_of_two_unlike_classes_is_not_at_zero() -> None:
    rng = np.random.default_rng(0)
    label = rng.random(4_000) < 0.2
    value = np.where(label, 8.0, -2.0) + 2 * rng.normal(size=4_000)
    line = meeting(value)
    assert np.mean((value > line) == label) > np.mean((value > 0) == label) + 0.1
    assert apart(value - line) > apart(value)
    assert (meeting(np.ones(5)), apart(np.ones(5))) == (0.0, 0.0)


def seen(name: str, classes: int = 2, threat: str = "passive-training", **settings: object) -> tuple[View, np.ndarray]:
    table = made_table(240, 6, classes, seed=1)
    names = [f"c{i}" for i in range(6)]
    federation = split(table, {"bank": names[:2], "shop": names[2:]}, "bank")
    protocol = SplitNetwork(hidden=(12, 6), epochs=20, batch_size=60)
    log = defence_named(name, **settings).protect(protocol).train(federation, federation, np.random.default_rng(0))
    return cut(log, THREATS[threat]), federation.label


@pytest.mark.parametrize(("name", "settings"), [("none", {}), ("max_norm_alignment", {}), ("marvell", {"scale": 1.0})])
def test_defences_that_draw_anew_leave_most_labels_readable(name: str, settings: dict[str, object]) -> None:
    view, label = seen(name, **settings)
    assert named_accuracy(LabelAverages().run(view, np.random.default_rng(0)).labels, label) > 0.9


@pytest.mark.parametrize(("name", "settings"), [("none", {}), ("output_gradient_noise", {"scale": 1.0})])
def test_known_labels_teach_several_classes(name: str, settings: dict[str, object]) -> None:
    view, label = seen(name, 3, "passive-known-labels", **settings)
    alone = labels_of_own_columns(view)
    assert alone is not None
    labels = LabelAverages().run(view, np.random.default_rng(0)).labels
    assert np.mean(labels == label) > np.mean(alone == label) + 0.1


def test_without_known_labels_several_classes_are_left_to_others() -> None:
    view, _ = seen("none", classes=3)
    assert LabelAverages().run(view, np.random.default_rng(0)).untried == MANY
