"""Gradient peeling (ours): all of jin2021's attack as linear algebra, from the server's gradients back to the columns.

    I    S Z = K G gives every row's own gradients (`_row_gradients.py`), of all layers that were written down.
    II   The first fully connected layer has v_n h_n' as its rows' gradients, and v_n for its bias: that gives h_n.
    III  Below it, convolutions are undone one block at a time (`_convolution_peeling.py`); a table's columns are h_n already.
The classes come from the last bias of the top network, whose rows' gradients are softmax - label: negative at the label only.
Rows whose units are all dead (v_n = 0), and rows that the batches do not tell apart, are guessed by the mean of the others.

Where the server knows of a defence it weighs what arrived by how far off it may be (`_defended_gradients.py`), opens sums over
workers from the top (`_aggregated_gradients.py`), and where row numbers mean nothing makes its own (`_hidden_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from plumbob.attacks.base import NAMELESS, Attack, Guess, nothing
from plumbob.attacks.gradients import _aggregated_gradients as aggregated_gradients
from plumbob.attacks.gradients import _hidden_rows as hidden_rows
from plumbob.attacks.gradients._defended_gradients import (
    CHANGES,
    Estimates,
    Expected,
    changed,
    estimates_of,
    expected_inputs,
    orders_only,
)
from plumbob.attacks.gradients._peeled_worker import Peeled
from plumbob.attacks.gradients._row_gradients import Inputs, Separation
from plumbob.attacks.gradients._top_classes import labels
from plumbob.attacks.gradients._worker_uploads import STILL, UPLOAD_RANK_SHARE, Uploads, Worker, needs_coordinator
from plumbob.crypto.parallel import available
from plumbob.errors import boolean
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.kinds import COLUMNS, Kind
from plumbob.known_defences import KnownHiddenIndices, KnownSecureAggregation
from plumbob.lazy_imports import torch
from plumbob.protocols.shared.networks import one_thread, precision, representation
from plumbob.threats import View

if TYPE_CHECKING:
    from plumbob.attacks.gradients._moving_parameters import Round

INPUTS_DRAWN_FOR_A_LAYER = 512  # inputs drawn to know what a layer gets without any gradient
MORE = 1.2  # rounds for each row from which one gradient for each may explain them all
NEARLY = 0.999  # how far representations must be trusted for the gradients below them to be used


class GradientPeeling(Attack):
    """Everything that the sums determine, without gradient descent."""

    name = "gradient_peeling"
    identity = "GradientPeeling(grid, polish)"
    summary = "ours: solves batch gradients for per-row gradients, then inverts the network layer by layer"
    paper = "plumbob"
    protocols = ("split_training",)
    addresses = (*COLUMNS, Kind.LABEL)
    corrupted = True
    needs_active = False
    knows = (*CHANGES, KnownHiddenIndices, KnownSecureAggregation)
    cost_terms = ("1", "rounds", "n u", "n^2")  # rows are told apart pair by pair

    def __init__(self, grid: bool = True, polish: bool = True, adaptive: bool = True) -> None:
        self.grid = boolean("grid", grid)  # whether columns of whole numbers or grey levels are moved to their grid
        self.polish = boolean(
            "polish", polish
        )  # whether convolutions, undone one by one, are solved together in the end
        self.adaptive = boolean("adaptive", adaptive)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        needs_coordinator(view)
        view = self.seen(view)
        uploads = Uploads(view)
        if uploads.hidden:
            return self._nameless(uploads, rng)
        parts = list(_ways(uploads, rng))
        values, _ = self._peeled(uploads, parts)
        limit = next((part.limit for part in parts if part.limit), "") if parts else aggregated_gradients.UNOPENED
        return Guess(view.unknown_names, values=values, labels=labels(uploads), untried=limit)

    def _nameless(self, uploads: Uploads, rng: np.random.Generator) -> Guess:
        """People in no order, where the marks that they leave in gradients tell who is in which batch."""
        view = uploads.view
        if not uploads.static:
            return nothing(view, "rows without numbers are not followed while parameters move")
        if changed(view.defence) or KnownSecureAggregation in view.defence:
            return nothing(view, "rows without numbers are not sought where a second defence changes gradients")
        layers = {worker.name: Peeled(uploads, worker).key for worker in uploads.attacked}
        renamed = hidden_rows.renamed(uploads, layers, rng)
        if not renamed.marks:
            return nothing(
                view, "rows without numbers are not told apart in single batches, and no two batches cross in one"
            )
        parts = [Peeled(renamed, worker) for worker in uploads.attacked]
        values, found = self._peeled(uploads, parts)
        if not found.any():
            lost = "rows are told apart in some batches, and are not followed through all of them"
            return nothing(view, next((part.limit for part in parts if part.limit), lost))
        classes = labels(renamed)
        return Guess(
            view.unknown_names,
            people=values[found],
            labels=np.full(int(found.sum()), -1) if classes is None else classes[found],
            certificate=f"{int(found.sum()):,} {NAMELESS}",
        )

    def _peeled(self, uploads: Uploads, parts: list[Peeled]) -> tuple[FloatArray, BoolArray]:
        """What workers hold of every row, and the rows of which any worker tells."""
        view = uploads.view
        values, told = np.full((len(view.own), len(view.unknown)), 0.5), np.zeros(len(view.own), dtype=bool)
        with one_thread(), threadpool_limits(1), _of_one_type(parts), _pool(len(parts)) as pool:
            work = pool.map(lambda part: part.inputs(self.polish), parts)
            for part, found in zip(parts, work, strict=True):
                values[:, part.worker.unknown] = _filled(found)
                told |= found.found
        if self.grid and view.steps is not None:
            values = on_grid(values, view.steps)
        return np.clip(values, 0.0, 1.0), told


def _pool(parts: int) -> ThreadPoolExecutor:
    """A thread for each core, with torch on one thread in each: the same bits whatever their number."""

    return ThreadPoolExecutor(max(1, min(parts, available())), initializer=torch.set_num_threads, initargs=(1,))


def _of_one_type(parts: list[Peeled]) -> AbstractContextManager[None]:
    """New tensors are of the networks' type while they are taken apart, each worker's in a thread of its own."""

    return precision(torch.float64 if parts and parts[0].dtype is np.float64 else torch.float32)


def _ways(uploads: Uploads, rng: np.random.Generator) -> Iterator[Peeled]:
    """How each worker's columns are found; none where only sums over workers are known and do not open."""
    if KnownSecureAggregation in uploads.view.defence:
        sums = aggregated_gradients.opened(uploads)
        yield from () if sums is None else (_Summed(uploads, worker, sums) for worker in uploads.attacked)
        return
    for worker, own in zip(uploads.attacked, rng.spawn(len(uploads.attacked)), strict=True):
        if changed(uploads.view.defence):
            yield _Doubted(uploads, worker)
        else:
            yield Peeled(uploads, worker) if uploads.separated else _Followed(uploads, worker, own)


