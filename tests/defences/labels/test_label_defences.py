"""Defences at the point `labels`: what the passive parties get, what is trained on, and what that promises."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.planning.plan_fits_data import for_its_classes
from plumbob.auditing.running.open_data import open_source
from plumbob.defences import DEFENCES, defence_named
from plumbob.defences._distance_correlation import distance_correlation
from plumbob.defences.labels.confusional_autoencoder import autoencoder
from plumbob.defences.labels.discrete_output_gradients import rounded
from plumbob.defences.labels.label_randomised_response import kept, most_accurate, responses
from plumbob.defences.labels.lp_mst import among
from plumbob.defences.labels.marvell import Spread, least_telling
from plumbob.defences.scores.dp_sgd import noise_for
from plumbob.errors import BadInput
from plumbob.federation import split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.shared.guards import Backward, EmbeddingOutline
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table

NAMES = [name for name, kind in DEFENCES.items() if kind.point == "labels"]
SENT = [name for name in NAMES if name != "earlier_cut"]  # which change nothing where the cut is the first
WIDTH, ROWS = 12, 120


def trained(name: str, settings: dict[str, Any] | None = None, classes: int = 2, **protocol: Any) -> Transcript:
    """A small training in 64 bits on half of the rows, under a defence."""
    names = [f"c{i}" for i in range(6)]
    federation = split(made_table(2 * ROWS, 6, classes), {"bank": names[:2], "shop": names[2:]}, "bank")
    made = SplitNetwork(**{"hidden": (WIDTH, 6), "epochs": 2, "batch_size": 60, "double": True} | protocol)
    guarded = defence_named(name, **(settings or {})).protect(made)
    rows = np.arange(2 * ROWS)
    return guarded.train(federation.rows(rows[:ROWS]), federation.rows(rows[ROWS:]), np.random.default_rng(0))


@cache
def usual(name: str) -> Transcript:
    return trained(name)


def sent(log: Transcript, name: str = "output gradients") -> list[np.ndarray]:
    return [m.payload for m in log.messages if m.name == name]


def first(name: str, settings: dict[str, Any] | None = None, **protocol: Any) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of the first round, without the defence and with it: the parameters are still the same."""
    one = {"batch_size": ROWS, "epochs": 1} | protocol
    return sent(trained("none", **one))[0], sent(trained(name, settings, **one))[0]


# Every one


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_messages(name: str) -> None:
    assert trained(name).messages[-1].link == usual(name).messages[-1].link


@pytest.mark.parametrize("name", SENT)
def test_all_settings_are_known_and_no_label_is(name: str) -> None:
    known = cut(usual(name), THREATS["passive-training"]).defence
    made = set(vars(defence_named(name))) | ({"noise"} if name == "private_residuals" else set())
    assert set(known.arrays) == {f"{name}/on", *(f"{name}/{key}" for key in made)}
    assert all(array.size == 1 for array in known.arrays.values())


@pytest.mark.parametrize("name", SENT)
def test_batches_are_those_of_the_bare_protocol_and_gradients_are_not(name: str) -> None:
    bare, log = usual("none"), usual(name)
    assert all(np.array_equal(a, b) for a, b in zip(sent(bare, "rows"), sent(log, "rows"), strict=True))
    assert not np.array_equal(sent(bare)[-1], sent(log)[-1])
    assert np.isfinite(np.concatenate(sent(log))).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_defence_is_printed_pickled_and_leaves_other_protocols(name: str) -> None:
    made = defence_named(name)
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)
    for protocol in (LogisticRegression(), SplitTraining()):
        assert made.protect(protocol) is protocol


@pytest.mark.parametrize("name", [name for name in SENT if name != "marvell"])
def test_several_classes_two_passive_parties_and_masks_work_too(name: str) -> None:
    names = [f"c{i}" for i in range(6)]
    federation = split(made_table(60, 6, 3), {"bank": [], "shop": names[:3], "post": names[3:]}, "bank")
    protocol = SplitNetwork(hidden=(8, 6), epochs=2, batch_size=30, aggregation="masked")
    log = defence_named(name).protect(protocol).train(federation, federation, np.random.default_rng(0))
    one, two = (
        [m.payload for m in log.messages if m.name == "output gradients" and m.receiver == who]
        for who in log.parties[1:]
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))  # nobody averages by asking a friend


