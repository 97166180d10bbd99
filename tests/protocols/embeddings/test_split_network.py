"""A network cut at its first layer: what crosses is what the algebra says, masked or not, and wrong settings are one sentence."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from plumbob.crypto.masking import fixed_point, from_generator, from_system, opened_sum, pairwise_masks
from plumbob.errors import BadInput
from plumbob.federation import Federation, split, split_into_tiles
from plumbob.known_defences import KnownDefences
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.embeddings._sealed_parts import LABEL, OWN_BOTTOM, TOP
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.protocols.shared.row_means import MEAN, TIMES
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript
from plumbob.trust import NO_CODE, Trust
from tests.worlds import made_pictures, made_table

CODE = Trust(code=True)  # networks of these tests are code of another package

SMALL: dict[str, Any] = {"hidden": (12, 6), "epochs": 3, "batch_size": 30}


def parties(passive: int = 1, rows: int = 160, seed: int = 0) -> Federation:
    """Eight columns: two of the active party, the others dealt out."""
    owners = {"bank": ["c0", "c1"]}
    owners |= {f"shop {i + 1}": [f"c{j}" for j in range(2, 8) if j % passive == i] for i in range(passive)}
    return split(made_table(rows, seed=seed), owners, "bank")


def trained(federation: Federation | None = None, seed: int = 1, **settings: Any) -> Transcript:
    whole = parties() if federation is None else federation
    half = len(whole) // 2
    rest = whole.rows(np.arange(half, len(whole)))
    return (
        SplitNetwork(**SMALL | settings)
        .trusting(CODE)
        .train(whole.rows(np.arange(half)), rest, np.random.default_rng(seed))
    )


@cache
def plain(passive: int = 1) -> Transcript:
    return trained(parties(passive))


@cache
def masked() -> Transcript:
    return trained(parties(3), aggregation="masked")


def sent(log: Transcript, name: str, party: str | None = None) -> list[np.ndarray]:
    return [m.payload for m in log.messages if m.name == name and party in (None, m.sender)]


def own_bottom(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(*shape, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, outputs))


def own_top(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Tanh(), nn.Linear(*shape, outputs))


@pytest.mark.parametrize("passive", [1, 2])
def test_embeddings_are_the_columns_times_the_weights(passive: int) -> None:
    log = plain(passive)
    for party in log.parties[1:]:
        (embeddings,), state = sent(log, "embeddings", party), log.sealed(party)
        assert embeddings.shape == (80, 12)
        assert embeddings.dtype == np.float32
        assert np.allclose(embeddings, state["columns"] @ state["bottom/weight"].T, atol=1e-6)


def test_a_bias_and_64_bits_on_request() -> None:
    log = trained(bias=True, double=True)
    (embeddings,), state = sent(log, "embeddings"), log.sealed("shop 1")
    assert embeddings.dtype == np.float64
    assert np.allclose(embeddings, state["columns"] @ state["bottom/weight"].T + state["bottom/bias"], atol=1e-13)


def test_three_messages_a_round_then_one_question_for_all_rows() -> None:
    log = plain(2)
    assert PROTOCOLS["split_network"] is SplitNetwork
    one = [("bank", "shop 1", "rows"), ("bank", "shop 2", "rows")]
    one += [("shop 1", "bank", "outputs"), ("shop 2", "bank", "outputs")]
    one += [("bank", "shop 1", "output gradients"), ("bank", "shop 2", "output gradients")]
    train = [m for m in log.messages if m.phase == "train"]
    assert [(m.sender, m.receiver, m.name) for m in train] == 9 * one  # 3 epochs of 30, 30 and 20 rows
    assert [m.round for m in train] == [i // 6 for i in range(54)]
    predict = [m for m in log.messages if m.phase == "predict"]
    assert [(m.sender, m.name) for m in predict] == [("bank", "rows")] * 2 + [
        ("shop 1", "embeddings"),
        ("shop 2", "embeddings"),
    ]
    assert predict[0].payload.tolist() == list(range(80))


def test_every_row_is_in_one_batch_of_an_epoch() -> None:
    rows = sent(plain(), "rows")
    assert sorted(np.concatenate(rows[:3]).tolist()) == list(range(80))
    assert [len(batch) for batch in rows[:3]] == [30, 30, 20]


def test_a_passive_party_takes_the_step_of_the_gradients_it_gets() -> None:
    """One round of plain descent: W moves by the rate times (dL/dz)' x."""
    log = trained(batch_size=100, epochs=1, optimizer="sgd", weight_decay=0.0, double=True)
    state = log.sealed("shop 1")
    (outputs,), (above,) = sent(log, "outputs"), sent(log, "output gradients")
    step = 0.1 * above.T @ state["columns"]
    assert np.allclose(outputs, state["columns"] @ (state["bottom/weight"] + step).T, atol=1e-12)


