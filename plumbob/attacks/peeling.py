"""Convolutions undone from above, one block at a time (ours): Step III of jin2021 without descent from noise.

A block is y = pool(act(conv(x))). From above come y and the gradient d at y, for every row; wanted is x.
    below   If x has fewer cells than y, y alone determines it: with the winners of the pooling fixed the block is linear in
            x, so Gauss-Newton steps (least squares by conjugate gradients, winners taken anew) run into the exact answer.
    decoded If not, the rows' own weight gradients help: they are D' P, with P the patches of x (positions x taps) and D the
            gradient at the convolution's outputs, which is d put at each window's winner. Where channels >= positions, P is a
            least-squares solution given D, and D one given P; each window's winner is the cell at which both agree best.
            Starting with d spread over the window, a handful of rounds finds all winners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from plumbob.attacks.blocks import Block, through
from plumbob.attacks.gauss_newton import CHUNK, invert, polish
from plumbob.later import Tensor, functional, torch

ENOUGH = 1.25  # cells of y per cell of x from which y alone is asked
DECODES = 12  # rounds of decoding
SETTLED = 3  # rounds after which winners that stay the same are taken for right
PASSES, CLOSE = 2, 1e-4  # ways down at most, and the share of its size by which a representation may be missed


def peel(
    blocks: list[Block],
    shape: tuple[int, ...],
    y: Tensor,
    above: Tensor,
    weights: Callable[[str, slice], tuple[Tensor, Tensor] | None],
) -> Tensor | None:
    """Inputs of the first block in [0, 1] from outputs `y` of the last and the gradients `above` at them.

    `weights` gives the rows' own gradients of a block's weights (rows x out x in x taps) with the taps they are of, if they
    are known. Nothing comes back where a block is not determined.
    """
    shapes = [torch.Size((1, *shape))]
    with torch.no_grad():
        for block in blocks:
            shapes.append(block.forward(torch.zeros(shapes[-1])).shape)
        found = []
        for start in range(0, len(y), CHUNK):
            rows = slice(start, start + CHUNK)
            part = _peel_rows(blocks, shapes, y[rows], above[rows], lambda key, rows=rows: weights(key, rows))  # type: ignore[misc]
            if part is None:
                return None
            found.append(part)
        return torch.cat(found)


def _peel_rows(
    blocks: list[Block],
    shapes: list[torch.Size],
    y: Tensor,
    above: Tensor,
    weights: Callable[[str], tuple[Tensor, Tensor] | None],
) -> Tensor | None:
    """Down block by block; then again from where the answer stands, for rows whose representation it does not give yet."""
    top = y.reshape(len(y), *shapes[-1][1:])
    gradient = above.reshape(top.shape)
    own = {block.key: weights(block.key) for block in blocks if _needs_gradients(block, shapes, blocks)}
    if any(part is None or not decodable(b, tuple(s[1:]), part[1]) for b, s, part in _asked(blocks, shapes, own)):
        return None
    x = torch.full((len(y), *shapes[0][1:]), 0.5)
    best = torch.full((len(y),), torch.inf)
    rows = torch.arange(len(y))
    for turn in range(PASSES):
        mine = {key: (part[0][rows], part[1]) for key, part in own.items() if part is not None}
        moved = _down(blocks, shapes, top[rows], gradient[rows], mine, x[rows] if turn else None)
        moved = polish(blocks, moved, top[rows])
        reached = through(blocks, moved)
        off = (reached - top[rows]).flatten(1).norm(dim=1) / top[rows].flatten(1).norm(dim=1).clamp_min(1e-30)
        better = off < best[rows]
        x[rows[better]], best[rows[better]] = moved[better], off[better]
        rows = torch.nonzero(best > CLOSE).flatten()
        if not len(rows):
            break
    return x


def _needs_gradients(block: Block, shapes: list[torch.Size], blocks: list[Block]) -> bool:
    """Whether a block's outputs are too few for its inputs; the first one is inverted in any case."""
    number = next(i for i, other in enumerate(blocks) if other is block)
    return number > 0 and shapes[number + 1].numel() < ENOUGH * shapes[number].numel()


