"""The ceiling: what messages add to own columns for learners that have everybody else's rows."""

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.row_messages import row_messages
from plumbob.federation import Column, FloatArray, Table, split
from plumbob.known_defences import KnownDefences, KnownRounding
from plumbob.scoring.ceiling import LABEL, ColumnCeiling, clipped, learnable
from plumbob.scoring.column_ceiling import ceiling_words
from plumbob.scoring.truth import Truth, truth_of
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_table, small_training, world

ROWS = 400


def toy(
    own: FloatArray, hidden: FloatArray, scores: FloatArray, protocol: str = "logistic_regression"
) -> tuple[View, Truth]:
    """What the active party sees where such scores come, and what is true."""
    view = View.from_arrays(own=own, scores=scores, unknown=hidden.shape[1], protocol=protocol)
    names = tuple(f"h{i}" for i in range(hidden.shape[1]))
    return view, Truth(names, hidden, hidden[:0], np.zeros(0, dtype=np.int64))


def sigmoid(raw: FloatArray) -> FloatArray:
    up = 1 / (1 + np.exp(-raw))
    return np.stack([1 - up, up], axis=1)


def of(view: View, truth: Truth, seed: int = 0) -> dict[str, ColumnCeiling]:
    return {one.name: one for one in learnable(view, truth, np.random.default_rng(seed))}


def test_a_score_that_tells_the_only_hidden_column_leaves_nothing_unexplained() -> None:
    rng = np.random.default_rng(0)
    own, hidden = rng.random((ROWS, 3)), rng.random((ROWS, 1))
    found = of(*toy(own, hidden, sigmoid(own @ [1.0, -2.0, 0.5] + 3 * hidden[:, 0] - 1)))["h0"]
    assert found.own < 0.05
    assert found.full > 0.999
    assert found.low > 0.9
    assert found.open_ == 0


def test_what_own_columns_give_is_no_gain() -> None:
    rng = np.random.default_rng(0)
    own = rng.random((ROWS, 3))
    hidden = own[:, :1] ** 2
    found = of(*toy(own, hidden, sigmoid(4 * hidden[:, 0] - 2)))["h0"]
    assert found.own > 0.99
    assert found.gain < 0.01


def test_a_gain_that_is_linear_in_nothing_is_found_too() -> None:
    rng = np.random.default_rng(1)
    own, hidden = rng.random((ROWS, 2)), rng.random((ROWS, 1))
    found = of(*toy(own, hidden, sigmoid(6 * np.abs(hidden[:, 0] - 0.5) - 1 + 0 * own[:, 0])))["h0"]
    assert found.gain < 0.2  # the distance from the middle does not tell the side
    steps = np.floor(4 * hidden)  # nor does a shuffled code, but every one of its values has a mean
    code = np.array([0.2, 0.8, 0.4, 0.6])[steps[:, 0].astype(int)]
    assert of(*toy(own, hidden, np.stack([1 - code, code], axis=1)))["h0"].full > 0.85


def test_scores_of_other_people_add_nothing() -> None:
    """The interval holds 0 for at least 95 of 100 draws (here 57 of 60), of columns with a long tail as well."""
    rng = np.random.default_rng(2)
    own, noise = rng.random((120, 3)), rng.normal(size=(120, 4))
    noise[:, 2:] += own[:, :1]
    raw = np.where(np.arange(4) % 2, np.exp(2 * noise), noise)
    hidden = (raw - raw.min(axis=0)) / np.ptp(raw, axis=0)
    scores = sigmoid(own @ [1.0, -2.0, 0.5] + hidden.sum(axis=1))
    missed = np.zeros(4)
    for seed in range(60):
        view, truth = toy(own, hidden, scores[rng.permutation(120)])
        missed += [one.low > 0 or one.high < 0 for one in of(view, truth, seed).values()]
    assert missed.max() <= 3


def test_nothing_received_is_nothing_to_learn_and_sums_are_not_covered() -> None:
    log = world("split_training", made_table(rows=160))
    silent = cut(world(), THREATS["passive-training"])
    assert {
        one.high for one in learnable(replace(silent, messages=()), truth_of(world(), silent), np.random.default_rng(0))
    } == {0.0}
    view = cut(log, THREATS["coordinator"])
    found = learnable(view, truth_of(log, view), np.random.default_rng(0))
    columns = [one for one in found if one.target == "column"]
    assert {(one.learner, one.covers, one.uncovered, one.high) for one in columns} == {("", False, ("gradient",), 1.0)}
    assert "no message says anything row by row" in ceiling_words(columns[0])


def test_the_label_is_learnt_from_the_gradients_that_a_passive_party_gets() -> None:
    log = world("split_network", made_table(rows=300, classes=2))
    view = cut(log, THREATS["passive-training"])
    label = of(view, truth_of(log, view))[LABEL]
    assert label.target == "label"
    assert label.full > label.own + 0.2
    assert label.low > 0
    active = cut(log, THREATS["active-training"])
    assert LABEL not in of(active, truth_of(log, active))


