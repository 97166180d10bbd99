"""What the server of split training writes down of each round, where all of it would not fit into its room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.federation import IntArray
from plumbob.lazy_imports import torch

UNITS = 8  # of a large matrix, whose lines are written down in every round
SMALL = 8_192  # parameters with at most so many numbers are written down in every round


@dataclass(frozen=True)
class Archive:
    """What the server writes down. Everything, where there is room; else what an attack has use for.

    Small parameters in every round; of convolutions a few taps, in every round; of large matrices all, in
    rounds that hold a row none of the earlier such rounds held, and the lines of a few units in every other. While parameters
    move, also all in as many rounds of the rest as there is room for, from the beginning to the end.
    """

    everything: bool
    cells: dict[str, dict[str, IntArray]]  # by party and parameter: the cells kept in ordinary rounds
    covering: frozenset[int]
    matrices: frozenset[tuple[str, str]]

    @classmethod
    def of(
        cls,
        modules: Mapping[str, torch.nn.Module],
        order: Sequence[IntArray],
        rows: int,
        room_mb: int,
        moving: bool = False,
    ) -> Archive:
        sizes = [p.numel() for module in modules.values() for p in module.parameters()]
        each = 1e-6 * next(p.element_size() for module in modules.values() for p in module.parameters())
        if each * sum(sizes) * len(order) * (2 if moving else 1) <= room_mb:
            return cls(True, {}, frozenset(), frozenset())
        seen, covering = np.zeros(rows, dtype=bool), []
        for number, batch in enumerate(order):
            if not seen[batch].all():
                covering.append(number)
                seen[batch] = True
        cells = {
            name: {key: _some(p.shape) for key, p in module.named_parameters() if p.numel() > SMALL}
            for name, module in modules.items()
        }
        if moving:
            matrices = [p.numel() for module in modules.values() for p in module.parameters() if p.ndim == 2]
            rest = np.setdiff1d(np.arange(len(order)), covering)
            more = int(room_mb / (each * (sum(sizes) + sum(matrices)))) - len(covering)
            covering += rest[np.linspace(0, len(rest) - 1, min(max(more, 0), len(rest))).round().astype(int)].tolist()
        wide = {(n, key) for n, module in modules.items() for key, p in module.named_parameters() if p.ndim == 2}
        return cls(False, cells, frozenset(covering), frozenset(wide))

    def full(self, round: int) -> bool:
        return self.everything or round in self.covering or round == 0

    def kept(self, party: str, key: str, round: int) -> IntArray | None:
        """The cells of a parameter that are kept in a round; nothing for all of them."""
        cells = None if self.everything else self.cells[party].get(key)
        return None if cells is None or ((party, key) in self.matrices and round in self.covering) else cells


def _some(shape: Sequence[int]) -> IntArray:
    """Cells of a convolution's weights at five taps, a knight's move apart where it is wide enough for that, else those nearest
    its centre; of a matrix the lines of a few units."""
    if len(shape) != 4:
        units = np.unique(np.linspace(0, shape[0] - 1, UNITS).round().astype(np.int64))
        each = int(np.prod(shape[1:]))
        return np.asarray((units[:, None] * each + np.arange(each)).ravel())
    height, width = shape[2:]
    down, across = (np.indices((height, width)).reshape(2, -1).T - [(height - 1) // 2, (width - 1) // 2]).T
    apart = (down + 2 * across) % 5 != 0 if min(height, width) >= 5 else np.zeros(len(down), dtype=bool)
    taps = np.sort(np.lexsort((np.abs(down) + np.abs(across), apart))[:5])
    cells = np.arange(int(np.prod(shape))).reshape(*shape[:2], -1)[:, :, taps]
    return np.asarray(cells.ravel(), dtype=np.int64)
