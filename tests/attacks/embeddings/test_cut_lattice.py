"""Lattice at the cut: columns of whole numbers, exactly, from embeddings and the steps of training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from plumbob.attacks.base import Guess
from plumbob.attacks.embeddings._whole_functionals import whole_columns
from plumbob.attacks.embeddings.cut_lattice import CutLattice
from plumbob.errors import BadInput
from plumbob.federation import Column, Federation, FloatArray, Party
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import THREATS, View, cut

STEPS = (1, 1, 2, 4, 7, 50, 300)


def table(rows: int = 500, steps: tuple[int, ...] = STEPS, seed: int = 0) -> FloatArray:
    """Columns that hang together, of so many whole steps from 0 to 1."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, len(steps))) + rng.normal(size=(rows, len(steps)))
    rank = raw.argsort(axis=0).argsort(axis=0) / rows
    whole = np.floor(rank * (np.array(steps) + 1))
    return np.asarray(whole / np.array(steps))


def federation(values: FloatArray, steps: tuple[int, ...], parties: int = 1) -> Federation:
    label = (values.sum(axis=1) > np.median(values.sum(axis=1))).astype(np.int64)
    columns = [Column(f"c{j}", high=float(k), step=1.0) for j, k in enumerate(steps)]
    shares = np.array_split(np.arange(len(steps)), parties)
    passive = [Party(f"p{i}", tuple(columns[j] for j in own), values[:, own]) for i, own in enumerate(shares)]
    active = Party("active", (Column("own"),), np.zeros((len(values), 1)))
    return Federation((active, *passive), "active", label, ("0", "1"))


def seen(values: FloatArray, steps: tuple[int, ...] = STEPS, parties: int = 1, **settings: Any) -> View:
    """What the active party gets of a training on these columns."""
    joint = federation(values, steps, parties)
    protocol = SplitNetwork(**{"hidden": (24, 8), "epochs": 4, "batch_size": 50} | settings)
    log = protocol.train(joint, joint.rows(np.arange(10)), np.random.default_rng(1))
    return cut(log, THREATS["active-training"])


def found(view: View) -> Guess:
    return CutLattice().run(view, np.random.default_rng(0))


def exact(guess: Guess, values: FloatArray) -> int:
    """How many columns one of the vectors equals."""
    assert guess.vectors is not None
    return int((np.abs(guess.vectors[:, :, None] - values[:, None]).max(axis=0) < 1e-9).any(axis=0).sum())


@pytest.mark.parametrize(
    ("parties", "settings"),
    [
        (1, {}),
        (1, {"bias": True}),
        (1, {"optimizer": "sgd"}),
        (2, {}),
        (2, {"aggregation": "masked"}),
        (1, {"double": True}),
    ],
)
def test_every_whole_column_is_found_upright_and_nothing_else(parties: int, settings: dict[str, Any]) -> None:
    values = table()
    guess = found(seen(values, parties=parties, **settings))
    assert exact(guess, values) == len(STEPS)
    assert guess.vectors is not None
    assert guess.vectors.shape[1] == len(STEPS)


def test_ranges_name_columns() -> None:
    words = found(seen(table())).certificate
    assert "named by their ranges" in words
    assert "p0.c0" not in words  # another one has as many steps
    assert all(f"p0.c{j}" in words for j in range(2, 7))


def test_where_training_moves_otherwise_the_lattice_is_all_that_is_known() -> None:
    values = table()
    guess = found(seen(values, optimizer="adam"))
    assert "training does not tell columns from sums" in guess.certificate
    assert "whole numbers in 7 of 7 dimensions" in guess.certificate


def test_in_continuous_columns_nothing_is_found() -> None:
    rng = np.random.default_rng(3)
    for width in (5, 9):
        z = (rng.random((300, width)) @ rng.normal(size=(width, 20))).astype(np.float32)
        assert whole_columns(z, 0.0, rng).columns.shape[1] == 0


def test_whole_columns_among_others_are_found_as_a_lattice() -> None:
    rng = np.random.default_rng(4)
    values = np.hstack([table(400, (1, 5, 30)), rng.random((400, 4))])
    z = (values @ rng.normal(size=(7, 20))).astype(np.float32)
    whole = whole_columns(z, 0.0, rng).columns
    assert whole.shape[1] == 3
    true = np.rint(values[:, :3] * np.array([1, 5, 30]))
    left = true - true[0] - (whole - whole[0]) @ np.linalg.lstsq(whole - whole[0], true - true[0], rcond=None)[0]
    assert np.abs(left).max() < 1e-6


def changed(view: View, cells: Any) -> View:
    """The view with other embeddings."""
    messages = tuple(replace(m, payload=cells(m.payload)) if m.name == "embeddings" else m for m in view.messages)
    return replace(view, messages=messages)


def test_bad_embeddings_have_a_clear_answer() -> None:
    view = seen(table(60, (2, 3)), (2, 3))
    for cells in (np.zeros_like, lambda z: np.tile(z[:1], (len(z), 1))):  # nothing varies
        guess = found(changed(view, cells))
        assert guess.vectors is not None
        assert guess.vectors.shape == (60, 0)
    with pytest.raises(BadInput, match="got NaN or infinity"):
        found(changed(view, lambda z: z + np.nan))


def test_fewer_rows_than_columns_tell_nothing() -> None:
    guess = found(seen(table(12, (5,) * 20), (5,) * 20, batch_size=6))
    assert guess.vectors is not None
    assert guess.vectors.shape[1] == 0


def test_where_rows_are_of_few_kinds_nothing_is_claimed() -> None:
    """Ten kinds of rows in nine dimensions: any whole numbers that are the same within kinds lie in the span."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(10, 16))[rng.integers(10, size=200)].astype(np.float32)
    assert whole_columns(z, 0.0, rng).columns.shape[1] == 0


def test_embeddings_of_a_deeper_cut_are_not_tried() -> None:
    assert "linear cut" in found(seen(table(200, (2, 3)), (2, 3), cut=2)).untried
