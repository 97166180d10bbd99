"""Blocks inverted from their outputs: least squares with the pooling's winners and the slopes fixed, taken anew at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumbob.attacks.gradients._network_blocks import ConvolutionBlock, through
from plumbob.lazy_imports import Tensor, functional, torch

INVERTED_TOGETHER = 64  # rows solved together
INVERSION_STEPS = 24  # at most
SOLVES = 24  # steps of conjugate gradients in each
# Share of the squared residual at which they end before: winners change yet, so that more is lost work
RESIDUAL_TO_STOP_AT = 0.05
FINELY = 1e-4  # the same for rows that this leaves unsolved
INVERSION_PATIENCE = 3  # steps that may pass until a row's residual is below
LESS = 0.8  # this share of what it was; then the row is left alone
DAMPED = 1e-4  # share of the curvature
DONE = 3e-5  # share of the target's size at which a row's residual counts as gone


@dataclass(frozen=True)
class Sight:
    """What blocks made of some rows' inputs, where it is sure. Rows may be seen through several, each with its own parameters
    and a weight in the sum of squares.
    """

    blocks: list[ConvolutionBlock]
    y: Tensor
    rows: Tensor
    sure: Tensor
    weight: Tensor  # by row

    @classmethod
    def of(
        cls,
        blocks: list[ConvolutionBlock],
        y: Tensor,
        rows: Tensor,
        inputs: tuple[int, ...],
        weight: Tensor | None = None,
    ) -> Sight:
        """Of outputs that are sure and may be flat."""
        shape = through(blocks, torch.zeros(1, *inputs, dtype=y.dtype)).shape[1:]
        y = y.reshape(len(y), *shape)
        return cls(blocks, y, rows, torch.ones_like(y), torch.ones(len(y)) if weight is None else weight)


def invert(
    block: ConvolutionBlock,
    y: Tensor,
    shape: tuple[int, ...],
    sure: Tensor,
    near: Tensor | None = None,
    low: float | None = None,
    solved: float = RESIDUAL_TO_STOP_AT,
) -> Tensor:
    """The block's inputs from its outputs where they are sure; in [0, 1], or from `low` upwards where one is given."""
    start = torch.full((len(y), *shape), 0.5) if near is None else near
    sight = Sight([block], y, torch.arange(len(y)), sure, torch.ones(len(y)))
    return _gauss_newton([sight], start, 1e-3, low, solved)


def polish(blocks: list[ConvolutionBlock], x: Tensor, y: Tensor, solved: float = RESIDUAL_TO_STOP_AT) -> Tensor:
    """All blocks at once, from inputs in [0, 1] whose winners are nearly all right."""
    parts = zip(torch.split(x, INVERTED_TOGETHER), torch.split(y, INVERTED_TOGETHER), strict=True)
    with torch.no_grad():
        sights = [(near, Sight.of(blocks, top, torch.arange(len(top)), tuple(x.shape[1:]))) for near, top in parts]
        done = [_gauss_newton([sight], near, 1e-5, None, solved) for near, sight in sights]
    return torch.cat(done) if done else x


def agree(sights: list[Sight], x: Tensor) -> Tensor:
    """Inputs in [0, 1] near `x` that give what is seen of them through all sights."""
    with torch.no_grad():
        return _gauss_newton(sights, x, None, None, FINELY)


