"""Gradient peeling (ours): all of jin2021's attack as linear algebra, from the server's gradients back to the columns.

    I    S Z = K G gives every row's own gradients (`per_row.py`), of all layers that were written down.
    II   The first fully connected layer has v_n h_n' as its rows' gradients, and v_n for its bias: that gives h_n.
    III  Below it, convolutions are undone one block at a time (`peeling.py`); a table's columns are h_n already.
The classes come from the last bias of the top network, whose rows' gradients are softmax - label: negative at the label only.
Rows whose units are all dead (v_n = 0), and rows that the batches do not tell apart, are guessed by the mean of the others.

Where the server knows of a defence it weighs what arrived by how far off it may be (`defended_gradients.py`), opens sums over
workers from the top (`aggregated_gradients.py`), and where row numbers mean nothing makes its own (`hidden_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from plumbob.attacks import aggregated_gradients, hidden_rows
from plumbob.attacks.base import NAMELESS, Attack, Guess
from plumbob.attacks.batch_labels import labels
from plumbob.attacks.defended_gradients import Estimates, Expected, changed, estimates_of, expected_inputs, orders_only
from plumbob.attacks.per_row import RANK, ROOM, Bools, Inputs, Separation, layer_inputs, row_inputs
from plumbob.attacks.uploads import Gradients, Uploads, Worker, needs_coordinator
from plumbob.attacks.without_bias import Layer, gradients_above, way_up
from plumbob.crypto.cores import available
from plumbob.errors import boolean
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.networks import first_linear, one_thread, precision, representation
from plumbob.threats import View

if TYPE_CHECKING:
    import torch

    from plumbob.attacks.moving_parameters import Round

EXPECTED = 512  # inputs drawn to know what a layer gets without any gradient
STILL, MORE = 1e-4, 1.2  # what one gradient for each row may miss where parameters hardly move, and rounds for each row
NEARLY = 0.999  # how far representations must be trusted for the gradients below them to be used


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
        if uploads.hidden:
            return self._nameless(uploads, rng)
        parts = list(_ways(uploads, rng))
        values, found = self._peeled(uploads, parts)
        return Guess(
            view.unknown_names, values=values, labels=labels(uploads), untried="" if found.any() else _untried(parts)
        )

    def _nameless(self, uploads: Uploads, rng: np.random.Generator) -> Guess:
        """People in no order, where the marks that they leave in gradients tell who is in which batch."""
        names, values = uploads.view.unknown_names, np.full((len(uploads.view.own), len(uploads.view.unknown)), 0.5)
        nothing = Guess(names, values=values, labels=np.full(len(values), -1))
        if not uploads.static:
            return replace(nothing, untried="rows without numbers are not followed while parameters move")
        if changed(uploads.view.defence) or "secure_aggregation/on" in uploads.view.defence:
            return replace(
                nothing, untried="rows without numbers are not sought where a second defence changes gradients"
            )
        layers = {worker.name: _Peeled(uploads, worker).key for worker in uploads.attacked}
        renamed = hidden_rows.renamed(uploads, layers, rng)
        if not renamed.marks:
            return nothing
        parts = [_Peeled(renamed, worker) for worker in uploads.attacked]
        values, found = self._peeled(uploads, parts)
        if not found.any():
            lost = "rows are told apart in some batches, and are not followed through all of them"
            return replace(nothing, untried=_untried(parts) or lost)
        classes = labels(renamed)
        return Guess(
            names,
            people=values[found],
            labels=np.full(int(found.sum()), -1) if classes is None else classes[found],
            certificate=f"{int(found.sum()):,} {NAMELESS}",
        )

    def _peeled(self, uploads: Uploads, parts: list[_Peeled]) -> tuple[FloatArray, Bools]:
        """What workers hold of every row, and the rows of which any worker tells."""
        view = uploads.view
        values, told = np.full((len(view.own), len(view.unknown)), 0.5), np.zeros(len(view.own), dtype=bool)
        with one_thread(), threadpool_limits(1), _of_one_type(parts), _pool(len(parts)) as pool:
            own = [copy_context() for _ in parts]  # threads do not inherit what is trusted
            work = pool.map(lambda context, part: context.run(part.inputs), own, parts)
            for part, found in zip(parts, work, strict=True):
                values[:, part.worker.unknown] = _filled(found)
                told |= found.found
        if self.grid and view.steps is not None:
            values = on_grid(values, view.steps)
        return np.clip(values, 0.0, 1.0), told


def _pool(parts: int) -> ThreadPoolExecutor:
    """A thread for each core, with torch on one thread in each: the same bits whatever their number."""
    import torch

    return ThreadPoolExecutor(max(1, min(parts, available())), initializer=torch.set_num_threads, initargs=(1,))


def _of_one_type(parts: list[_Peeled]) -> AbstractContextManager[None]:
    """New tensors are of the networks' type while they are taken apart, each worker's in a thread of its own."""
    import torch

    return precision(torch.float64 if parts and parts[0].dtype is np.float64 else torch.float32)


def _untried(parts: list[_Peeled]) -> str:
    """The first worker's reason, if any has one."""
    return next((part.untried for part in parts if part.untried), "")


