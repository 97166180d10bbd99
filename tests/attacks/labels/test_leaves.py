"""Labels from the rows of nodes: what a passive party of SecureBoost knows of them, and the two attacks that read it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks.base import Attack
from plumbob.attacks.labels._instance_space import memberships, seen_trees
from plumbob.attacks.labels._louvain import communities
from plumbob.attacks.labels.id2graph import ID2Graph
from plumbob.attacks.labels.latent_leaves import LatentLeaves
from plumbob.federation import IntArray, halves, split_at_random
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.scoring.label_claims import named_accuracy
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table


@cache
def trained(classes: int = 2) -> tuple[Transcript, IntArray]:
    rng = np.random.default_rng(2)
    federation = split_at_random(made_table(rows=600, columns=12, classes=classes, seed=2), 0.5, rng)
    train, others = halves(federation.label, rng)
    trainer = federation.rows(train)
    loss = "logistic" if classes == 2 else "squared"
    protocol = SecureBoost(key_bits=0, trees=6, depth=3, loss=loss)  # type: ignore[arg-type]  # one of the two
    return protocol.train(trainer, federation.rows(others), rng), trainer.label


def seen(threat: str, classes: int = 2) -> tuple[View, IntArray]:
    log, label = trained(classes)
    return cut(log, THREATS[threat]), label


def test_known_sets_are_unions_of_true_leaves() -> None:
    log, _ = trained()
    trees = seen_trees(cut(log, THREATS["passive-training"]))
    for number, tree in enumerate(trees):
        true = log.sealed("active")[f"notes/leaves/{number}"]
        assert len(np.unique(tree.leaves)) > 2
        for leaf in np.unique(true):
            inside = tree.nodes[:, true == leaf]
            assert (inside.all(axis=1) | ~inside.any(axis=1)).all()


def test_two_cliques_are_two_communities() -> None:
    leaves = [np.repeat([0, 1], 10), np.concatenate([[1], np.zeros(9, dtype=int), np.ones(10, dtype=int)])]
    found = communities(leaves, [1.0, 0.5], np.random.default_rng(0), 50)
    assert len(np.unique(found)) == 2
    assert len(np.unique(found[:10])) == len(np.unique(found[10:])) == 1


@pytest.mark.parametrize("attack", [ID2Graph(), LatentLeaves()], ids=["published", "ours"])
def test_leaves_tell_classes_beyond_own_columns(attack: Attack) -> None:
    view, label = seen("passive-training")
    guess = attack.run(view, np.random.default_rng(0))
    assert guess.unnamed
    assert guess.labels is not None
    assert named_accuracy(guess.labels, label) > 0.6


def test_known_labels_name_the_classes() -> None:
    view, label = seen("passive-known-labels")
    guess = LatentLeaves().run(view, np.random.default_rng(0))
    assert not guess.unnamed
    assert np.mean(guess.labels == label) > 0.7


def test_a_class_that_no_known_label_has_is_survived() -> None:
    view, label = seen("passive-known-labels", classes=3)
    some = np.flatnonzero((view.known_labels >= 0) & (label < 2))
    fewer = replace(view, labelled=some, labelled_classes=label[some])
    guess = LatentLeaves().run(fewer, np.random.default_rng(0))
    assert guess.labels is not None
    assert guess.labels.max() < 3


@pytest.mark.parametrize("attack", [ID2Graph(), LatentLeaves()], ids=["published", "ours"])
def test_without_nodes_or_splits_they_say_so(attack: Attack) -> None:
    view, _ = seen("passive-training")
    bare = replace(view, messages=tuple(m for m in view.messages if m.name not in ("rows of a node", "left")))
    assert "no message" in attack.run(bare, np.random.default_rng(0)).untried
    roots = {m.round: m for m in reversed(view.messages) if m.name == "rows of a node"}
    single = replace(view, messages=tuple(roots.values()))
    guess = attack.run(single, np.random.default_rng(0))
    assert guess.labels is not None
    assert len(guess.labels) == len(view.own)
    assert memberships(seen_trees(single)).shape[1] == 0
