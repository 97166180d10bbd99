"""One worker's network, taken apart from its rows' own gradients: Steps I to III of `gradient_peeling.py`."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from plumbob.attacks.gradients._layers_without_bias import UpwardLayer, gradients_above, way_up
from plumbob.attacks.gradients._row_gradients import (
    LOUDER,
    MOST_NUMBERS_OF_A_LAYER,
    NUMBERS_ASKED_AT_ONCE,
    QUIET,
    Inputs,
    Separation,
    layer_inputs,
    row_inputs,
)
from plumbob.attacks.gradients._worker_uploads import Gradients, Uploads, Worker
from plumbob.federation import FloatArray, IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.networks import first_linear, representation

if TYPE_CHECKING:
    from plumbob.attacks.gradients._network_blocks import ConvolutionBlock


class Peeled:
    """One worker's network, taken apart. `barrier` says why nothing is sought, `limit` what is not handled, once its inputs
    were sought.
    """

    def __init__(self, uploads: Uploads, worker: Worker) -> None:

        self.uploads, self.worker = uploads, worker
        self.module = uploads.module(worker.name)
        self._blocks: dict[str, tuple[ConvolutionBlock, tuple[int, ...]]] = {}
        self._separated: dict[str, tuple[FloatArray | None, IntArray]] = {}
        dtype = next(self.module.parameters()).dtype
        self.dtype = np.float64 if dtype == torch.float64 else np.float32
        self.key, self.layer = first_linear(self.module, torch.zeros(1, *worker.plan.shape, dtype=dtype))
        self.barrier = self._barrier()
        self.limit = self.barrier

    def gradients(self, key: str) -> Gradients:
        return self.uploads.gradients(self.worker.name, key)

    @cached_property
    def way(self) -> list[UpwardLayer] | str:
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

    def inputs(self, polished: bool = True) -> Inputs:
        """The worker's columns, with the rows that were found; through convolutions `polished` on all of them at once."""

        from plumbob.attacks.gradients._block_inversion import polish
        from plumbob.attacks.gradients._convolution_peeling import peel
        from plumbob.attacks.gradients._network_blocks import blocks_of, inside
        from plumbob.attacks.gradients._representation_descent import descend

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
            self._blocks = inside(blocks, shape)
            outer = torch.from_numpy(above[rows].astype(self.dtype)) @ self.layer.weight

            def weights(key: str, part: slice) -> tuple[torch.Tensor, torch.Tensor] | None:
                return self._weights(key, rows[part])

            x = peel(blocks, shape, y, outer, weights, polished)
        if x is None:
            x = descend(partial(representation, self.module, self.layer), shape, y)
            x = polish(blocks, x, y) if blocks and polished else x
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
        every = len(weights.rounds) == len(separation.rounds) and self._fits(weights)
        # The rows' own gradients are the surest, and the slowest; where V is rough a batch would be solved for its errors.
        if every and (self._fits(weights, NUMBERS_ASKED_AT_ONCE) or not self.uploads.static):
            return row_inputs(separation.rows(weights), above, separation.determined)
        found = layer_inputs(self.uploads, weights, above, separation.determined, QUIET if every else LOUDER)
        if found.found.all():
            return found
        # Rows alike in all that counts have dependent gradients; their own gradients, of a few units at least, tell them apart.
        some = weights if every else self.uploads.gradients(self.worker.name, f"{self.key}.weight", partial=True)
        if len(some.rounds) < len(separation.rounds) or not self._fits(some):
            return found
        units = np.unique(some.cells // self.layer.in_features)
        rest = row_inputs(separation.rows(some), above[:, units], separation.determined)
        values = np.where(found.found[:, None], found.values, rest.values)
        return Inputs(values, found.found | rest.found)

    def _fits(self, gradients: Gradients, room: int = MOST_NUMBERS_OF_A_LAYER) -> bool:
        """Whether the rows' own gradients of these cells fit into memory."""
        return len(gradients.cells) * len(self.uploads.view.own) <= room

    def _weights(self, key: str, rows: IntArray) -> tuple[torch.Tensor, torch.Tensor] | None:
        """A convolution's own gradients of some rows, and the taps they are of; nothing where rows cannot be told apart."""

        if key not in self._separated:
            self._separated[key] = self._own(key)
        own, taps = self._separated[key]
        if own is None or np.isnan(own[rows, :1]).any():
            return None
        out, inside = self._kernel(key)[:2]
        weights = torch.from_numpy(own[rows].astype(self.dtype)).view(len(rows), out, inside, len(taps))
        return weights, torch.from_numpy(taps)

    def _kernel(self, key: str) -> tuple[int, ...]:
        return tuple(dict(self.module.named_parameters())[f"{key}.weight"].shape)

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        """Rows' own gradients of a convolution at its taps that tell, NaN for rows that are not determined; and these taps."""
        from plumbob.attacks.gradients._block_decoding import telling

        gradients, kernel = self.gradients(f"{key}.weight"), self._kernel(key)[2:]
        tap = gradients.cells % (kernel[0] * kernel[1])
        taps = telling(*self._blocks[key], np.unique(tap))
        gradients = gradients.at(np.flatnonzero(np.isin(tap, taps)))
        separation = Separation.of(self.uploads, gradients.rounds)
        found = separation.rows(gradients)
        found[separation.determined == 0] = np.nan
        return found, taps