def _asked(
    blocks: list[Block], shapes: list[torch.Size], own: dict[str, tuple[Tensor, Tensor] | None]
) -> list[tuple[Block, torch.Size, tuple[Tensor, Tensor] | None]]:
    return [(block, shape, own[block.key]) for block, shape in zip(blocks, shapes, strict=False) if block.key in own]


def _down(
    blocks: list[Block],
    shapes: list[torch.Size],
    top: Tensor,
    gradient: Tensor,
    own: dict[str, tuple[Tensor, Tensor]],
    start: Tensor | None,
) -> Tensor:
    """One way down, from nothing or from inputs that are near."""
    near: list[Tensor | None] = [start]
    for block in blocks[:-1]:
        near.append(None if near[-1] is None else block.forward(near[-1]))
    target, outer, sure = top, gradient, torch.ones_like(top)
    for number in range(len(blocks) - 1, -1, -1):
        block, shape = blocks[number], tuple(shapes[number][1:])
        if block.key in own:
            target, inner, sure = decode(block, target, outer, shape, *own[block.key], near=near[number])
            outer = block.back(inner, shape)
        else:
            target = invert(block, target, shape, sure, near=near[number], low=0.0 if number else None)
            sure = torch.ones_like(target)
    return target


def decodable(block: Block, shape: tuple[int, ...], taps: Tensor) -> bool:
    """Whether patches follow from weight gradients: as many channels as positions, and every cell under some tap."""
    positions = block.conv(torch.zeros(1, *shape))[0, 0].numel()
    covered = _fold(block, torch.ones(1, shape[0], len(taps), positions), shape, taps)
    return block.conv.out_channels >= positions and bool((covered > 0).all()) and block.conv.dilation == (1, 1)


def _unfold(block: Block, x: Tensor, taps: Tensor) -> Tensor:
    """Patches: rows x channels x taps x positions."""
    conv = block.conv
    cells = functional.unfold(x, conv.kernel_size, padding=conv.padding, stride=conv.stride)  # type: ignore[arg-type]
    return cells.view(len(x), x.shape[1], -1, cells.shape[2])[:, :, taps]


def _fold(block: Block, patches: Tensor, shape: tuple[int, ...], taps: Tensor) -> Tensor:
    """Sums of all copies of a cell in the patches."""
    conv = block.conv
    if conv.stride == (1, 1) and isinstance(conv.padding, tuple):
        return _shifted(patches, shape, taps, conv.kernel_size, conv.padding)
    size = conv.kernel_size[0] * conv.kernel_size[1]
    every = torch.zeros(len(patches), shape[0], size, patches.shape[3])
    every[:, :, taps] = patches
    flat = every.view(len(patches), shape[0] * size, -1)
    return functional.fold(flat, shape[1:], conv.kernel_size, padding=conv.padding, stride=conv.stride)  # type: ignore[arg-type]


def _shifted(
    patches: Tensor, shape: tuple[int, ...], taps: Tensor, kernel: tuple[int, ...], padding: tuple[int, ...]
) -> Tensor:
    """The same with a stride of 1, where every tap's copies are the whole picture, moved."""
    (channels, height, width), (above, left) = shape, padding
    places = height + 2 * above - kernel[0] + 1, width + 2 * left - kernel[1] + 1
    total = torch.zeros(len(patches), channels, height + 2 * above, width + 2 * left, dtype=patches.dtype)
    for i, tap in enumerate(taps.tolist()):
        row, column = divmod(tap, kernel[1])
        moved = patches[:, :, i].reshape(len(patches), -1, *places)
        total[:, :, row : row + places[0], column : column + places[1]] += moved
    return total[:, :, above : above + height, left : left + width]


