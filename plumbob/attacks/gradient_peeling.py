"""Gradient peeling (ours): all of jin2021's attack as linear algebra, from the server's gradients back to the columns.

    I    S Z = K G gives every row's own gradients (`per_row.py`), of all layers that were written down.
    II   The first fully connected layer has v_n h_n' as its rows' gradients, and v_n for its bias: that gives h_n.
    III  Below it, convolutions are undone one block at a time (`peeling.py`); a table's columns are h_n already.
The classes come from the last bias of the top network, whose rows' gradients are softmax - label: negative at the label only.
Rows whose units are all dead (v_n = 0), and rows that the batches do not tell apart, are guessed by the mean of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbob.attacks.base import Attack, Guess
from plumbob.attacks.per_row import Inputs, Separation, layer_inputs, row_inputs
from plumbob.attacks.uploads import Gradients, Uploads, Worker, needs_coordinator
from plumbob.errors import BadInput, boolean
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.networks import first_linear
from plumbob.threats import View

if TYPE_CHECKING:
    import torch

ROOM = 60_000_000  # numbers that the rows' own gradients of one layer may take


class GradientPeeling(Attack):
    """Everything that the sums determine, without descent."""

    name = "gradient_peeling"
    summary = "ours: solves batch gradients for the rows' own, then undoes the network layer by layer"
    paper = "plumbob"
    protocols = ("split_training",)
    corrupted = True
    needs_active = False

    def __init__(self, grid: bool = True) -> None:
        self.grid = boolean("grid", grid)  # whether columns of whole numbers or grey levels are moved to their grid

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        needs_coordinator(view)
        uploads = Uploads(view)
        values = np.full((len(view.own), len(view.unknown)), 0.5)
        for worker in uploads.attacked:
            found = _Peeled(uploads, worker).inputs()
            values[:, worker.unknown] = _filled(found)
        if self.grid and view.steps is not None:
            values = on_grid(values, view.steps)
        return Guess(view.unknown_names, values=np.clip(values, 0.0, 1.0), labels=labels(uploads))


class _Peeled:
    """One worker's network, taken apart."""

    def __init__(self, uploads: Uploads, worker: Worker) -> None:
        import torch

        self.uploads, self.worker = uploads, worker
        self.module = uploads.module(worker.name)
        self._separated: dict[str, tuple[FloatArray | None, IntArray]] = {}
        self.key, self.layer = first_linear(self.module, torch.zeros(1, *worker.plan.shape))

    def gradients(self, key: str) -> Gradients:
        return self.uploads.gradients(self.worker.name, key)

    def inputs(self) -> Inputs:
        """The worker's columns, with the rows that were found."""
        import torch

        from plumbob.attacks.peeling import blocks_of, peel, polish
        from plumbob.attacks.representation_descent import descend

        above, separation = self._above()
        inner = self._representation(above, separation)
        blocks = blocks_of(self.module, self.layer)
        if blocks == []:
            return inner
        rows = np.flatnonzero(inner.found)
        shape = self.worker.plan.shape
        y = torch.from_numpy(inner.values[rows].astype(np.float32))
        x = None
        if blocks is not None and len(rows):
            outer = torch.from_numpy(above[rows].astype(np.float32)) @ self.layer.weight

            def weights(key: str, part: slice) -> tuple[torch.Tensor, torch.Tensor] | None:
                return self._weights(key, rows[part])

            x = peel(blocks, shape, y, outer, weights)
        if x is None:
            x = descend(self.module, self.layer, shape, y)
            x = x if not blocks else polish(blocks, x, y)
        values = np.full((len(inner.values), self.worker.plan.inputs), 0.5)
        values[rows] = x.reshape(len(rows), -1).numpy()
        return Inputs(values, inner.found)

    def _above(self) -> tuple[FloatArray, Separation]:
        """V: the rows' gradients at the first fully connected layer's outputs."""
        if self.layer.bias is None:
            raise BadInput(f"the first fully connected layer of '{self.worker.name}' has no bias")
        bias = self.gradients(f"{self.key}.bias")
        separation = Separation.of(self.uploads, bias.rounds)
        return separation.rows(bias), separation

    def _representation(self, above: FloatArray, separation: Separation) -> Inputs:
        """H: what the rows put into the first fully connected layer."""
        weights = self.gradients(f"{self.key}.weight")
        every = len(weights.rounds) == len(separation.rounds)
        if every and weights.values.shape[1] * len(above) <= ROOM:
            return row_inputs(separation.rows(weights), above, separation.determined)
        return layer_inputs(self.uploads, weights, above, separation.determined)

    def _weights(self, key: str, rows: IntArray) -> tuple[torch.Tensor, torch.Tensor] | None:
        """A convolution's own gradients of some rows, and the taps that were kept; nothing where rows cannot be told apart."""
        import torch

        if key not in self._separated:
            gradients = self.gradients(f"{key}.weight")
            separation = Separation.of(self.uploads, gradients.rounds)
            found = separation.rows(gradients) if separation.determined[rows].all() else None
            self._separated[key] = (found, gradients.cells)
        own, cells = self._separated[key]
        if own is None:
            return None
        shape = dict(self.module.named_parameters())[f"{key}.weight"].shape
        taps = np.unique(cells % (shape[2] * shape[3]))
        return torch.from_numpy(own[rows].astype(np.float32)).view(len(rows), *shape[:2], len(taps)), torch.from_numpy(
            taps
        )


def labels(uploads: Uploads) -> IntArray | None:
    """Classes from the top network's last bias: the only negative cell of softmax - label."""
    if uploads.top is None:
        return None
    classes = len(uploads.view.classes)
    keys = [key for key, p in uploads.parameters(uploads.top.party, 0).items() if p.shape == (classes,)]
    if not keys:
        return None
    gradients = uploads.gradients(uploads.top.party, keys[-1])
    separation = Separation.of(uploads, gradients.rounds)
    rows = separation.rows(gradients)
    return np.where(separation.determined, rows.argmin(axis=1), -1)


def on_grid(values: FloatArray, steps: FloatArray) -> FloatArray:
    """Moved to the nearest value that a column can take, where it has a grid."""
    wide = np.where(steps > 0, steps, 1.0)
    return np.where(steps > 0, np.round(values / wide) * wide, values)


def _filled(found: Inputs) -> FloatArray:
    """The rows that tell nothing get the mean of those that do."""
    if not found.found.any():
        return np.full_like(found.values, 0.5)
    return np.where(found.found[:, None], found.values, found.values[found.found].mean(axis=0))