def test_embeddings_tell_all_columns_of_a_linear_cut() -> None:
    log = world("split_network", made_table(rows=300))
    view = cut(log, THREATS["active-training"])
    assert min(one.full for one in of(view, truth_of(log, view)).values()) > 0.95


def test_the_same_seed_gives_the_same_figures() -> None:
    log = world()
    view = cut(log, THREATS["active"])
    assert of(view, truth_of(log, view)) == of(view, truth_of(log, view))
    assert of(view, truth_of(log, view), 1) != of(view, truth_of(log, view))


def test_constant_columns_few_rows_and_withheld_scores_are_handled() -> None:
    rng = np.random.default_rng(3)
    own, hidden = rng.random((ROWS, 2)), np.full((ROWS, 1), 0.5)
    scores = sigmoid(own[:, 0])
    constant = of(*toy(own, hidden, scores))["h0"]
    assert (constant.full, constant.gain, constant.high) == (0.0, 0.0, 0.0)
    few = of(*toy(own[:10], hidden[:10], scores[:10]))["h0"]
    assert (few.learner, few.high) == ("", 1.0)
    view, truth = toy(own, rng.random((ROWS, 1)), scores)
    gaps = np.where(np.arange(ROWS)[:, None] % 3 == 0, np.nan, scores)
    view = replace(view, messages=(replace(view.messages[0], payload=gaps),))
    assert np.isfinite(of(view, truth)["h0"].gain)


def test_tails_are_clipped_and_rare_values_stay() -> None:
    rng = np.random.default_rng(4)
    rare = (np.arange(1_000) < 4).astype(float)
    long = np.exp(2 * rng.normal(size=1_000))
    made = clipped(np.stack([rare, long], axis=1))
    assert np.unique(made[:, 0]).tolist() == [0.0, 1.0]
    assert made[:, 1].max() == pytest.approx(np.quantile(long, 0.99))


def test_words_of_a_ceiling_name_what_was_not_seen() -> None:
    ceiling = ColumnCeiling("age", 0.1, 0.1, 0.0, 0.0, 0.02, "own columns", 300, covers=False, uncovered=("sums",))
    assert ceiling_words(ceiling).endswith(
        "(of what learners with everybody else's complete rows find; they do not see: sums)"
    )


def test_features_are_made_from_the_view_alone() -> None:
    """Another truth under the same messages gives the same features, and own columns are not among them."""
    view = cut(world(), THREATS["active"])
    told = row_messages(view)
    assert told.names == ("scores",)
    assert np.array_equal(row_messages(replace(view, own=view.own[::-1].copy())).features, told.features)


def test_rounded_releases_are_counted_and_exact_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    own, hidden = rng.random((ROWS, 2)), rng.random((ROWS, 3))
    exact = sigmoid(own[:, 0] + hidden @ [2.0, -1.0, 1.0])
    view, truth = toy(own, hidden, exact)
    found = of(view, truth)["h0"]
    assert (found.bits, found.least, found.open_) == (None, None, 2)
    rounded, _ = toy(own, hidden, exact.round(1))
    told = of(replace(rounded, defence=KnownDefences.of(KnownRounding(digits=1))), truth)["h0"]
    assert told.open_ is None
    assert told.bits is not None
    assert 1 < told.bits < np.log2(11)
    assert told.least is not None
    assert 0 < told.least < 1 - told.full + 0.05


def test_bits_of_boosted_splits_are_row_messages() -> None:
    log = world("secure_boost", made_table(rows=200, classes=2))
    view = cut(log, THREATS["active-training"])
    told = row_messages(view)
    assert "left" in told.names
    assert told.uncovered == ("sums",)
    hidden = truth_of(log, view).values
    assert (
        np.abs(np.corrcoef(told.features.T, hidden.T)[: told.features.shape[1], told.features.shape[1] :]).max() > 0.5
    )


def test_masked_outputs_are_read_only_where_they_were_opened() -> None:
    table = made_table(rows=160)
    third = split(table, {"a": ["c0", "c1"], "b": ["c2", "c3", "c4"], "c": ["c5", "c6", "c7"]}, "a")
    protocol = small_training("split_network").__class__(hidden=(16, 8), epochs=4, batch_size=40, aggregation="masked")
    rng = np.random.default_rng(0)
    log = protocol.train(third.rows(np.arange(80)), third.rows(np.arange(80, 160)), rng)
    told = row_messages(cut(log, THREATS["active-training"]))
    assert told.names == ("embeddings",)
    assert told.features.shape == (80, 16)


def test_a_table_with_one_column_at_the_active_party_works() -> None:
    rng = np.random.default_rng(6)
    table = Table("t", (Column("a"), Column("b")), rng.random((100, 2)), np.arange(100) % 2, ("n", "y"))
    log = world(table=table, unknown=1)
    view = cut(log, THREATS["active"])
    assert of(view, truth_of(log, view))
