"""What rounds of training tell: one batch, all of them combined, and their mean where noise is drawn anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumbob.attacks.embeddings._received_embeddings import embeddings
from plumbob.attacks.embeddings._training_rounds import batches, largest, linked
from plumbob.attacks.embeddings.binary_columns import BinaryColumns
from plumbob.attacks.embeddings.leverage_sampling import LeverageSampling
from plumbob.attacks.embeddings.linear_equations import LinearEquations
from plumbob.federation import FloatArray, split
from plumbob.known_defences import KnownDefences, KnownGaussianMasking, KnownQuantisedEmbeddings
from plumbob.protocols.base import opened
from plumbob.protocols.shared.row_means import RowMeans
from plumbob.threats import THREATS, View, cut
from tests.worlds import made_table

ROWS, COLUMNS, WIDTH, BATCH = 480, 6, 14, 60


def planted(bias: bool = False) -> FloatArray:
    """Numbers and two columns of 0 and 1; with `bias` one more that is 1 everywhere."""
    rng = np.random.default_rng(0)
    x = rng.random((ROWS, COLUMNS))
    x[:, :2] = x[:, :2] < (0.35, 0.6)
    return np.column_stack([x, np.ones(ROWS)]) if bias else x


def seen(epochs: int, sigma: float = 0.0, bias: bool = False, predicted: bool = False, step: float = 0.0) -> View:
    """What an active party gets of so many epochs, whose weights change with every batch."""
    names = [f"c{i}" for i in range(8)]
    federation = split(made_table(rows=ROWS), {"bank": names[:2], "shop": names[2:]}, "bank")
    log = opened("split_network", federation, federation)
    means, x, rng = RowMeans(ROWS), planted(bias), np.random.default_rng(1)
    weights = rng.standard_normal((x.shape[1], WIDTH))
    number, sender = 0, federation.passive[0]

    def told(rows: np.ndarray) -> FloatArray:
        z = x[rows] @ weights + sigma * rng.standard_normal((len(rows), WIDTH))
        return (step * np.round(z / step + rng.random(z.shape) - 0.5) if step else z).astype(np.float32)

    for _ in range(epochs):
        for rows in np.sort(rng.permutation(ROWS).reshape(-1, BATCH), axis=1):
            log.send(log.active, sender, "train", number, "rows", rows)
            means.add(sender, rows, log.send(sender, log.active, "train", number, "outputs", told(rows)))
            weights = weights + 0.03 * rng.standard_normal(weights.shape)
            number += 1
    if predicted:
        log.send(sender, log.active, "predict", 0, "embeddings", told(np.arange(ROWS)))
    means.write(log)
    view = cut(log, THREATS["active-training"])
    known = KnownGaussianMasking(sigma) if sigma else KnownQuantisedEmbeddings(2, True, 1.5 * step) if step else None
    return replace(view, defence=KnownDefences.of(known)) if known else view


def found(vectors: FloatArray | None, rows: object = slice(None)) -> list[float]:
    """How far each planted column is found in these rows, 0 and 1 swapped if that is better."""
    assert vectors is not None
    x, v = planted()[rows, :2], vectors[rows]
    same = (v.T @ x + (1 - v).T @ (1 - x)) / len(x)
    return [float(one) for one in np.maximum(same, 1 - same).max(axis=0, initial=0.0)]


# Training alone


def test_one_batch_larger_than_d_gives_its_rows_exactly() -> None:
    view = seen(epochs=1)
    (one,) = embeddings(view)
    assert one.rows is not None
    assert len(one.rows) == BATCH
    guess = LinearEquations().run(view, np.random.default_rng(0))
    assert found(guess.vectors, one.rows) == [1.0, 1.0]
    assert guess.vectors is not None
    rest = np.setdiff1d(np.arange(ROWS), one.rows)
    assert np.ptp(guess.vectors[rest], axis=0).max() == 0  # of the others only the batch's mean
    assert guess.certificate == "2 of 2^6 - 1 candidates are binary; from one batch of 60 rows"


def test_every_batch_is_an_instance() -> None:
    (some,) = batches(seen(epochs=2)).values()
    assert len(some) == 2 * ROWS // BATCH
    for one in some:
        cells = one.cells.astype(np.float64)
        left = planted()[one.rows] - cells @ np.linalg.lstsq(cells, planted()[one.rows], rcond=1e-6)[0]
        assert np.abs(left).max() < 1e-4


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("attack", [BinaryColumns(), LinearEquations(differences=True)])
def test_rounds_combined_give_all_rows_exactly(attack: BinaryColumns | LinearEquations, bias: bool) -> None:
    guess = attack.run(seen(epochs=3, bias=bias), np.random.default_rng(0))
    assert found(guess.vectors) == [1.0, 1.0]
    assert guess.vectors is not None
    assert guess.vectors.shape[1] == 2 if isinstance(attack, BinaryColumns) else guess.vectors.shape[1] >= 2
    assert "from the rounds of training combined" in guess.certificate


def test_batches_of_other_columns_are_not_combined() -> None:
    (some,) = batches(seen(epochs=3)).values()
    rng = np.random.default_rng(2)
    strange = [replace(one, cells=rng.standard_normal(one.cells.shape)) for one in some]
    assert linked(strange, ROWS) is None
    assert linked(some[:5], ROWS) is None  # not all rows


def test_a_batch_no_larger_than_its_dimensions_is_none() -> None:
    (some,) = batches(seen(epochs=1)).values()
    small = [replace(one, rows=one.rows[:5], cells=one.cells[:5]) for one in some]
    assert largest(small) is None


# Noise drawn anew


def test_the_mean_of_the_rounds_has_noise_over_their_root() -> None:
    view = seen(epochs=24, sigma=2.0, predicted=True)
    (last,), (mean,) = embeddings(view), embeddings(view, averaged=True)
    assert (last.sd, mean.sd) == (2.0, pytest.approx(2.0 / np.sqrt(25)))
    x = planted()
    left = [np.std(z - x @ np.linalg.lstsq(x, z, rcond=None)[0]) for z in (last.cells, mean.cells)]
    assert left[0] == pytest.approx(2.0, rel=0.05)
    assert left[1] == pytest.approx(0.4, rel=0.25)  # the weights of a row's batches differ a little besides


def test_averaging_finds_what_one_message_hides() -> None:
    view, rng = seen(epochs=60, sigma=3.0, predicted=True), np.random.default_rng(0)
    assert min(found(BinaryColumns().run(view, rng).vectors)) > 0.97
    assert max(found(BinaryColumns(adaptive=False).run(view, rng).vectors)) < 0.85
    sharp = {"relative": True, "adaptive": True, "runs": 10}
    assert max(found(LeverageSampling(**sharp, averaged=True).run(view, rng).vectors)) > 0.9
    assert max(found(LeverageSampling(**sharp).run(view, rng).vectors)) < 0.85


def test_dithered_levels_average_out_too() -> None:
    view, rng = seen(epochs=60, step=6.0, predicted=True), np.random.default_rng(0)
    (mean,) = embeddings(view, averaged=True)
    assert mean.sd == pytest.approx(6.0 / np.sqrt(6 * 61))
    assert min(found(BinaryColumns().run(view, rng).vectors)) > 0.97
    assert max(found(BinaryColumns(adaptive=False).run(view, rng).vectors)) < 0.85


def test_without_prediction_the_mean_of_training_is_read() -> None:
    guess = BinaryColumns().run(seen(epochs=60, sigma=2.0), np.random.default_rng(0))
    assert min(found(guess.vectors)) > 0.97
    assert "from the mean of 60 messages a row" in guess.certificate


# Differences of rows


def told(low: float, high: float, bias: bool) -> View:
    """Embeddings of all rows, of columns with these two values."""
    view, x, rng = seen(epochs=1, predicted=True), planted(), np.random.default_rng(3)
    x[:, :2] = low + (high - low) * x[:, :2]
    cells = x @ rng.standard_normal((COLUMNS, WIDTH)) + (rng.standard_normal(WIDTH) if bias else 0.0)
    messages = tuple(replace(m, payload=cells) if m.name == "embeddings" else m for m in view.messages)
    return replace(view, messages=messages)


def test_values_other_than_0_and_1_need_differences() -> None:
    view, rng = told(0.7, -0.6, bias=False), np.random.default_rng(0)
    plain = LinearEquations().run(view, rng)
    assert plain.certificate == "0 of 2^6 - 1 candidates are binary"
    guess = LinearEquations(differences=True).run(view, rng)
    assert guess.certificate == "2 of 2^6 - 1 candidates are binary"
    assert found(guess.vectors) == [1.0, 1.0]


def test_differences_take_a_bias_away() -> None:
    view, rng = told(0.7, -0.6, bias=True), np.random.default_rng(0)
    plain = LinearEquations().run(view, rng)  # the constant, and of every column also the opposite
    assert plain.certificate == "5 of 2^7 - 1 candidates are binary"
    guess = LinearEquations(differences=True).run(view, rng)
    assert guess.certificate == "2 of 2^6 - 1 candidates are binary"
    assert found(guess.vectors) == [1.0, 1.0]
    best = LeverageSampling(relative=True, differences=True, runs=10).run(view, rng)
    assert max(found(best.vectors)) == 1.0
