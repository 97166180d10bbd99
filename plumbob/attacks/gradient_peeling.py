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
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from plumbob.attacks import aggregated_gradients, hidden_rows
from plumbob.attacks.base import NAMELESS, Attack, Guess, nothing
from plumbob.attacks.classes import estimated, labels, last_bias
from plumbob.attacks.defended_gradients import Estimates, Expected, changed, expected_inputs, orders_only
from plumbob.attacks.per_row import RANK, ROOM, Bools, Inputs, Separation, layer_inputs, row_inputs
from plumbob.attacks.uploads import STILL, Gradients, Uploads, Worker, needs_coordinator
from plumbob.crypto.cores import available
from plumbob.errors import Unfit, boolean
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.networks import first_linear, one_thread, precision, representation
from plumbob.protocols.split_training import TOP
from plumbob.threats import View

if TYPE_CHECKING:
    import torch

    from plumbob.attacks.moving_parameters import Round

EXPECTED = 512  # inputs drawn to know what a layer gets without any gradient
MORE = 1.2  # rounds for each row from which one gradient for each may explain them all
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
        values, _ = self._peeled(uploads, parts)
        limit = next((part.limit for part in parts if part.limit), "") if parts else aggregated_gradients.UNOPENED
        return Guess(view.unknown_names, values=values, labels=labels(uploads), untried=limit)

    def _nameless(self, uploads: Uploads, rng: np.random.Generator) -> Guess:
        """People in no order, where the marks that they leave in gradients tell who is in which batch."""
        view = uploads.view
        if not uploads.static:
            return nothing(view, "rows without numbers are not followed while parameters move")
        if changed(view.defence) or "secure_aggregation/on" in view.defence:
            return nothing(view, "rows without numbers are not sought where a second defence changes gradients")
        layers = {worker.name: _Peeled(uploads, worker).key for worker in uploads.attacked}
        renamed = hidden_rows.renamed(uploads, layers, rng)
        if not renamed.marks:
            return nothing(view)
        values, found = self._peeled(uploads, [_Peeled(renamed, worker) for worker in uploads.attacked])
        if not found.any():
            return nothing(view, "rows are told apart in some batches, and are not followed through all of them")
        classes = labels(renamed)
        return Guess(
            view.unknown_names,
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


def _ways(uploads: Uploads, rng: np.random.Generator) -> Iterator[_Peeled]:
    """How each worker's columns are found; none where only sums over workers are known and do not open."""
    if "secure_aggregation/on" in uploads.view.defence:
        sums = aggregated_gradients.opened(uploads)
        yield from () if sums is None else (_Summed(uploads, worker, sums) for worker in uploads.attacked)
        return
    for worker, own in zip(uploads.attacked, rng.spawn(len(uploads.attacked)), strict=True):
        if changed(uploads.view.defence):
            yield _Doubted(uploads, worker)
        else:
            yield _Peeled(uploads, worker) if uploads.separated else _Followed(uploads, worker, own)


class _Peeled:
    """One worker's network, taken apart. `limit` says what is not handled, once its inputs were sought."""

    limit = ""

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

    def first(self) -> tuple[FloatArray, Inputs]:
        """Of the first fully connected layer: the rows' gradients at its outputs, and what they put into it."""
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
        shape = self.worker.plan.shape
        y = torch.from_numpy(inner.values[rows].astype(self.dtype))
        x = None
        if blocks is not None and len(rows):
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
        key = f"{self.key}.bias" if self.layer.bias is not None else f"{self.key}.weight"
        own = self.gradients(key)
        separation = Separation.of(self.uploads, own.rounds)
        if self.layer.bias is not None:
            return separation.rows(own), separation
        # Without a bias: what comes down from the next layer, at the units whose weights have any gradient.
        reached = separation.rows(own).reshape(len(separation.determined), self.layer.out_features, -1)
        alive = np.abs(reached).max(axis=2) > RANK * np.abs(reached).max()
        return np.where(alive, self._from_above(), 0.0), separation

    def _from_above(self) -> FloatArray:
        """The gradients at the first layer's outputs before its activation's slope, from the next layer that has a bias."""
        from torch import nn

        worker = [(name, part) for name, part in self.module.named_modules() if isinstance(part, nn.Linear)]
        after = worker[1] if len(worker) > 1 else None
        if after is not None:
            party, key, weight = self.worker.name, after[0], after[1].weight.numpy()
        else:
            party, key, weight = TOP, "", self._top_weights()
        name = f"{key}.bias" if key else last_bias(self.uploads)
        if name not in self.uploads.parameters(party, 0):
            raise Unfit(f"neither the first fully connected layer of '{self.worker.name}' nor the next has a bias")
        bias = self.uploads.gradients(party, name)
        return np.asarray(Separation.of(self.uploads, bias.rounds).rows(bias) @ weight)

    def _top_weights(self) -> FloatArray:
        """How the top network's outputs hang on this worker's: of a layer its part, of a sum one each."""
        place = [worker.name for worker in self.uploads.workers].index(self.worker.name)
        outputs = self.worker.plan.outputs
        parameters = self.uploads.parameters(TOP, 0)
        wide = [array for array in parameters.values() if array.ndim == 2]
        if not wide:
            return np.eye(outputs)
        return np.asarray(wide[0][:, place * outputs : (place + 1) * outputs], dtype=np.float64)

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
    """One worker's network that changed between rounds, or whose rounds are too few for one linear system."""

    def __init__(self, uploads: Uploads, worker: Worker, rng: np.random.Generator) -> None:
        super().__init__(uploads, worker)
        self.rng = rng

    def inputs(self) -> Inputs:
        one_system = self.uploads.static or self._hardly_moved()
        found = super().inputs() if one_system else None
        for more in (self._met, self._seen):
            if found is None or not found.found.all():
                found = _either(found, more())
        if not self._hardly_moved() and (found is None or found.found.mean() < 0.5):
            why = "there are fewer rounds than rows" if self.uploads.static else "parameters move from round to round"
            self.limit = f"few rows are told apart in single rounds, and {why}"
        return super().inputs() if found is None else found

    def _met(self) -> Inputs | None:
        """Rows where the spans of their batches meet, if the layer's inputs are the columns themselves."""
        from plumbob.attacks.blocks import blocks_of
        from plumbob.attacks.shared_rows import Span, met

        if blocks_of(self.module, self.layer) != [] or self.layer.bias is None:
            return None
        weights, biases = self.gradients(f"{self.key}.weight"), self.gradients(f"{self.key}.bias")
        units, spans = self.layer.out_features, []
        for position, number in enumerate(weights.rounds.tolist()):
            bias = biases.of(number, units)
            if bias is not None:
                batch = self.uploads.batches[number]
                spans.append(Span.of(batch, weights.values[position].reshape(units, -1), bias))
        return met([span for span in spans if span is not None], len(self.uploads.view.own), self.layer.in_features)

    def _seen(self) -> Inputs | None:
        """Rows that are followed from round to round."""
        from plumbob.attacks.moving_parameters import followed

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
        from plumbob.attacks.blocks import blocks_of
        from plumbob.attacks.moving_parameters import SIGHTS, Round
        from plumbob.attacks.unmixing import unmixed

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
            seen = unmixed(weights.values[position].reshape(self.layer.out_features, -1), bias, self.rng)
            module = self.uploads.module(self.worker.name, 0 if self.uploads.static else number)
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
        self.sums, self.limit = sums, aggregated_gradients.limit(uploads, sums)

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
        if uploads.moved > STILL:
            self.limit = "gradients that a defence has changed are not followed while parameters move"

    def _estimates(self, key: str) -> Estimates:
        return estimated(self.uploads, self.worker.name, key)

    def first(self) -> tuple[FloatArray, Inputs]:
        above, _ = self._estimates(f"{self.key}.bias"), self._above()
        weights = self.gradients(f"{self.key}.weight")
        if len(weights.rounds) < len(self.uploads.batches) or weights.values.shape[1] * len(above.values) > ROOM:
            nothing = np.zeros((len(above.values), self.layer.in_features))
            return above.values, Inputs(nothing, np.zeros(len(nothing), dtype=bool))
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
