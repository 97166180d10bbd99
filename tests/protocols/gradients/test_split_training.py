"""Split training: what crosses is what the algebra says, kept whole or in part, and wrong settings are one sentence."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from plumbob.attacks.gradients._worker_uploads import Uploads
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.defences.gradients.dp_gradients import DpGradients
from plumbob.errors import BadInput
from plumbob.federation import Federation, split_at_random, split_into_tiles
from plumbob.protocols.gradients._round_archive import _some
from plumbob.protocols.gradients.split_training import TOP, SplitTraining
from plumbob.protocols.shared.networks import NetworkPlan, first_linear
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import COORDINATOR, Transcript
from plumbob.trust import NO_CODE, Trust
from tests.test_cli import plumbob, refused
from tests.worlds import made_pictures, made_table

CODE = Trust(code=True)  # networks of these tests are code of another package


def table() -> Federation:
    return split_at_random(made_table(120), 4, np.random.default_rng(0))


def trained(protocol: SplitTraining, federation: Federation | None = None, rows: int = 40) -> Transcript:
    whole = table() if federation is None else federation
    rest = whole.rows(np.arange(rows, len(whole)))
    return protocol.trusting(CODE).train(whole.rows(np.arange(rows)), rest, np.random.default_rng(1))


def no_linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, shape[0])), nn.Conv1d(1, outputs, shape[0]), nn.Flatten())


def normalised(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(shape[0]), nn.Linear(shape[0], outputs))


def dropping(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(shape[0], outputs))


def too_narrow(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Linear(shape[0], outputs - 1)


def too_deep(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Linear(shape[0] + 1, outputs)


def unused(shape: tuple[int, ...], outputs: int) -> nn.Module:
    made = nn.Linear(shape[0], outputs)
    made.register_parameter("spare", nn.Parameter(torch.zeros(3)))
    return made


def frozen(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Linear(shape[0], outputs).requires_grad_(False)


def without_parameters(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.AdaptiveAvgPool1d(outputs)


def nothing(shape: tuple[int, ...], outputs: int) -> None:
    return None


def raising(shape: tuple[int, ...], outputs: int) -> nn.Module:
    raise ZeroDivisionError("boom")


HERE = "tests.protocols.gradients.test_split_training"


def test_a_batch_gradient_is_the_mean_of_its_rows_gradients() -> None:
    log = trained(SplitTraining(width=8, outputs=3, batch_size=5, rounds=1, double=True))
    uploads = Uploads(cut(log, THREATS["coordinator"]))
    modules = {name: uploads.module(name).requires_grad_(True) for name in (*log.parties, TOP)}
    columns = {name: torch.from_numpy(np.array(log.sealed(name)["columns"])) for name in log.parties}
    label = torch.from_numpy(np.array(log.sealed("active")["label"]))
    total: dict[str, torch.Tensor] = {}
    for row in uploads.batches[0]:
        outputs = [modules[name](columns[name][[row]]) for name in log.parties]
        loss = nn.functional.cross_entropy(modules[TOP](torch.stack(outputs, dim=1)), label[[row]])
        for name, module in modules.items():
            for key, p in module.named_parameters():
                (g,) = torch.autograd.grad(loss, p, retain_graph=True)
                total[f"{name}/{key}"] = total.get(f"{name}/{key}", 0) + g / 5
    for name, expected in total.items():
        party, key = name.split("/")
        assert np.allclose(uploads.gradients(party, key).values[0], expected.numpy().ravel(), atol=1e-12)


def test_the_server_sees_neither_outputs_nor_label() -> None:
    view = cut(trained(SplitTraining(width=8, batch_size=5, rounds=3)), THREATS["coordinator"])
    assert view.own.shape == (40, 0)
    assert not {m.name for m in view.messages} & {"outputs", "output gradients"}
    assert {m.name.split("/")[0] for m in view.messages} == {"network", "parameter", "rows", "gradient"}


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.3), ("adam", 0.01)])
def test_the_loss_falls(optimizer: str, rate: float) -> None:
    log = trained(SplitTraining(width=16, batch_size=10, rounds=300, optimizer=optimizer, learning_rate=rate))
    losses = log.sealed(COORDINATOR)["training loss"]
    assert losses[-30:].mean() < 0.8 * losses[:30].mean()
    assert 0 <= log.sealed(COORDINATOR)["test accuracy"][0] <= 1


def test_a_warm_up_trains_before_the_first_round_and_changes_no_batch() -> None:
    settings = {"width": 16, "batch_size": 10, "rounds": 6, "learning_rate": 0.01}
    cold, warm = (trained(SplitTraining(**settings, warm_up=epochs)) for epochs in (0, 60))
    before, after = (log.sealed(COORDINATOR)["training loss"] for log in (cold, warm))
    assert after.mean() < 0.5 * before.mean()
    view = cut(warm, THREATS["coordinator"])
    assert Uploads(view).static
    assert all(map(np.array_equal, Uploads(view).batches, Uploads(cut(cold, THREATS["coordinator"])).batches))
    assert {m.round for m in warm.messages if m.phase == "train"} == set(range(6))


def test_a_warm_up_that_diverges_is_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"warm_up: training diverged in epoch \d+: .* smaller than 1e\+12 may help"):
        trained(SplitTraining(width=8, batch_size=10, rounds=2, warm_up=50, learning_rate=1e12))
    with pytest.raises(BadInput, match="warm_up: expected a whole number from 0 to 100,000, got -1"):
        SplitTraining(warm_up=-1)


def test_static_parameters_are_sent_once() -> None:
    log = trained(SplitTraining(width=8, batch_size=5, rounds=4))
    sent = [m.round for m in log.messages if m.name.startswith("parameter/")]
    assert set(sent) == {0}
    assert Uploads(cut(log, THREATS["coordinator"])).static


def test_sixteen_workers_hold_a_tile_each_and_send_gradients_of_their_own() -> None:
    pictures = split_into_tiles(made_pictures(10, side=16), 16)
    log = trained(SplitTraining(width=4, outputs=2, batch_size=5, rounds=2), pictures, 8)
    tiles = [f"tile_{number + 1}" for number in range(16)]
    held = [c.place for name in tiles for c in pictures[name].columns]
    assert sorted(held) == sorted((0, y, x) for y in range(16) for x in range(16))
    senders = {m.sender for m in log.messages if m.name.startswith("gradient/")}
    assert senders == {*tiles, "server"}


@pytest.mark.parametrize("batches", ["random", "epochs"])
def test_batches_hold_different_rows_of_the_table(batches: str) -> None:
    log = trained(SplitTraining(width=8, batch_size=10, rounds=8, batches=batches))
    uploads = Uploads(cut(log, THREATS["coordinator"]))
    assert all(len(set(rows.tolist())) == 10 for rows in uploads.batches)
    if batches == "epochs":
        assert sorted(np.concatenate(uploads.batches[:4]).tolist()) == list(range(40))


def test_what_is_not_kept_is_counted_and_chained(tmp_path: Path) -> None:
    pictures = split_into_tiles(made_pictures(40, side=16), 4)
    protocol = SplitTraining(width=16, outputs=4, batch_size=5, archive_mb=1)
    log = trained(protocol, pictures, 20)
    everything = trained(SplitTraining(width=16, outputs=4, batch_size=5), pictures, 20)
    assert log.bytes_sent() == everything.bytes_sent()
    assert sum(m.payload.nbytes for m in log.messages) < 0.7 * everything.bytes_sent()
    log.save(tmp_path / "log.zip")
    loaded = Transcript.load(tmp_path / "log.zip")
    assert [m.link for m in loaded.messages] == [m.link for m in log.messages]
    assert loaded.bytes_sent() == log.bytes_sent()
    view = cut(log, THREATS["coordinator"])
    view.save(tmp_path / "view.zip")
    again = Uploads(View.load(tmp_path / "view.zip"))
    for key in ("3.weight", "0.weight"):
        one, two = (u.gradients("tile_1", key) for u in (Uploads(view), again))
        assert (one.values == two.values).all()
        whole = Uploads(cut(everything, THREATS["coordinator"])).gradients("tile_1", key)
        assert (whole.values[:, one.cells] == one.values).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"network": "resnet"}, "no network 'resnet'"),
        ({"network": "no.such:thing"}, "No module named"),
        ({"batch_size": 0}, "batch_size"),
        ({"optimizer": "newton"}, "optimizer"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"batches": "all"}, "batches"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SplitTraining(**settings).trusting(CODE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (f"{HERE}:too_narrow", r"of 'active': expected 10 outputs .* got shape \(2, 9\)"),
        (f"{HERE}:too_deep", r"does not accept inputs of shape \(4,\)"),
        (f"{HERE}:unused", "do not depend on parameter 'spare'"),
        (f"{HERE}:frozen", "do not depend on parameter 'weight'"),
        (f"{HERE}:without_parameters", "it has no parameters"),
        (f"{HERE}:nothing", "expected a torch.nn.Module, got NoneType"),
        (f"{HERE}:raising", r"expected a function .*ZeroDivisionError: boom"),
        ("torch.nn:Linear", "expected a function of the inputs' shape"),
        ("sum", "network 'sum' of 'active': it does not accept inputs of shape"),
    ],
)
def test_networks_of_ones_own_that_do_not_fit_are_one_sentence(network: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        trained(SplitTraining(network=network, batch_size=5))


def test_trying_a_network_leaves_it_as_it_was() -> None:
    plan = NetworkPlan("active", f"{HERE}:normalised", (4,), 3, 8)
    module = plan.tried(CODE)
    first_linear(module, torch.zeros(1, 4))
    assert all(part.training for part in module.modules())
    assert int(module.state_dict()["1.num_batches_tracked"]) == 0


def test_batch_normalisation_is_trained_and_said_to_be_untried() -> None:
    log = trained(SplitTraining(network=f"{HERE}:normalised", outputs=3, batch_size=5))
    guess = GradientPeeling().run(cut(log, THREATS["coordinator"], CODE), np.random.default_rng(0))
    assert "BatchNorm1d in the network of 'active' mixes rows" in guess.untried


@pytest.mark.parametrize(
    ("network", "settings", "words"),
    [
        ("normalised", {"batch_size": 1}, "BatchNorm1d in the network of 'active' needs at least 2 rows, got 1"),
        ("normalised", {"guards": [DpGradients()]}, "BatchNorm1d, which mixes rows"),
        ("dropping", {"guards": [DpGradients()]}, "does not support per-row gradients"),
    ],
)
def test_rows_without_gradients_of_their_own_are_refused(network: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        trained(SplitTraining(**{"network": f"{HERE}:{network}", "batch_size": 5} | settings))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_that_diverges_is_said(optimizer: Any) -> None:
    protocol = SplitTraining(width=8, batch_size=5, rounds=30, optimizer=optimizer, learning_rate=1e12)
    with pytest.raises(BadInput, match=r"training diverged in round \d+: .* smaller than 1e\+12 may help"):
        trained(protocol)


def test_no_party_is_called_as_the_top_network() -> None:
    federation = table()
    parties = tuple(replace(party, name=TOP if party.name == "passive" else party.name) for party in federation.parties)
    with pytest.raises(BadInput, match="a party cannot be called 'top'"):
        trained(SplitTraining(width=8, batch_size=5), replace(federation, parties=parties))


def test_a_batch_larger_than_the_table_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be drawn"):
        trained(SplitTraining(batch_size=50))


def test_a_network_without_a_fully_connected_layer_is_refused_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "data: breast\nunknown: [0.5]\ntrials: 1\nrows: 60\nthreats: [coordinator]\nattacks: [gradient_peeling]\n"
        f"protocols:\n  - name: split_training\n    settings: {{network: '{HERE}:no_linear'}}\n"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = ("audit", "plan.yaml", "--out", "out")
    assert "pass --trust-code" in refused(plumbob(*command, cwd=tmp_path, env=here))
    assert not (tmp_path / "out").exists()
    assert "no fully connected layer" in refused(plumbob(*command, "--trust-code", cwd=tmp_path, env=here))


def test_an_attack_that_does_not_fit_a_network_leaves_the_others_to_it() -> None:
    settings = {"network": f"{__name__}:no_linear", "batch_size": 10, "rounds": 8}
    raw = {
        "data": "breast",
        "unknown": [0.5],
        "trials": 1,
        "rows": 50,
        "threats": ["coordinator"],
        "attacks": ["gradient_peeling", {"name": "dlg", "preset": "small"}],
        "protocols": [{"name": "split_training", "settings": settings}],
    }
    plan = make_plan(raw, trust=CODE).filled()
    peeling, dlg = attacked(run(plan, replace(open_source(plan.data, 0), trust=CODE)))
    assert "no fully connected layer" in peeling.score.untried
    assert not dlg.score.untried


def test_networks_of_other_packages_need_trust() -> None:
    with pytest.raises(BadInput, match="code of another package; pass --trust-code"):
        SplitTraining(network="os:system").trusting(NO_CODE)


def test_an_attack_builds_no_network_that_its_caller_does_not_trust() -> None:
    """Not even where the run itself was trusted: a transcript may have been saved by anybody."""
    log = trained(SplitTraining(network=f"{HERE}:normalised", outputs=3, batch_size=5))
    with pytest.raises(BadInput, match="code of another package; pass --trust-code"):
        GradientPeeling().run(cut(log, THREATS["coordinator"]), np.random.default_rng(0))


def test_training_loads_no_network_by_itself() -> None:
    whole = table()
    with pytest.raises(BadInput, match="code of another package; pass --trust-code"):
        SplitTraining(network=f"{HERE}:normalised", batch_size=5).train(whole, whole, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("side", "taps"), [(5, [3, 5, 12, 19, 21]), (3, [1, 3, 4, 5, 7]), (7, [11, 15, 24, 33, 37]), (1, [0])]
)
def test_kept_taps_lie_apart_where_the_kernel_is_wide(side: int, taps: list[int]) -> None:
    """A knight's move from the centre, in all four directions; else its neighbours."""
    assert _some((1, 1, side, side)).tolist() == taps
