"""Gradient peeling: exact where the sums determine the data, and honest where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from plumbob.attacks.gradients._block_decoding import _inverse
from plumbob.attacks.gradients._worker_uploads import Uploads
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.errors import BadInput
from plumbob.federation import Federation, split_at_random, split_into_tiles
from plumbob.protocols.gradients.split_training import TOP, SplitTraining
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from plumbob.trust import Trust
from tests.worlds import made_pictures, made_table

CODE = Trust(code=True)  # networks of these tests are code of another package


def run(protocol: SplitTraining, federation: Federation, rows: int, seed: int = 0) -> tuple[Transcript, View]:
    log = protocol.trusting(CODE).train(
        federation.rows(np.arange(rows)), federation.rows(np.arange(rows, len(federation))), np.random.default_rng(seed)
    )
    return log, cut(log, THREATS["coordinator"], CODE)


def errors(log: Transcript, view: View, attack: GradientPeeling | None = None) -> np.ndarray:
    """The largest error of every row."""
    values = (attack or GradientPeeling()).run(view, np.random.default_rng(0)).values
    return np.abs(values - truth_of(log, view).values).max(axis=1)


def alive(log: Transcript, uploads: Uploads) -> np.ndarray:
    """Rows that have a gradient in every worker's first layer, worked out from the truth; the others cannot be found."""
    modules = {name: uploads.module(name).double().requires_grad_(True) for name in (*log.parties, TOP)}
    columns = {name: torch.from_numpy(np.array(log.sealed(name)["columns"])) for name in log.parties}
    label = torch.from_numpy(np.array(log.sealed(log.active)["label"]))
    sizes = []
    for row in range(len(label)):
        outputs = [modules[name](columns[name][[row]]) for name in log.parties]
        loss = nn.functional.cross_entropy(modules[TOP](torch.stack(outputs, dim=1)), label[[row]])
        first = [next(modules[name].parameters()) for name in log.parties]
        sizes.append([float(g.abs().max()) for g in torch.autograd.grad(loss, first)])
    return np.min(sizes, axis=1) > 1e-4 * np.max(sizes)


def no_bias(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 32, bias=False), nn.ReLU(), nn.Linear(32, outputs))


