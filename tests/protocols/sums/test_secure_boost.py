"""SecureBoost: what encryption, packing and subtraction must not change, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.errors import BadInput
from plumbob.federation import Federation, FloatArray, split_at_random
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.shared.gradient_plaintexts import Layout
from plumbob.protocols.shared.histogram_boosting import Bins, edges_of, gradients
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table


@cache
def parties(rows: int = 200, classes: int = 2) -> tuple[Federation, Federation]:
    whole = split_at_random(made_table(rows=2 * rows, classes=classes), 3, np.random.default_rng(0))
    return whole.rows(np.arange(rows)), whole.rows(np.arange(rows, 2 * rows))


def trained(seed: int = 0, rows: int = 200, **settings: object) -> Transcript:
    chosen = {"trees": 2, "depth": 3, "bins": 8, "key_bits": 0} | settings
    return SecureBoost(**chosen).train(*parties(rows), np.random.default_rng(seed))


def trees(log: Transcript) -> dict[str, bytes]:
    return {k: v.tobytes() for k, v in log.sealed(COORDINATOR).items() if k.startswith(("model/", "other scores"))}


@pytest.mark.parametrize("packed", [True, False])
def test_encrypted_trees_are_the_plain_ones(packed: bool) -> None:
    plain, encrypted = (trained(rows=60, packed=packed, key_bits=bits) for bits in (0, 1_024))
    assert trees(plain) == trees(encrypted)
    assert [m.name for m in plain.messages] == [m.name for m in encrypted.messages if m.name != "key"]


def test_packing_changes_no_tree() -> None:
    assert trees(trained(packed=True)) == trees(trained(packed=False))


def test_the_trees_are_those_of_central_training() -> None:
    """An independent count over all columns and rows, in floats and without subtraction."""
    federation, _ = parties()
    log = trained(trees=3, depth=2)
    bins = np.hstack([Bins.of(party.values, 8, "fate").places for party in federation.parties])
    label, scores = federation.label.astype(float), np.zeros(200)
    for tree in range(3):
        g, h = gradients("logistic", label, scores)
        scores += _grown(log, tree, 0, np.arange(200), bins, g, h, depth=2)


def _grown(
    log: Transcript, tree: int, node: int, rows: np.ndarray, bins: np.ndarray, g: FloatArray, h: FloatArray, depth: int
) -> FloatArray:
    """The scores of one tree, checked node by node against the transcript's."""
    model = log.sealed(COORDINATOR)
    feature, place, weight = (model[f"model/{k}"][tree, node] for k in ("feature", "bin", "weight"))
    scores = np.zeros(len(g))
    gains = {
        (j, b): _worth(g, h, rows[bins[rows, j] <= b]) + _worth(g, h, rows[bins[rows, j] > b]) - _worth(g, h, rows)
        for j in range(bins.shape[1])
        for b in range(bins[:, j].max())
        if 0 < (bins[rows, j] <= b).sum() < len(rows)
    }
    if depth == 0 or not gains or max(gains.values()) <= 1e-12:
        scores[rows] = -0.3 * g[rows].sum() / (h[rows].sum() + 1)
        assert feature == -1
        assert weight == pytest.approx(scores[rows[0]], abs=1e-12)
        return scores
    assert gains[feature, place] == pytest.approx(max(gains.values()), abs=1e-9)
    for side, child in ((bins[rows, feature] <= place, 2 * node + 1), (bins[rows, feature] > place, 2 * node + 2)):
        scores += _grown(log, tree, child, rows[side], bins, g, h, depth - 1)
    return scores


def _worth(g: FloatArray, h: FloatArray, rows: np.ndarray) -> float:
    return float(g[rows].sum() ** 2 / (h[rows].sum() + 1))


def test_xgboost_grows_the_same_trees_where_bins_are_distinct_values() -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed; it is only compared with")
    federation, others = parties()
    coarse = [
        replace(f, parties=tuple(replace(p, values=np.floor(p.values * 12) / 12) for p in f.parties))
        for f in (federation, others)
    ]
    protocol = SecureBoost(trees=4, depth=3, bins=64, binning="quantile", key_bits=0)
    log = protocol.train(*coarse, np.random.default_rng(0))
    settings = {"objective": "binary:logistic", "tree_method": "hist", "max_bin": 256, "max_depth": 3, "eta": 0.3}
    settings |= {"lambda": 1.0, "gamma": 0.0, "min_child_weight": 0.0, "base_score": 0.5}
    booster = xgboost.train(settings, xgboost.DMatrix(coarse[0].values, coarse[0].label), 4)
    theirs = booster.predict(xgboost.DMatrix(coarse[1].values))
    np.testing.assert_allclose(log.sealed(COORDINATOR)["other scores"][:, 1], theirs, atol=1e-5)


