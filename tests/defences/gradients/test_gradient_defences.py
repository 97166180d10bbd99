"""Defences at the point `gradients`: what they send, what they cost, and what is left to a server that knows them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import defences_for, untried
from plumbob.auditing.running.open_data import open_source
from plumbob.defences import DEFENCES, defence_named
from plumbob.defences.gradients.dp_gradients import DpGradients
from plumbob.defences.gradients.fake_gradients import FakeGradients
from plumbob.defences.gradients.secure_aggregation import SecureAggregation
from plumbob.defences.gradients.sparse_gradients import SparseGradients
from plumbob.defences.scores.dp_sgd import noise_for
from plumbob.errors import BadInput
from plumbob.federation import halves, split_at_random, split_into_tiles
from plumbob.known_defences import KnownDefences, KnownDpGradients
from plumbob.protocols.gradients.split_training import TOP, SplitTraining
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.shared.guards import GradientOutline, Upload
from plumbob.protocols.shared.networks import NetworkPlan
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_pictures, made_table

NAMES = [name for name, kind in DEFENCES.items() if kind.point == "gradients"]
OPENED = 1e-9  # the error of an attack that recovers every cell
CONSTANT = 1.3  # times the error of guessing 0.5 everywhere that a server without information may have


def trained(name: str, settings: dict[str, Any], pictures: bool = False, **protocol: Any) -> Transcript:
    """A small training on half of the rows, under a defence."""
    if pictures:
        federation = split_into_tiles(made_pictures(rows=40), 4)
    else:
        federation = split_at_random(made_table(rows=160), 0.5, np.random.default_rng(0))
    rows, others = halves(federation.label, np.random.default_rng(1))
    made = SplitTraining(
        **{"width": 8 if pictures else 16, "outputs": 4, "batch_size": 6 if pictures else 10} | protocol
    )
    guarded = defence_named(name, **settings).protect(made)
    return guarded.train(federation.rows(rows), federation.rows(others), np.random.default_rng(2))


@cache
def table(name: str, **settings: Any) -> Transcript:
    return trained(name, settings)


def seen(log: Transcript) -> View:
    return cut(log, THREATS["coordinator"])


def error(log: Transcript, informed: bool = True) -> float:
    view = seen(log)
    guess = GradientPeeling().run(
        view if informed else replace(view, defence=KnownDefences()), np.random.default_rng(0)
    )
    assert guess.values is not None
    return float(np.mean((guess.values - truth_of(log, view).values) ** 2))


def of_half(log: Transcript) -> float:
    return float(np.mean((truth_of(log, seen(log)).values - 0.5) ** 2))


def sent(log: Transcript, party: str, key: str) -> list[np.ndarray]:
    return [m.payload for m in log.messages if m.name == f"gradient/{party}/{key}"]


def outline(
    rows: int = 100, rounds: int = 50, batch_size: int = 10, **shapes: dict[str, tuple[int, ...]]
) -> GradientOutline:
    plans = {name: NetworkPlan(name, "mlp", (2,), 2, 4) for name in shapes}
    return GradientOutline(rows, rounds, batch_size, 9, plans, shapes)


def upload(gradients: dict[str, np.ndarray], party: str = "a", number: int = 0) -> Upload:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2))
    tensors = {key: torch.from_numpy(g.astype(np.float32)) for key, g in gradients.items()}
    return Upload(party, number, module, torch.rand(5, 3), torch.rand(5, 2), tensors)


def test_without_a_defence_every_cell_is_recovered() -> None:
    assert error(table("none")) < OPENED


@pytest.mark.parametrize("name", NAMES)
def test_each_raises_the_error_of_a_server_that_does_not_know_it(name: str) -> None:
    assert error(table(name), informed=False) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_knowing_it_never_hurts(name: str) -> None:
    log = table(name)
    assert error(log) <= 1.05 * error(log, informed=False)


@pytest.mark.parametrize(
    ("name", "settings"), [("fake_gradients", {"literal": True}), ("quantised_gradients", {"bits": 1})]
)
def test_knowing_it_never_hurts_at_other_settings(name: str, settings: dict[str, Any]) -> None:
    log = table(name, **settings)
    assert error(log) <= 1.05 * error(log, informed=False)


@pytest.mark.parametrize("name", ["dp_gradients", "hidden_indices"])
def test_with_these_a_server_learns_nothing_of_single_rows(name: str) -> None:
    log = table(name)
    assert 0.9 * of_half(log) < error(log) < CONSTANT * of_half(log)


def test_orders_alone_beat_guessing() -> None:
    """Fake numbers in the order of the true ones: a server that reads them as orders is better than a constant."""
    log = table("fake_gradients")
    assert error(log) < 0.8 * of_half(log)
    assert error(log, informed=False) > of_half(log)


def test_sums_over_workers_are_opened_from_the_top() -> None:
    """Secure aggregation leaves the top network's gradients; with them the sums come apart."""
    assert error(table("secure_aggregation")) < OPENED
    assert error(trained("secure_aggregation", {}, double=True)) < OPENED


