"""Decoding: a block's inputs and winners out of its own weight gradients, exactly where they are determined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from plumbob.attacks.blocks import Block
from plumbob.attacks.decoding import _fold, _unfold, decodable, decode, telling
from plumbob.protocols.networks import precision

ROWS = 6


def block_of(pooled: bool, stride: int = 1, kernel: int = 5, channels: int = 96) -> Block:
    conv = nn.Conv2d(3, channels, kernel, stride=stride, padding=kernel // 2).requires_grad_(False)
    return Block("0", conv, nn.Identity() if stride > 1 else nn.ReLU(), nn.MaxPool2d(2) if pooled else None)


def own_gradients(block: Block, x: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
    """Each row's gradient of the convolution's weights, by autograd."""
    weight = block.conv.weight.clone().requires_grad_(True)
    found = []
    for row, outer in zip(x, above, strict=True):
        hidden = block.act(
            nn.functional.conv2d(row[None], weight, block.conv.bias, block.conv.stride, block.conv.padding)
        )
        out = hidden if block.pool is None else block.pool(hidden)
        found.append(torch.autograd.grad((out * outer[None]).sum(), weight)[0])
    return torch.stack(found).flatten(3)


@pytest.mark.parametrize(("pooled", "stride", "side"), [(True, 1, 6), (False, 1, 6), (False, 2, 12)])
@pytest.mark.parametrize("taps", ["all", "telling"])
def test_inputs_and_winners_are_exact_in_double_precision(pooled: bool, stride: int, side: int, taps: str) -> None:
    generator = torch.Generator().manual_seed(1)
    with precision(torch.float64), torch.random.fork_rng():
        torch.manual_seed(2)
        block = block_of(pooled, stride)
        x = torch.rand(ROWS, 3, side, side, generator=generator)
        y = block.forward(x)
        above = torch.randn(y.shape, generator=generator)
        chosen = np.arange(25) if taps == "all" else telling((5, 5), (stride, stride), np.arange(25))
        weights = own_gradients(block, x, above)[..., chosen]
        kept = torch.from_numpy(chosen)
        assert decodable(block, (3, side, side), kept)
        found, outer, _ = decode(block, y, above, (3, side, side), weights, kept)
        _, winners, hidden = block.before(x)
        true = block.spread(above * block.unacted(y)[1], winners, hidden)
    right = (outer == true).flatten(1).all(dim=1)
    assert right.sum() >= ROWS - 1
    assert (found - x).abs().flatten(1).amax(dim=1)[right].max() < 1e-5


@pytest.mark.parametrize("stride", [1, 2])
def test_a_cell_is_folded_as_often_as_it_was_unfolded(stride: int) -> None:
    block = block_of(False, stride)
    taps = torch.from_numpy(telling((5, 5), (1, 1), np.arange(25)))
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    times = _fold(block, _unfold(block, torch.ones_like(x), taps), (3, 8, 8), taps)
    assert torch.allclose(_fold(block, _unfold(block, x, taps), (3, 8, 8), taps), times * x, atol=1e-5)


def test_fewer_channels_than_positions_are_not_decoded() -> None:
    assert not decodable(block_of(True, channels=48), (3, 8, 8), torch.arange(25))


def test_taps_that_leave_cells_out_are_not_decoded() -> None:
    assert not decodable(block_of(False), (3, 6, 6), torch.tensor([0]))


def test_kept_taps_are_all_taken() -> None:
    """Only where all are there, every second is enough."""
    assert telling((5, 5), (1, 1), np.array([3, 5, 12, 19, 21])).tolist() == [3, 5, 12, 19, 21]
    assert 12 in telling((5, 5), (1, 1), np.arange(25))
    assert telling((1, 1), (1, 1), np.arange(1)).tolist() == [0]
