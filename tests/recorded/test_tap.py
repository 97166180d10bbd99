"""A tap hears what crosses the cut of a loop, changes nothing, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import plumbob
from plumbob.attacks import attack_named
from plumbob.errors import BadInput
from plumbob.federation import Federation, Party
from plumbob.known_defences import KnownDeeperCut, KnownGaussianMasking
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.recorded.open_recording import open_recorded
from plumbob.recorded.seals import accuracy_of
from plumbob.recorded.torch_modules import linear
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Message, Transcript
from tests.recorded.loops import EXAMPLES, World, example


def recorded(world: World, **settings: object) -> Transcript:
    with plumbob.tap(**world.settings, **settings) as tap:
        world.train()
    return tap.transcript


def of(log: Transcript, name: str, phase: str = "train") -> list[Message]:
    return [message for message in log.messages if message.name == name and message.phase == phase]


def test_training_is_the_same_bit_for_bit_with_and_without_the_tap() -> None:
    bare, tapped = World(), World()
    torch.manual_seed(7)
    bare.train()
    after = torch.rand(3)
    torch.manual_seed(7)
    with plumbob.tap(**tapped.settings):
        tapped.train()
    assert tapped.state() == bare.state()
    assert torch.equal(torch.rand(3), after)  # and no random number was drawn


def test_messages_are_those_of_split_network_round_by_round() -> None:
    world = World()
    log = recorded(world)
    assert log.protocol == "split_network"
    one = ["rows", "rows", "outputs", "outputs", "output gradients", "output gradients"]
    train = [m for m in log.messages if m.phase == "train"]
    assert [m.name for m in train] == one * 6
    assert [m.round for m in train] == [number for number in range(6) for _ in one]
    built_in = SplitNetwork(hidden=(6,), epochs=2, batch_size=40).train(*_federations(world), np.random.default_rng(0))
    assert [(m.header, m.payload.shape) for m in log.messages] == [
        (m.header, m.payload.shape) for m in built_in.messages
    ]


def _federations(world: World) -> tuple[Federation, Federation]:
    with plumbob.tap(**world.settings) as tap:
        pass
    return tap.federation, tap.federation.rows(np.arange(50))


def test_rows_are_found_without_being_told() -> None:
    world = World()
    log = recorded(world)
    expected = [batch.numpy() for epoch in range(2) for batch in world.batches(seed=epoch)]
    for party in ("shop", "club"):
        told = [m.payload for m in of(log, "rows") if m.receiver == party]
        assert all(np.array_equal(a, b) for a, b in zip(told, expected, strict=True))


def test_outputs_and_gradients_are_what_the_loop_had() -> None:
    shop, club, label = map(torch.from_numpy, ((world := World()).shop, world.club, world.label))
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    with plumbob.tap(**world.settings) as tap:
        for batch in world.batches():
            sent = world.bottoms["shop"](shop[batch])
            sent.retain_grad()
            nn.functional.cross_entropy(world.top(sent + world.bottoms["club"](club[batch])), label[batch]).backward()
            seen.append((sent.detach().numpy(), sent.grad.numpy()))
    outputs = [m.payload for m in of(tap.transcript, "outputs") if m.sender == "shop"]
    gradients = [m.payload for m in of(tap.transcript, "output gradients") if m.receiver == "shop"]
    for (sent, gradient), output, returned in zip(seen, outputs, gradients, strict=True):
        assert np.array_equal(sent, output)
        assert np.array_equal(gradient, returned)


def test_gradients_that_a_loop_hands_over_itself_are_heard() -> None:
    """The other usual form: the active party works on a detached copy, and hands the gradient back."""
    world = World()
    shop, label = torch.from_numpy(world.shop), torch.from_numpy(world.label)
    settings = {**world.settings, "passive": {"shop": world.bottoms["shop"]}, "columns": {"shop": world.shop}}
    with plumbob.tap(**settings) as tap:
        outputs = world.bottoms["shop"](shop)
        copy = outputs.detach().requires_grad_()
        nn.functional.cross_entropy(world.top(copy), label).backward()
        outputs.backward(copy.grad)
    (heard,) = of(tap.transcript, "output gradients")
    assert np.array_equal(heard.payload, copy.grad.numpy())


def test_parameters_written_past_torchs_counters_are_seen() -> None:
    """Averages of weights are often swapped in by `.data`: what was predicted before is no embedding of the final model."""
    world = World()
    shop = torch.from_numpy(world.shop)
    settings = {**world.settings, "passive": {"shop": world.bottoms["shop"]}, "columns": {"shop": world.shop}}
    with plumbob.tap(**settings) as tap:
        world.bottoms["shop"].eval()
        with torch.no_grad():
            world.bottoms["shop"](shop)
        for parameter in world.bottoms["shop"].parameters():
            parameter.data.add_(1.0)
    with torch.no_grad():
        final = world.bottoms["shop"](shop).numpy()
    (sent,) = of(tap.transcript, "embeddings", "predict")
    assert np.allclose(sent.payload, final)


def test_the_tap_predicts_where_the_loop_does_not_and_says_so() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train()
        modes = [part.training for module in world.modules for part in module.modules()]
    assert [part.training for module in world.modules for part in module.modules()] == modes
    assert "the tap ran the bottom model of 'shop', 'club' once" in " ".join(tap.remarks)
    expected = world.predict(size=4_096)
    for name, cells in expected.items():
        (sent,) = [m for m in of(tap.transcript, "embeddings", "predict") if m.sender == name]
        assert np.array_equal(sent.payload, cells)


def test_predictions_of_the_loop_are_taken_as_they_are() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train()
        said = world.predict()
    assert tap.remarks == ()
    for name, cells in said.items():
        (sent,) = [m for m in of(tap.transcript, "embeddings", "predict") if m.sender == name]
        assert np.array_equal(sent.payload, cells)


def test_after_predict_every_pass_is_prediction() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train()
        tap.predict()
        said = {n: world.bottoms[n](torch.from_numpy(t)) for n, t in (("shop", world.shop), ("club", world.club))}
    assert len({m.round for m in of(tap.transcript, "outputs")}) == 6
    (sent,) = [m for m in of(tap.transcript, "embeddings", "predict") if m.sender == "shop"]
    assert np.array_equal(sent.payload, said["shop"].detach().numpy())


def test_a_prediction_before_the_last_round_is_a_message_but_not_the_embeddings() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train(epochs=1)
        early = world.predict()
        world.train(epochs=1)
    log = tap.transcript
    assert np.array_equal(of(log, "outputs", "predict")[0].payload, early["shop"])
    names = [(m.phase, m.name) for m in log.messages]
    assert names.index(("predict", "outputs")) < len(names) - names[::-1].index(("train", "outputs"))
    assert not np.array_equal(of(log, "embeddings", "predict")[0].payload, early["shop"])


def test_a_party_that_was_predicted_in_part_is_asked_and_the_others_are_not() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train()
        said = world.predict()
        with torch.no_grad():
            world.bottoms["shop"][0].weight.add_(1)
            world.bottoms["shop"](torch.from_numpy(world.shop[:60]))
    assert "the tap ran the bottom model of 'shop' once" in " ".join(tap.remarks)
    shop, club = of(tap.transcript, "embeddings", "predict")
    assert np.array_equal(club.payload, said["club"])
    assert np.array_equal(shop.payload, world.predict(size=4_096)["shop"])
    assert [len(m.payload) for m in of(tap.transcript, "outputs", "predict")] == [120, 60]


def test_outputs_of_different_parameters_never_make_one_embedding() -> None:
    """A loop that trains in prediction mode: no pass looks like training, and parameters change all the while."""
    world = World()
    for module in world.modules:
        module.train = lambda mode=True: None
        for part in module.modules():
            part.training = False
    with plumbob.tap(**world.settings) as tap:
        world.train()
    (sent,) = [m for m in of(tap.transcript, "embeddings", "predict") if m.sender == "shop"]
    assert np.array_equal(sent.payload, world.bottoms["shop"](torch.from_numpy(world.shop)).detach().numpy())
    assert "no training round was recorded" in " ".join(tap.remarks)


def test_truths_and_numbers_in_one_frame_are_what_the_module_is_given() -> None:
    world = World()
    frame = pd.DataFrame(world.shop, columns=["a", "b", "c", "member"]).astype({"member": bool})
    with plumbob.tap(**{**world.settings, "columns": {"shop": frame, "club": world.club}}) as tap:
        world.train()
    assert not any("not found" in remark for remark in tap.remarks)


def test_accuracy_is_what_the_user_says() -> None:
    with plumbob.tap(**World().settings) as tap:
        tap.accuracy(0.75)
    assert accuracy_of(tap.transcript) == 0.75
    with pytest.raises(BadInput, match="a share from 0 to 1"):
        plumbob.tap(**World().settings).accuracy(75)


def test_a_table_that_the_module_cannot_be_given_is_refused() -> None:
    world = World()
    tap = plumbob.tap(**world.settings, inputs={"shop": world.shop[:, :3]})

    def run() -> None:
        with tap:
            world.train()

    with pytest.raises(BadInput, match=r"cannot be run over its table of \(120, 3\)"):
        run()
    assert not any(part._forward_hooks for module in world.modules for part in module.modules())


def test_pictures_are_flat_columns_and_whole_inputs() -> None:
    pictures = np.random.default_rng(0).random((60, 1, 4, 4)).astype(np.float32)
    bottom = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())
    with plumbob.tap(active="bank", passive={"eye": bottom}, columns={"eye": pictures}, label=np.arange(60) % 2) as tap:
        with torch.inference_mode():
            bottom.eval()(torch.from_numpy(pictures[:30]))
        bottom.train()(torch.from_numpy(pictures[[4, 2]])).sum().backward()
    assert tap.transcript.sealed("eye")["columns"].shape == (60, 16)
    assert [m.payload.tolist() for m in of(tap.transcript, "rows")] == [[4, 2]]
    assert of(tap.transcript, "embeddings", "predict")[0].payload.shape == (60, 8)


def test_rows_of_other_people_are_counted() -> None:
    world = World()
    with plumbob.tap(**world.settings) as tap:
        world.train()
        with torch.no_grad():
            world.bottoms["shop"].eval()(torch.full((3, 4), 9.0))
    assert "3 prediction outputs were of rows not in the table" in " ".join(tap.remarks)


def test_rows_can_be_told_where_inputs_are_changed_on_the_way() -> None:
    world = World()
    shop = torch.from_numpy(world.shop)
    settings = {**world.settings, "passive": {"shop": world.bottoms["shop"]}, "columns": {"shop": world.shop}}
    with plumbob.tap(**settings) as tap:
        tap.rows(torch.tensor([5, 3]))
        world.bottoms["shop"](shop[[5, 3]] + 1)
        world.bottoms["shop"](shop[[5, 3]] + 1)
    assert [m.payload.tolist() for m in of(tap.transcript, "rows")] == [[5, 3], [-1, -1]]
    assert "2 training rows were not found in the table of 'shop'" in " ".join(tap.remarks)


def test_wrong_rows_are_refused() -> None:
    world = World()
    three = torch.from_numpy(world.shop[:3])
    with plumbob.tap(**world.settings) as tap:
        tap.rows([1, 2])
        with pytest.raises(BadInput, match="2 were named, but the module of 'shop' was given 3"):
            world.bottoms["shop"](three)
        with pytest.raises(BadInput, match="from 0 to 119"):
            tap.rows([120])


def test_twins_are_told_apart_by_another_party_or_said_to_be_twins() -> None:
    world = World()
    world.shop[:, :] = np.arange(120)[:, None] // 2  # everybody has a twin at the shop
    log = recorded(world)
    expected = [batch.numpy() for epoch in range(2) for batch in world.batches(seed=epoch)]
    assert all(np.array_equal(m.payload, e) for m, e in zip(of(log, "rows")[::2], expected, strict=True))
    world.club[:] = np.arange(120)[:, None] // 2
    with plumbob.tap(**world.settings) as tap:
        world.train()
    assert "240 training rows have duplicates in the table of 'shop'" in " ".join(tap.remarks)


def test_an_error_in_the_loop_goes_on_and_no_hook_is_left() -> None:
    world = World()
    tap, outputs = plumbob.tap(**world.settings), []

    def broken() -> None:
        with tap:
            outputs.append(world.bottoms["shop"](torch.from_numpy(world.shop)))
            assert outputs[0]._backward_hooks
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert not any(part._forward_hooks for module in world.modules for part in module.modules())
    assert not outputs[0]._backward_hooks
    with pytest.raises(BadInput, match="no transcript yet"):
        _ = tap.transcript


def test_no_hook_is_left_after_a_run() -> None:
    world = World()
    log = recorded(world)
    count = len(log.messages)
    world.train()
    assert not any(part._forward_hooks for module in world.modules for part in module.modules())
    assert len(log.messages) == count


def test_memory_is_bounded_and_embeddings_are_kept_whole() -> None:
    world = World(rows=2_000)
    world.bottoms = {"shop": nn.Linear(4, 100), "club": nn.Linear(2, 100)}
    world.top = nn.Linear(100, 2)
    with plumbob.tap(**world.settings, archive_mb=1) as tap:
        world.train()
    log = tap.transcript
    assert sum(m.payload.nbytes for m in log.messages if m.phase == "train") <= 1_000_000
    assert sum(m.nbytes for m in log.messages if m.phase == "train") > 4 * 2_000 * 100 * 4
    assert of(log, "embeddings", "predict")[0].payload.shape == (2_000, 100)
    assert "beyond 'archive_mb'" in " ".join(tap.remarks)


def test_columns_are_sealed_scaled_and_named() -> None:
    world = World()
    frame = pd.DataFrame(world.shop, columns=["a", "b", "c", "member"])
    frame["member"] = np.where(frame["member"] == 1, "yes", "no")
    settings = {**world.settings, "columns": {"shop": frame, "club": 5 + 3 * world.club}}
    with plumbob.tap(**settings, inputs={"shop": world.shop, "club": world.club}) as tap:
        world.train()
    log = tap.transcript
    assert [f.name for f in log.features][:4] == ["shop.a", "shop.b", "shop.c", "shop.member"]
    assert log.features[4].name == "club.column_1"
    assert log.features[3].column.kind == "binary"
    assert np.array_equal(log.sealed("shop")["columns"][:, 3], world.shop[:, 3])
    assert log.sealed("club")["columns"].min() == 0
    assert np.array_equal(log.sealed("bank")["label"], world.label)


def changed(**changes: object) -> dict[str, object]:
    return {**World().settings, **changes}


REFUSED = {
    "a tensor": (changed(passive={"shop": torch.zeros(3), "club": nn.Linear(2, 6)}), "expected a torch.nn.Module"),
    "one module for two": (changed(passive=dict.fromkeys(("shop", "club"), nn.Linear(4, 6))), "share one module"),
    "no module": (changed(passive={"shop": nn.Linear(4, 6)}), "party 'club' has columns but no module"),
    "no columns": (changed(columns={"shop": np.ones((120, 2))}), "party 'club' has a module but no columns"),
    "nobody": (changed(passive={}), "at least one party"),
    "both": (changed(active="shop"), "as both the active and a passive party"),
    "a short label": (changed(label=np.arange(10) % 2), "align them first"),
    "a label of many values": (changed(label=np.arange(120.0)), "too many for classes"),
    "one class": (changed(label=np.zeros(120)), "only one value"),
    "words": (
        changed(columns={"shop": pd.DataFrame({"member": ["yes", "no"] * 60}), "club": World().club}),
        "'member' is not numeric",
    ),
    "short inputs": (changed(inputs={"shop": np.ones((3, 4))}), "numbers for 120 rows"),
    "no room": (changed(archive_mb=0), "archive_mb"),
    "a defence of scores": (changed(defence={"rounding": {}}), "'rounding' is not a defence of the cut layer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tapped_is_refused_in_one_sentence(case: str) -> None:
    settings, words = REFUSED[case]
    with pytest.raises(BadInput, match=words):
        plumbob.tap(**settings)


def test_a_module_that_returns_no_tensor_is_refused() -> None:
    class Two(nn.Module):
        def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return values, values

    module = Two()
    settings = changed(passive={"shop": module}, columns={"shop": World().shop})
    with pytest.raises(BadInput, match="returns tuple, expected one tensor"), plumbob.tap(**settings):
        module(torch.zeros(2, 4))
    assert not module._forward_hooks


def test_a_tap_is_for_one_run() -> None:
    tap = plumbob.tap(**World().settings)
    with pytest.raises(BadInput, match="is not active"):
        tap.finish()
    with tap:
        pass
    with pytest.raises(BadInput, match="one run"), tap:
        pass


def test_a_known_defence_of_the_loop_reaches_the_attacker() -> None:
    log = recorded(World(), defence={"gaussian_masking": {"sigma": 0.5}})
    assert cut(log, THREATS["active-training"]).defence[KnownGaussianMasking].sigma == 0.5


def test_the_package_is_imported_without_torch() -> None:
    script = "import sys, plumbob; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; plumbob.tap"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_bottom_of_several_layers_is_known_to_be_one() -> None:
    """An attacker who took it for a linear one would find nothing, and the report would be too kind."""
    rng, rows = np.random.default_rng(0), 300
    shop = np.column_stack([rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)]).astype(np.float32)
    torch.manual_seed(0)
    bottom = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16))
    settings = {"active": "bank", "passive": {"shop": bottom}, "columns": {"shop": shop}, "label": np.arange(rows) % 2}
    with plumbob.tap(**settings) as tap:
        bottom(torch.from_numpy(shop)).sum().backward()
    view = cut(tap.transcript, THREATS["active-training"])
    assert KnownDeeperCut in view.defence
    assert "not a single linear layer" in " ".join(tap.remarks)
    guess = attack_named("binary_columns").run(view, np.random.default_rng(0))
    right = np.mean(guess.vectors == shop[:, 3:], axis=0)
    assert np.abs(right - 0.5).max() > 0.4


def test_linear_bottoms_are_told_from_others_whatever_the_scale() -> None:
    rng = np.random.default_rng(0)
    inputs = (rng.normal(size=(500, 6)) * 10.0 ** np.arange(6)).astype(np.float32)
    outputs = (inputs @ rng.normal(size=(6, 9)) + 3).astype(np.float32)
    assert linear(inputs, outputs)
    assert not linear(inputs, np.tanh(outputs / 1e5))
    assert linear(inputs[:5], np.tanh(outputs[:5]))  # nothing can be told


def _members(view: View, federation: Federation) -> tuple[np.ndarray, np.ndarray]:
    """What binary columns finds, with 0 in the first row, and the shop's true yes/no column, the same."""
    guess = attack_named("binary_columns").run(view, np.random.default_rng(0))
    assert guess.vectors is not None
    member = federation["shop"].values[:, [column.name for column in federation["shop"].columns].index("member")]
    return np.abs(guess.vectors - guess.vectors[0]), np.abs(member - member[0])