def test_the_active_party_goes_on_from_its_own_gradients() -> None:
    """What is drawn for passive parties does not change its own step: the top model is the same after one round."""
    log, bare = (trained(n, epochs=1, batch_size=ROWS) for n in ("output_gradient_noise", "none"))
    assert log.sealed(COORDINATOR)["training loss"] == bare.sealed(COORDINATOR)["training loss"]


# Noise


@pytest.mark.parametrize("laplace", [False, True])
def test_noise_is_as_long_as_the_longest_gradient_times_the_scale(laplace: bool) -> None:
    bare, noisy = first("output_gradient_noise", {"scale": 2.0, "laplace": laplace})
    noise = noisy - bare
    longest = np.linalg.norm(bare, axis=1).max()
    assert np.sqrt((noise**2).sum(axis=1).mean()) == pytest.approx(2.0 * longest, rel=0.1)
    tails = float(np.mean(noise**4) / np.mean(noise**2) ** 2)  # 3 for a normal distribution, 6 for that of Laplace
    assert tails > 4.2 if laplace else tails < 4.2


def test_max_norm_stays_on_each_rows_line_and_evens_lengths_out() -> None:
    gradients = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 5)) * np.array([[1.0], [2.0], [0.5], [0.0]]))
    guard, rng = defence_named("max_norm_alignment").begin(outline()), np.random.default_rng(1)
    drawn = torch.stack([guard.back(backward(gradients), rng) for _ in range(4_000)])
    across = drawn - (drawn @ gradients.T).diagonal(dim1=1, dim2=2)[..., None] * (
        gradients / gradients.pow(2).sum(dim=1, keepdim=True).clamp_min(1e-9)
    )
    assert float(across.abs().max()) < 1e-9
    lengths = drawn.pow(2).sum(dim=2).mean(dim=0)
    longest = gradients.pow(2).sum(dim=1).max()
    assert torch.allclose(lengths[:3] / longest, torch.ones(3, dtype=torch.float64), atol=0.15)
    assert float(lengths[3]) == 0.0


def outline(classes: int = 2, epochs: int = 2) -> EmbeddingOutline:
    return EmbeddingOutline(ROWS, {"shop": 4}, WIDTH, 1, classes=classes, epochs=epochs)


def backward(gradients: torch.Tensor, label: torch.Tensor | None = None) -> Backward:
    label = torch.arange(len(gradients)) % 2 if label is None else label
    return Backward(np.arange(len(gradients)), label, torch.zeros(len(gradients), 2), gradients)


# Marvell


@pytest.mark.parametrize(("zero", "one"), [(1.0, 0.2), (0.3, 2.0), (0.02, 0.01)])
@pytest.mark.parametrize("power", [0.5, 4.0, 40.0])
def test_marvell_finds_the_least_that_a_general_search_finds(zero: float, one: float, power: float) -> None:
    spread = Spread(10, 2.0, 0.3, zero, one)
    (along0, along1), (b0, b1) = least_telling(spread, power)
    ours = np.array([along0 + b0, along1 + b1, b0, b1])
    assert cost(ours, spread) <= power * (1 + 1e-9)
    starts = np.random.default_rng(0).dirichlet(np.ones(4), 12) * power / np.array([0.7, 0.3, 6.3, 2.7])
    bounds, limits = (
        [(0, None)] * 4,
        [
            {"type": "ineq", "fun": lambda x: power - cost(x, spread)},
            {"type": "ineq", "fun": lambda x: x[0] - x[2]},
            {"type": "ineq", "fun": lambda x: x[1] - x[3]},
        ],
    )
    found = [minimize(told, start, (spread,), "SLSQP", bounds=bounds, constraints=limits) for start in starts]
    least = min(one.fun for one in found if one.success and cost(one.x, spread) <= power * (1 + 1e-6))
    assert told(ours, spread) <= least * (1 + 1e-4)


