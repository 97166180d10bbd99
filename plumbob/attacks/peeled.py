"""One worker's network, taken apart from its rows' own gradients: Steps I to III of `gradient_peeling.py`."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from plumbob.attacks.per_row import ROOM, Inputs, Separation, layer_inputs, row_inputs
from plumbob.attacks.uploads import Gradients, Uploads, Worker
from plumbob.attacks.without_bias import Layer, gradients_above, way_up
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.networks import first_linear, representation

if TYPE_CHECKING:
    import torch


class Peeled:
    """One worker's network, taken apart. `barrier` says why nothing is sought, `limit` what is not handled, once its inputs
    were sought.
    """

    def __init__(self, uploads: Uploads, worker: Worker) -> None:
        import torch

        self.uploads, self.worker = uploads, worker
        self.module = uploads.module(worker.name)
        self._separated: dict[str, tuple[FloatArray | None, IntArray]] = {}
        dtype = next(self.module.parameters()).dtype
        self.dtype = np.float64 if dtype == torch.float64 else np.float32
        self.key, self.layer = first_linear(self.module, torch.zeros(1, *worker.plan.shape, dtype=dtype))
        self.barrier = self._barrier()
        self.limit = self.barrier

    def gradients(self, key: str) -> Gradients:
        return self.uploads.gradients(self.worker.name, key)

    @cached_property
    def way(self) -> list[Layer] | str:
        """Where the first fully connected layer has no bias: the layers up to one that has, or why they do not tell."""
        return [] if self.layer.bias is not None else way_up(self.uploads, self.worker, self.module, self.layer)

    def _barrier(self) -> str:
        """Why nothing is sought, where that is a limit of this way."""
        return self.uploads.mixed or (self.way if isinstance(self.way, str) else "")

    def _nothing(self) -> tuple[FloatArray, Inputs]:
        rows = len(self.uploads.view.own)
        inner = Inputs(np.zeros((rows, self.layer.in_features)), np.zeros(rows, dtype=bool))
        return np.zeros((rows, self.layer.out_features)), inner

    def first(self) -> tuple[FloatArray, Inputs]:
        """Of the first fully connected layer: the rows' gradients at its outputs, and what they put into it."""
        if self.barrier:
            return self._nothing()
        above, separation = self._above()
        return above, self._representation(above, separation)

    def inputs(self) -> Inputs:
        """The worker's columns, with the rows that were found."""
        import torch

        from plumbob.attacks.blocks import blocks_of
        from plumbob.attacks.gauss_newton import polish
        from plumbob.attacks.peeling import peel
        from plumbob.attacks.representation_descent import descend

        above, inner = self.first()
        blocks = blocks_of(self.module, self.layer)
        if blocks == []:
            return inner
        rows = np.flatnonzero(inner.found)
        if not len(rows):
            return Inputs(np.full((len(inner.values), self.worker.plan.inputs), 0.5), inner.found)
        shape = self.worker.plan.shape
        y = torch.from_numpy(inner.values[rows].astype(self.dtype))
        x = None
        if blocks is not None:
            outer = torch.from_numpy(above[rows].astype(self.dtype)) @ self.layer.weight

            def weights(key: str, part: slice) -> tuple[torch.Tensor, torch.Tensor] | None:
                return self._weights(key, rows[part])

            x = peel(blocks, shape, y, outer, weights)
        if x is None:
            x = descend(partial(representation, self.module, self.layer), shape, y)
            x = x if not blocks else polish(blocks, x, y)
        values = np.full((len(inner.values), self.worker.plan.inputs), 0.5)
        values[rows] = x.reshape(len(rows), self.worker.plan.inputs).numpy()
        return Inputs(values, inner.found)

    def _above(self) -> tuple[FloatArray, Separation]:
        """V: the rows' gradients at the first fully connected layer's outputs."""
        if isinstance(self.way, list) and self.way:
            return gradients_above(self.uploads, self.way)
        own = self.gradients(f"{self.key}.bias")
        separation = Separation.of(self.uploads, own.rounds)
        return separation.rows(own), separation

    def _representation(self, above: FloatArray, separation: Separation) -> Inputs:
        """H: what the rows put into the first fully connected layer."""
        weights = self.gradients(f"{self.key}.weight")
        every = len(weights.rounds) == len(separation.rounds)
        if every and weights.values.shape[1] * len(above) <= ROOM:
            return row_inputs(separation.rows(weights), above, separation.determined)
        found = layer_inputs(self.uploads, weights, above, separation.determined)
        some = self.uploads.gradients(self.worker.name, f"{self.key}.weight", partial=True)
        if found.found.all() or len(some.rounds) < len(separation.rounds) or some.values.shape[1] * len(above) > ROOM:
            return found
        # Rows alike in all that counts have dependent gradients; a few units' own gradients tell them apart.
        units = np.unique(some.cells // self.layer.in_features)
        rest = row_inputs(separation.rows(some), above[:, units], separation.determined)
        values = np.where(found.found[:, None], found.values, rest.values)
        return Inputs(values, found.found | rest.found)

    def _weights(self, key: str, rows: IntArray) -> tuple[torch.Tensor, torch.Tensor] | None:
        """A convolution's own gradients of some rows, and the taps that were kept; nothing where rows cannot be told apart."""
        import torch

        if key not in self._separated:
            self._separated[key] = self._own(key)
        own, cells = self._separated[key]
        if own is None or np.isnan(own[rows, :1]).any():
            return None
        shape = dict(self.module.named_parameters())[f"{key}.weight"].shape
        taps = np.unique(cells % (shape[2] * shape[3]))
        return torch.from_numpy(own[rows].astype(self.dtype)).view(len(rows), *shape[:2], len(taps)), torch.from_numpy(
            taps
        )

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        """Rows' own gradients of a convolution's kept cells, NaN for rows that are not determined."""
        gradients = self.gradients(f"{key}.weight")
        separation = Separation.of(self.uploads, gradients.rounds)
        found = separation.rows(gradients)
        found[separation.determined == 0] = np.nan
        return found, gradients.cells
