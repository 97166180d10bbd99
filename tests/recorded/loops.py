"""Small split-learning loops in plain PyTorch to put a tap around, and the example of the docs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import nn

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def example() -> ModuleType:
    """docs/examples/split_learning.py, as it stands."""
    spec = importlib.util.spec_from_file_location("split_learning", EXAMPLES / "split_learning.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class World:
    """Two passive parties, an active one with a top network, and rows for them."""

    def __init__(self, rows: int = 120, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.shop = np.column_stack([rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)]).astype(np.float32)
        self.club = rng.normal(size=(rows, 2)).astype(np.float32)
        self.label = (self.shop[:, 0] + self.club[:, 0] > 0).astype(np.int64)
        self.bottoms = {
            "shop": nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.2)),
            "club": nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6)),
        }
        self.top = nn.Linear(6, 2)

    @property
    def modules(self) -> list[nn.Module]:
        return [*self.bottoms.values(), self.top]

    @property
    def settings(self) -> dict[str, object]:
        """What a tap is told."""
        columns = {"shop": self.shop, "club": self.club}
        return {"active": "bank", "passive": self.bottoms, "columns": columns, "label": self.label}

    def batches(self, size: int = 40, seed: int = 1) -> list[torch.Tensor]:
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(self.label)))
        return list(order.split(size))

    def train(self, epochs: int = 2) -> None:
        optimizer = torch.optim.Adam([p for m in self.modules for p in m.parameters()], lr=0.01)
        shop, club, label = map(torch.from_numpy, (self.shop, self.club, self.label))
        for module in self.modules:
            module.train()
        for epoch in range(epochs):
            for batch in self.batches(seed=epoch):
                joined = self.bottoms["shop"](shop[batch]) + self.bottoms["club"](club[batch])
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.top(joined), label[batch]).backward()
                optimizer.step()

    def predict(self, size: int = 50) -> dict[str, np.ndarray]:
        """All rows in order, in batches, as the bottoms are now."""
        tables, outputs = {"shop": torch.from_numpy(self.shop), "club": torch.from_numpy(self.club)}, {}
        for name, module in self.bottoms.items():
            module.eval()
            with torch.no_grad():
                outputs[name] = torch.cat([module(part) for part in tables[name].split(size)]).numpy()
        return outputs

    def state(self) -> list[bytes]:
        return [value.numpy().tobytes() for module in self.modules for value in module.state_dict().values()]