@pytest.mark.parametrize("name", ["fake_gradients", "hidden_indices"])
def test_pictures_are_protected_from_a_server_that_does_not_know_of_it(name: str) -> None:
    bare, log = trained("none", {}, pictures=True), trained(name, {}, pictures=True)
    assert error(log, informed=False) > 3 * error(bare)
    assert error(log) <= 1.05 * error(log, informed=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_messages(name: str) -> None:
    one, two = (trained(name, {}, rounds=3) for _ in range(2))
    assert one.messages[-1].link == two.messages[-1].link


@pytest.mark.parametrize("name", NAMES)
def test_the_server_knows_the_defence_and_all_its_settings(name: str) -> None:
    known = seen(table(name)).defence
    told = set(vars(defence_named(name))) - {"room_mb"}  # the room of the party's machine, which it tells nobody
    assert {f"{name}/on", *(f"{name}/{key}" for key in told)} <= set(known.arrays)
    assert all(array.size == 1 for array in known.arrays.values())


def test_two_at_once_and_masks_come_last() -> None:
    both = defence_named("secure_aggregation+sparse_gradients").protect(SplitTraining())
    assert [guard.name for guard in both.guards] == ["sparse_gradients", "secure_aggregation"]


@pytest.mark.parametrize("name", ["sparse_gradients", "quantised_gradients", "fake_gradients"])
def test_what_would_be_lost_in_clipping_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"dp_gradients clips the rows' own gradients, so it must come before {name}"):
        defence_named(f"{name}+dp_gradients")
    defence_named(f"dp_gradients+{name}")


@pytest.mark.parametrize("name", ["hidden_indices", "secure_aggregation"])
def test_rows_and_masks_may_be_named_before_clipping(name: str) -> None:
    """The first changes no gradient, and masks come last however they are named."""
    defence_named(f"{name}+dp_gradients")


def test_other_protocols_stay_as_they_are() -> None:
    for protocol in (LogisticRegression(), EncryptedLogisticRegression(key_bits=0)):
        assert all(defence_named(name).protect(protocol) is protocol for name in NAMES)


# Fake gradients


def fakes(gradient: np.ndarray, **settings: Any) -> np.ndarray:
    guard = FakeGradients(**settings).begin(outline())
    return guard.upload(upload({"w": gradient}), np.random.default_rng(0))["w"].numpy()


def test_paired_fakes_keep_the_order_and_nothing_else() -> None:
    true = np.random.default_rng(1).normal(size=(20, 30)) * 1e-3
    fake = fakes(true)
    assert np.array_equal(np.argsort(fake.ravel()), np.argsort(true.ravel()))
    assert fake.std() == pytest.approx(1.1, rel=0.1)
    assert np.array_equal(fakes(1_000 * true, count=1), fakes(true, count=1))  # how large the true ones are is gone