def cost(x: np.ndarray, spread: Spread) -> float:
    p, d = spread.share, spread.width
    return float(p * (x[1] + (d - 1) * x[3]) + (1 - p) * (x[0] + (d - 1) * x[2]))


def told(x: np.ndarray, spread: Spread) -> float:
    a0, a1, b0, b1 = np.maximum(x, 0) + [spread.first, spread.second, spread.first, spread.second] + np.float64(1e-12)
    across = (spread.width - 1) * (b0 / b1 + b1 / b0)
    return float(across + (a0 + spread.apart) / a1 + (a1 + spread.apart) / a0)


def test_marvells_noise_has_the_power_and_mostly_lies_along_the_classes_distance() -> None:
    rng = np.random.default_rng(0)
    label = torch.arange(400) % 2
    shift = np.zeros(WIDTH)
    shift[0] = 3.0
    gradients = torch.from_numpy(0.1 * rng.normal(size=(400, WIDTH)) + np.outer(label.numpy() - 0.5, shift))
    guard = defence_named("marvell", scale=4.0).begin(outline())
    noise = torch.cat([guard.back(backward(gradients, label), rng) - gradients for _ in range(10)])
    apart = gradients[label == 1].mean(dim=0) - gradients[label == 0].mean(dim=0)
    power = float(noise.pow(2).sum(dim=1).mean())
    assert power == pytest.approx(4.0 * float(apart.pow(2).sum()), rel=0.1)
    assert float((noise @ apart).pow(2).mean() / apart.pow(2).sum()) > 0.95 * power


def test_marvell_leaves_a_batch_of_one_class_and_equal_gradients() -> None:
    guard, rng, some = defence_named("marvell").begin(outline()), np.random.default_rng(0), torch.rand(4, WIDTH)
    assert guard.back(backward(some, torch.zeros(4, dtype=torch.int64)), rng) is some
    same = torch.ones(4, WIDTH)
    assert guard.back(backward(same), rng) is same


# Fewer numbers


@pytest.mark.parametrize("bins", [1, 2, 12])
def test_discrete_gradients_have_so_many_levels_and_are_the_nearest(bins: int) -> None:
    bare, told_ = first("discrete_output_gradients", {"bins": bins})
    levels = np.unique(told_.round(12))
    assert len(levels) <= bins + 1
    step, reach = 4 * bare.std() / bins, 2 * bare.std()
    within = np.abs(bare - bare.mean()) < reach
    assert np.abs(told_ - bare)[within].max() <= step / 2 + 1e-12
    assert rounded(torch.ones(2, 3), bins).tolist() == [[1.0] * 3] * 2


