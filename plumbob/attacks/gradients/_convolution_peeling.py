"""Convolutions undone from above, one block at a time (ours): Step III of jin2021 without descent from noise.

A block is y = pool(act(conv(x))). From above come y and the gradient d at y, for every row; wanted is x.
    below   If x has fewer cells than y, y alone determines it: with the winners of the pooling fixed the block is linear in
            x, so Gauss-Newton steps (least squares by conjugate gradients, winners taken anew) run into the exact answer.
    decoded If not, the rows' own weight gradients tell x and the winners (`_block_decoding.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from plumbob.attacks.gradients._block_decoding import decodable, decode
from plumbob.attacks.gradients._block_inversion import FINELY, INVERTED_TOGETHER, RESIDUAL_TO_STOP_AT, invert, polish
from plumbob.attacks.gradients._network_blocks import ConvolutionBlock, through
from plumbob.lazy_imports import Tensor, torch

ENOUGH = 1.25  # cells of y per cell of x from which y alone is asked
# Ways down at most, and the share of its size by which a representation may be missed
WAYS_DOWN, MISS_THAT_IS_CLOSE = 2, 1e-4


def peel(
    blocks: list[ConvolutionBlock],
    shape: tuple[int, ...],
    y: Tensor,
    above: Tensor,
    weights: Callable[[str, slice], tuple[Tensor, Tensor] | None],
    polished: bool = True,
) -> Tensor | None:
    """Inputs of the first block in [0, 1] from outputs `y` of the last and the gradients `above` at them; `polished` on all
    blocks at once.

    `weights` gives the rows' own gradients of a block's weights (rows x out x in x taps) with the taps they are of, if they
    are known. Nothing comes back where a block is not determined.
    """
    shapes = [torch.Size((1, *shape))]
    with torch.no_grad():
        for block in blocks:
            shapes.append(block.forward(torch.zeros(shapes[-1])).shape)
        found = []
        for start in range(0, len(y), INVERTED_TOGETHER):
            rows = slice(start, start + INVERTED_TOGETHER)
            own = {b.key: weights(b.key, rows) for b in blocks if _needs_gradients(b, shapes, blocks)}
            part = _peel_rows(blocks, shapes, y[rows], above[rows], own, polished)
            if part is None:
                return None
            found.append(part)
        return torch.cat(found)


def _peel_rows(
    blocks: list[ConvolutionBlock],
    shapes: list[torch.Size],
    y: Tensor,
    above: Tensor,
    own: dict[str, tuple[Tensor, Tensor] | None],
    polished: bool,
) -> Tensor | None:
    """Down block by block; then again from where the answer stands, for rows whose representation it does not give yet."""
    top = y.reshape(len(y), *shapes[-1][1:])
    gradient = above.reshape(top.shape)
    if any(part is None or not decodable(b, tuple(s[1:]), part[1]) for b, s, part in _asked(blocks, shapes, own)):
        return None
    x = torch.full((len(y), *shapes[0][1:]), 0.5)
    best = torch.full((len(y),), torch.inf)
    rows = torch.arange(len(y))
    for turn in range(WAYS_DOWN):
        mine = {key: (part[0][rows], part[1]) for key, part in own.items() if part is not None}
        solved = FINELY if turn else RESIDUAL_TO_STOP_AT
        moved = _down(blocks, shapes, top[rows], gradient[rows], mine, x[rows] if turn else None, solved)
        if not polished:
            return moved
        moved = polish(blocks, moved, top[rows], solved)
        reached = through(blocks, moved)
        off = (reached - top[rows]).flatten(1).norm(dim=1) / top[rows].flatten(1).norm(dim=1).clamp_min(1e-30)
        better = off < best[rows]
        x[rows[better]], best[rows[better]] = moved[better], off[better]
        rows = torch.nonzero(best > MISS_THAT_IS_CLOSE).flatten()
        if not len(rows):
            break
    return x


def _needs_gradients(block: ConvolutionBlock, shapes: list[torch.Size], blocks: list[ConvolutionBlock]) -> bool:
    """Whether a block's outputs are too few for its inputs; the first one is inverted in any case."""
    number = next(i for i, other in enumerate(blocks) if other is block)
    return number > 0 and shapes[number + 1].numel() < ENOUGH * shapes[number].numel()


def _asked(
    blocks: list[ConvolutionBlock], shapes: list[torch.Size], own: dict[str, tuple[Tensor, Tensor] | None]
) -> list[tuple[ConvolutionBlock, torch.Size, tuple[Tensor, Tensor] | None]]:
    return [(block, shape, own[block.key]) for block, shape in zip(blocks, shapes, strict=False) if block.key in own]


def _down(
    blocks: list[ConvolutionBlock],
    shapes: list[torch.Size],
    top: Tensor,
    gradient: Tensor,
    own: dict[str, tuple[Tensor, Tensor]],
    start: Tensor | None,
    solved: float,
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
            target = invert(block, target, shape, sure, near[number], 0.0 if number else None, solved)
            sure = torch.ones_like(target)
    return target
