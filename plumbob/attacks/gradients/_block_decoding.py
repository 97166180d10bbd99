"""A block of a network decoded from its own weight gradients (ours): what went into it, and which cells won its pooling.

A row's weight gradients are D' P, with P the patches of its input (positions x taps) and D the gradient at the convolution's
outputs: the known gradient d, put at each window's winner. Where channels >= positions, P is least squares given D, and D least
squares given P. So, starting with d spread over the windows, in turns:
    inputs   P given D; a cell is the mean of its copies in P, wherever a position has a gradient that tells
    winners  D given P; a window's winner is the cell at which this and the convolution's output agree best with what is known
Least squares are damped less in every turn. A few turns find nearly all winners.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumbob.attacks.gradients._network_blocks import ConvolutionBlock
from plumbob.federation import IntArray
from plumbob.lazy_imports import Tensor, functional, torch

DECODING_TURNS, DECODING_TURNS_FROM_NEAR = 12, 3  # at most, from nothing and from inputs that are near
STAYED = 5e-3  # share of their length by which inputs move that are left alone
# Or by no less than this share of what they moved in the turn before; but not in the first turns.
STUCK, SETTLED_TURNS = 0.8, 3
# Share of the diagonal that damps least squares: first, turn by turn, last
FIRST_DAMPING, DAMPING_FALL, LAST_DAMPING = 3e-3, 0.3, 3e-7
HELD = 1e-5  # the same for inputs that are near
CHANNELS_TO_SPARE_TAPS = 2  # channels for each position from which every second tap will do
CHANNELS_PER_NOISE_SAMPLE = 4  # of so many channels one is looked at for the size of noise


def telling(block: ConvolutionBlock, shape: tuple[int, ...], taps: IntArray) -> IntArray:
    """Every second tap, as on a chess board, where all were kept and there are channels to spare; else all of them."""
    down, across = np.divmod(taps, block.conv.kernel_size[1])
    centre = sum(side // 2 for side in block.conv.kernel_size) % 2
    if len(taps) == np.prod(block.conv.kernel_size) and block.conv.out_channels >= CHANNELS_TO_SPARE_TAPS * _positions(
        block, shape
    ):
        for colour in (centre, 1 - centre):
            some = np.asarray(taps[(down + across) % 2 == colour])
            if len(some) and decodable(block, shape, torch.from_numpy(some)):
                return some
    return taps


def decodable(block: ConvolutionBlock, shape: tuple[int, ...], taps: Tensor) -> bool:
    """Whether patches follow from weight gradients: as many channels as positions, and every cell under some tap."""
    positions = _positions(block, shape)
    covered = _fold(block, torch.ones(1, positions, len(taps) * shape[0]), shape, taps)
    return block.conv.out_channels >= positions and bool((covered > 0).all()) and block.conv.dilation == (1, 1)


def _positions(block: ConvolutionBlock, shape: tuple[int, ...]) -> int:
    return int(block.conv(torch.zeros(1, *shape))[0, 0].numel())


def decode(
    block: ConvolutionBlock,
    y: Tensor,
    above: Tensor,
    shape: tuple[int, ...],
    weights: Tensor,
    taps: Tensor,
    near: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The block's inputs, the gradient at its convolution's outputs, and how far inputs were determined; from its outputs, the
    gradients above, and the rows' own weight gradients at some taps.

    With inputs that are `near`, their winners are taken first, and what gradients do not tell stays as it is there.
    """
    target, slope = block.unacted(y)
    hidden = block.conv(torch.zeros(1, *shape)).shape
    window = None if block.pool is None else _windows(block, target.shape, hidden)
    flat = weights.transpose(2, 3).flatten(2)
    every = _Decoding(block, shape, taps, flat, target, above * slope, window, hidden, near)
    outer = every.start()
    turns = 0 if window is None else DECODING_TURNS if near is None else DECODING_TURNS_FROM_NEAR
    rows, some = torch.arange(len(y)), every
    x, steps = torch.zeros(len(y), *shape) if near is None else near.clone(), torch.full((len(y),), torch.inf)
    for turn in range(turns):
        moved, _ = some.inputs(outer[rows], FIRST_DAMPING * DAMPING_FALL**turn + LAST_DAMPING if near is None else HELD)
        outer[rows] = some.spread(some.winners(moved, outer[rows]))
        step = (moved - x[rows]).flatten(1).norm(dim=1) / moved.flatten(1).norm(dim=1).clamp_min(1e-30)
        moving = (step > STAYED) & ((step < STUCK * steps[rows]) | (turn <= SETTLED_TURNS))
        x[rows], steps[rows] = moved, step
        if not moving.all():
            rows, some = rows[moving], some.of_rows(moving)
        if not len(rows):
            break
    x, seen = every.inputs(outer, LAST_DAMPING if near is None else HELD)
    return x, outer, seen.clamp_max(1.0).expand(-1, shape[0], -1, -1)