def test_output_gradients_are_those_of_the_mean_loss_at_the_sum() -> None:
    """With a top model that does nothing: (softmax(z) - label) / rows."""
    federation = split_into_tiles(made_pictures(40), 4)
    log = trained(federation, hidden=(3,), top=f"{__name__}:no_top", epochs=1, batch_size=20, double=True)
    scores = np.exp(np.sum(sent(log, "outputs"), axis=0))
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(20), log.sealed("server")["label"]] -= 1
    gradients = sent(log, "output gradients")
    assert len(gradients) == 4
    assert all(np.allclose(g, scores / 20, atol=1e-12) for g in gradients)


@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.5), ("momentum", 0.1), ("rmsprop", 0.002), ("adam", 0.01)])
def test_the_loss_falls_and_the_majority_is_beaten(optimizer: str, rate: float) -> None:
    federation = parties(rows=600)
    log = trained(federation, optimizer=optimizer, learning_rate=rate, epochs=40)
    losses = log.sealed(COORDINATOR)["training loss"]
    assert len(losses) == 40
    assert losses[-5:].mean() < 0.9 * losses[0]
    majority = np.bincount(federation.label[300:]).max() / 300
    assert float(log.sealed(COORDINATOR)["test accuracy"][0]) > majority + 0.05


def test_the_active_party_adds_its_own_columns_with_a_bias() -> None:
    """A label that is its own first column above a threshold, which takes both."""
    table = made_table(600)
    label = (table.values[:, 0] > np.quantile(table.values[:, 0], 0.5)).astype(np.int64)
    noise = np.random.default_rng(0).random((600, 6))
    table = replace(table, values=np.hstack([table.values[:, :2], noise]), label=label, classes=("no", "yes"))
    owners = {"bank": ["c0", "c1"], "shop": [f"c{i}" for i in range(2, 8)]}
    log = trained(split(table, owners, "bank"), epochs=30)
    assert float(log.sealed(COORDINATOR)["test accuracy"][0]) > 0.9


def test_the_rate_falls_after_30_60_and_90_percent_of_the_epochs() -> None:
    """Batches hold all rows, so how outputs move from round to round tells the rate."""
    log = trained(batch_size=100, epochs=10, optimizer="sgd", weight_decay=0.0, double=True)
    outputs = np.array(sent(log, "outputs"))
    above = np.array(sent(log, "output gradients"))
    columns = log.sealed("shop 1")["columns"]
    moved = np.diff(outputs, axis=0)
    expected = np.array([-(columns @ (columns.T @ g)) for g in above[:-1]])
    rates = (moved * expected).sum(axis=(1, 2)) / (expected**2).sum(axis=(1, 2))
    assert np.allclose(rates, [0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001], rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"cut": 2}, {"bottom": f"{__name__}:own_bottom"}], ids=str)
def test_the_same_seed_gives_the_same_transcript(settings: dict[str, Any]) -> None:
    one, two, other = (trained(seed=seed, **settings) for seed in (1, 1, 2))
    assert one.messages[-1].link == two.messages[-1].link
    assert one.messages[-1].link != other.messages[-1].link
    state = torch.get_rng_state()
    trained(**settings)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_deeper_cut_is_not_linear_in_the_columns() -> None:
    log = trained(cut=3, double=True)
    state = log.sealed("shop 1")
    assert {key for key in state if key.startswith("bottom/")} == {f"bottom/{i}.weight" for i in (0, 2, 4)}
    (embeddings,) = sent(log, "embeddings")
    hidden = state["columns"]
    for i in (0, 2):
        hidden = np.maximum(hidden @ state[f"bottom/{i}.weight"].T, 0)
    assert np.allclose(embeddings, hidden @ state["bottom/4.weight"].T, atol=1e-12)


def test_networks_of_ones_own() -> None:
    log = trained(bottom=f"{__name__}:own_bottom", top=f"{__name__}:own_top", double=True)
    state = log.sealed("shop 1")
    (embeddings,) = sent(log, "embeddings")
    hidden = np.tanh(state["columns"] @ state["bottom/0.weight"].T + state["bottom/0.bias"])
    assert np.allclose(embeddings, hidden @ state["bottom/3.weight"].T + state["bottom/3.bias"], atol=1e-12)


def test_pictures_come_to_a_network_of_ones_own_as_pictures() -> None:
    log = trained(split_into_tiles(made_pictures(40, side=16), 4), bottom="cafe")
    assert sent(log, "embeddings", "tile_2")[0].shape == (20, 12)