def test_line_17_as_printed_keeps_the_upper_half() -> None:
    true = np.random.default_rng(1).normal(size=1_000) * 1e-3
    fake = fakes(true, literal=True)
    upper = np.argsort(-true)[:400]
    assert np.allclose(fake[upper], true[upper], rtol=1e-6)
    lower = np.argsort(true)[:400]
    assert (fake[lower] < 10 * true.min()).all()


def test_the_nearest_candidate_is_taken() -> None:
    """With more candidates the distance cannot grow."""
    true = np.random.default_rng(1).normal(size=40)
    far = [np.linalg.norm(fakes(true, sigma=1.0, count=count) - true) for count in (1, 1_000)]
    assert far[1] < far[0]


def test_as_many_candidates_are_kept_as_there_is_room_for() -> None:
    """The paper's network has 750,000 parameters; 1,000 candidates of it are 3 GB."""
    kept = [FakeGradients(room_mb=room).kept(750_000) for room in (1, 8, 300, 3_000, 9_000)]
    assert kept == [1, 2, 100, 1_000, 1_000]
    assert "room_mb" not in FakeGradients().identified()


def test_a_threshold_that_no_candidate_meets_is_answered() -> None:
    with pytest.raises(BadInput, match=r"no candidate of 20 draws is within tau 0\.001"):
        fakes(np.ones(10), tau=0.001, count=3)


def test_training_goes_on_with_fakes_of_the_gradients_size() -> None:
    steps = {"optimizer": "sgd", "learning_rate": 0.1, "rounds": 300, "batch_size": 20}
    losses = trained("fake_gradients", {"sigma": 0.1}, **steps).sealed(COORDINATOR)["training loss"]
    assert losses[-20:].mean() < 0.8 * losses[:20].mean()


def test_training_breaks_with_the_papers_sigma() -> None:
    steps = {"optimizer": "sgd", "learning_rate": 0.1, "rounds": 60, "batch_size": 20}
    for literal in (False, True):
        losses = trained("fake_gradients", {"literal": literal}, **steps).sealed(COORDINATOR)["training loss"]
        assert losses[-20:].mean() > losses[0]


# Private gradients


def test_private_noise_has_the_promised_scale() -> None:
    guard = DpGradients(epsilon=5.0, clip=2.0, amplified=True).begin(outline(rows=100, rounds=50, batch_size=10))
    multiplier = noise_for(5.0, 1e-5, 0.1, 50)
    module = torch.nn.Sequential(torch.nn.Linear(300, 200))
    still = Upload("a", 0, module, torch.zeros(10, 300), torch.zeros(10, 200), {})
    noise = guard.upload(still, np.random.default_rng(0))["0.weight"].numpy()
    assert noise.std() == pytest.approx(multiplier * 2.0 / 10, rel=0.02)
    assert abs(noise.mean()) < 0.01 * multiplier
    assert guard.known()[KnownDpGradients].noise == multiplier


def test_a_row_moves_the_upload_by_no_more_than_its_clip() -> None:
    guard = DpGradients(clip=0.5).begin(outline())
    module = torch.nn.Sequential(torch.nn.Linear(3, 2))
    inputs, above = torch.rand(5, 3), 100 * torch.rand(5, 2)
    without = above.clone()
    without[2] = 0
    sums = [guard.upload(Upload("a", 0, module, inputs, o, {}), np.random.default_rng(0)) for o in (above, without)]
    moved = math.sqrt(sum(float((sums[0][k] - sums[1][k]).pow(2).sum()) for k in sums[0]))
    assert moved == pytest.approx(0.5 / 5, rel=1e-3)


def test_a_server_that_draws_the_batches_costs_more_noise() -> None:
    plain, honest = (DpGradients(amplified=flag).begin(outline()).known()[KnownDpGradients] for flag in (True, False))
    assert honest.noise > plain.noise


