"""Mixup at the cut (after InstaHide, huang2020): a passive party sends each row's embedding mixed with those of other rows.

    sent_i = c_0 z_i + c_1 z_j + ...,   c drawn anew for every row and message, adding up to 1, c_0 the largest
The other rows are of the same message, and who they are is the party's secret: the active party cannot mix labels as InstaHide
does, so it takes the mixture for the row. A row is in every epoch with other partners, so their part averages to the mean of all
rows, which is the same for everybody. InstaHide's random signs are left out: they take all that a sum of embeddings says.
"""

from __future__ import annotations

import numpy as np

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import whole
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import ours


class Mixup(EmbeddingDefence):
    """Mixtures of so many `rows`."""

    name = "mixup"
    identity = "Mixup(rows)"
    summary = "passive parties mix each row's embedding with those of other rows, drawn anew for every message"
    paper = "huang2020"
    sources = {
        "rows": ours("InstaHide mixes a few"),
    }
    sweep_settings = ({"rows": 2}, {"rows": 4})

    def __init__(self, *, rows: int = 2) -> None:
        self.rows = whole("mixup: rows", rows, 2, 100)

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[Mixup]:
        return _Mixed(self)


class _Mixed(EmbeddingGuard[Mixup]):
    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:
        shares = np.sort(rng.dirichlet(np.ones(self.defence.rows), len(outputs)), axis=1)[:, ::-1]
        mixed = torch.from_numpy(shares[:, :1].copy()).to(outputs.dtype) * outputs
        for k in range(1, self.defence.rows):
            partner = torch.from_numpy(rng.permutation(len(outputs)))
            mixed = mixed + torch.from_numpy(shares[:, k, None].copy()).to(outputs.dtype) * outputs[partner]
        return mixed