def test_the_active_party_may_have_no_columns() -> None:
    log = trained(split_into_tiles(made_pictures(40), 4))
    assert len(sent(log, "embeddings")) == 4
    assert np.isfinite(log.sealed(COORDINATOR)["training loss"]).all()


# Masked sums


def test_masked_messages_open_to_the_sum_of_plain_ones() -> None:
    """Training with masks is training without them, up to the fixed point."""
    log = masked()
    assert {m.name for m in log.messages} == {"rows", "masked outputs", "output gradients", "masked embeddings"}
    total = sum(
        log.sealed(party)["columns"] @ log.sealed(party)["bottom/weight"].T.astype(float) for party in log.parties[1:]
    )
    known = cut(log, THREATS["active-training"]).notes["embeddings"]
    assert known.shape == (80, 12)
    assert np.allclose(known, total, atol=1e-6)
    parts = sent(log, "masked embeddings")
    assert np.array_equal(np.ldexp(np.sum(parts, axis=0).astype(float), -32), known)
    assert np.allclose(known, np.sum(sent(plain(3), "embeddings"), axis=0), atol=1e-4)


def test_one_masked_message_looks_uniform() -> None:
    for part in sent(masked(), "masked embeddings") + sent(masked(), "masked outputs")[:3]:
        assert part.dtype == np.int64
        assert abs(float((part > 0).mean()) - 0.5) < 0.12
        assert abs(float(np.mean(part / 2.0**63))) < 0.12
        assert np.std(part / 2.0**63) == pytest.approx(1 / np.sqrt(3), rel=0.1)


def test_masks_are_fresh_and_leave_no_trace_in_the_sums() -> None:
    one, two = masked(), trained(parties(3), aggregation="masked")
    assert not np.array_equal(sent(one, "masked embeddings")[0], sent(two, "masked embeddings")[0])
    notes = [log.sealed("bank")["notes/embeddings"] for log in (one, two)]
    assert np.array_equal(*notes)


def test_the_active_party_keeps_each_rows_mean_of_all_rounds() -> None:
    log = plain(2)
    notes = cut(log, THREATS["active-training"]).notes
    senders = sorted(log.parties[1:])
    own = {LABEL, *(name for name in notes if name.startswith((TOP, OWN_BOTTOM)))}
    assert set(notes) == {f"{word}/{name}" for word in (MEAN, TIMES) for name in senders} | own
    rows = [m.payload for m in log.messages if m.name == "rows" and m.phase == "train" and m.receiver == senders[0]]
    outputs = [m.payload for m in log.messages if m.name == "outputs" and m.sender == senders[0]]
    total = np.zeros_like(notes[f"{MEAN}/{senders[0]}"], dtype=np.float64)
    for batch, cells in zip(rows, outputs, strict=True):
        total[batch] += cells
    times = notes[f"{TIMES}/{senders[0]}"]
    assert np.array_equal(times, np.bincount(np.concatenate(rows), minlength=len(times)))
    assert np.allclose(notes[f"{MEAN}/{senders[0]}"], total / times[:, None], rtol=1e-5, atol=1e-6)


def test_the_mean_is_of_all_rounds_also_where_not_all_messages_are_kept() -> None:
    log = trained(hidden=(400, 6), epochs=20, archive_mb=1)
    outputs = [m for m in log.messages if m.name == "outputs"]
    assert 0 < sum(bool(m.whole) for m in outputs) < len(outputs)
    assert set(log.sealed("bank")[f"notes/{TIMES}/shop 1"]) == {20}