def test_the_larger_child_is_never_summed_and_its_sums_are_right() -> None:
    log = trained(trees=1, depth=3)
    asked = [len(m.payload) for m in log.messages if m.name == "rows of a node"]
    notes = {k: v for k, v in log.sealed("active").items() if k.startswith("notes/")}
    nodes, leaves = notes["notes/nodes/0"], notes["notes/leaves/0"]
    sizes = {int(n): int(np.isin(leaves, _below(int(n), 15)).sum()) for n in nodes}
    assert asked[0] == 200
    for size in asked[1:]:
        assert size <= 100
    from plumbob.crypto import plain

    layout = Layout.from_array(notes["notes/layout"])
    sums = plain.integers(notes["notes/sums/0/passive"])
    counts = log.sealed("passive")["bins"].max(axis=0) + 1
    per_node = np.array(sums, dtype=object).reshape(len(nodes), layout.channels, -1)
    _, second = layout.sums([list(per_node[-1, 0])])
    total = sum(second[: int(counts[0])])
    assert total == sizes[int(nodes[-1])] * 2 ** (layout.precision - 2)  # h is 1/4 for every row of the first tree


def _below(node: int, size: int) -> list[int]:
    return [node, *(n for child in (2 * node + 1, 2 * node + 2) if child < size for n in _below(child, size))]


def test_blinding_changes_no_tree_and_every_sum() -> None:
    bare, blind = trained(), trained(blinding=True)
    assert trees(bare) == trees(blind)
    sums = [[m.payload.tobytes() for m in log.messages if m.name == "sums"] for log in (bare, blind)]
    assert all(one != two for one, two in zip(*sums, strict=True))
    encrypted = trained(rows=60, key_bits=1_024, blinding=True, packed=False)
    assert trees(encrypted) == trees(trained(rows=60, packed=False))


def test_a_forest_averages_trees_of_samples() -> None:
    log = trained(trees=5, sample=0.5, boosting=False, penalty=0.0)
    sampled = [set(m.payload.tolist()) for m in log.messages if m.name == "sampled rows"]
    assert [len(rows) for rows in sampled] == [100] * 5
    assert len(set(map(frozenset, sampled))) == 5
    assert np.mean(log.sealed(COORDINATOR)["other scores"].argmax(axis=1) == parties()[1].label) > 0.7


def test_one_tree_of_squared_loss_predicts_means() -> None:
    federation, others = parties(classes=3)
    protocol = SecureBoost(trees=1, depth=1, shrinkage=1.0, penalty=0.0, loss="squared", key_bits=0)
    log = protocol.train(federation, others, np.random.default_rng(0))
    leaves = log.sealed("active")["notes/leaves/0"]
    weights = log.sealed(COORDINATOR)["model/weight"][0]
    for leaf in (1, 2):
        assert weights[leaf] + federation.label.mean() == pytest.approx(
            federation.label[leaves == leaf].mean(), abs=1e-9
        )


@pytest.mark.parametrize("rule", ["fate", "quantile"])
def test_bins_are_ordered_and_at_most_so_many(rule: str) -> None:
    rng = np.random.default_rng(3)
    for column in (rng.normal(size=500), rng.integers(0, 5, size=500).astype(float), np.ones(500)):
        edges = edges_of(column, 32, rule)
        assert (np.diff(edges) > 0).all()
        assert len(edges) < 32
        assert len(edges) < len(np.unique(column))
    assert len(edges_of(rng.normal(size=5_000), 32, rule)) == 31


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bins": 1}, "bins: expected a whole number from 2"),
        ({"depth": 0}, "depth"),
        ({"sample": 1.5}, "at most 1"),
        ({"loss": "hinge"}, "loss 'logistic' or 'squared'"),
        ({"penalty": -1}, "at least 0"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SecureBoost(**settings)


def test_logistic_loss_refuses_three_classes() -> None:
    with pytest.raises(BadInput, match="two classes, got 3"):
        SecureBoost(key_bits=0).train(*parties(classes=3), np.random.default_rng(0))


def test_a_plaintext_too_small_is_refused_before_work_starts() -> None:
    from plumbob.protocols.shared.hidden_codes import MagicNumbers

    with pytest.raises(BadInput, match="do not fit into a plaintext"):
        trained(key_bits=1_024, packed=True, precision=53, code=MagicNumbers())


def test_the_view_of_the_active_party_holds_sums_but_no_bins() -> None:
    view = cut(trained(), THREATS["active-training"])
    assert {"layout", "sums/0/passive", "nodes/1", "leaves/1"} <= set(view.notes)
    assert not any("bins" in name or "edges" in name for name in view.notes)
    assert view.received("bin counts").tolist() == [8, 8, 8]


def test_it_is_listed() -> None:
    assert PROTOCOLS["secure_boost"] is SecureBoost
    assert repr(SecureBoost(trees=2)).startswith("SecureBoost(trees=2, depth=3")


def test_a_sum_of_one_row_is_not_that_rows_ciphertext() -> None:
    """Sums are masked anew: who chose the masks must not know a product of them again."""
    table = made_table(rows=60, columns=4, classes=2)
    federation = split_at_random(table, 2, np.random.default_rng(0))
    log = SecureBoost(trees=1, depth=1, key_bits=1_024).train(
        federation.rows(np.arange(40)), federation.rows(np.arange(40, 60)), np.random.default_rng(1)
    )
    sent = {row.tobytes() for m in log.messages if m.name == "gradients" for row in m.payload}
    sums = [row.tobytes() for m in log.messages if m.name == "sums" for row in m.payload]
    assert len(sent) == 40
    assert len(set(sums)) == len(sums)
    assert not sent & set(sums)