def _ways(uploads: Uploads, rng: np.random.Generator) -> Iterator[_Peeled]:
    """How each worker's columns are found; none where only sums over workers are known and do not open."""
    if "secure_aggregation/on" in uploads.view.defence:
        sums = aggregated_gradients.opened(uploads)
        for worker in uploads.attacked if sums is not None else []:
            if sums is not None:
                yield _Summed(uploads, worker, sums)
        return
    for worker, own in zip(uploads.attacked, rng.spawn(len(uploads.attacked)), strict=True):
        if changed(uploads.view.defence):
            yield _Doubted(uploads, worker)
        else:
            yield _Peeled(uploads, worker) if uploads.static else _Followed(uploads, worker, own)


class _Peeled:
    """One worker's network, taken apart."""

    def __init__(self, uploads: Uploads, worker: Worker) -> None:
        import torch

        self.uploads, self.worker = uploads, worker
        self.module = uploads.module(worker.name)
        self._separated: dict[str, tuple[FloatArray | None, IntArray]] = {}
        dtype = next(self.module.parameters()).dtype
        self.dtype = np.float64 if dtype == torch.float64 else np.float32
        self.key, self.layer = first_linear(self.module, torch.zeros(1, *worker.plan.shape, dtype=dtype))

    def gradients(self, key: str) -> Gradients:
        return self.uploads.gradients(self.worker.name, key)

    @cached_property
    def way(self) -> list[Layer] | str:
        """Where the first fully connected layer has no bias: the layers up to one that has, or why they do not tell."""
        return [] if self.layer.bias is not None else way_up(self.uploads, self.worker, self.module, self.layer)

    @property
    def untried(self) -> str:
        """Why nothing is sought, where that is a limit of this way."""
        return self.uploads.mixed or (self.way if isinstance(self.way, str) else "")

    def _nothing(self) -> tuple[FloatArray, Inputs]:
        rows = len(self.uploads.view.own)
        inner = Inputs(np.zeros((rows, self.layer.in_features)), np.zeros(rows, dtype=bool))
        return np.zeros((rows, self.layer.out_features)), inner

    def first(self) -> tuple[FloatArray, Inputs]:
        """Of the first fully connected layer: the rows' gradients at its outputs, and what they put into it."""
        if self.untried:
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


class _Followed(_Peeled):
    """One worker's network that changed between rounds."""

    def __init__(self, uploads: Uploads, worker: Worker, rng: np.random.Generator) -> None:
        super().__init__(uploads, worker)
        self.rng = rng

    def inputs(self) -> Inputs:
        from plumbob.attacks.moving_parameters import followed

        rounds = [] if self.uploads.mixed or self._hardly_moved() else self._rounds()
        found = followed(rounds, len(self.uploads.view.own), self.worker.plan.shape) if rounds else None
        return found if found is not None and found.found.any() else super().inputs()

    def _hardly_moved(self) -> bool:
        """Whether one gradient for each row explains those of all rounds, of which there are more than rows."""
        if self.layer.bias is None:
            return False
        own = self.gradients(f"{self.key}.bias")
        separation = Separation.of(self.uploads, own.rounds)
        batches = self.uploads.indicator[own.rounds] / self.uploads.sizes[own.rounds, None]
        off = np.linalg.norm(batches @ separation.rows(own) - own.values)
        return len(own.rounds) > MORE * len(self.uploads.view.own) and bool(off < STILL * np.linalg.norm(own.values))

    def _rounds(self) -> list[Round]:
        """The rounds whose parameters and gradients are known as a whole, until every row was seen often enough."""
        from plumbob.attacks.blocks import blocks_of
        from plumbob.attacks.moving_parameters import SIGHTS, Round
        from plumbob.attacks.unmixing import unmixed

        weights = self.gradients(f"{self.key}.weight")
        biases = self.gradients(f"{self.key}.bias") if self.layer.bias is not None else None
        known, rounds = set(self.uploads.checkpoints), {}
        sights = np.zeros(len(self.uploads.view.own))
        for position in self.rng.permutation(len(weights.rounds)).tolist():
            number = int(weights.rounds[position])
            batch = self.uploads.batches[number]
            if number not in known or (sights[batch] >= SIGHTS).all():
                continue
            bias = None if biases is None else biases.of(number, self.layer.out_features)
            seen = unmixed(weights.values[position].reshape(self.layer.out_features, -1), bias, self.rng)
            module = self.uploads.module(self.worker.name, number)
            layer = dict(module.named_modules())[self.key]
            forward, blocks = partial(representation, module, layer), blocks_of(module, layer)
            if blocks == [] and (np.isnan(seen.lengths).any() or len(seen.lengths) < len(np.unique(batch))):
                continue  # no network stands between, so nothing else would tell a sum of rows from a row
            rounds[number] = Round(batch, forward, blocks, seen)
            sights[batch] += len(seen.directions) / len(batch)
        return [rounds[number] for number in sorted(rounds)]


