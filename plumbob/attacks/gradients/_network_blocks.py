"""Networks as chains of blocks, pool(act(conv(x))), and what it takes to go through one in either direction."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

from plumbob.attacks.gradients._row_gradients import DEAD
from plumbob.lazy_imports import Tensor, functional, nn, torch

FEW_CHANNELS = 4  # channels


def activations() -> tuple[type[nn.Module], ...]:
    """Those whose slope is known here."""
    return nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Identity


@dataclass(frozen=True)
class ConvolutionBlock:
    """One convolution with what follows it, and the name under which its weights' gradients came."""

    key: str
    conv: nn.Conv2d
    act: nn.Module
    pool: nn.MaxPool2d | None

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.act(self.conv(x))
        return out if self.pool is None else self.pool(out)

    def before(self, x: Tensor) -> tuple[Tensor, Tensor | None, torch.Size]:
        """The convolution's outputs at the winners, which they are, and the shape before pooling."""
        u: Tensor = self.conv(x)
        if self.pool is None:
            return u, None, u.shape
        z, winners = functional.max_pool2d(
            u,
            self.pool.kernel_size,
            self.pool.stride,
            self.pool.padding,
            ceil_mode=self.pool.ceil_mode,
            return_indices=True,
        )
        return z, winners, u.shape

    def spread(self, y: Tensor, winners: Tensor | None, shape: torch.Size) -> Tensor:
        """Cells of y put at their winners, zero elsewhere."""
        if winners is None:
            return y
        flat = torch.zeros(len(y), y.shape[1], shape[2] * shape[3])
        return flat.scatter_add_(2, winners.flatten(2), y.flatten(2)).view(len(y), y.shape[1], *shape[2:])

    def back(self, outer: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The transposed convolution: gradients at its outputs to those at its inputs."""

        conv = self.conv
        if conv.in_channels <= FEW_CHANNELS and isinstance(
            conv.padding, tuple
        ):  # torch's own way is made for many channels
            patches = conv.weight.flatten(1).t() @ outer.flatten(2)
            return functional.fold(patches, shape[1:], conv.kernel_size, conv.dilation, conv.padding, conv.stride)
        inner: Tensor = torch.nn.grad.conv2d_input(  # type: ignore[attr-defined]  # torch has no types for it
            (len(outer), *shape), conv.weight, outer, conv.stride, conv.padding, conv.dilation
        )
        return inner

    def slope(self, z: Tensor) -> Tensor:
        """The activation's slope at these arguments."""
        act = self.act
        if isinstance(act, nn.ReLU | nn.LeakyReLU):
            return torch.where(z > 0, 1.0, act.negative_slope if isinstance(act, nn.LeakyReLU) else 0.0)
        return self.unacted(act(z))[1]

    def unacted(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Arguments of the activation at which it has these values, and its slopes there; slope 0 where it is flat."""
        act = self.act
        if isinstance(act, nn.ReLU):
            # What is solved for is never exactly 0: how far below 0 it goes shows how far above it noise reaches.
            noise = torch.where(y < 0, y, 0.0).pow(2).flatten(1).sum(dim=1) / (y < 0).flatten(1).sum(dim=1).clamp_min(1)
            floor = torch.maximum(4 * noise.sqrt(), DEAD * y.flatten(1).amax(dim=1)).view(-1, 1, 1, 1)
            alive = y > floor
            return torch.where(alive, y, 0.0), alive.to(y.dtype)
        if isinstance(act, nn.LeakyReLU):
            slope = torch.where(y > 0, 1.0, act.negative_slope)
            return y / slope, slope
        if isinstance(act, nn.Sigmoid):
            inner = y.clamp(1e-7, 1 - 1e-7)
            return torch.logit(inner), inner * (1 - inner)
        if isinstance(act, nn.Tanh):
            inner = y.clamp(-1 + 1e-7, 1 - 1e-7)
            return torch.atanh(inner), 1 - inner**2
        return y, torch.ones_like(y)


def chain_of(module: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """The parts of a plain chain in the order in which they run, by name; nothing if the module is anything else."""
    if not _plain(module):
        return None
    # A part may stand in several places, as one ReLU for all layers; one with parameters has the sum of its gradients.
    parts = [(name, part) for name, part in module.named_modules(remove_duplicate=False) if not _plain(part)]
    weighty = [id(part) for _, part in parts if any(True for _ in part.parameters())]
    return parts if len(set(weighty)) == len(weighty) else None


def _plain(part: nn.Module) -> bool:
    return isinstance(part, nn.Sequential) and type(part).forward is nn.Sequential.forward


def blocks_of(module: nn.Module, until: nn.Module) -> list[ConvolutionBlock] | None:
    """The blocks before a layer, if the module is a plain chain of such; nothing if it is anything else."""
    chain = chain_of(module)
    if chain is None:
        return None
    before = chain[: next(i for i, (_, part) in enumerate(chain) if part is until)]
    blocks: list[ConvolutionBlock] = []
    for name, part in before:
        if isinstance(part, nn.Conv2d) and part.groups == 1 and part.padding_mode == "zeros":
            numbered = _numbered(part)
            if numbered is None:
                return None
            blocks.append(ConvolutionBlock(name, numbered, nn.Identity(), None))
        elif isinstance(part, nn.Flatten):
            continue
        elif (
            blocks
            and blocks[-1].pool is None
            and isinstance(blocks[-1].act, nn.Identity)
            and isinstance(part, activations())
        ):
            blocks[-1] = ConvolutionBlock(blocks[-1].key, blocks[-1].conv, part, None)
        elif blocks and blocks[-1].pool is None and isinstance(part, nn.MaxPool2d) and part.dilation == 1:
            blocks[-1] = ConvolutionBlock(blocks[-1].key, blocks[-1].conv, blocks[-1].act, part)
        else:
            return None
    return blocks


def _numbered(conv: nn.Conv2d) -> nn.Conv2d | None:
    """The same with its padding as numbers; nothing where it is not the same on both sides."""
    if not isinstance(conv.padding, str):
        return conv
    wide = [(side - 1) * apart for side, apart in zip(conv.kernel_size, conv.dilation, strict=True)]
    if conv.padding == "same" and any(both % 2 for both in wide):
        return None
    same = copy(conv)
    same.padding = (wide[0] // 2, wide[1] // 2) if conv.padding == "same" else (0, 0)
    return same


def inside(
    blocks: list[ConvolutionBlock], shape: tuple[int, ...]
) -> dict[str, tuple[ConvolutionBlock, tuple[int, ...]]]:
    """Blocks by name, each with the shape of its inputs."""
    found = {}
    for block in blocks:
        found[block.key] = block, shape
        with torch.no_grad():
            shape = tuple(block.forward(torch.zeros(1, *shape)).shape[1:])
    return found


def through(blocks: list[ConvolutionBlock], x: Tensor) -> Tensor:
    """Outputs of the last block."""
    for block in blocks:
        x = block.forward(x)
    return x
