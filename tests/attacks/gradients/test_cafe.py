"""CAFE and the attacks it is compared with, on networks small enough to know everything about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from math import comb, inf

import numpy as np
import pytest
import torch
from torch import Tensor

from plumbob.attacks import attack_named, attacks
from plumbob.attacks.gradients._gradient_matching import (
    Dummies,
    MadeUpBatch,
    MatchingServer,
    Pairs,
    RowAdam,
    ServerAttack,
    squared,
    variation,
)
from plumbob.attacks.gradients.batch_norm_prior import BatchNormStatistics, moments
from plumbob.attacks.gradients.cafe import Cafe, CafeOptimizer, CafeState
from plumbob.attacks.gradients.cafe_single_loop import CafeSingleLoop
from plumbob.attacks.gradients.cosine_gradients import angle
from plumbob.attacks.gradients.dlg import Dlg
from plumbob.attacks.gradients.group_consistency import GroupConsistency
from plumbob.attacks.gradients.sapag import kernel
from plumbob.defences import defence_named
from plumbob.defences.gradients.hidden_indices import HiddenIndices
from plumbob.errors import BadInput
from plumbob.federation import Federation, halves, split, split_at_random
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.protocols.shared.networks import first_linear, representation
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_pictures, made_table

CAMERA = "camera"
RATES = (0.125, 1e-2, 5e-2)


@cache
def pictures(kind: str = "static", threat: str = "coordinator") -> tuple[Federation, View]:
    """One worker with pictures of 8 x 8 pixels, and what the server sees."""
    table = made_pictures(rows=16, side=8)
    federation = split(table, {"server": [], CAMERA: table.names}, "server")
    settings: dict[str, dict[str, object]] = {
        "static": {"width": 16},
        "moving": {"width": 4, "optimizer": "sgd", "learning_rate": 0.5},
        "trimmed": {"width": 24, "archive_mb": 1},
    }
    protocol = SplitTraining(network="cafe", outputs=4, batch_size=4, rounds=48, **settings[kind])
    log = protocol.train(federation, federation.rows(np.arange(6)), np.random.default_rng(0))
    return federation, cut(log, THREATS[threat])


@cache
def table(threat: str) -> tuple[Federation, View]:
    """Two parties with columns, and what the server sees, by itself or with the active party."""
    rng = np.random.default_rng(0)
    federation = split_at_random(made_table(rows=48), 3, rng)
    train, rest = halves(federation.label, rng)
    trained = federation.rows(train)
    protocol = SplitTraining(width=16, outputs=4, batch_size=6)
    return trained, cut(protocol.train(trained, federation.rows(rest), rng), THREATS[threat])


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def true_dummies(federation: Federation, server: MatchingServer) -> Dummies:
    """The true rows and labels."""
    dummies = Dummies.drawn(server, generator())
    for worker in server.uploads.attacked:
        values = torch.from_numpy(federation[worker.name].values).float()
        dummies.data[worker.name].values.copy_(values.reshape(-1, *worker.plan.shape))
    certain = 100.0 * torch.nn.functional.one_hot(torch.from_numpy(federation.label), server.classes)
    dummies.logits.values.copy_(certain)
    return dummies


def at_the_truth(federation: Federation, view: View, round: int) -> MadeUpBatch:
    """A batch of the true rows and labels."""
    server = MatchingServer(view)
    return server.batch(true_dummies(federation, server), round)


def true_layer(federation: Federation, server: MatchingServer) -> tuple[Tensor, Tensor]:
    """V (as shares of a batch's mean) and H of the camera's first fully connected layer, from the truth."""
    module = server.modules[CAMERA]
    x = torch.from_numpy(federation[CAMERA].values).float().reshape(-1, 1, 8, 8)
    _, layer = first_linear(module, x)
    h = representation(module, layer, x).detach()
    u = layer(h).detach().requires_grad_()
    place = list(module).index(layer)
    scores = server.modules["top"](module[place + 1 :](u)[:, None])
    loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(federation.label), reduction="sum")
    return torch.autograd.grad(loss, u)[0] / len(server.batches[0]), h


def quality(federation: Federation, values: np.ndarray) -> float:
    """PSNR of all pixels."""
    return float(-10 * np.log10(np.mean((values - federation[CAMERA].values) ** 2)))


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5])
def test_theorem_1s_hessian_is_the_printed_one_and_singular_where_batches_are_everybody(batch: int) -> None:
    rows = 5
    indicators = [np.isin(np.arange(rows), chosen).astype(float) for chosen in combinations(range(rows), batch)]
    assert len(indicators) == comb(rows, batch)
    hessian = 2 * np.mean([np.outer(s, s) for s in indicators], axis=0)
    found = np.linalg.eigvalsh(hessian)
    if batch == 1:
        np.testing.assert_allclose(hessian, 2 * batch / rows * np.eye(rows), atol=1e-12)
        return
    scale = 2 * batch * (batch - 1) / (rows * (rows - 1))
    low = (rows - 1) / (batch - 1) - 1
    np.testing.assert_allclose(hessian, scale * (np.ones((rows, rows)) + low * np.eye(rows)), atol=1e-12)
    np.testing.assert_allclose(found, scale * np.array([low] * (rows - 1) + [low + rows]), atol=1e-12)
    assert (found[0] > 1e-9) == (batch < rows)


def test_a_small_objective_bounds_how_far_v_is_off() -> None:
    """Appendix E.1: E F1 >= K (N - K) / (N (N - 1)) |V - V*|^2, and differences that add up to 0 reach it."""
    rows, batch, rng = 6, 4, np.random.default_rng(0)
    every_batch = np.array(
        [np.isin(np.arange(rows), chosen) for chosen in combinations(range(rows), batch)], dtype=float
    )
    least = batch * (rows - batch) / (rows * (rows - 1))
    for off in rng.normal(size=(20, rows, 3)):
        assert ((every_batch @ off) ** 2).sum(axis=1).mean() >= least * (off**2).sum()
        level = off - off.mean(axis=0)
        assert ((every_batch @ level) ** 2).sum(axis=1).mean() == pytest.approx(least * (level**2).sum())


@pytest.mark.parametrize(("kind", "rate", "iterations"), [("adam", 1e-4, 3_000), ("sgd", 0.125, 600)])
def test_step_1_finds_every_rows_gradient(kind: CafeOptimizer, rate: float, iterations: int) -> None:
    federation, view = pictures()
    server = MatchingServer(view)
    layer = CafeState(Cafe(), server, generator()).layers[CAMERA]
    true, _ = true_layer(federation, server)
    before = float((layer.v.values - true).norm())
    for iteration in range(iterations):
        layer.descend_v(iteration, rate, kind)
    assert float((layer.v.values - true).norm()) < before / 10


def test_step_1_does_not_overshoot_at_any_rate() -> None:
    layer = CafeState(Cafe(), MatchingServer(pictures()[1]), generator()).layers[CAMERA]
    first = layer.descend_v(0, 100.0, "sgd")
    assert layer.descend_v(0, 100.0, "sgd") < 1e-9 * first


def test_step_2_finds_what_rows_put_into_the_layer() -> None:
    federation, view = pictures()
    server = MatchingServer(view)
    layer = CafeState(Cafe(), server, generator()).layers[CAMERA]
    true_v, true_h = true_layer(federation, server)
    layer.v.values.copy_(true_v)
    before = float((layer.h.values - true_h).norm())
    for iteration in range(1_500):
        layer.descend_h(iteration, 5e-3)
    assert float((layer.h.values - true_h).norm()) < before / 10


@cache
def recovered(gamma: float = 1e-3) -> list[float]:
    """PSNR along the path."""
    federation, view = pictures()
    guess = Cafe(iterations=300, rates=RATES, xi=15, gamma=gamma).run(view, np.random.default_rng(1))
    return [quality(federation, values) for _, values in guess.path]


def test_pictures_get_better_with_iterations() -> None:
    path = recovered()
    assert len(path) == 10
    assert path[0] + 3 < path[4] < path[-1]


def test_cafe_beats_dlg_on_the_same_budget() -> None:
    federation, view = pictures()
    rival = Dlg(iterations=300, rate=RATES[2]).run(view, np.random.default_rng(1))
    assert rival.values is not None
    assert recovered()[-1] > quality(federation, rival.values) + 3


def test_without_the_inner_representation_pictures_are_worse() -> None:
    assert recovered()[-1] > recovered(gamma=0.0)[-1] + 0.3


@pytest.mark.parametrize(("xi", "counts"), [(0.0, True), (1e6, False)])
def test_total_variation_counts_only_above_xi(xi: float, counts: bool) -> None:
    server = MatchingServer(pictures()[1])
    state = CafeState(Cafe(alpha=0, gamma=0, beta=0.5, xi=xi), server, generator())
    batch = server.batch(state.dummies, 0)
    expected = 0.5 * float(variation(batch.inputs[CAMERA]).detach()) if counts else 0.0
    assert float(state.objective(batch).detach()) == pytest.approx(expected)


@pytest.mark.parametrize("distance", [squared, angle, kernel])
@pytest.mark.parametrize("kind", ["static", "moving", "trimmed"])
def test_distances_are_zero_at_the_truth_under_the_parameters_of_the_round(
    distance: Callable[[Pairs], Tensor], kind: str
) -> None:
    federation, view = pictures(kind)
    for round in (0, 17, 47):
        batch = at_the_truth(federation, view, round)
        elsewhere = batch.server.batch(Dummies.drawn(batch.server, generator()), round)
        here, there = (abs(float(distance(b.pairs()).detach())) for b in (batch, elsewhere))
        assert here < 1e-4 * there


@pytest.mark.parametrize("threat", ["coordinator", "corrupted-coordinator"])
def test_known_columns_are_used_as_they_are(threat: str) -> None:
    batch = at_the_truth(*table(threat), 3)
    assert float(squared(batch.pairs()).detach()) < 1e-10
    assert len(batch.server.known) == (threat == "corrupted-coordinator")


def test_large_matrices_drop_out_of_rounds_that_did_not_keep_them() -> None:
    server = MatchingServer(pictures("trimmed")[1])
    assert len(server.kept(0)) == len(server.kept(47)) + 1
    kept = {parameter.numel(): len(real) for parameter, real, _ in server.kept(47)}
    assert kept[24 * 48 * 25] == 24 * 48 * 5


def test_an_attack_runs_on_what_was_kept() -> None:
    _, view = pictures("trimmed")
    for attack in (Cafe(iterations=3), CafeSingleLoop(iterations=3), GroupConsistency(iterations=2)):
        guess = attack.run(view, np.random.default_rng(0))
        assert guess.values is not None
        assert np.isfinite(guess.values).all()


def test_of_tables_steps_1_and_2_give_the_columns() -> None:
    federation, view = table("coordinator")
    state = CafeState(Cafe(), MatchingServer(view), generator())
    assert not state.dummies.data

    def error() -> float:
        parts = state.parts()
        return float(np.mean([np.mean((parts[n].numpy() - federation[n].values) ** 2) for n in parts]))

    before = error()
    for layer in state.layers.values():
        for iteration in range(2_500):
            layer.descend_v(iteration, 1.0, "sgd")
        for iteration in range(2_500):
            layer.descend_h(iteration, 1e-2)
    assert error() < before / 20


def test_rows_outside_a_batch_keep_values_and_moments() -> None:
    adam = RowAdam(torch.zeros(4, 2))
    adam.step(torch.tensor([1, 3]), torch.ones(2, 2), 0.1, 0)
    for part in (adam.values, adam.first, adam.second):
        np.testing.assert_array_equal(part.ne(0).any(1).numpy(), [False, True, False, True])


def test_labels_are_claimed_of_rows_that_were_in_a_batch() -> None:
    _, view = pictures()
    guess = Dlg(iterations=1).run(view, np.random.default_rng(0))
    assert guess.labels is not None
    claimed = np.flatnonzero(guess.labels >= 0)
    np.testing.assert_array_equal(claimed, MatchingServer(view).batches[0].numpy())


def test_a_single_loop_leaves_out_a_step_that_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CafeSingleLoop, "bounds", (inf, inf))
    attack = CafeSingleLoop(iterations=6)
    layer = (state := CafeState(attack, MatchingServer(pictures()[1]), generator())).layers[CAMERA]
    seen = [(layer.v.values.clone(), layer.h.values.clone()) for _ in attack._steps(state)]
    same = [all(torch.equal(a, b) for a, b in zip(one, two, strict=True)) for one, two in pairwise(seen)]
    assert same == [False, False, False, True, True]  # 16 rows are four batches of 4


def test_both_loops_run_while_parameters_move() -> None:
    _, view = pictures("moving")
    for kind in (Cafe, CafeSingleLoop):
        guess = kind(iterations=50, report_every=20).run(view, np.random.default_rng(0))
        assert [iteration for iteration, _ in guess.path] == [20, 40, 50]
        assert guess.values is not None
        assert np.isfinite(guess.values).all()


def test_moments_are_of_channels() -> None:
    maps = torch.tensor([[[[0.0, 2.0]], [[5.0, 5.0]]]])
    mean, variance = moments(maps)
    assert mean.tolist() == [1.0, 5.0]
    assert variance.tolist() == [1.0, 0.0]


def test_usual_feature_maps_are_those_of_auxiliary_rows() -> None:
    federation, view = pictures()
    rows = MatchingServer(view).batches[0].numpy()
    granted = replace(view, auxiliary=federation.values[rows])

    def misfit(view: View) -> float:
        dummies = true_dummies(federation, server := MatchingServer(view))
        prior = BatchNormStatistics(server, view, generator())
        return float(prior.misfit(server.batch(dummies, 0)).detach())

    assert misfit(granted) < 1e-6 * misfit(view)


def test_steps_1_and_2_may_take_more_iterations_than_step_3() -> None:
    taken: list[tuple[str, int]] = []

    class Counting(CafeState):
        def first(self, iteration: int) -> float:
            taken.append(("I", iteration))
            return 0.0

        def second(self, iteration: int) -> float:
            taken.append(("II", iteration))
            return 0.0

    attack = Cafe(iterations=2, earlier=3)
    third = list(attack._steps(Counting(attack, MatchingServer(pictures()[1]), generator())))
    assert taken == [("I", 0), ("I", 1), ("I", 2), ("II", 0), ("II", 1), ("II", 2)]
    assert third == [0, 1]
    with pytest.raises(BadInput, match="expected no value for a single loop"):
        CafeSingleLoop(earlier=3)


def test_table_9_is_at_hand() -> None:
    attack = CafeSingleLoop.for_data("linnaeus5", iterations=7)
    assert (attack.iterations, attack.rates, attack.xi) == (7, (5e-3, 5e-3, 1e-2), 110)
    assert isinstance(attack, CafeSingleLoop)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"iterations": 0}, "iterations: expected a whole number"),
        ({"earlier": 0}, "earlier: expected a whole number"),
        ({"rates": (1e-2, 1e-2)}, "expected one for each of three steps, got 2"),
        ({"first_step": "newton"}, "first_step: expected one of sgd, adam"),
        ({"gamma": -1.0}, "gamma: expected a number of at least 0"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        Cafe(**wrong)


@pytest.mark.parametrize("defence", ["hidden_indices", "secure_aggregation"])
@pytest.mark.parametrize("name", [n for n, attack in attacks().items() if isinstance(attack, ServerAttack)])
def test_what_cannot_be_matched_is_not_tried(name: str, defence: str) -> None:
    federation = split_at_random(made_table(rows=24), 4, np.random.default_rng(0))
    protocol = defence_named(defence).protect(SplitTraining(width=8, outputs=4, batch_size=6, rounds=8))
    view = cut(protocol.train(federation, federation, np.random.default_rng(0)), THREATS["coordinator"])
    guess = attack_named(name).run(view, np.random.default_rng(0))
    assert guess.untried
    assert guess.values is not None
    assert (guess.values == 0.5).all()
    assert guess.labels is not None
    assert (guess.labels == -1).all()


def test_a_server_that_colludes_matches_by_the_rows_that_were_taken() -> None:
    federation = split_at_random(made_table(rows=24), 3, np.random.default_rng(0))
    protocol = HiddenIndices().protect(SplitTraining(width=8, outputs=4, batch_size=6, rounds=8))
    view = cut(protocol.train(federation, federation, np.random.default_rng(0)), THREATS["corrupted-coordinator"])
    assert not Dlg(iterations=2).run(view, np.random.default_rng(0)).untried


@pytest.mark.parametrize("defence", ["dp_gradients", "fake_gradients", "quantised_gradients", "sparse_gradients"])
def test_gradients_that_a_defence_changed_are_not_taken_for_safety(defence: str) -> None:
    """What is matched then is not what was computed: that nothing comes out means nothing, what does come out counts."""
    federation = split_at_random(made_table(rows=24), 4, np.random.default_rng(0))
    protocol = defence_named(defence).protect(SplitTraining(width=8, outputs=4, batch_size=6, rounds=8))
    view = cut(protocol.train(federation, federation, np.random.default_rng(0)), THREATS["coordinator"])
    guess = Dlg(iterations=2).run(view, np.random.default_rng(0))
    assert "defence" in guess.untried
    assert guess.values is not None
    assert np.ptp(guess.values, axis=0).any()
