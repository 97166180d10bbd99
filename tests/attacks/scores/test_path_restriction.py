"""PRA: the worked example, and agreement with the algorithm as printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scores import pra_loop
from plumbob.attacks.scores.path_restriction import PathRestriction, leaves_of, path_claims, reachable
from plumbob.papers.luo2021.equations_and_paths import toy_tree
from plumbob.protocols.shared.trees import LEAF, Forest
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut
from tests.worlds import built_in, world

OWN = np.array([[25.0, 2000.0]])


def test_example_2_beta_as_printed() -> None:
    beta = reachable(toy_tree(), np.array([0, 1]), OWN)[:, 0]
    assert beta.astype(int).tolist() == [1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_example_2_alpha_as_printed() -> None:
    alpha = leaves_of(toy_tree(), np.array([1]))[:, 0]
    assert alpha.astype(int).tolist() == [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]


def test_example_2_leaves_node_4_and_a_deposit_above_5000() -> None:
    tree = toy_tree()
    left = np.flatnonzero(reachable(tree, np.array([0, 1]), OWN)[:, 0] & leaves_of(tree, np.array([1]))[:, 0])
    assert left.tolist() == [4]
    nodes, claims = path_claims(tree, left, np.array([2, 3]))
    assert tree.feature[0, nodes].tolist() == [2, 3]
    assert claims.tolist() == [[2, 0]]


@pytest.mark.parametrize("data", ["breast", "digits"])
@pytest.mark.parametrize("unknown", [0.2, 0.6])
def test_agrees_with_the_algorithm_as_printed_and_keeps_the_true_path(data: str, unknown: float) -> None:
    log = world("decision_tree", built_in(data), unknown)
    view = cut(log, LUO2021)
    branches = PathRestriction().run(view, np.random.default_rng(1)).branches
    assert branches is not None
    assert np.array_equal(branches.candidates, pra_loop(view, np.random.default_rng(1)))
    tree = Forest.from_arrays(view.model or {})
    truth = truth_of(log, view).values
    side = np.where(truth[:, branches.column] <= branches.threshold, 1, 2)
    leaves = np.flatnonzero(tree.feature[0] == LEAF)
    possible = reachable(tree, view.known, view.own)[leaves]
    possible &= leaves_of(tree, np.argmax(view.received("scores"), axis=1))[leaves]
    agree = ((branches.paths[None] == 0) | (branches.paths[None] == side[:, None])).all(axis=2).T
    assert (agree & possible).any(axis=0).all()


def test_each_remaining_path_is_equally_likely() -> None:
    log = world("decision_tree", built_in("breast"), 0.9)
    view = cut(log, LUO2021)
    runs = [PathRestriction().run(view, np.random.default_rng(seed)).branches for seed in range(600)]
    row = int(np.argmax(runs[0].candidates))
    count = int(runs[0].candidates[row])
    assert count > 1
    chosen = np.array([run.chosen[row] for run in runs])
    shares = np.unique(chosen, return_counts=True)[1] / len(runs)
    assert len(shares) == count
    assert np.abs(shares - 1 / count).max() < 4 * np.sqrt(1 / count / len(runs))


def scored(scores: np.ndarray) -> View:
    """A tree whose leaves release scores: known <= 0.5, then unknown <= 0.2, then unknown <= 0.6."""
    feature = np.array([[0, 1, LEAF, LEAF, 1, -2, -2, -2, -2, LEAF, LEAF, -2, -2, -2, -2]])
    threshold = np.array([[0.5, 0.2, 0.0, 0.0, 0.6] + [0.0] * 10])
    said = np.zeros((1, 15, 2))
    said[0, [2, 3, 9, 10]] = [[0.1, 0.9], [0.3, 0.7], [0.2, 0.8], [0.9, 0.1]]
    tree = Forest(feature, threshold, np.argmax(said, axis=2), 2, said)
    view = cut(world("decision_tree", built_in("breast"), 0.5), LUO2021)
    message = next(m for m in view.messages if m.name == "scores" and m.receiver in view.curious)
    return replace(
        view,
        known=np.array([0]),
        unknown=np.array([1]),
        unknown_names=("b",),
        own=np.full((len(scores), 1), 0.1),
        messages=(replace(message, payload=scores),),
        model=tree.arrays(),
    )


@pytest.mark.parametrize(
    ("scores", "candidates", "path"),
    [
        ([0.3, 0.7], 1, [1, 0]),  # the score of one leaf
        ([0.2, 0.8 + 1e-12], 1, [2, 1]),
        ([0.25, 0.75], 2, None),  # changed by a defence: the class alone
        ([0.1, 0.9], 2, None),  # of a leaf that the known column rules out
        ([np.nan, np.nan], 3, None),
    ],
)
def test_scores_of_leaves_say_which_leaf_it_was(scores: list[float], candidates: int, path: list[int] | None) -> None:
    branches = PathRestriction().run(scored(np.array([scores] * 5)), np.random.default_rng(0)).branches
    assert branches is not None
    assert branches.candidates.tolist() == [candidates] * 5
    if path is not None:
        assert branches.paths[branches.chosen].tolist() == [path] * 5
