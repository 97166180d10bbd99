"""Masquerade (ye2022, Algorithm 4): fabricated bits replace one dimension of the columns.

    z = [P | u] [Q x; a],   Q of d - 1 rows for d columns, a one random bit for each row of the table
P, Q and u are trained. The outputs have rank d as before, and the made-up column lies in their span. The true ones lie there only
as far as Q keeps them. A row's bit is drawn once: asked twice, a party gives the same.

That needs columns that do not depend on each other (Remark 4): of 5 codes of two categories, which span 4 dimensions, a Q of 4
rows loses nothing. So columns that are sums of earlier ones are dropped first; behind a bias, also of these and a constant.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence, folded, independent
from plumbob.errors import BadInput, whole
from plumbob.federation import IntArray
from plumbob.lazy_imports import nn, torch
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
        return Masqueraded(self, outline.bias)


class Masqueraded(EmbeddingGuard[Masquerade]):
    """Of one training; without `drops` it uses all columns, as Algorithm 4 reads before Remark 4."""

    def __init__(self, defence: Masquerade, bias: bool, drops: bool = True) -> None:
        super().__init__(defence)
        self._bias, self._drops = bias, drops
        self._kept: dict[str, IntArray] = {}
        self._dropped: dict[str, IntArray] = {}

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        if party not in self._kept:
            every = np.arange(values.shape[1])
            kept = independent(values.numpy().astype(np.float64), self._bias) if self._drops else every
            if len(kept) <= self.defence.columns:
                raise BadInput(
                    f"masquerade: columns: expected fewer than the {len(kept)} independent ones of '{party}', "
                    f"got {self.defence.columns}"
                )
            self._kept[party] = kept
            self._dropped[party] = np.setdiff1d(every, kept)
        bits = rng.integers(0, 2, (len(values), self.defence.columns))
        used = values[:, torch.from_numpy(self._kept[party])] if len(self._dropped[party]) else values
        return torch.cat([used, torch.from_numpy(bits).to(values.dtype)], dim=1)

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:
        true = columns - self.defence.columns
        if len(self._dropped[party]):
            module = narrower(module, true, true + len(self._dropped[party]))
        return folded(true, true - self.defence.columns, module)  # which has as many inputs as there are columns

    def fabricated(self, party: str) -> int:
        return self.defence.columns

    def dropped(self, party: str) -> IntArray:
        return self._dropped[party]


def narrower(module: torch.nn.Module, columns: int, before: int) -> torch.nn.Module:
    """A bottom model like it for fewer columns: another first layer, or one below a network of one's own."""
    kind = next(module.parameters()).dtype
    if isinstance(module, nn.Linear):
        return nn.Linear(columns, module.out_features, bias=module.bias is not None).to(kind)
    return nn.Sequential(nn.Linear(columns, before, bias=False), module).to(kind)