def test_of_masked_outputs_the_mean_is_that_of_the_opened_sums() -> None:
    told = cut(masked(), THREATS["active-training"]).notes[MEAN]
    alone = cut(plain(3), THREATS["active-training"]).notes
    assert np.allclose(told, sum(alone[key] for key in alone if key.startswith(MEAN)), atol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("draw", [from_system, from_generator(np.random.default_rng(0))])
def test_pairwise_masks_cancel_exactly(count: int, draw: Any) -> None:
    names = [str(i) for i in range(count)]
    numbers = np.random.default_rng(1).normal(size=(count, 30, 4)) * 1_000
    masks = pairwise_masks(names, (30, 4), draw)
    parts = [fixed_point(part, 40, "") + masks[name] for name, part in zip(names, numbers, strict=True)]
    assert np.allclose(opened_sum(parts, 40), numbers.sum(axis=0), atol=count * 2.0**-41)


@pytest.mark.parametrize("value", [2.0**40, np.nan, -np.inf])
def test_numbers_that_do_not_fit_are_answered(value: float) -> None:
    with pytest.raises(BadInput, match="too large"):
        fixed_point(np.array([value]), 32, "too large")


# What is kept, and who sees what


def test_what_is_not_kept_is_counted_and_chained(tmp_path: Path) -> None:
    settings = {"hidden": (300,), "epochs": 8, "batch_size": 80}
    log, everything = trained(**settings, archive_mb=1), trained(**settings)
    assert log.bytes_sent() == everything.bytes_sent()
    train = [m for m in log.messages if m.phase == "train"]
    assert sum(m.payload.nbytes for m in train) <= 1e6 < sum(m.nbytes for m in train)
    first = next(i for i, m in enumerate(train) if m.whole)
    assert all(m.whole and m.payload.size == 0 for m in train[first:])
    assert sent(log, "embeddings")[0].shape == (80, 300)
    log.save(tmp_path / "log.zip")
    assert [m.link for m in Transcript.load(tmp_path / "log.zip").messages] == [m.link for m in log.messages]


def test_weights_stay_with_their_party() -> None:
    view = cut(plain(2), THREATS["active-training"])
    own = {LABEL, TOP[:-1], OWN_BOTTOM[:-1]}
    assert {name.partition("/")[0] for name in view.notes} == {MEAN, TIMES} | own  # of what was sent, and its own part
    assert view.model is None
    assert view.received("embeddings").shape == (160, 12)


# Guards


class Watcher:
    """A defence of another package."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, tuple[int, ...]]] = []

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Watcher]:
        assert outline == EmbeddingOutline(80, {"shop 1": 6}, 12, 1, classes=3)
        return Zeros(self)

    def known(self) -> KnownDefences:
        return KnownDefences.named("watcher", {})


class Zeros(EmbeddingGuard[Watcher]):
    """Sends zeros, and writes down who called it with what."""

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        self.defence.calls.append(("inputs", party, tuple(values.shape)))
        return values

    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:
        self.defence.calls.append((phase, party, tuple(outputs.shape)))
        return outputs * 0


def test_a_guard_changes_what_is_sent_and_gradients_pass_straight_through() -> None:
    guard = Watcher()
    settings: dict[str, Any] = {"batch_size": 100, "epochs": 1, "optimizer": "sgd", "weight_decay": 0.0, "double": True}
    log, bare = trained(guards=(guard,), **settings), trained(**settings)
    assert guard.calls == [
        ("inputs", "shop 1", (80, 6)),
        ("train", "shop 1", (80, 12)),
        ("predict", "shop 1", (80, 12)),
        ("inputs", "shop 1", (80, 6)),
        ("predict", "shop 1", (80, 12)),
    ]
    assert not np.any(sent(log, "outputs")[0])
    (first,), (above,), state = sent(bare, "outputs"), sent(log, "output gradients"), log.sealed("shop 1")
    step = 0.1 * above.T @ state["columns"]
    assert np.allclose(first, state["columns"] @ (state["bottom/weight"] + step).T, atol=1e-12)
    assert cut(log, THREATS["active-training"]).defence.names == ("watcher",)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": ()}, "hidden: expected the widths of at least one layer"),
        ({"hidden": 60}, "hidden: expected the widths of at least one layer, got 60"),
        ({"hidden": [60, 0]}, "hidden: expected a whole number from 1"),
        ({"cut": 5}, "cut: expected a whole number from 1 to 4, got 5"),
        ({"bottom": "resnet"}, "no network 'resnet'"),
        ({"top": "no.such:thing"}, "No module named"),
        ({"bias": "no"}, "bias: expected true or false"),
        ({"optimizer": "newton"}, "optimizer: expected one of sgd, momentum, rmsprop, adam"),
        ({"learning_rate": 0}, "learning_rate: expected a number above 0"),
        ({"weight_decay": -1}, "weight_decay: expected a number of at least 0"),
        ({"epochs": 0}, "epochs: expected a whole number"),
        ({"batch_size": 0}, "batch_size: expected a whole number"),
        ({"aggregation": "sum"}, "aggregation: expected one of none, masked"),
        ({"double": 1}, "double: expected true or false"),
        ({"archive_mb": 0}, "archive_mb: expected a whole number"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        SplitNetwork(**settings).trusting(CODE)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"aggregation": "masked"}, "masked outputs need at least 2 passive parties, got 1"),
        ({"learning_rate": 1e12}, "is not finite; use a lower learning_rate"),
        ({"bottom": f"{__name__}:wrong_outputs"}, "bottom: expected 12 outputs for a row of 'bank'"),
        ({"top": f"{__name__}:wrong_outputs"}, "top: expected 3 outputs for a row"),
    ],
)
def test_what_cannot_be_trained_is_answered(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        trained(**settings)


def no_top(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Identity()


def wrong_outputs(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Linear(*shape, outputs + 1)


def test_networks_of_other_packages_need_trust() -> None:
    with pytest.raises(BadInput, match="code of another package; pass --trust-code"):
        SplitNetwork(top="os:system").trusting(NO_CODE)
