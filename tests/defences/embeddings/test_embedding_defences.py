"""Defences at the point `embeddings`: what they send, what stays secret, and what algebra says is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from plumbob.attacks.embeddings.linear_equations import LinearEquations
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import defences_for, untried
from plumbob.defences import DEFENCES, defence_named
from plumbob.defences._distance_correlation import distance_correlation
from plumbob.defences.embeddings.rotation import Rotation, random_orthogonal
from plumbob.errors import BadInput
from plumbob.federation import Column, Table, split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.shared.guards import EmbeddingOutline
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table

NAMES = [name for name, kind in DEFENCES.items() if kind.point == "embeddings"]
COLUMNS = 6


def trained(name: str, settings: dict[str, Any] | None = None, columns: int = COLUMNS, **protocol: Any) -> Transcript:
    """A small training in 64 bits on half of the rows, under a defence."""
    table = made_table(rows=400)
    names = [f"c{i}" for i in range(8)]
    federation = split(table, {"bank": names[columns:], "shop": names[:columns]}, "bank")
    made = SplitNetwork(**{"hidden": (12, 6), "epochs": 3, "batch_size": 50, "double": True} | protocol)
    guarded = defence_named(name, **(settings or {})).protect(made)
    rows = np.arange(400)
    return guarded.train(federation.rows(rows[:200]), federation.rows(rows[200:]), np.random.default_rng(0))


@cache
def usual(name: str) -> Transcript:
    return trained(name)


def sent(log: Transcript, name: str = "embeddings") -> np.ndarray:
    return next(m.payload for m in log.messages if m.name == name)


def columns_of(log: Transcript) -> np.ndarray:
    return log.sealed("shop")["columns"]


def off(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """How far each vector is from the span of the basis, as a share of its length."""
    rest = vectors - basis @ np.linalg.lstsq(basis, vectors, rcond=1e-10)[0]
    return np.linalg.norm(rest, axis=0) / np.linalg.norm(vectors, axis=0)


def rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix, tol=1e-8 * np.linalg.norm(matrix)))


def made_up(log: Transcript) -> np.ndarray:
    """Masquerade's bits, worked out from the sealed weights: (z - P Q x) / u."""
    state = log.sealed("shop")
    fold, above = state["bottom/fold.weight"], state["bottom/above.weight"]
    rest = sent(log) - columns_of(log) @ (above[:, : len(fold)] @ fold).T
    return rest @ np.linalg.pinv(above[:, len(fold) :]).T


# Every one


def test_without_a_defence_the_outputs_span_the_columns() -> None:
    log = usual("none")
    assert rank(sent(log)) == COLUMNS
    assert off(sent(log), columns_of(log)).max() < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_messages(name: str) -> None:
    assert trained(name).messages[-1].link == usual(name).messages[-1].link


@pytest.mark.parametrize("name", NAMES)
def test_all_settings_are_known_and_nothing_else(name: str) -> None:
    known = cut(usual(name), THREATS["active-training"]).defence
    assert set(known.arrays) == {f"{name}/on", *(f"{name}/{key}" for key in vars(defence_named(name)))}
    assert all(array.size == 1 for array in known.arrays.values())


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_those_of_the_bare_protocol(name: str) -> None:
    one, two = ([m.payload for m in usual(n).messages if m.name == "rows"] for n in ("none", name))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_training_still_learns(name: str) -> None:
    log = trained(name, epochs=30, hidden=(24, 12))
    losses = log.sealed(COORDINATOR)["training loss"]
    assert losses[-3:].mean() < 0.9 * losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_two_passive_parties_behind_masks_are_guarded_too(name: str) -> None:
    names = [f"c{i}" for i in range(8)]
    owners = {"bank": names[:2], "shop": names[2:5], "post": names[5:]}
    federation = split(made_table(rows=60), owners, "bank")
    protocol = SplitNetwork(hidden=(12, 6), epochs=1, aggregation="masked")
    log = defence_named(name).protect(protocol).train(federation, federation, np.random.default_rng(0))
    assert log.sealed("bank")["notes/embeddings"].shape == (60, 12)