def strided(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(shape[0], 12, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(12 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, outputs),
    )


class Residual(nn.Module):
    """No chain: the input joins again later."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(shape[0], 8, 3, padding=1)
        self.out = nn.Linear(8 * shape[1] * shape[2], outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out((torch.tanh(self.conv(x)) + x.mean(1, keepdim=True)).flatten(1))


def residual(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return Residual(shape, outputs)


def dark(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """All units dead whatever the input."""
    made = nn.Sequential(nn.Conv2d(shape[0], 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4, outputs))
    assert isinstance(made[0], nn.Conv2d)
    assert made[0].bias is not None
    nn.init.constant_(made[0].bias, -100.0)
    return made


def only_convolutions(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(shape[0], outputs, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def _chain(second: nn.Conv2d, pool: nn.Module, act: type[nn.Module], shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Two convolutions, the second of another kind, and a fully connected end."""
    below = nn.Sequential(nn.Conv2d(shape[0], 24, 3, padding=1), act(), second, act(), pool, nn.Flatten())
    cells = below(torch.zeros(1, *shape)).numel()
    return nn.Sequential(*below, nn.Linear(cells, 48), nn.ReLU(), nn.Linear(48, outputs))


def plain(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return _chain(nn.Conv2d(24, 64, 3, padding=1), nn.MaxPool2d(2), nn.ReLU, shape, outputs)


def unpadded(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return _chain(nn.Conv2d(24, 64, 3), nn.MaxPool2d(2), nn.ReLU, shape, outputs)


def even(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return _chain(nn.Conv2d(24, 64, 4), nn.MaxPool2d(2), nn.ReLU, shape, outputs)


def named_padding(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return _chain(nn.Conv2d(24, 64, 3, padding="same"), nn.MaxPool2d(2), nn.LeakyReLU, shape, outputs)


def dropping(shape: tuple[int, ...], outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(int(np.prod(shape)), 32), nn.Linear(32, outputs))


HERE = __name__


@settings(max_examples=25, deadline=None)
@given(
    network=st.sampled_from(["mlp", "logistic", f"{HERE}:no_bias"]),
    top=st.sampled_from(["linear", "sum"]),
    rows=st.integers(8, 40),
    batch=st.integers(1, 7),
    width=st.integers(16, 40),
    seed=st.integers(0, 10**6),
)
def test_tables_are_recovered_exactly_in_double_precision(
    network: str, top: str, rows: int, batch: int, width: int, seed: int
) -> None:
    federation = split_at_random(made_table(80, seed=seed), 4, np.random.default_rng(seed))
    protocol = SplitTraining(network=network, top=top, width=width, batch_size=batch, double=True, rounds=2 * rows)
    log, view = run(protocol, federation, rows, seed)
    uploads = Uploads(view)
    if np.linalg.matrix_rank(uploads.indicator) < rows:
        return  # such batches do not tell the rows apart
    assert (errors(log, view)[alive(log, uploads)] < 1e-6).all()
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    assert (guess.labels == log.sealed(log.active)["label"]).all()


@pytest.mark.parametrize("double", [False, True])
def test_pictures_are_recovered_through_convolutions_and_pooling(double: bool) -> None:
    federation = split_into_tiles(made_pictures(40, side=16), 4)
    log, view = run(SplitTraining(width=32, outputs=8, batch_size=6, double=double), federation, 20)
    assert np.mean(errors(log, view, GradientPeeling(grid=False)) < (1e-6 if double else 1e-3)) >= 0.8
    judged = score(
        GradientPeeling().run(view, np.random.default_rng(0)), truth_of(log, view), view, np.random.default_rng(0)
    )
    assert judged.images is not None
    assert judged.images.psnr > 60
    assert judged.label_accuracy == 1.0


@pytest.mark.parametrize("network", ["strided", "residual"])
def test_other_networks_are_undone_too(network: str) -> None:
    """A stride in place of pooling is decoded; a network that is no chain is searched."""
    federation = split_into_tiles(made_pictures(30, side=16), 4)
    log, view = run(SplitTraining(network=f"{HERE}:{network}", outputs=4, batch_size=5), federation, 15)
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    judged = score(guess, truth_of(log, view), view, np.random.default_rng(0))
    assert judged.images is not None
    assert judged.images.psnr > judged.images.constant_psnr + 3


def test_rows_that_the_batches_do_not_tell_apart_get_the_mean() -> None:
    federation = split_at_random(made_table(80), 4, np.random.default_rng(0))
    log, view = run(SplitTraining(network="mlp", width=64, batch_size=8, rounds=10), federation, 40)
    guess = GradientPeeling().run(view, np.random.default_rng(0))
    assert (guess.labels == -1).all()
    assert np.ptp(guess.values, axis=0).max() == 0
    full, seen = run(SplitTraining(network="mlp", width=64, batch_size=8), federation, 40)
    assert errors(full, seen).mean() < errors(log, view).mean() / 100


def test_the_guess_does_not_change_with_the_truth() -> None:
    from tests.worlds import with_truth

    federation = split_at_random(made_table(60), 4, np.random.default_rng(0))
    log, view = run(SplitTraining(network="mlp", width=32, batch_size=8), federation, 30)
    other = cut(with_truth(log, "passive", np.random.default_rng(1).random((30, 4))), THREATS["coordinator"])
    one, two = (GradientPeeling().run(v, np.random.default_rng(0)).values for v in (view, other))
    assert (one == two).all()


def _changed(view: View, name: str, change: object) -> View:
    messages = [m for m in view.messages if not (change is None and m.name == name)]
    if change is not None:
        messages = [replace(m, payload=change(m.payload)) if m.name.endswith(name) else m for m in messages]
    return replace(view, messages=tuple(messages))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("rows", None, "needs the batch indices"),
        ("1.weight", lambda a: a[:-1], "does not belong to this network"),
        ("1.bias", lambda a: np.full_like(a, np.nan), "NaN"),
        ("rows", lambda a: a + 1_000, "row numbers"),
    ],
)
def test_bad_views_are_told_apart_in_a_sentence(name: str, change: object, words: str) -> None:
    federation = split_at_random(made_table(60), 4, np.random.default_rng(0))
    view = run(SplitTraining(network="mlp", width=16, batch_size=8), federation, 30)[1]
    with pytest.raises(BadInput, match=words):
        GradientPeeling().run(_changed(view, name, change), np.random.default_rng(0))


def test_a_network_without_a_fully_connected_layer_is_refused() -> None:
    federation = split_into_tiles(made_pictures(30, side=16), 4)
    view = run(SplitTraining(network=f"{HERE}:only_convolutions", outputs=4, batch_size=5), federation, 15)[1]
    with pytest.raises(BadInput, match="no fully connected layer"):
        GradientPeeling().run(view, np.random.default_rng(0))


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-12, 1.0, 1e18, np.inf])
def test_an_inverse_is_there_whatever_the_size_of_gradients(scale: float) -> None:
    """Gradients that fade or run away in training are no reason to stop."""
    inner = torch.linspace(0.1, 1, 24).view(2, 3, 4) * torch.tensor([scale, 1.0]).view(2, 1, 1)
    gram = inner @ inner.transpose(1, 2)
    assert _inverse(gram, 1e-4).isfinite().all()


@pytest.mark.slow
def test_training_does_not_hide_pictures() -> None:
    """Parameters that change from round to round: each round is taken apart alone, and the rounds of a row agree on it."""
    federation = split_into_tiles(made_pictures(24, side=16), 4)
    protocol = SplitTraining(width=32, outputs=8, batch_size=3, rounds=18, optimizer="adam", learning_rate=0.001)
    log, view = run(protocol, federation, 6)
    judged = score(
        GradientPeeling().run(view, np.random.default_rng(0)), truth_of(log, view), view, np.random.default_rng(0)
    )
    assert judged.images is not None
    assert judged.images.psnr_quantiles[2] > 60


def test_tables_of_codes_come_out_while_training() -> None:
    """One-hot columns are zero at most cells, so that rows are found in every batch, whatever the parameters."""
    rng = np.random.default_rng(0)
    values = np.concatenate([np.eye(4)[rng.integers(0, 4, 40)] for _ in range(12)], axis=1)
    federation = split_at_random(replace(made_table(40, columns=48), values=values), 24, rng)
    protocol = SplitTraining(network="mlp", width=64, batch_size=4, rounds=60, optimizer="adam", learning_rate=0.01)
    log, view = run(protocol, federation, 20)
    assert np.mean(errors(log, view) < 0.5) > 0.9


def _followed(network: str) -> tuple[np.ndarray, np.ndarray]:
    """Guess and truth of a network of one's own whose parameters move."""
    federation = split_into_tiles(made_pictures(16, side=8, seed=1), 4)
    if network == "no_bias":
        federation = split_at_random(made_table(16, seed=1), 4, np.random.default_rng(1))
    protocol = SplitTraining(network=f"{HERE}:{network}", batch_size=2, rounds=8, optimizer="adam", learning_rate=0.01)
    log, view = run(protocol, federation, 4, seed=1)
    return GradientPeeling().run(view, np.random.default_rng(0)).values, truth_of(log, view).values


@pytest.mark.parametrize("network", ["no_bias", "residual"])
def test_networks_of_ones_own_are_followed_too(network: str) -> None:
    """Without a bias, and without a chain: a third of the error of a guesser who knows every column's mean."""
    guess, truth = _followed(network)
    assert np.mean((guess - truth) ** 2) < np.mean((truth.mean(axis=0) - truth) ** 2) / 3


def test_of_a_network_with_dead_units_alone_nothing_is_told() -> None:
    guess, _ = _followed("dark")
    assert np.ptp(guess) == 0


def test_parameters_that_hardly_move_are_taken_for_still_ones() -> None:
    """Rounds that all show the same tell less than the rows' own gradients of the convolutions."""
    federation = split_into_tiles(made_pictures(24, side=16), 4)
    protocol = SplitTraining(width=32, outputs=8, batch_size=3, rounds=18, optimizer="sgd", learning_rate=1e-9)
    log, view = run(protocol, federation, 6)
    assert np.mean(errors(log, view, GradientPeeling(grid=False)) < 1e-3) >= 0.8


@pytest.mark.parametrize("network", ["plain", "unpadded", "even", "named_padding"])
def test_chains_of_other_shapes_are_undone_too(network: str) -> None:
    """Kernels without padding or with an even side, padding by name; most rows exactly."""
    federation = split_into_tiles(made_pictures(30, side=16), 4)
    log, view = run(SplitTraining(network=f"{HERE}:{network}", outputs=8, batch_size=5), federation, 15)
    assert np.mean(errors(log, view, GradientPeeling(grid=False)) < 1e-3) >= 0.6


def test_dropout_is_not_taken_for_safety() -> None:
    """Other units in every round: rows have no gradient that stays, and the attack says that it was not tried."""
    federation = split_at_random(made_table(40), 4, np.random.default_rng(0))
    _, view = run(SplitTraining(network=f"{HERE}:dropping", batch_size=5), federation, 20)
    assert "Dropout" in GradientPeeling().run(view, np.random.default_rng(0)).untried


def test_without_polish_pictures_come_out_all_the_same() -> None:
    """Blocks undone one by one, and never more exactly than when they are solved together."""
    federation = split_into_tiles(made_pictures(40, side=16), 4)
    log, view = run(SplitTraining(width=32, outputs=8, batch_size=6), federation, 20)
    rough, fine = (errors(log, view, GradientPeeling(polish=polish)) for polish in (False, True))
    assert np.median(rough) < 0.1
    assert fine.mean() <= rough.mean()
