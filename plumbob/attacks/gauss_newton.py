"""Blocks inverted from their outputs: least squares with the pooling's winners and the slopes fixed, taken anew at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumbob.attacks.blocks import Block, through
from plumbob.later import Tensor, functional, torch

CHUNK = 64  # rows solved together
STEPS, POLISH = 8, 8  # steps on one block, and on all at once
SOLVES = 24  # steps of conjugate gradients in each
SOLVED = 1e-6  # share of the squared residual at which they end before
DONE = 1e-5  # share of the target's size at which a row's residual counts as gone


def invert(
    block: Block, y: Tensor, shape: tuple[int, ...], sure: Tensor, near: Tensor | None = None, low: float | None = None
) -> Tensor:
    """The block's inputs from its outputs where they are sure; in [0, 1], or from `low` upwards where one is given."""
    start = torch.full((len(y), *shape), 0.5) if near is None else near
    return _gauss_newton([block], start, y, sure, STEPS, 1e-3, low)


def polish(blocks: list[Block], x: Tensor, y: Tensor) -> Tensor:
    """All blocks at once, from inputs in [0, 1] whose winners are nearly all right."""
    with torch.no_grad():
        shape = blocks[-1].forward(through(blocks[:-1], x[:1])).shape[1:]
        parts = zip(torch.split(x, CHUNK), torch.split(y.reshape(len(y), *shape), CHUNK), strict=True)
        done = [_gauss_newton(blocks, near, top, torch.ones_like(top), POLISH, 1e-5, None) for near, top in parts]
    return torch.cat(done) if done else x


def _gauss_newton(
    blocks: list[Block], start: Tensor, y: Tensor, sure: Tensor, steps: int, damping: float, low: float | None
) -> Tensor:
    """Steps of least squares with winners and slopes fixed at each; rows whose residual is gone are left in peace."""
    best, smallest = start.clone(), torch.full((len(y),), torch.inf)
    target, slope = blocks[-1].unacted(y)
    rows, x = torch.arange(len(y)), start
    for _ in range(steps + 1):
        wanted, live = target[rows], slope[rows] > 0
        inside, tangents = x, []
        for block in blocks:
            z, winners, hidden = block.before(inside)
            last = block is blocks[-1]
            tangents.append(Tangent(block, winners, hidden, tuple(inside.shape[1:]), None if last else block.slope(z)))
            inside = block.act(z)
        residual = wanted - z
        residual = torch.where(live, residual, residual.clamp_max(0.0)) * sure[rows]
        off = (_dot(residual, residual) / _dot(wanted, wanted).clamp_min(1e-30)).flatten()
        better = off < smallest[rows]
        best[rows[better]], smallest[rows[better]] = x[better], off[better]
        left = off > (DONE if y.dtype == torch.float32 else DONE**2) ** 2
        if not left.any():
            break
        weight = (live | (residual < 0)) * sure[rows]
        step = _least_squares([t.of(left) for t in tangents], weight[left], residual[left], damping, x[left], low)
        rows, x = rows[left], x[left] + step
        x = x.clamp(0.0, 1.0) if low is None else x.clamp_min(low)
    return best


@dataclass(frozen=True)
class Tangent:
    """A block's linear part at some inputs: winners and slopes fixed."""

    block: Block
    winners: Tensor | None
    hidden: torch.Size
    shape: tuple[int, ...]
    slope: Tensor | None

    def of(self, rows: Tensor) -> Tangent:
        """The same for some of the rows."""
        winners, slope = self.winners, self.slope
        return replace(
            self, winners=None if winners is None else winners[rows], slope=None if slope is None else slope[rows]
        )

    def forward(self, d: Tensor) -> Tensor:
        conv, winners = self.block.conv, self.winners
        u = functional.conv2d(d, conv.weight, None, conv.stride, conv.padding, conv.dilation)
        u = u if winners is None else u.flatten(2).gather(2, winners.flatten(2)).view(winners.shape)
        return u if self.slope is None else u * self.slope

    def backward(self, g: Tensor) -> Tensor:
        g = g if self.slope is None else g * self.slope
        return self.block.back(self.block.spread(g, self.winners, self.hidden), self.shape)


def _least_squares(
    tangents: list[Tangent], weight: Tensor, residual: Tensor, damping: float, x: Tensor, low: float | None
) -> Tensor:
    """Conjugate gradients for the step that removes the residual, a little damped; what would leave the box at once stays."""

    def forward(d: Tensor) -> Tensor:
        for tangent in tangents:
            d = tangent.forward(d)
        return d

    def backward(g: Tensor) -> Tensor:
        for tangent in reversed(tangents):
            g = tangent.backward(g)
        return g

    right = backward(weight * residual)
    leaving = (x <= (low or 0.0)) & (right < 0)
    free = (~(leaving if low is not None else leaving | ((x >= 1) & (right > 0)))).to(x.dtype)
    right = right * free
    step, left, along, size = torch.zeros_like(right), right, right, _dot(right, right)
    first = size
    for _ in range(SOLVES):
        image = (backward(weight * forward(along)) + damping * along) * free
        length = size / _dot(along, image).clamp_min(1e-30)
        step, left = step + length * along, left - length * image
        following = _dot(left, left)
        if bool((following <= SOLVED * first).all()):
            break
        along, size = left + following / size.clamp_min(1e-30) * along, following
    return step


def _dot(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = (a * b).flatten(1).sum(dim=1).view(-1, 1, 1, 1)
    return product