@pytest.mark.parametrize("name", NAMES)
def test_other_protocols_stay_as_they_are(name: str) -> None:
    for protocol in (LogisticRegression(), EncryptedLogisticRegression(key_bits=0), SplitTraining()):
        assert defence_named(name).protect(protocol) is protocol


# Gaussian masking


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_noise_has_the_stated_deviation_and_is_fresh(sigma: float) -> None:
    log = trained("gaussian_masking", {"sigma": sigma}, batch_size=200)
    state = log.sealed("shop")
    noise = sent(log) - columns_of(log) @ state["bottom/weight"].T
    assert noise.std() == pytest.approx(sigma, rel=0.05)
    assert abs(noise.mean()) < 5 * sigma / np.sqrt(noise.size)
    lines = np.corrcoef(noise.T) - np.eye(12)
    assert np.abs(lines).max() < 0.35  # independent from unit to unit
    one, two = (m.payload for m in [m for m in log.messages if m.name == "outputs"][:2])
    rest = off(columns_of(log), (two - one))  # what lies outside of the columns' span is noise
    assert rest.min() > 0.5


# Masquerade


@pytest.mark.parametrize("fabricated", [1, 2])
def test_the_span_holds_the_made_up_columns_exactly(fabricated: int) -> None:
    log = trained("masquerade", {"columns": fabricated})
    bits = made_up(log)
    assert bits.shape == (200, fabricated)
    assert np.abs(bits - bits.round()).max() < 1e-9
    assert set(np.unique(bits.round())) == {0.0, 1.0}
    assert bits.mean() == pytest.approx(0.5, abs=0.15)
    assert rank(sent(log)) == COLUMNS
    assert off(sent(log), bits.round()).max() < 1e-9
    assert off(sent(log), columns_of(log)).max() > 1e-3  # but not all true ones


def test_the_weights_rank_is_lower_by_the_made_up_columns() -> None:
    state = usual("masquerade").sealed("shop")
    fold, above = state["bottom/fold.weight"], state["bottom/above.weight"]
    assert fold.shape == (COLUMNS - 1, COLUMNS)
    assert above.shape == (12, COLUMNS)
    assert rank(above[:, :-1] @ fold) == COLUMNS - 1
    assert np.abs(above[:, -1]).max() > 0


def test_asking_twice_gives_the_same_bits() -> None:
    """Rows of training and of prediction: (z - P Q x) has the same signs of u at both times."""
    log = trained("masquerade", batch_size=200, epochs=1, learning_rate=1e-9)
    assert np.allclose(sent(log, "outputs"), sent(log), atol=1e-6)


def test_keeping_rows_with_bit_0_leaves_less_than_the_columns() -> None:
    """The adaptive attacker of Section VII gets a span of one dimension less, not the columns themselves."""
    log = usual("masquerade")
    zero = made_up(log)[:, 0].round() == 0
    assert rank(sent(log)[zero]) == COLUMNS - 1


def test_masquerade_comes_after_a_rotation_in_any_order() -> None:
    for name in ("rotation+masquerade", "masquerade+rotation"):
        both = defence_named(name).protect(SplitNetwork())
        assert [guard.name for guard in both.guards] == ["rotation", "masquerade"]
    assert rank(sent(trained("masquerade+rotation"))) == COLUMNS


def test_masquerade_below_a_deeper_cut() -> None:
    log = trained("deeper_cut+masquerade")
    assert log.sealed("shop")["bottom/fold.weight"].shape == (COLUMNS - 1, COLUMNS)


def coded(rows: int = 400) -> Table:
    """All codes of two categories, of two and of three values, and a label that follows from them; the bank has two numbers."""
    rng = np.random.default_rng(0)
    two, three = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    codes = np.column_stack([np.eye(2)[two], np.eye(3)[three]])
    label = (two + three + (rng.random(rows) < 0.1)) % 2
    columns = tuple(Column(f"c{i}") for i in range(7))
    return Table("coded", columns, np.column_stack([rng.random((rows, 2)), codes]), label, ("a", "b"))