class _Followed(Peeled):
    """One worker's network that changed between rounds, or whose rounds are too few for one linear system."""

    def __init__(self, uploads: Uploads, worker: Worker, rng: np.random.Generator) -> None:
        super().__init__(uploads, worker)
        self.rng = rng

    def inputs(self, polished: bool = True) -> Inputs:
        if self.uploads.mixed:
            return super().inputs(polished)
        still = self._hardly_moved()
        found = super().inputs(polished) if self.uploads.static or still else None
        for more in (self._met, self._seen):
            if found is None or not found.found.all():
                found = _either(found, more())
        if not still and (found is None or found.found.mean() < 0.5):
            why = "there are fewer rounds than rows" if self.uploads.static else "parameters move from round to round"
            self.limit = f"few rows are told apart in single rounds, and {why}"
        elif found is not None and found.found.any():
            self.limit = ""
        return super().inputs(polished) if found is None else found

    def _met(self) -> Inputs | None:
        """Rows where the spans of their batches meet, if the layer's inputs are the columns themselves."""
        from plumbob.attacks.gradients._network_blocks import blocks_of
        from plumbob.attacks.gradients._shared_rows import RoundSpan, met

        if blocks_of(self.module, self.layer) != [] or self.layer.bias is None:
            return None
        weights, biases = self.gradients(f"{self.key}.weight"), self.gradients(f"{self.key}.bias")
        units, spans = self.layer.out_features, []
        for position, number in enumerate(weights.rounds.tolist()):
            bias = biases.of(number, units)
            if bias is not None:
                batch = self.uploads.batches[number]
                spans.append(RoundSpan.of(batch, weights.lines[position].reshape(units, -1), bias))
        return met([span for span in spans if span is not None], len(self.uploads.view.own), self.layer.in_features)

    def _seen(self) -> Inputs | None:
        """Rows that are followed from round to round."""
        from plumbob.attacks.gradients._moving_parameters import followed

        rounds = self._rounds()
        return followed(rounds, len(self.uploads.view.own), self.worker.plan.shape) if rounds else None

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
        from plumbob.attacks.gradients._batch_unmixing import unmixed
        from plumbob.attacks.gradients._moving_parameters import SIGHTS, Round
        from plumbob.attacks.gradients._network_blocks import blocks_of

        weights = self.gradients(f"{self.key}.weight")
        biases = self.gradients(f"{self.key}.bias") if self.layer.bias is not None else None
        known, rounds = set(range(len(self.uploads.batches)) if self.uploads.static else self.uploads.checkpoints), {}
        sights = np.zeros(len(self.uploads.view.own))
        for position in self.rng.permutation(len(weights.rounds)).tolist():
            number = int(weights.rounds[position])
            batch = self.uploads.batches[number]
            if number not in known or (sights[batch] >= SIGHTS).all():
                continue
            bias = None if biases is None else biases.of(number, self.layer.out_features)
            seen = unmixed(weights.lines[position].reshape(self.layer.out_features, -1), bias, self.rng)
            module = self.uploads.module(self.worker.name, 0 if self.uploads.static else number)
            layer = dict(module.named_modules())[self.key]
            forward, blocks = partial(representation, module, layer), blocks_of(module, layer)
            if blocks == [] and (np.isnan(seen.lengths).any() or len(seen.lengths) < len(np.unique(batch))):
                continue  # no network stands between, so nothing else would tell a sum of rows from a row
            rounds[number] = Round(batch, forward, blocks, seen)
            sights[batch] += len(seen.directions) / len(batch)
        return [rounds[number] for number in sorted(rounds)]


