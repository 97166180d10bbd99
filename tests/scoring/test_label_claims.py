"""Labels are judged beside what needs no message: frequent classes, known labels with own columns, clusters of own columns."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plumbob.attacks.base import nothing
from plumbob.attacks.own_column_labels import clusters_of_own_columns, labels_of_own_columns
from plumbob.auditing.planning.plan import ThreatPlan
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.scoring.label_claims import LabelScore, named_accuracy, score_labels
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, KnownLabels, Schema, Threat, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, resealed, world

KNOWN = THREATS["passive-known-labels"]


@cache
def log() -> Transcript:
    return world("split_network", made_table(rows=240))


def label() -> IntArray:
    return log().sealed("active")["label"]


def judged(view: View, labels: IntArray, unnamed: bool = False) -> LabelScore:
    found = score_labels(replace(nothing(view), labels=labels, unnamed=unnamed), truth_of(log(), view), view)
    assert found is not None
    return found


def test_known_labels_are_those_of_so_many_rows_of_each_class() -> None:
    view = cut(log(), KNOWN)
    known = view.known_labels
    assert np.bincount(known[known >= 0]).tolist() == [4, 4, 4]
    assert (known[known >= 0] == label()[known >= 0]).all()


def test_of_a_rare_class_at_most_half_is_known() -> None:
    rare = np.zeros_like(label())
    rare[:3], rare[3:10] = 2, 1
    view = cut(resealed(log(), "active", {"label": rare}), KNOWN)
    assert np.bincount(view.known_labels[view.known_labels >= 0]).tolist() == [4, 3, 1]


def test_more_than_half_of_the_rows_cannot_be_known() -> None:
    alike = resealed(log(), "active", {"label": np.arange(len(label())) % 2})
    assert cut(alike, Threat("half", "", (KnownLabels(30),), active=False)).labelled is not None
    with pytest.raises(BadInput, match="at least one"):
        cut(resealed(log(), "active", {"label": np.zeros(0, dtype=np.int64)}), KNOWN)
    with pytest.raises(BadInput, match="at least 1 for each class, got 0"):
        KnownLabels(0)


def test_known_labels_are_saved_with_a_view_and_checked(tmp_path: Path) -> None:
    view = cut(log(), KNOWN)
    view.save(tmp_path / "view.zip")
    assert (View.load(tmp_path / "view.zip").known_labels == view.known_labels).all()
    replace(view, labelled_classes=view.known_labels).save(tmp_path / "other.zip")
    with pytest.raises(BadInput, match="'labelled': expected different rows"):
        View.load(tmp_path / "other.zip")


def test_a_plan_says_how_many_labels_are_known() -> None:
    assert ThreatPlan(name="passive-training", known_labels=2).threat().grants == (Schema(), KnownLabels(2))
    assert ThreatPlan(name="passive-known-labels", known_labels=0).threat().grants == (Schema(),)


def test_rows_with_known_labels_do_not_count() -> None:
    view = cut(log(), KNOWN)
    wrong = np.where(view.known_labels >= 0, (label() + 1) % 3, label())
    assert judged(view, wrong).accuracy == 1.0


def test_what_own_columns_and_known_labels_tell_is_the_baseline() -> None:
    view = cut(log(), KNOWN)
    alone = labels_of_own_columns(view)
    assert alone is not None
    score = judged(view, alone)
    most = np.bincount(label()).max() / len(label())
    assert score.accuracy == score.baseline > most


def test_without_known_labels_the_baseline_is_the_most_frequent_class() -> None:
    view = cut(log(), THREATS["passive-training"])
    assert labels_of_own_columns(view) is None
    assert judged(view, label()).baseline == pytest.approx(np.bincount(label()).max() / len(label()))


def test_who_shares_a_class_is_a_leak_whatever_the_classes_are_called() -> None:
    view = cut(log(), THREATS["passive-training"])
    assert judged(view, (label() + 1) % 3).accuracy == 0.0
    assert judged(view, (label() + 1) % 3, unnamed=True).accuracy == 1.0


def test_clusters_of_own_columns_are_no_leak() -> None:
    view = cut(log(), THREATS["passive-training"])
    score = judged(view, clusters_of_own_columns(view), unnamed=True)
    assert score.accuracy <= score.baseline


def test_names_that_luck_suggests_are_not_worth_a_row() -> None:
    rng = np.random.default_rng(0)
    found = [named_accuracy(rng.integers(2, size=100), np.arange(100) % 2) for _ in range(200)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.02)
