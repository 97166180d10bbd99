"""Decoding: a block's inputs and winners out of its own weight gradients, exactly where they are determined."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from plumbob.attacks.gradients._block_decoding import _fold, _inverse, _unfold, decodable, decode, telling
from plumbob.attacks.gradients._network_blocks import ConvolutionBlock
from plumbob.protocols.shared.networks import precision

ROWS = 6


def block_of(pooled: bool, stride: int = 1, kernel: int = 5, channels: int = 96) -> ConvolutionBlock:
    conv = nn.Conv2d(3, channels, kernel, stride=stride, padding=kernel // 2).requires_grad_(False)
    return ConvolutionBlock("0", conv, nn.Identity() if stride > 1 else nn.ReLU(), nn.MaxPool2d(2) if pooled else None)


def own_gradients(block: ConvolutionBlock, x: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
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
        chosen = np.arange(25) if taps == "all" else telling(block, (3, side, side), np.arange(25))
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
    taps = torch.arange(0, 25, 2)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    times = _fold(block, _unfold(block, torch.ones_like(x), taps), (3, 8, 8), taps)
    assert torch.allclose(_fold(block, _unfold(block, x, taps), (3, 8, 8), taps), times * x, atol=1e-5)


def test_fewer_channels_than_positions_are_not_decoded() -> None:
    assert not decodable(block_of(True, channels=48), (3, 8, 8), torch.arange(25))


def test_taps_that_leave_cells_out_are_not_decoded() -> None:
    assert not decodable(block_of(False), (3, 6, 6), torch.tensor([0]))


@pytest.mark.parametrize(("kernel", "side"), [(2, 5), (3, 6), (4, 6), (5, 6)])
def test_taps_are_left_out_only_where_the_others_cover_every_cell(kernel: int, side: int) -> None:
    """Without padding corners lie under one tap only, on either colour of the board."""
    conv = nn.Conv2d(3, 96, kernel).requires_grad_(False)
    block, every = ConvolutionBlock("0", conv, nn.ReLU(), None), np.arange(kernel**2)
    chosen = telling(block, (3, side, side), every)
    assert decodable(block, (3, side, side), torch.from_numpy(chosen))
    assert len(chosen) == len(every) or kernel % 2


def test_taps_are_left_out_only_where_all_were_kept_and_channels_abound() -> None:
    few, shape = np.array([3, 5, 12, 19, 21]), (3, 6, 6)
    assert telling(block_of(True), shape, few).tolist() == few.tolist()
    assert telling(block_of(True), shape, np.arange(25)).tolist() == list(range(0, 25, 2))
    assert telling(block_of(True, channels=48), shape, np.arange(25)).tolist() == list(range(25))


def test_a_matrix_that_rounding_made_indefinite_has_an_inverse_and_disturbs_no_other() -> None:
    good = torch.eye(3) + 0.1
    bad = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.5]])
    found = _inverse(torch.stack([bad, good]), 0.0)
    assert found.isfinite().all()
    assert torch.allclose(found[1], torch.linalg.inv(good), atol=1e-5)