# Sparse and quantised gradients


def test_sparse_gradients_keep_the_largest_share() -> None:
    true = np.random.default_rng(0).normal(size=(15, 7))
    kept = (
        SparseGradients(share=0.2).begin(outline()).upload(upload({"w": true}), np.random.default_rng(0))["w"].numpy()
    )
    assert (kept != 0).sum() == 21
    assert np.abs(true[kept == 0]).max() <= np.abs(true[kept != 0]).min()
    assert np.allclose(kept[kept != 0], true[kept != 0])


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("stochastic", [False, True])
def test_quantised_gradients_take_so_many_levels(bits: int, stochastic: bool) -> None:
    true = np.random.default_rng(0).uniform(-1, 1, size=(50, 40))
    guard = defence_named("quantised_gradients", bits=bits, stochastic=stochastic).begin(outline())
    rounded = guard.upload(upload({"w": true}), np.random.default_rng(0))["w"].numpy()
    assert len(np.unique(rounded.round(5))) == 2**bits
    if stochastic:
        assert abs((rounded - true).mean()) < 4 * np.ptp(true) / (2**bits - 1) / math.sqrt(true.size)
    elif bits > 1:
        assert np.abs(rounded - true).max() <= 0.501 * np.ptp(true) / (2**bits - 1)
    else:
        assert np.allclose(np.abs(rounded), np.abs(true).mean())


# Hidden indices


def test_hidden_rows_are_as_many_different_and_not_those_asked_for() -> None:
    guard, rng = defence_named("hidden_indices").begin(outline()), np.random.default_rng(0)
    asked = np.arange(10)
    taken = [guard.rows(asked, 100, number, rng) for number in range(400)]
    assert all(len(set(rows.tolist())) == 10 for rows in taken)
    often = np.bincount(np.concatenate(taken), minlength=100)
    assert often[:10].mean() == pytest.approx(40, rel=0.15)  # no more often than any other row


def test_nothing_that_the_server_sees_depends_on_which_rows_were_asked_for() -> None:
    view = seen(table("hidden_indices"))
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    assert guess.values is not None
    assert guess.labels is not None
    assert (guess.values == 0.5).all()
    assert (guess.labels == -1).all()


# Secure aggregation


def test_masks_cancel_in_the_sum_and_hide_each_upload() -> None:
    shapes = {name: {"w": (40, 30)} for name in "abc"}
    guard = SecureAggregation().begin(outline(**shapes, **{TOP: {"w": (2, 2)}}))
    rng = np.random.default_rng(0)
    true = [np.random.default_rng(i).normal(size=(40, 30)) for i in range(3)]
    masked = [guard.upload(upload({"w": g}, party), rng)["w"].numpy() for party, g in zip("abc", true, strict=True)]
    assert np.allclose(np.ldexp(np.sum(masked, axis=0).astype(float), -32), np.sum(true, axis=0), atol=1e-6)
    for one in masked:
        assert abs(float((one > 0).mean()) - 0.5) < 0.06
        assert abs(float(np.mean(one / 2.0**63))) < 0.06
    mean = guard.received({p: {"w": m} for p, m in zip("abc", masked, strict=True)} | {TOP: {"w": np.ones((2, 2))}})
    assert np.allclose(mean["b"]["w"], np.mean(true, axis=0), atol=1e-6)
    assert (mean[TOP]["w"] == 1).all()


def test_the_servers_view_holds_masked_uploads_only() -> None:
    log = table("secure_aggregation")
    assert all(payload.dtype == np.int64 for payload in sent(log, "passive", "1.weight"))
    assert np.median(np.abs(sent(log, "passive", "1.weight")[0].astype(float))) > 2.0**60