@dataclass(frozen=True)
class _Decoding:
    """What is known of some rows of a block, laid out for decoding."""

    block: ConvolutionBlock
    shape: tuple[int, ...]
    taps: Tensor
    flat: Tensor  # rows x out x (taps in): the rows' own weight gradients
    target: Tensor  # the convolution's outputs at the winners
    known: Tensor  # the gradients there
    window: Tensor | None  # which pooled cell every position belongs to
    hidden: torch.Size
    near: Tensor | None

    def of_rows(self, rows: Tensor) -> _Decoding:
        near = None if self.near is None else self.near[rows]
        return replace(self, flat=self.flat[rows], target=self.target[rows], known=self.known[rows], near=near)

    def spread(self, winners: Tensor | None) -> Tensor:
        """The gradients put at winners."""
        return self.block.spread(self.known, winners, self.hidden)

    def start(self) -> Tensor:
        """The gradients at the winners of inputs that are near, else in equal parts all over their windows."""
        if self.window is None or self.near is not None:
            return self.spread(None if self.near is None else self.block.before(self.near)[1])
        sizes = torch.bincount(self.window.flatten()).clamp_min(1)[self.window]
        return self._over_windows(self.known) / sizes

    def _over_windows(self, pooled: Tensor) -> Tensor:
        assert self.window is not None
        return pooled.flatten(2)[:, :, self.window.flatten()].view(len(pooled), *self.hidden[1:])

    def inputs(self, outer: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """The inputs that fit the weight gradients, given the gradients at the convolution's outputs; and how sure each is."""
        inner = outer.flatten(2).transpose(1, 2)  # rows x positions x out
        gram = inner @ inner.transpose(1, 2)
        inverse = _inverse(gram, share)
        # A position that never wins has no gradient; cells are the means of their copies at positions that have one.
        told = (inverse * gram).sum(dim=2, keepdim=True).clamp(0.0, 1.0).pow(8)
        if self.near is None:
            patches = (told * (inverse @ inner)) @ self.flat
        else:
            told = told.clamp_min(1e-3)
            held = _unfold(self.block, self.near, self.taps)
            patches = told * (held + (inverse @ inner) @ (self.flat - inner.transpose(1, 2) @ held))
        seen = _fold(self.block, told.expand(-1, -1, len(self.taps)), (1, *self.shape[1:]), self.taps)
        return _fold(self.block, patches, self.shape, self.taps) / seen.clamp_min(1e-6), seen

    def winners(self, x: Tensor, outer: Tensor) -> Tensor:
        """The cell of each window at which the gradient and the output that these inputs ask for agree best with the known."""
        x = x.clamp_min(0.0)
        patches = _unfold(self.block, x, self.taps)
        wanted = _inverse(patches @ patches.transpose(1, 2), 1e-4) @ (patches @ self.flat.transpose(1, 2))
        wanted = wanted.transpose(1, 2).reshape(outer.shape)
        spread, missed = self._over_windows(self.known), self.block.conv(x) - self._over_windows(self.target)
        here = outer != 0
        noise = _spread_of(wanted - outer, here), _spread_of(missed, here)
        return _best(self.block, 2 * wanted * spread / noise[0] - missed**2 / noise[1])


def _unfold(block: ConvolutionBlock, x: Tensor, taps: Tensor) -> Tensor:
    """Patches: rows x positions x (taps channels)."""
    conv = block.conv
    if conv.stride == (1, 1) and isinstance(conv.padding, tuple):  # every tap's cells are the whole picture, moved
        (above, left), places = conv.padding, _places(tuple(x.shape[1:]), conv.kernel_size, conv.padding)
        wide = functional.pad(x.permute(0, 2, 3, 1), (0, 0, left, left, above, above))
        moved = [wide[:, row : row + places[0], column : column + places[1]] for row, column in _at(block, taps)]
        return torch.stack(moved, dim=3).flatten(3).flatten(1, 2)
    cells = functional.unfold(x, conv.kernel_size, padding=conv.padding, stride=conv.stride)  # type: ignore[arg-type]  # paddings by name are numbers here, see `blocks_of`
    return cells.view(len(x), x.shape[1], -1, cells.shape[2])[:, :, taps].permute(0, 3, 2, 1).flatten(2)


def _fold(block: ConvolutionBlock, patches: Tensor, shape: tuple[int, ...], taps: Tensor) -> Tensor:
    """Sums of all copies of a cell in the patches."""
    conv, (channels, height, width) = block.conv, shape
    if conv.stride == (1, 1) and isinstance(conv.padding, tuple):
        (above, left), places = conv.padding, _places(shape, conv.kernel_size, conv.padding)
        total = torch.zeros(len(patches), height + 2 * above, width + 2 * left, channels, dtype=patches.dtype)
        copies = patches.reshape(len(patches), *places, len(taps), channels)
        for i, (row, column) in enumerate(_at(block, taps)):
            total[:, row : row + places[0], column : column + places[1]] += copies[:, :, :, i]
        return total[:, above : above + height, left : left + width].permute(0, 3, 1, 2)
    size = conv.kernel_size[0] * conv.kernel_size[1]
    every = torch.zeros(len(patches), channels, size, patches.shape[1])
    every[:, :, taps] = patches.reshape(len(patches), -1, len(taps), channels).permute(0, 3, 2, 1)
    flat = every.view(len(patches), channels * size, -1)
    return functional.fold(flat, shape[1:], conv.kernel_size, padding=conv.padding, stride=conv.stride)  # type: ignore[arg-type]  # paddings by name are numbers here, see `blocks_of`


def _at(block: ConvolutionBlock, taps: Tensor) -> list[tuple[int, int]]:
    """The taps' rows and columns."""
    return [divmod(tap, block.conv.kernel_size[1]) for tap in taps.tolist()]


def _places(shape: tuple[int, ...], kernel: tuple[int, ...], padding: tuple[int, ...]) -> tuple[int, int]:
    """Positions of a kernel that moves by one cell, down and across."""
    return shape[1] + 2 * padding[0] - kernel[0] + 1, shape[2] + 2 * padding[1] - kernel[1] + 1


def _windows(block: ConvolutionBlock, pooled: torch.Size, hidden: torch.Size) -> Tensor:
    """Which pooled cell every position belongs to."""
    assert block.pool is not None
    height, width = hidden[2:]
    rows = (torch.arange(height) // _pair(block.pool.stride)[0]).clamp_max(pooled[2] - 1)
    columns = (torch.arange(width) // _pair(block.pool.stride)[1]).clamp_max(pooled[3] - 1)
    return rows[:, None] * pooled[3] + columns[None, :]


def _spread_of(off: Tensor, where: Tensor) -> Tensor:
    """A row's squared noise, from the usual size of what is off at the places that count; the few wrong ones hardly do."""
    off = torch.where(
        where[:, ::CHANNELS_PER_NOISE_SAMPLE], off[:, ::CHANNELS_PER_NOISE_SAMPLE].abs(), torch.nan
    ).flatten(1)
    middle = off.nanmedian(dim=1).values.nan_to_num(0.0).clamp_min(1e-9)
    return (middle**2).view(-1, 1, 1, 1)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _best(block: ConvolutionBlock, agreement: Tensor) -> Tensor:
    assert block.pool is not None
    pool = block.pool
    winners: Tensor = functional.max_pool2d(
        agreement, pool.kernel_size, pool.stride, pool.padding, ceil_mode=pool.ceil_mode, return_indices=True
    )[1]
    return winners


def _inverse(gram: Tensor, share: float) -> Tensor:
    """The inverse with a share of the mean diagonal added, in units of that mean: however small gradients are it is there, and
    0 for a row that is not finite. It is much smaller than what it is multiplied with, so that this is the fast way."""
    mean = gram.diagonal(dim1=1, dim2=2).mean(dim=1).view(-1, 1, 1)
    mean = torch.where((mean > 0) & mean.isfinite(), mean, 1.0)
    damped = gram / mean + share * torch.eye(gram.shape[1])
    half, failed = torch.linalg.cholesky_ex(damped)
    rounded = failed != 0  # not positive any more, for rounding
    half[rounded] = torch.eye(gram.shape[1])
    inverse: Tensor = torch.cholesky_inverse(half)
    if rounded.any():
        inverse[rounded] = torch.linalg.inv_ex(damped[rounded]).inverse
    return (inverse / mean).nan_to_num(0.0, 0.0, 0.0)
