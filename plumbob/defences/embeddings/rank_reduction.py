"""Rank reduction (the first half of ye2022's masquerade, for any rank): the first layer is a product of two thin matrices.

    z = P Q x,   Q of `rank` rows for d columns
Both are trained. Directions of the columns that Q maps to nothing are in no message. Columns that depend on others are no
dimension of their own, so what counts is the rank below that of the columns (behind a bias: of the columns and a constant).
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence, folded, independent
from plumbob.errors import BadInput, whole
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import printed


class RankReduction(EmbeddingDefence):
    """A first layer of this `rank`; 0 is one less than the party has columns that depend on no others."""

    name = "rank_reduction"
    identity = "RankReduction(rank)"
    summary = (
        "passive parties lower the rank of their first layer, so that embeddings have fewer dimensions than columns"
    )
    paper = "ye2022"
    sources = {
        "rank": printed("Section V-B: one less than the columns"),
    }
    folds = True

    def __init__(self, *, rank: int = 0) -> None:
        self.rank = whole("rank_reduction: rank", rank, 0, 100_000)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[RankReduction]:
        for party, columns in outline.columns.items():
            if columns <= max(self.rank, 1):
                raise BadInput(
                    f"rank_reduction: rank: expected at least 1 and fewer than the {columns} columns of '{party}', "
                    f"got {self.rank or columns - 1}"
                )
        return _Reduced(self, outline.bias)


class _Reduced(EmbeddingGuard[RankReduction]):
    def __init__(self, defence: RankReduction, bias: bool) -> None:
        super().__init__(defence)
        self._bias = bias
        self._dimensions: dict[str, int] = {}

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:

        if party not in self._dimensions:
            self._dimensions[party] = len(independent(values.numpy().astype(np.float64), self._bias))
        return values

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:

        rank = self.defence.rank or max(1, self._dimensions[party] - 1)
        if isinstance(module, nn.Linear):
            thin = nn.Linear(rank, module.out_features, bias=module.bias is not None)
            return folded(columns, rank, thin.to(module.weight.dtype))
        widened = nn.Linear(rank, columns, bias=False).to(next(module.parameters()).dtype)
        return folded(columns, rank, nn.Sequential(widened, module))
