"""Boosted splits read the trees, the sides and the labels off the wire without a mistake."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from plumbob.attacks.labels.boosted_splits import BoostedSplits, _Intervals, _told, _Trees, expected, labels
from plumbob.federation import halves, split_at_random
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.targets.xgboost.xgboost_columns import XgboostColumns
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, needs_xgboost


@cache
def run(classes: int, predict: bool) -> Transcript:
    rng = np.random.default_rng(1)
    federation = split_at_random(made_table(rows=300, classes=classes, seed=1), 0.5, rng)
    train, rows = halves(federation.label, rng)
    return XgboostColumns(trees=6, predict=predict).train(federation.rows(train), federation.rows(rows), rng)


def replayed(view: View) -> tuple[_Trees, _Intervals]:
    intervals = _Intervals.of(view)
    trees = _Trees(len(view.own), intervals)
    for message in _told(view):
        if message.name == "split candidates":
            trees.look_at(message.payload)
        elif message.name == "sides":
            bits = np.unpackbits(message.payload, bitorder="little").astype(np.bool_)
            (trees.send if message.phase == "train" else trees.send_everywhere)(bits)
    return trees, intervals


@needs_xgboost
@pytest.mark.parametrize("classes", [2, 3])
def test_the_trees_on_the_wire_are_those_that_the_workers_save(classes: int) -> None:
    log = run(classes, False)
    view = cut(log, THREATS["coordinator"])
    saved = {key.removeprefix("notes/model/"): array for key, array in log.sealed("passive").items() if "model" in key}
    trees, _ = replayed(view)
    assert len(trees.grown) == saved["tree"].max() + 1
    order = view.notes["columns"]
    for number, (size, nodes) in enumerate(trees.grown):
        here = saved["tree"] == number
        assert size == here.sum()
        feature, threshold = saved["feature"][here], saved["threshold"][here]
        assert {node: (order[column], cut) for node, (column, cut) in nodes.items()} == {
            int(node): (feature[node], threshold[node]) for node in np.flatnonzero(feature >= 0)
        }


@needs_xgboost
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("predict", [False, True])
@pytest.mark.parametrize("threat", ["passive-training", "active-training", "coordinator"])
def test_every_cell_lies_in_its_interval(classes: int, predict: bool, threat: str) -> None:
    log = run(classes, predict)
    view = cut(log, THREATS[threat])
    _, intervals = replayed(view)
    true = truth_of(log, view).values.astype(np.float32)  # as xgboost compares
    assert (intervals.low.astype(np.float32) <= true).all()
    assert ((true < intervals.high.astype(np.float32)) | (intervals.high > 1)).all()
    assert (intervals.high - intervals.low).mean() < 0.8


@needs_xgboost
def test_a_joint_prediction_tells_more_than_the_training() -> None:
    widths = []
    for predict in (False, True):
        _, intervals = replayed(cut(run(2, predict), THREATS["passive-training"]))
        widths.append(intervals.high - intervals.low)
    assert (widths[1] <= widths[0]).all()
    assert widths[1].mean() < 0.8 * widths[0].mean()


@needs_xgboost
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("threat", ["passive-training", "coordinator"])
def test_whoever_has_no_label_reads_that_of_every_row(classes: int, threat: str) -> None:
    log = run(classes, False)
    view = cut(log, THREATS[threat])
    guess = BoostedSplits().run(view, np.random.default_rng(0))
    judged = score(guess, truth_of(log, view), view, np.random.default_rng(0))
    assert judged.label_accuracy == 1.0
    assert judged.label_baseline is not None
    assert judged.label_baseline < 0.9


def test_labels_are_the_signs_of_the_gradients() -> None:
    binary = np.array([[[0.3, 0.2]], [[-0.7, 0.2]]])
    assert labels(binary).tolist() == [0, 1]
    three = np.array([[[0.3, 0], [-0.7, 0], [0.4, 0]], [[-0.7, 0], [0.3, 0], [0.4, 0]]])
    assert labels(three).tolist() == [1, 0]


def test_a_grid_with_one_value_in_an_interval_is_exact() -> None:
    low, high = np.array([0.0, 0.25, 0.5]), np.array([0.25, 0.5, 1.0 + 1e-9])
    assert expected(low, high, 0.25).tolist() == [0.0, 0.25, 0.75]  # then 0.5, 0.75 and 1


def test_wide_intervals_follow_the_rows_that_are_better_known() -> None:
    low, high = np.array([0.0] * 9 + [0.5, 0.0]), np.array([0.5] * 9 + [1.0, 1.0])
    known, unknown = expected(low, high, 0.0)[[0, -1]]
    assert known <= unknown < 0.4