def masqueraded(bias: bool = False) -> Transcript:
    federation = split(coded(), {"bank": ["c0", "c1"], "shop": [f"c{i}" for i in range(2, 7)]}, "bank")
    protocol = SplitNetwork(hidden=(12, 6), epochs=3, batch_size=50, bias=bias)
    log = defence_named("masquerade").protect(protocol).train(federation, federation, np.random.default_rng(0))
    assert log.sealed("shop")["fabricated"].shape == (400, 1)
    return log


@pytest.mark.parametrize(("bias", "dropped"), [(False, [4]), (True, [1, 4])])
def test_masquerade_drops_columns_that_depend_on_others(bias: bool, dropped: list[int]) -> None:
    """Remark 4: of two complete groups of codes one code is the sum of others, behind a bias one of each group."""
    log = masqueraded(bias)
    state = log.sealed("shop")
    assert state["dropped columns"].tolist() == dropped
    assert state["bottom/fold.weight"].shape == (5 - len(dropped) - 1, 5 - len(dropped))


def test_masquerade_on_complete_groups_of_codes_gives_no_true_column_away() -> None:
    view = cut(masqueraded(), THREATS["active-training"])
    vectors = LinearEquations().run(view, np.random.default_rng(0)).vectors
    assert vectors is not None
    fabricated, true = masqueraded().sealed("shop")["fabricated"], columns_of(masqueraded())
    assert [np.array_equal(v, fabricated[:, 0]) for v in vectors.T] == [True]
    assert not any(np.array_equal(v, column) for v in vectors.T for column in true.T)


def test_masquerade_on_too_few_independent_columns_is_refused() -> None:
    table = coded()
    same = replace(table, values=np.column_stack([table.values[:, :3], *[table.values[:, 2]] * 4]))
    federation = split(same, {"bank": ["c0", "c1"], "shop": [f"c{i}" for i in range(2, 7)]}, "bank")
    with pytest.raises(BadInput, match="expected fewer than the 1 independent ones of 'shop', got 1"):
        defence_named("masquerade").protect(SplitNetwork(epochs=1)).train(
            federation, federation, np.random.default_rng(0)
        )


# Rank reduction


@pytest.mark.parametrize(("asked", "got"), [(0, COLUMNS - 1), (1, 1), (3, 3)])
def test_outputs_have_the_asked_rank(asked: int, got: int) -> None:
    log = trained("rank_reduction", {"rank": asked})
    assert rank(sent(log)) == got
    state = log.sealed("shop")
    product = state["bottom/above.weight"] @ state["bottom/fold.weight"]
    assert np.allclose(sent(log), columns_of(log) @ product.T, atol=1e-12)
    assert off(columns_of(log), sent(log)).max() < 1e-9


def test_rank_reduction_counts_columns_that_depend_on_no_others() -> None:
    federation = split(coded(), {"bank": ["c0", "c1"], "shop": [f"c{i}" for i in range(2, 7)]}, "bank")
    protocol = defence_named("rank_reduction").protect(SplitNetwork(hidden=(12, 6), epochs=1))
    log = protocol.train(federation, federation, np.random.default_rng(0))
    assert rank(columns_of(log)) == 4
    assert log.sealed("shop")["bottom/fold.weight"].shape == (3, 5)


def test_rank_reduction_of_deeper_models_and_with_a_bias() -> None:
    deep = trained("rank_reduction", {"rank": 2}, cut=2).sealed("shop")
    assert rank(deep["bottom/above.1.0.weight"] @ deep["bottom/above.0.weight"] @ deep["bottom/fold.weight"]) == 2
    assert "bottom/above.bias" in trained("rank_reduction", bias=True).sealed("shop")


# Rotation


def test_rotation_leaves_the_span_unchanged() -> None:
    log = usual("rotation")
    assert off(sent(log), columns_of(log)).max() < 1e-9
    assert off(columns_of(log), sent(log)).max() < 1e-9
    weights = log.sealed("shop")["bottom/weight"]
    assert not np.allclose(sent(log), columns_of(log) @ weights.T, atol=0.01)
    turn = np.linalg.lstsq(columns_of(log), sent(log) @ np.linalg.pinv(weights).T, rcond=None)[0]
    assert np.allclose(turn @ turn.T, np.eye(COLUMNS), atol=1e-8)