def test_sparse_gradients_send_the_largest_cells_as_they_are() -> None:
    bare, told_ = first("sparse_output_gradients", {"share": 0.1})
    there = told_ != 0
    assert there.sum() == -(-bare.size // 10)
    assert np.array_equal(told_[there], bare[there])
    assert np.abs(bare[there]).min() >= np.abs(bare[~there]).max()


# Label differential privacy


@pytest.mark.parametrize("classes", [2, 5])
def test_responses_keep_the_label_as_often_as_epsilon_says(classes: int) -> None:
    label = np.random.default_rng(0).integers(0, classes, 20_000)
    told_ = responses(label, np.ones((20_000, classes), dtype=bool), 1.5, np.random.default_rng(1))
    assert np.mean(told_ == label) == pytest.approx(kept(1.5, classes), abs=0.015)
    counts = np.bincount(told_[(label == 0) & (told_ != label)], minlength=classes)
    assert counts[1:].min() > 0.8 * counts[1:].max()
    chances = [np.mean(told_[label == k] == 1) for k in range(classes)]
    assert max(chances) / min(chances) < 1.25 * np.exp(1.5)


def test_a_row_of_one_allowed_class_gets_it_whatever_its_label() -> None:
    allowed = np.array([[True, False, False], [False, True, True]])
    told_ = np.array([responses(np.array([2, 0]), allowed, 1.0, np.random.default_rng(i)) for i in range(200)])
    assert (told_[:, 0] == 0).all()
    assert set(told_[:, 1]) == {1, 2}


def test_the_best_guess_from_responses_is_a_bound_that_is_reached() -> None:
    prior, epsilon = np.array([0.6, 0.3, 0.1]), 2.0
    label = np.random.default_rng(0).choice(3, 40_000, p=prior)
    told_ = responses(label, np.ones((40_000, 3), dtype=bool), epsilon, np.random.default_rng(1))
    best = [np.bincount(label[told_ == k], minlength=3).argmax() for k in range(3)]
    assert np.mean(np.array(best)[told_] == label) == pytest.approx(most_accurate(prior, epsilon), abs=0.01)


@pytest.mark.parametrize("name", ["label_randomised_response", "lp_mst"])
def test_labels_are_told_once(name: str) -> None:
    guard, rng = defence_named(name).begin(outline(epochs=6)), np.random.default_rng(0)
    plain = torch.eye(2)[torch.arange(ROWS) % 2]
    seen = [guard.targets(epoch, plain, rng).clone() for epoch in range(6)]
    for before, after in pairwise(seen):
        there = before.sum(dim=1) > 0
        assert torch.equal(before[there], after[there])
    assert bool((seen[-1].sum(dim=1) == 1).all())
    assert 0 < int((seen[-1] != plain).any(dim=1).sum()) < ROWS / 2


def test_a_row_of_a_later_stage_gets_no_gradient_in_the_first() -> None:
    log = trained("lp_mst", {"epsilon": 2.0, "stages": 2}, batch_size=ROWS, epochs=2)
    silent = [(np.abs(g).max(axis=1) == 0).sum() for g in sent(log)]
    assert silent == [ROWS // 2, 0]


def test_among_likely_classes_the_chance_of_telling_the_truth_is_largest() -> None:
    likely = np.random.default_rng(0).dirichlet(np.ones(5), 50)
    allowed = among(likely, 1.0)
    gain = (likely * allowed).sum(axis=1) / (1 + (allowed.sum(axis=1) - 1) * np.exp(-1.0))
    for size in range(1, 6):
        best = np.sort(likely, axis=1)[:, -size:].sum(axis=1) / (1 + (size - 1) * np.exp(-1.0))
        assert (gain >= best - 1e-9).all()


def test_residuals_get_the_noise_that_the_epochs_need() -> None:
    guard = defence_named("private_residuals", epsilon=3.0).begin(outline(epochs=2))
    drawn = guard.residuals(torch.zeros(4_000, 2, dtype=torch.float64), np.random.default_rng(0))
    wanted = noise_for(3.0, 1e-5, 1.0, 2) * 2**0.5 / 4_000
    assert float(drawn.std()) == pytest.approx(wanted, rel=0.03)


def test_the_active_partys_own_step_is_private_too() -> None:
    """Its bottom model's weights differ after one round, which they would not if noise were on what is sent alone."""
    log, bare = (trained(n, epochs=1, batch_size=ROWS) for n in ("private_residuals", "none"))
    assert not np.allclose(sent(log)[0], sent(bare)[0])
    assert log.sealed(COORDINATOR)["training loss"] == bare.sealed(COORDINATOR)["training loss"]


@pytest.mark.parametrize("name", ["label_randomised_response", "lp_mst", "private_residuals"])
def test_label_privacy_is_promised_for_all_rounds(name: str) -> None:
    (promise,) = defence_named(name, epsilon=1.5).guarantees()
    assert promise.epsilon == 1.5
    assert "label" in promise.unit
    assert "all" in promise.composition
    assert defence_named("output_gradient_noise").guarantees() == ()


# Models and losses


def test_distance_correlation_is_one_for_a_turn_and_small_for_strangers() -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(150, 3)))
    turn = torch.from_numpy(np.linalg.qr(rng.normal(size=(3, 3)))[0])
    assert float(distance_correlation(rows, 2 * rows @ turn + 1)) == pytest.approx(1.0, abs=1e-4)
    assert float(distance_correlation(rows, torch.from_numpy(rng.normal(size=(150, 3))))) < 0.1
    assert float(distance_correlation(rows, torch.ones(150, 2))) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_autoencoder_gives_back_classes_that_its_soft_labels_confuse(classes: int) -> None:
    encode, decode = autoencoder(classes, 1.0, np.random.default_rng(0))
    soft = encode(torch.eye(classes)).detach()
    assert torch.equal(decode(soft).argmax(dim=1), torch.arange(classes))
    assert float(soft.max()) < 0.9


