"""Defences of SecureBoost's labels and orders: what passive parties are still told, and what holds by construction."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.attacks.labels._instance_space import seen_trees
from plumbob.defences import defence_named
from plumbob.errors import BadInput
from plumbob.protocols.base import training
from plumbob.protocols.shared.histogram_boosting import Bins
from plumbob.protocols.sums._boosting_party import desensitised
from plumbob.protocols.sums._grafted_labels import noisy_labels
from plumbob.protocols.sums._hidden_nodes import divergences
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.protocols.sums.test_secure_boost import parties


def log(name: str, key_bits: int = 0, rows: int = 200, **settings: float) -> Transcript:
    bare = SecureBoost(trees=3, depth=3, bins=8, key_bits=key_bits)
    protocol = training(defence_named(name, **settings).protect(bare))
    return protocol.train(*parties(rows), np.random.default_rng(0))


def test_every_node_that_is_shown_keeps_the_bound() -> None:
    run = log("id_lmid", bound=0.4)
    label = run.sealed(run.active)["label"]
    everyone = np.bincount(label)
    shown = 0
    for tree in seen_trees(cut(run, THREATS["passive-training"])):
        counts = np.array([np.bincount(label[node], minlength=2) for node in tree.nodes])
        shown += len(counts)
        assert (divergences(counts, everyone) <= 0.4 + 1e-12).all()
    assert shown > 3


def test_a_bound_that_nothing_breaks_changes_no_tree() -> None:
    open_log, bare = log("id_lmid", bound=100.0), log("none")
    for name in ("feature", "bin", "weight"):
        assert (open_log.sealed(COORDINATOR)[f"model/{name}"] == bare.sealed(COORDINATOR)[f"model/{name}"]).all()


def test_under_a_key_nodes_are_hidden_alike() -> None:
    clear, keyed = (log("id_lmid", bits, rows=40, bound=0.05) for bits in (0, 1_024))
    assert (clear.sealed(COORDINATOR)["model/feature"] == keyed.sealed(COORDINATOR)["model/feature"]).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_labels_are_kept_as_often_as_randomised_response_keeps_them(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=2_000)
    told = noisy_labels(label, 2, epsilon, rng.random((2_000, 2)), rng)  # columns that tell nothing
    kept = np.exp(epsilon) / (1 + np.exp(epsilon))
    assert 0.5 < np.mean(told == label) < kept + 4 * np.sqrt(0.25 / 2_000)


def test_grafts_are_of_the_active_party_alone_and_in_no_message() -> None:
    grafted = log("grafting_ldp", epsilon=0.2)
    told = [m for m in grafted.messages if m.name == "split"]
    asked = {(m.round, int(m.payload[0])) for m in told}
    passive = {i for i, f in enumerate(grafted.features) if f.party != grafted.active}
    feature = grafted.sealed(COORDINATOR)["model/feature"]
    for tree, node in zip(*np.nonzero(np.isin(feature, list(passive))), strict=True):
        assert (int(tree), int(node)) in asked


def test_grafting_is_worth_accuracy() -> None:
    run = log("grafting_ldp", rows=400, epsilon=0.3)
    assert run.sealed(COORDINATOR)["test accuracy"][0] > 0.55


def test_noisy_bins_are_near_and_keep_the_order_on_the_whole() -> None:
    values = np.random.default_rng(0).random((2_000, 1))
    bins = Bins.of(values, 16, "quantile")
    noisy = desensitised(bins, 1.0, np.random.default_rng(1))
    gap = np.abs(noisy.places - bins.places)
    assert 0.5 < gap.mean() < 3
    assert np.corrcoef(noisy.places[:, 0], bins.places[:, 0])[0, 1] > 0.8


def test_guards_need_to_know_the_rows_of_nodes() -> None:
    with pytest.raises(BadInput, match="information_bound needs an active party that knows"):
        SecureBoost(information_bound=0.1, shared_indicators=True)