def test_other_rows_are_turned_the_same_way() -> None:
    guard, rng = Rotation().begin(EmbeddingOutline(9, {"shop": 4, "post": 4}, 5, 1)), np.random.default_rng(0)
    values = torch.rand(9, 4, dtype=torch.float64)
    one, other = guard.inputs("shop", values, rng), guard.inputs("shop", values[:3], rng)
    assert torch.allclose(one[:3], other)
    assert not torch.allclose(guard.inputs("post", values, rng), one)


def test_a_random_orthogonal_matrix_is_one() -> None:
    turn = random_orthogonal(7, np.random.default_rng(0))
    assert np.allclose(turn @ turn.T, np.eye(7))


# Quantised embeddings


@pytest.mark.parametrize("dither", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_what_is_sent_lies_on_the_grid(bits: int, dither: bool) -> None:
    log = trained("quantised_embeddings", {"bits": bits, "dither": dither, "reach": 2.0})
    place = (sent(log) + 2.0) * (2**bits - 1) / 4.0
    assert np.abs(place - place.round()).max() < 1e-9
    assert 0 <= place.round().min() <= place.round().max() <= 2**bits - 1
    true = columns_of(log) @ log.sealed("shop")["bottom/weight"].T
    step, within = 4.0 / (2**bits - 1), np.abs(true) <= 2.0
    gap = (sent(log) - true)[within]
    assert np.abs(gap).max() <= (1 if dither else 0.5) * step + 1e-9
    if dither:
        assert abs(gap.mean()) < 5 * step / np.sqrt(gap.size)
    assert np.abs(sent(log)[~within]).min(initial=2.0) >= 2.0 - (step if dither else 1e-9)


# Distance correlation, FedPass, mixup


def test_distance_correlation_is_lowered_and_the_span_stays() -> None:
    logs = [trained("distance_correlation", {"strength": 30.0}, epochs=20), trained("none", epochs=20)]
    low, bare = (float(distance_correlation(torch.tensor(columns_of(log)), torch.tensor(sent(log)))) for log in logs)
    assert low < bare - 0.02
    assert off(sent(logs[0]), columns_of(logs[0])).max() < 1e-6


def test_fedpass_leaves_a_linear_map_and_a_shift() -> None:
    log = usual("fedpass")
    shifted = np.hstack([sent(log), np.ones((200, 1))])
    assert off(shifted, columns_of(log)).max() < 1e-6
    assert off(sent(usual("none")), columns_of(log)).max() < 1e-9
    assert not any("secret" in name for name in cut(log, THREATS["active-training"]).notes)


@pytest.mark.parametrize("rows", [2, 4])
def test_mixtures_are_of_so_many_rows_and_mostly_of_their_own(rows: int) -> None:
    guard = defence_named("mixup", rows=rows).begin(EmbeddingOutline(200, {"shop": 4}, 200, 1))
    shares = guard.send("shop", torch.eye(200, dtype=torch.float64), "train", np.random.default_rng(0)).numpy()
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert ((shares > 0).sum(axis=1) <= rows).all()
    assert (np.diag(shares) >= 1 / rows - 1e-12).all()
    assert np.diag(shares).mean() < 0.85


# Deeper cut


def test_a_deeper_cut_breaks_linearity() -> None:
    log = usual("deeper_cut")
    assert off(np.hstack([columns_of(log), np.ones((200, 1))]), sent(log)).max() > 1e-3
    assert off(sent(usual("none")), columns_of(log)).max() < 1e-9


def test_a_deeper_cut_changes_only_what_is_less_deep() -> None:
    plain = SplitNetwork()
    assert defence_named("deeper_cut", layers=3).protect(plain).cut == 3
    assert plain.cut == 1
    assert plain.guards == ()
    for protocol in (SplitNetwork(cut=2), SplitNetwork(bottom="mlp")):
        assert defence_named("deeper_cut").protect(protocol) is protocol


# Wrong settings


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: defence_named("gaussian_masking", sigma=0), "gaussian_masking: sigma: expected a number above 0"),
        (lambda: defence_named("masquerade", columns=0), "masquerade: columns: expected a whole number from 1"),
        (lambda: defence_named("rank_reduction", rank=-1), "rank_reduction: rank: expected a whole number from 0"),
        (lambda: defence_named("rotation", angle=1), "has no setting 'angle'"),
        (lambda: defence_named("quantised_embeddings", bits=0), "quantised_embeddings: bits: expected a whole number"),
        (
            lambda: defence_named("quantised_embeddings", dither=1),
            "quantised_embeddings: dither: expected true or false",
        ),
        (
            lambda: defence_named("quantised_embeddings", reach=0),
            "quantised_embeddings: reach: expected a number above 0",
        ),
        (
            lambda: defence_named("distance_correlation", strength=0),
            "distance_correlation: strength: expected a number",
        ),
        (lambda: defence_named("fedpass", passports=0), "fedpass: passports: expected a whole number from 1"),
        (lambda: defence_named("fedpass", reach=-1), "fedpass: reach: expected a number above 0, got -1"),
        (lambda: defence_named("mixup", rows=1), "mixup: rows: expected a whole number from 2 to 100, got 1"),
        (
            lambda: defence_named("deeper_cut", layers=1),
            "deeper_cut: layers: expected a whole number from 2 to 4, got 1",
        ),
        (lambda: trained("masquerade", {"columns": 6}), "columns: expected fewer than the 6 that 'shop' has, got 6"),
        (lambda: trained("masquerade", columns=1), "columns: expected fewer than the 1 that 'shop' has, got 1"),
        (lambda: trained("rank_reduction", {"rank": 6}), "fewer than the 6 columns of 'shop', got 6"),
        (lambda: trained("rank_reduction", columns=1), "fewer than the 1 columns of 'shop', got 0"),
        (
            lambda: trained("rank_reduction+masquerade"),
            "rank_reduction already lowers the first layer's rank; use one of them",
        ),
    ],
)
def test_wrong_settings_are_answered_in_one_sentence(make: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


# In an audit


def plan(**changes: Any) -> Any:
    written = {"data": "breast", "unknown": 0.5, "protocols": ["split_network"], "threats": ["active-training"]}
    return make_plan(written | {"trials": 1, "rows": 100} | changes).filled()


def test_they_fit_split_network_and_nothing_else() -> None:
    protocols = ["split_network", "split_training", "logistic_regression"]
    made = plan(protocols=protocols, defences=["none", "rounding", "sparse_gradients", "masquerade"])
    cut_, split_, scored = ([d.name for d in defences_for(made, protocol)] for protocol in made.protocols)
    assert cut_ == ["none", "masquerade"]
    assert split_ == ["none", "sparse_gradients"]
    assert scored == ["none", "rounding"]
    assert Untried("masquerade on logistic_regression", "it changes nothing there") in untried(made)
    alone = plan(protocols=["logistic_regression"], defences=["masquerade"])
    assert defences_for(alone, alone.protocols[0]) == []


def test_a_deeper_cut_is_not_tried_where_the_cut_is_as_deep() -> None:
    made = plan(protocols=[{"name": "split_network", "settings": {"cut": 2}}], defences=["none", "deeper_cut"])
    assert [d.name for d in defences_for(made, made.protocols[0])] == ["none"]


def test_the_sweep_of_split_network_is_of_embeddings_and_labels() -> None:
    made = plan(defences="sweep")
    labels = {name for name, kind in DEFENCES.items() if kind.point == "labels"}
    assert {defence.name for defence in made.defences} == {"none", *NAMES, *labels} - {
        "earlier_cut"
    }  # a cut of 1 is as early


def test_widths_of_a_plan_are_a_list() -> None:
    made = plan(protocols=[{"name": "split_network", "settings": {"hidden": [100, 50, 20]}}])
    assert made.protocols[0].protocol().hidden == (100, 50, 20)