def test_aggregated_steps_change_every_worker() -> None:
    log = trained("secure_aggregation", {}, optimizer="sgd", learning_rate=0.1, rounds=5)
    weights = [m.payload for m in log.messages if m.name == "parameter/passive/1.weight"]
    assert not np.array_equal(weights[0], weights[-1])
    assert np.isfinite(log.sealed(COORDINATOR)["training loss"]).all()


def test_networks_of_different_shape_are_answered() -> None:
    federation = split_at_random(made_table(rows=40), 3, np.random.default_rng(0))
    protocol = SecureAggregation().protect(SplitTraining(batch_size=6))
    with pytest.raises(BadInput, match="the networks of 'active' and 'passive' differ in shape"):
        protocol.train(federation, federation, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: defence_named("fake_gradients", sigma=0), "fake_gradients: sigma: expected a number above 0, got 0"),
        (lambda: defence_named("fake_gradients", count=0), "fake_gradients: count: expected a whole number from 1"),
        (lambda: defence_named("fake_gradients", room_mb=0), "fake_gradients: room_mb: expected a whole number from 1"),
        (lambda: defence_named("fake_gradients", tau=-1), "fake_gradients: tau: expected a number of at least 0"),
        (lambda: defence_named("fake_gradients", literal="no"), "fake_gradients: literal: expected true or false"),
        (lambda: defence_named("dp_gradients", epsilon=0), "dp_gradients: epsilon: expected a number above 0, got 0"),
        (lambda: defence_named("dp_gradients", delta=1), "dp_gradients: delta: expected a number below 1, got 1"),
        (lambda: defence_named("dp_gradients", clip=-1), "dp_gradients: clip: expected a number above 0, got -1"),
        (lambda: defence_named("sparse_gradients", share=2), "sparse_gradients: share: expected a number of at most 1"),
        (lambda: defence_named("quantised_gradients", bits=0), "quantised_gradients: bits: expected a whole number"),
        (lambda: defence_named("secure_aggregation", bits=60), "secure_aggregation: bits: expected a whole number"),
        (lambda: defence_named("hidden_indices", rows=1), "has no setting 'rows'"),
    ],
)
def test_wrong_settings_are_answered_in_one_sentence(make: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


# In an audit


def plan(**changes: Any) -> Any:
    settings = {"name": "split_training", "settings": {"width": 16, "outputs": 4, "batch_size": 20}}
    written = {
        "data": "breast",
        "unknown": 0.5,
        "protocols": [settings],
        "threats": ["coordinator"],
        "attacks": ["gradient_peeling"],
        "defences": ["none", "fake_gradients", "dp_gradients"],
        "trials": 1,
        "rows": 100,
    }
    return make_plan(written | changes).filled()


def test_an_audit_compares_them() -> None:
    made = plan()
    findings = attacked(run(made, open_source(made.data, 0)))
    none, *defended = (finding.score.error for finding in findings)
    assert [finding.defence for finding in findings] == ["none", "fake_gradients", "dp_gradients"]
    assert none < OPENED < 0.01 < min(defended)
    assert all(finding.training_loss for finding in findings)
    assert all(0 <= finding.model_accuracy <= 1 for finding in findings)


def test_they_fit_split_training_and_nothing_else() -> None:
    made = plan(protocols=["split_training", "logistic_regression"], defences=["none", "rounding", "sparse_gradients"])
    split, plain = ([d.name for d in defences_for(made, protocol)] for protocol in made.protocols)
    assert split == ["none", "sparse_gradients"]
    assert plain == ["none", "rounding"]
    assert Untried("sparse_gradients on logistic_regression", "it changes nothing there") in untried(made)
    alone = plan(protocols=["logistic_regression"], defences=["sparse_gradients"])
    assert defences_for(alone, alone.protocols[0]) == []


def test_the_sweep_of_split_training_is_of_gradients() -> None:
    made = plan(defences="sweep")
    assert {defence.name for defence in made.defences} == {"none", *NAMES}