class _Summed(_Peeled):
    """One worker's network where the server knows sums over workers."""

    def __init__(self, uploads: Uploads, worker: Worker, sums: aggregated_gradients.Opened) -> None:
        super().__init__(uploads, worker)
        self.sums = sums

    def first(self) -> tuple[FloatArray, Inputs]:
        name = self.worker.name
        above = self.sums.above[name]
        found = self.sums.determined & (np.abs(above).max(axis=1) > RANK * np.abs(above).max(initial=0.0))
        return above, Inputs(self.sums.inputs[name], found)

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        return None, self.gradients(f"{key}.weight").cells


class _Doubted(_Peeled):
    """One worker's network, from gradients that are known to have been changed."""

    def __init__(self, uploads: Uploads, worker: Worker) -> None:
        super().__init__(uploads, worker)
        self.trust = np.zeros(len(uploads.view.own))  # per row: how far its representation can be trusted

    @property
    def untried(self) -> str:
        if self.layer.bias is not None or self.uploads.mixed:
            return self.uploads.mixed
        return (
            f"the first fully connected layer of '{self.worker.name}' has no bias, and a defence changes its gradients"
        )

    def _estimates(self, key: str) -> Estimates:
        return estimates_of(self.uploads, self.worker.name, key)

    def first(self) -> tuple[FloatArray, Inputs]:
        if self.untried:
            return self._nothing()
        above, weights = self._estimates(f"{self.key}.bias"), self.gradients(f"{self.key}.weight")
        if len(weights.rounds) < len(self.uploads.batches) or weights.values.shape[1] * len(above.values) > ROOM:
            return self._nothing()
        before, own = self._expected(), self._estimates(f"{self.key}.weight")
        own = before.in_units(own) if orders_only(self.uploads.view.defence) else own
        inner, self.trust = expected_inputs(own, above, before)
        return above.values, inner

    def _expected(self) -> Expected:
        """Of inputs anywhere in [0, 1]."""
        import torch

        generator = torch.Generator().manual_seed(0)
        anywhere = torch.rand(EXPECTED, *self.worker.plan.shape, generator=generator)
        with torch.no_grad():
            inner = representation(self.module, self.layer, anywhere).flatten(1).double().numpy()
        return Expected(inner.mean(axis=0), inner.var(axis=0))

    def inputs(self) -> Inputs:
        from plumbob.attacks.blocks import blocks_of

        found = super().inputs()
        if blocks_of(self.module, self.layer) == []:
            return found
        return Inputs(0.5 + self.trust[:, None] * (found.values - 0.5), found.found)

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        """Winners are told by gradients that are nearly exact, and by no others."""
        if self.trust.min() > NEARLY:
            return super()._own(key)
        return None, self.gradients(f"{key}.weight").cells


def on_grid(values: FloatArray, steps: FloatArray) -> FloatArray:
    """Moved to the nearest value that a column can take, where it has a grid."""
    wide = np.where(steps > 0, steps, 1.0)
    return np.where(steps > 0, np.round(values / wide) * wide, values)


def _filled(found: Inputs) -> FloatArray:
    """The rows that tell nothing get the mean of those that do."""
    if not found.found.any():
        return np.full_like(found.values, 0.5)
    return np.where(found.found[:, None], found.values, found.values[found.found].mean(axis=0))
