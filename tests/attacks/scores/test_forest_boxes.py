"""Forest boxes: votes are counted right, cells are drawn right, and real columns are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.scores.forest_boxes import (
    ForestBoxes,
    ballot_of,
    cells_of,
    draw,
    sides_of,
    tree_labels,
    vote_changes,
)
from plumbob.federation import split_at_random
from plumbob.protocols.scores.boosted_trees import BoostedModel, BoostedTrees
from plumbob.protocols.scores.random_forest import RandomForest
from plumbob.protocols.shared.trees import Forest
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, THREATS, View, cut
from plumbob.transcript import Transcript
from tests.attacks.scores.told import beats_own_means, r2, with_and_without_rows
from tests.worlds import built_in, made_table, transcript, world


def guess(view: View) -> np.ndarray:
    values = ForestBoxes().run(view, np.random.default_rng(0)).values
    assert values is not None
    return values


def forest_world(name: str, unknown: float, seed: int = 0) -> Transcript:
    federation = split_at_random(built_in(name), unknown, np.random.default_rng(seed))
    return transcript(RandomForest(trees=60), federation, seed)


def completed(view: View, values: np.ndarray) -> np.ndarray:
    rows = np.empty((len(values), len(view.known) + len(view.unknown)))
    rows[:, view.known], rows[:, view.unknown] = view.own, values
    return rows


def votes_of(forest: Forest, view: View, values: np.ndarray) -> np.ndarray:
    return np.rint(forest.scores(completed(view, values)) * len(forest.feature))


def small_forest() -> tuple[View, Forest]:
    view = cut(world("random_forest", unknown=3), LUO2021)
    assert view.model is not None
    return view, Forest.from_arrays(view.model)


def test_changes_of_votes_are_those_of_the_forest() -> None:
    """Moving one column to the middle of each of its cells changes the votes as foretold."""
    view, forest = small_forest()
    values = np.random.default_rng(1).random((len(view.own), 3))
    sides = sides_of(forest, view, np.arange(len(values)), values)
    ballot = ballot_of(forest)
    trees = zip(forest.feature, ballot.option, sides, strict=True)
    labels = np.stack([np.broadcast_to(tree_labels(*tree, {}), len(values)) for tree in trees])
    before = votes_of(forest, view, values)
    for j, column in enumerate(view.unknown):
        cells = cells_of(forest, int(column), 0.0, 1.0)
        change = vote_changes(forest, ballot, cells, labels, sides)
        for k, middle in enumerate((cells.edges[1:] + cells.edges[:-1]) / 2):
            moved = values.copy()
            moved[:, j] = middle
            assert np.array_equal(votes_of(forest, view, moved) - before, change[:, k])


def test_a_flat_likelihood_draws_from_the_cut_normal() -> None:
    from scipy.stats import truncnorm

    edges, rng = np.array([0.0, 0.2, 0.7, 1.0]), np.random.default_rng(0)
    _, values, means = draw(edges, np.full(20000, 0.8), 0.3, np.zeros((20000, 3)), rng)
    expected = truncnorm(-0.8 / 0.3, 0.2 / 0.3, 0.8, 0.3)
    assert means[0] == pytest.approx(expected.mean(), abs=1e-6)
    assert values.mean() == pytest.approx(expected.mean(), abs=0.01)
    assert values.std() == pytest.approx(expected.std(), abs=0.01)


def test_energy_rules_cells_out() -> None:
    edges, rng = np.array([0.0, 0.2, 0.7, 1.0]), np.random.default_rng(0)
    energy = np.tile([1e3, 0.0, 1e3], (100, 1))
    chosen, values, _ = draw(edges, np.full(100, 0.9), 0.1, energy, rng)
    assert (chosen == 1).all()
    assert ((values >= 0.2) & (values <= 0.7)).all()


def test_a_column_that_no_tree_uses_has_one_cell() -> None:
    _, forest = small_forest()
    cells = cells_of(forest, 99, 0.0, 1.0)
    assert len(cells.edges) == 2
    assert cells.uses == ()


def test_the_guess_stays_in_range_and_nearly_reproduces_the_votes() -> None:
    view = cut(forest_world("digits", 0.3), LUO2021)
    values = guess(view)
    assert values.min() >= 0
    assert values.max() <= 1
    assert view.model is not None
    shares = Forest.from_arrays(view.model).scores(completed(view, values))
    assert np.abs(shares - view.received("scores")).mean() < 0.03


def test_better_than_guesses_without_scores_on_digits() -> None:
    """Below the best constant, which no attacker knows, but above what own columns give."""
    log = forest_world("digits", 0.3)
    view = cut(log, LUO2021)
    assert beats_own_means(guess(view), log, view)


def test_auxiliary_rows_help() -> None:
    without, having = with_and_without_rows(guess, forest_world("breast", 0.5))
    assert having > max(without, 0.5)


def test_leaves_that_add_up_are_summed_as_the_model_sums_them() -> None:
    """The sums of what leaves say, at the true cells, are what is read off the scores."""
    for classes in (2, 3):
        log = world("boosted_trees", made_table(classes=classes), unknown=3)
        view = cut(log, LUO2021)
        assert view.model is not None
        forest = BoostedModel.from_arrays(view.model)
        ballot, truth = ballot_of(forest), truth_of(log, view).values
        sides = sides_of(forest, view, np.arange(len(truth)), truth)
        labels = [tree_labels(*tree, {}) for tree in zip(forest.feature, ballot.option, sides, strict=True)]
        sums = sum(says[label] for says, label in zip(ballot.says, labels, strict=True))
        assert sums == pytest.approx(ballot.read(view.received("scores")), abs=1e-4)


def test_boosted_trees_leak_individuals_to_who_knows_some_rows() -> None:
    federation = split_at_random(built_in("breast"), 0.3, np.random.default_rng(0))
    log = transcript(BoostedTrees(trees=20), federation)
    view = cut(log, THREATS["active-auxiliary"])
    blind = np.full((len(view.own), len(view.classes)), np.nan)
    unseen = replace(view, messages=tuple(replace(m, payload=blind) for m in view.messages if m.name == "scores"))
    truth = truth_of(log, view).values
    assert r2(guess(view), truth) > max(r2(guess(unseen), truth), 0.7)