@dataclass(frozen=True)
class _Decoding:
    """What is known of some rows of a block, laid out for decoding."""

    block: Block
    shape: tuple[int, ...]
    taps: Tensor
    flat: Tensor  # rows x out x (in taps): the rows' own weight gradients
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
        told = (inverse * gram).sum(dim=2).clamp(0.0, 1.0).pow(8)[:, None, None]
        if self.near is None:
            patches = inverse @ (inner @ self.flat)
        else:
            held = _unfold(self.block, self.near, self.taps).flatten(1, 2).transpose(1, 2)
            patches = held + inverse @ (inner @ (self.flat - inner.transpose(1, 2) @ held))
            told = told.clamp_min(1e-3)
        channels, taps = self.shape[0], len(self.taps)
        patches = patches.transpose(1, 2).reshape(len(outer), channels, taps, -1)
        seen = _fold(self.block, told.expand(-1, 1, taps, -1), (1, *self.shape[1:]), self.taps)
        return _fold(self.block, patches * told, self.shape, self.taps) / seen.clamp_min(1e-6), seen

    def winners(self, x: Tensor, outer: Tensor) -> Tensor:
        """The cell of each window at which the gradient and the output that these inputs ask for agree best with the known."""
        x = x.clamp_min(0.0)
        cells = _unfold(self.block, x, self.taps).flatten(1, 2)
        wanted = self.flat @ (cells @ _inverse(cells.transpose(1, 2) @ cells, 1e-4))
        wanted, ahead = wanted.view(outer.shape), self.block.conv(x)
        spread, missed = self._over_windows(self.known), ahead - self._over_windows(self.target)
        here = outer != 0
        noise = _spread_of(wanted - outer, here), _spread_of(missed, here)
        return _best(self.block, 2 * wanted * spread / noise[0] - missed**2 / noise[1])


def decode(
    block: Block,
    y: Tensor,
    above: Tensor,
    shape: tuple[int, ...],
    weights: Tensor,
    taps: Tensor,
    near: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The block's inputs, the gradient at its convolution's outputs, and how far inputs were determined.

    With inputs that are `near`, their winners are taken first, and what gradients do not tell stays as it is there. Rows whose
    winners stay the same are left alone until all are looked at for the last time.
    """
    target, slope = block.unacted(y)
    hidden = block.conv(torch.zeros(1, *shape)).shape
    window = None if block.pool is None else _windows(block, target.shape, hidden)
    flat = weights.reshape(len(y), y.shape[1], -1)
    every = _Decoding(block, shape, taps, flat, target, above * slope, window, hidden, near)
    outer = every.start()
    turns = 0 if every.window is None else DECODES if near is None else 3
    rows, some = torch.arange(len(y)), every
    for turn in range(turns - 1):
        x, _ = some.inputs(outer[rows], _share(turn, near is None))
        moved = some.spread(some.winners(x, outer[rows]))
        moving = (moved != outer[rows]).flatten(1).any(dim=1)
        outer[rows] = moved
        if turn >= SETTLED and not moving.all():
            rows, some = rows[moving], some.of_rows(moving)
        if not len(rows):
            break
    x, seen = every.inputs(outer, _share(max(turns - 1, 0), near is None))
    if turns:
        outer = every.spread(every.winners(x, outer))
    return x, outer, seen.clamp_max(1.0).expand(-1, shape[0], -1, -1)


def _share(turn: int, from_nothing: bool) -> float:
    """How far least squares are damped: less in every turn, if winners are not known yet."""
    return 1e-2 * 0.4**turn + 1e-7 if from_nothing else 1e-5


def _windows(block: Block, pooled: torch.Size, hidden: torch.Size) -> Tensor:
    """Which pooled cell every position belongs to."""
    assert block.pool is not None
    height, width = hidden[2:]
    rows = (torch.arange(height) // _pair(block.pool.stride)[0]).clamp_max(pooled[2] - 1)
    columns = (torch.arange(width) // _pair(block.pool.stride)[1]).clamp_max(pooled[3] - 1)
    return rows[:, None] * pooled[3] + columns[None, :]


def _spread_of(off: Tensor, where: Tensor) -> Tensor:
    """A row's squared noise, from the mean size of what is off at the places that count; the few wrong ones hardly do."""
    off = torch.where(where, off.abs(), torch.nan).flatten(1)
    middle = off.nanmedian(dim=1).values.nan_to_num(0.0).clamp_min(1e-9)
    return (middle**2).view(-1, 1, 1, 1)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _best(block: Block, agreement: Tensor) -> Tensor:
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
    inverse: Tensor = torch.linalg.inv_ex(gram / mean + share * torch.eye(gram.shape[1])).inverse / mean
    return inverse.nan_to_num(0.0, 0.0, 0.0)