class _Summed(Peeled):
    """One worker's network where the server knows sums over workers."""

    def __init__(self, uploads: Uploads, worker: Worker, sums: aggregated_gradients.OpenedLayers) -> None:
        super().__init__(uploads, worker)
        self.sums = sums
        self.limit = self.limit or aggregated_gradients.limit(uploads, sums)

    def first(self) -> tuple[FloatArray, Inputs]:
        name = self.worker.name
        above = self.sums.above[name]
        found = self.sums.determined & (np.abs(above).max(axis=1) > UPLOAD_RANK_SHARE * np.abs(above).max(initial=0.0))
        return above, Inputs(self.sums.inputs[name], found)

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        return None, np.zeros(0, dtype=np.int64)


class _Doubted(Peeled):
    """One worker's network, from gradients that are known to have been changed."""

    def __init__(self, uploads: Uploads, worker: Worker) -> None:
        super().__init__(uploads, worker)
        self.trust = np.zeros(len(uploads.view.own))  # per row: how far its representation can be trusted
        if uploads.moved > STILL and not self.limit:
            self.limit = "gradients that a defence has changed are not followed while parameters move"

    def _barrier(self) -> str:
        if self.layer.bias is not None or self.uploads.mixed:
            return self.uploads.mixed
        return (
            f"the first fully connected layer of '{self.worker.name}' has no bias, and a defence changes its gradients"
        )

    def _estimates(self, key: str) -> Estimates:
        return estimates_of(self.uploads, self.worker.name, key)

    def first(self) -> tuple[FloatArray, Inputs]:
        if self.barrier:
            return self._nothing()
        above, weights = self._estimates(f"{self.key}.bias"), self.gradients(f"{self.key}.weight")
        if len(weights.rounds) < len(self.uploads.batches) or not self._fits(weights):
            return self._nothing()
        before, own = self._expected(), self._estimates(f"{self.key}.weight")
        own = before.in_units(own) if orders_only(self.uploads.view.defence) else own
        inner, self.trust = expected_inputs(own, above, before)
        return above.values, inner

    def _expected(self) -> Expected:
        """Of inputs anywhere in [0, 1]."""

        generator = torch.Generator().manual_seed(0)
        anywhere = torch.rand(INPUTS_DRAWN_FOR_A_LAYER, *self.worker.plan.shape, generator=generator)
        with torch.no_grad():
            inner = representation(self.module, self.layer, anywhere).flatten(1).double().numpy()
        return Expected(inner.mean(axis=0), inner.var(axis=0))

    def inputs(self, polished: bool = True) -> Inputs:
        from plumbob.attacks.gradients._network_blocks import blocks_of

        found = super().inputs(polished)
        if blocks_of(self.module, self.layer) == []:
            return found
        return Inputs(0.5 + self.trust[:, None] * (found.values - 0.5), found.found)

    def _own(self, key: str) -> tuple[FloatArray | None, IntArray]:
        """Winners are told by gradients that are nearly exact, and by no others."""
        if self.trust.min() > NEARLY:
            return super()._own(key)
        return None, np.zeros(0, dtype=np.int64)


def on_grid(values: FloatArray, steps: FloatArray) -> FloatArray:
    """Moved to the nearest value that a column can take, where it has a grid."""
    wide = np.where(steps > 0, steps, 1.0)
    return np.where(steps > 0, np.round(values / wide) * wide, values)


def _either(found: Inputs | None, more: Inputs | None) -> Inputs | None:
    """The first where it found a row, else the second; nothing where none is found."""
    if found is None or more is None:
        found = more if found is None else found
        return found if found is not None and found.found.any() else None
    return Inputs(np.where(found.found[:, None], found.values, more.values), found.found | more.found)


def _filled(found: Inputs) -> FloatArray:
    """The rows that tell nothing get the mean of those that do."""
    if not found.found.any():
        return np.full_like(found.values, 0.5)
    return np.where(found.found[:, None], found.values, found.values[found.found].mean(axis=0))