def test_the_example_gives_away_what_the_built_in_protocol_gives_away(tmp_path) -> None:
    loop = example()
    shop, bank, default = loop.load(EXAMPLES / "bank.csv", EXAMPLES / "shop.csv")
    shop_rows, bank_rows = loop.standardised(shop), loop.standardised(bank)
    torch.manual_seed(0)
    shop_bottom, bank_bottom, top = loop.networks(4, bank_rows.shape[1])
    settings = {"columns": {"bank": bank, "shop": shop}, "inputs": {"shop": shop_rows}, "label": default}
    with plumbob.tap(active="bank", passive={"shop": shop_bottom}, **settings) as tap:
        loop.train(shop_bottom, bank_bottom, top, shop_rows, bank_rows, torch.tensor(default == "yes").long(), epochs=5)
    federation = tap.federation
    parties = tuple(Party(party.name, party.columns, party.values) for party in federation.parties)
    same = Federation(parties, "bank", federation.label, federation.classes)
    built_in = SplitNetwork(hidden=(16, 8), batch_size=32, epochs=5).train(same, same, np.random.default_rng(0))
    threat = THREATS["active-training"]
    found, member = _members(cut(tap.transcript, threat), federation)
    also_found, _ = _members(cut(built_in, threat), federation)
    assert found.shape[1] == also_found.shape[1] == 1
    assert np.array_equal(found, also_found)
    assert np.array_equal(found[:, 0], member)
    tap.transcript.save(tmp_path / "run.zip")
    again, _ = _members(cut(open_recorded(tmp_path / "run.zip"), threat), federation)
    assert np.array_equal(again, found)