def test_a_bottleneck_draws_in_training_and_not_in_prediction() -> None:
    guard = defence_named("mid").begin(outline())
    module, rows = guard.entry(WIDTH, torch.float64), torch.rand(5, WIDTH, dtype=torch.float64)
    assert not torch.equal(module(rows), module(rows))
    assert float(guard.burden(rows, torch.zeros(5)).detach()) > 0
    module.eval()
    assert torch.equal(module(rows), module(rows))


def test_an_earlier_cut_moves_layers_above_it_and_leaves_one_that_is_as_early() -> None:
    moved = defence_named("earlier_cut").protect(SplitNetwork(hidden=(8, 4), cut=3))
    assert isinstance(moved, SplitNetwork)
    assert (moved.cut, moved.hidden, moved.width) == (1, (8, 8, 8, 4), 8)
    for protocol in (SplitNetwork(), SplitNetwork(cut=3, bottom="mlp")):
        assert defence_named("earlier_cut").protect(protocol) is protocol


# In an audit


@pytest.mark.needs_data("vehicle")
def test_marvell_is_left_out_of_a_sweep_of_several_classes_and_refused_alone() -> None:
    plan = make_plan({"data": "vehicle", "protocols": ["split_network"], "defences": "sweep"}).filled()
    source = open_source(plan.data, 0)
    left, noted = for_its_classes(plan, source)
    assert {part.name for part in plan.defences} - {part.name for part in left.defences} == {"marvell"}
    assert "Not tried: marvell (scale=1.0) is not made for a label of 4 classes." in noted.notes
    alone = plan.model_copy(update={"defences": [part for part in plan.defences if part.name in ("none", "marvell")]})
    with pytest.raises(BadInput, match=r"marvell .* is not made for a label of 4 classes; name another defence"):
        for_its_classes(alone, source)


# Wrong settings


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: defence_named("output_gradient_noise", scale=0),
            "output_gradient_noise: scale: expected a number above 0",
        ),
        (lambda: defence_named("output_gradient_noise", laplace=1), "laplace: expected true or false, got 1"),
        (lambda: defence_named("max_norm_alignment", scale=1), "has no setting 'scale'"),
        (lambda: defence_named("marvell", scale=-1), "marvell: scale: expected a number above 0, got -1"),
        (lambda: defence_named("discrete_output_gradients", bins=0), "bins: expected a whole number from 1"),
        (lambda: defence_named("sparse_output_gradients", share=2), "share: expected a number of at most 1, got 2"),
        (lambda: defence_named("label_randomised_response", epsilon=0), "epsilon: expected a number above 0, got 0"),
        (lambda: defence_named("lp_mst", stages=0), "lp_mst: stages: expected a whole number from 1 to 100, got 0"),
        (lambda: defence_named("private_residuals", delta=1), "delta: expected a number below 1, got 1"),
        (lambda: defence_named("mid", strength=0), "mid: strength: expected a number above 0, got 0"),
        (lambda: defence_named("label_distance_correlation", strength="a"), "strength: expected a number above 0"),
        (lambda: defence_named("confusional_autoencoder", bins=-1), "bins: expected a whole number from 0"),
        (
            lambda: defence_named("earlier_cut", layers=4),
            "earlier_cut: layers: expected a whole number from 1 to 3, got 4",
        ),
        (lambda: defence_named("marvell").begin(outline(3)), "marvell: expected a label of 2 classes, got 3"),
        (
            lambda: defence_named("lp_mst", stages=9).begin(outline()),
            "expected at most the 2 epochs of training, got 9",
        ),
    ],
)
def test_wrong_settings_are_answered_in_one_sentence(make: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()