def _gauss_newton(
    sights: list[Sight], start: Tensor, damping: float | None, low: float | None, solved: float = RESIDUAL_TO_STOP_AT
) -> Tensor:
    """Steps of least squares with winners and slopes fixed at each; rows whose residual is gone, or falls no more, are left in
    peace."""
    best, smallest = start.clone(), torch.full((len(start),), torch.inf)
    waited, mark = torch.zeros(len(start)), torch.full((len(start),), torch.inf)
    targets = [sight.blocks[-1].unacted(sight.y) for sight in sights]
    rows, x = torch.arange(len(start)), start
    for _ in range(INVERSION_STEPS + 1):
        place = torch.full((len(start),), -1)
        place[rows] = torch.arange(len(rows))
        looks, off, size = [], torch.zeros(len(rows)), torch.zeros(len(rows))
        for sight, (target, slope) in zip(sights, targets, strict=True):
            mine = place[sight.rows] >= 0
            at = place[sight.rows][mine]
            weight = sight.weight[mine]
            look = _Look.taken(sight.blocks, x[at], target[mine], slope[mine], sight.sure[mine], weight, at)
            off.index_add_(0, at, weight * _dot(look.residual, look.residual).flatten())
            size.index_add_(0, at, weight * _dot(target[mine], target[mine]).flatten())
            looks.append(look)
        off = off / size.clamp_min(1e-30)
        less = off < LESS**2 * mark[rows]
        waited[rows] = torch.where(less, 0.0, waited[rows] + 1)
        mark[rows] = torch.where(less, off, mark[rows])
        better = off < smallest[rows]
        best[rows[better]], smallest[rows[better]] = x[better], off[better]
        gone = (DONE if start.dtype == torch.float32 else DONE**2) ** 2
        left = (off > gone) & (waited[rows] < INVERSION_PATIENCE)
        if not left.any():
            break
        step = _least_squares([look.of(left) for look in looks], damping, x[left], low, solved)
        rows, x = rows[left], x[left] + step
        x = x.clamp(0.0, 1.0) if low is None else x.clamp_min(low)
    return best


@dataclass(frozen=True)
class Tangent:
    """A block's linear part at some inputs: winners and slopes fixed."""

    block: ConvolutionBlock
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


@dataclass(frozen=True)
class _Look:
    """A sight's linear part at some inputs, which are at the places `at` among all, and what it is off there."""

    tangents: list[Tangent]
    weight: Tensor
    residual: Tensor
    at: Tensor

    @classmethod
    def taken(
        cls,
        blocks: list[ConvolutionBlock],
        x: Tensor,
        target: Tensor,
        slope: Tensor,
        sure: Tensor,
        weight: Tensor,
        at: Tensor,
    ) -> _Look:
        inside, tangents, live = x, [], slope > 0
        for block in blocks:
            z, winners, hidden = block.before(inside)
            last = block is blocks[-1]
            tangents.append(Tangent(block, winners, hidden, tuple(inside.shape[1:]), None if last else block.slope(z)))
            inside = block.act(z)
        residual = target - z
        residual = torch.where(live, residual, residual.clamp_max(0.0)) * sure
        return cls(tangents, (live | (residual < 0)) * sure * weight.view(-1, 1, 1, 1), residual, at)

    def of(self, left: Tensor) -> _Look:
        """The same for some of all inputs."""
        mine, places = left[self.at], left.cumsum(0) - 1
        tangents = [tangent.of(mine) for tangent in self.tangents]
        return _Look(tangents, self.weight[mine], self.residual[mine], places[self.at[mine]])

    def forward(self, d: Tensor) -> Tensor:
        d = d[self.at]
        for tangent in self.tangents:
            d = tangent.forward(d)
        return d

    def backward(self, g: Tensor) -> Tensor:
        g = self.weight * g
        for tangent in reversed(self.tangents):
            g = tangent.backward(g)
        return g


def _least_squares(looks: list[_Look], damping: float | None, x: Tensor, low: float | None, solved: float) -> Tensor:
    """Conjugate gradients for the step that removes the residual, a little damped (by a share of the curvature along the
    gradient, if no number is given); what would leave the box at once stays.
    """

    def back(parts: list[Tensor]) -> Tensor:
        total = torch.zeros_like(x)
        for look, part in zip(looks, parts, strict=True):
            total.index_add_(0, look.at, look.backward(part))
        return total

    right = back([look.residual for look in looks])
    leaving = (x <= (low or 0.0)) & (right < 0)
    free = (~(leaving if low is not None else leaving | ((x >= 1) & (right > 0)))).to(x.dtype)
    right = right * free
    step, left, along, size = torch.zeros_like(right), right, right, _dot(right, right)
    first = size
    damped: float | Tensor = damping or 0.0
    for turn in range(SOLVES):
        image = back([look.forward(along) for look in looks])
        if damping is None and turn == 0:
            damped = DAMPED * _dot(along, image) / size.clamp_min(1e-30)
        image = (image + damped * along) * free
        length = size / _dot(along, image).clamp_min(1e-30)
        step, left = step + length * along, left - length * image
        following = _dot(left, left)
        if bool((following <= solved * first).all()):
            break
        along, size = left + following / size.clamp_min(1e-30) * along, following
    return step


def _dot(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = (a * b).flatten(1).sum(dim=1).view(-1, 1, 1, 1)
    return product
