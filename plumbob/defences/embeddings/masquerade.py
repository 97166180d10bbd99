"""Masquerade (ye2022, Algorithm 4): fabricated bits replace one dimension of the columns.

    z = [P | u] [Q x; a],   Q of d - 1 rows for d columns, a one random bit for each row of the table
P, Q and u are trained. The outputs have rank d as before, and the made-up column lies in their span. The true ones lie there only
as far as Q keeps them. A row's bit is drawn once: asked twice, a party gives the same.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence, folded
from plumbob.errors import BadInput, whole
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import printed


class Masquerade(EmbeddingDefence):
    """`columns` fabricated binary columns, and a first layer whose rank is lower by as many."""

    name = "masquerade"
    identity = "Masquerade(columns)"
    summary = "passive parties lower their first layer's rank and fill it with fabricated binary columns"
    paper = "ye2022"
    sources = {
        "columns": printed("Algorithm 4: one fabricated column"),
    }
    last = True
    folds = True

    def __init__(self, *, columns: int = 1) -> None:
        self.columns = whole("masquerade: columns", columns, 1, 10_000)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Masquerade]:
        for party, columns in outline.columns.items():
            if columns <= self.columns:
                raise BadInput(
                    f"masquerade: columns: expected fewer than the {columns} that '{party}' has, got {self.columns}"
                )
        return _Masqueraded(self)


class _Masqueraded(EmbeddingGuard[Masquerade]):
    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        bits = rng.integers(0, 2, (len(values), self.defence.columns))
        return torch.cat([values, torch.from_numpy(bits).to(values.dtype)], dim=1)

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:
        true = columns - self.defence.columns
        return folded(true, true - self.defence.columns, module)  # which has as many inputs as before
