"""A tap: hooks at the cut of the user's own split-learning loop, which record the messages there.

A passive party's bottom model is a `torch.nn.Module`; what it returns is what the party sends. The tap hears
    1  its outputs in training, by a forward hook                         "rows", "outputs"
    2  the loss's gradients at them, by a hook on that tensor             "output gradients"
    3  its outputs in prediction, with the final parameters               "rows", "embeddings"
and makes of them a transcript of `split_network`, message by message as Plumbob's own. The loop stays as it is: no tensor is
changed, no random number drawn, and all hooks are gone at the end.

A forward pass is training if the module is in training mode and gradients are on, else prediction; after `predict()` every one
is prediction. Predictions with earlier parameters are messages too ("outputs" in the phase `predict`), but only those with the
final ones are embeddings. Where they do not cover all rows, the tap runs the bottom models once over the table itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbob.bundle import Array
from plumbob.data.prepare import Rules
from plumbob.errors import BadInput, whole
from plumbob.federation import IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.base import opened
from plumbob.protocols.embeddings.split_network import ASKED, SplitNetwork
from plumbob.protocols.shared.row_means import RowMeans
from plumbob.recorded.row_index import UNKNOWN, Found, RowIndex, agreed, nothing
from plumbob.recorded.seals import seal_accuracy, seal_defence, seal_dropped, seal_remarks
from plumbob.recorded.tables import array_of, checked_parties, federation_of
from plumbob.recorded.torch_modules import checked_modules, linear, numbers_of, plain, predicting, table_of, version_of
from plumbob.transcript import Transcript

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

AT_ONCE = 4_096  # rows that a bottom model is given at once where the tap runs it


def tap(
    *,
    active: str,
    passive: Mapping[str, torch.nn.Module],
    columns: Mapping[str, Any],
    label: Any,
    inputs: Mapping[str, Any] | None = None,
    rules: Rules | None = None,
    defence: Mapping[str, Mapping[str, object]] | None = None,
    archive_mb: int = 200,
) -> Tap:
    """Record what crosses the cut while the block runs: `with plumbob.tap(...) as tap: train()`.

    `passive` names each passive party's module, `columns` what each party holds (a DataFrame, an array or a tensor; one row for
    each person, in one order for all), `label` the active party's classes. `inputs` is what a module is given, where that is
    not its party's columns as they stand. `defence` is what everybody knows of a defence that is part of the loop.
    """
    return Tap(active, passive, columns, label, inputs or {}, rules, defence or {}, archive_mb)


@dataclass
class _Round:
    """One round of training: messages so far that are not yet recorded."""

    number: int
    found: dict[str, Found] = field(default_factory=dict)
    outputs: dict[str, Array] = field(default_factory=dict)
    gradients: dict[str, Array] = field(default_factory=dict)
    told: bool = False  # whether rows and outputs are written down
    over: bool = False  # whether a later round has begun


@dataclass
class _Predicted:
    """One party's outputs in prediction since its parameters last changed, by row."""

    cells: Array
    there: Array
    version: int  # of the parameters


class Tap:
    """The hooks of one run. `transcript` is available after the block; `remarks` lists assumptions and decisions."""

    def __init__(
        self,
        active: str,
        passive: Mapping[str, torch.nn.Module],
        columns: Mapping[str, Any],
        label: Any,
        inputs: Mapping[str, Any],
        rules: Rules | None,
        defence: Mapping[str, Mapping[str, object]],
        archive_mb: int,
    ) -> None:
        checked_parties(active, passive, columns)
        self.federation = federation_of(active, columns, label, rules)
        self._modules = checked_modules(passive)
        self._tables = {name: table_of(name, columns, inputs, self.federation) for name in passive}
        self._indices: dict[tuple[str, str], RowIndex] = {}
        self._like: dict[str, torch.Tensor] = {}  # an empty batch of the kind that a module was given
        self._room = whole("archive_mb", archive_mb, 1) * 1e6
        self._means = RowMeans(len(self.federation))
        self._log = opened(SplitNetwork.name, self.federation, self.federation.rows(np.zeros(0, dtype=np.int64)))
        seal_defence(self._log, defence)
        self._defended = bool(defence)
        self._handles: list[RemovableHandle] = []
        self._awaited: list[RemovableHandle] = []  # of the tensors of the current round
        self._round: _Round | None = None
        self._rounds = self._predictions = 0
        self._predicted: dict[str, _Predicted] = {}
        self._told: IntArray | None = None
        self._told_to: set[str] = set()
        self._predicting = self._listening = self._done = False
        self._unknown, self._twins, self._strangers = dict.fromkeys(passive, 0), dict.fromkeys(passive, 0), 0
        self.remarks: tuple[str, ...] = self.federation.notes

    def __enter__(self) -> Tap:
        if self._listening or self._done:
            raise BadInput("a tap records one run; create a new one for the next")
        self._listening = True
        for name, module in self._modules.items():
            self._handles.append(module.register_forward_hook(partial(self._heard, name), with_kwargs=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        self._deaf()

    @property
    def transcript(self) -> Transcript:
        """The record of the run."""
        if not self._done:
            raise BadInput("the tap has no transcript yet: its block has not finished, or it raised an error")
        return self._log

    def rows(self, indices: Any) -> None:
        """State the row numbers of every party's next forward pass; without this they are looked up."""
        rows = array_of(indices).reshape(-1)
        if rows.dtype.kind not in "iu" or (len(rows) and (rows.min() < 0 or rows.max() >= len(self.federation))):
            raise BadInput(f"rows: expected row numbers from 0 to {len(self.federation) - 1:,}, got others")
        self._told, self._told_to = rows.astype(np.int64), set()

    def predict(self) -> None:
        """From here on, every forward pass is prediction, whatever mode the modules are in."""
        self._predicting = True

    def accuracy(self, share: float) -> None:
        """State the model's test accuracy for the report; the tap cannot know it."""
        seal_accuracy(self._log, share)

    def finish(self) -> Transcript:
        """Remove the hooks and close the transcript; leaving the block does this too."""
        if self._done:
            return self._log
        if not self._listening:
            raise BadInput("the tap is not active; run the loop inside its block: with plumbob.tap(...) as tap")
        self._deaf()
        self._end_round()
        missing = [name for name in self._modules if not self._covered(name)]
        self._say_earlier(missing)
        cells = {n: self._asked(n) if n in missing else self._predicted[n].cells for n in self._modules}
        for start in range(0, len(self.federation), ASKED):
            rows = np.arange(start, min(start + ASKED, len(self.federation)))
            self._say_prediction(dict.fromkeys(cells, rows), {name: part[rows] for name, part in cells.items()})
        deep = [n for n in self._modules if not self._defended and not linear(self._tables[n], cells[n])]
        seal_defence(self._log, {"deeper_cut": {}} if deep else {})
        self.remarks = (*self.remarks, *self._remarked(missing, cells, deep))
        seal_remarks(self._log, self.remarks)
        self._means.write(self._log)
        seal_dropped(self._log, self.federation.dropped)
        self._done = True
        return self._log

    def _deaf(self) -> None:
        self._listening = False
        for handle in (*self._handles, *self._awaited):
            handle.remove()
        self._handles, self._awaited = [], []

    # what is heard

    def _heard(self, party: str, module: torch.nn.Module, given: Any, named: Any, outputs: Any) -> None:
        """A module has run. Nothing is returned, so its outputs stay unchanged."""

        if not isinstance(outputs, torch.Tensor) or outputs.ndim == 0:
            raise BadInput(
                f"the module of '{party}' returns {type(outputs).__name__}, expected one tensor with a row per person; "
                "tap the module whose outputs are sent"
            )
        sent = numbers_of(outputs)
        found = self._find(party, [v for v in (*given, *named.values()) if isinstance(v, torch.Tensor)], len(sent))
        if self._predicting or not (module.training and torch.is_grad_enabled()):
            self._note_prediction(party, found, sent)
            return
        if self._round is None or self._round.told or party in self._round.outputs:
            self._end_round()
            self._say_earlier(self._modules)
            self._round = _Round(self._rounds)
            self._rounds += 1
        here = self._round
        here.found[party], here.outputs[party] = found, sent
        if outputs.requires_grad:
            hook = partial(self._returned, here, party)
            self._awaited.append(outputs.register_hook(hook))  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if here.outputs.keys() == self._modules.keys():
            self._say_outputs(here)

    def _returned(self, here: _Round, party: str, gradient: torch.Tensor) -> None:
        """A gradient has reached a module's outputs."""
        if not self._listening:
            return
        self._say_outputs(here)
        if party in here.gradients:  # the loop goes back through these outputs more than once
            self._say_gradients(here)
        here.gradients[party] = numbers_of(gradient)
        if here.over or here.gradients.keys() == self._modules.keys():
            self._say_gradients(here)

    def _find(self, party: str, given: list[torch.Tensor], count: int) -> Found:
        """The rows that a module was given: as stated, else found by their cells."""
        if given and party not in self._like:
            self._like[party] = given[0].detach()[:0].clone()
        if self._told is not None and party not in self._told_to:
            self._told_to.add(party)
            if len(self._told) != count:
                raise BadInput(f"rows: {len(self._told):,} were named, but the module of '{party}' was given {count:,}")
            return Found(self._told, np.ones(count, dtype=np.bool_))
        if not given or len(given[0]) != count:
            return nothing(count)
        batch = plain(given[0])
        place = (party, batch.dtype.str)
        if place not in self._indices:
            self._indices[place] = RowIndex(self._tables[party].astype(batch.dtype))
        return self._indices[place].find(batch)

    def _note_prediction(self, party: str, found: Found, sent: Array) -> None:
        known = found.rows != UNKNOWN
        self._strangers += int((~known).sum())
        kept, version = self._predicted.get(party), version_of(self._modules[party])
        if kept is None or kept.version != version or kept.cells.shape[1] != sent.shape[1]:
            self._say_earlier([party])
            shape = (len(self.federation), sent.shape[1])
            kept = _Predicted(np.zeros(shape, dtype=sent.dtype), np.zeros(shape[0], dtype=np.bool_), version)
            self._predicted[party] = kept
        kept.cells[found.rows[known]] = sent[known]
        kept.there[found.rows[known]] = True

    def _covered(self, party: str) -> bool:
        """Whether the loop predicted all rows with the parameters as they are now."""
        kept = self._predicted.get(party)
        return kept is not None and kept.version == version_of(self._modules[party]) and bool(kept.there.all())

    def _asked(self, party: str) -> Array:
        """A bottom model's outputs for all rows, run by the tap without gradients and in evaluation mode; state is restored."""

        module, table = self._modules[party], torch.from_numpy(np.array(self._tables[party], order="C"))
        like = self._like.get(party, next(module.parameters(), table))  # whose type and device a batch has
        try:
            shaped = table.reshape(len(table), *self._like[party].shape[1:]) if party in self._like else table
            with predicting(module), torch.no_grad(), torch.random.fork_rng(devices=[]):
                starts = range(0, len(table), AT_ONCE)
                parts = [numbers_of(module(shaped[start : start + AT_ONCE].to(like))) for start in starts]
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise BadInput(
                f"the module of '{party}' cannot be run over its table of {tuple(table.shape)}; "
                "pass the module's inputs ('inputs'), or predict all rows in the loop"
            ) from error
        return np.concatenate(parts)

    # what is written down

    def _end_round(self) -> None:
        if self._round is None:
            return
        self._say_outputs(self._round)
        self._say_gradients(self._round)
        self._round.over = True
        self._round, self._awaited = None, []

    def _say_outputs(self, here: _Round) -> None:
        if here.told:
            return
        here.told = True
        rows = agreed(here.found)
        for name, numbers in rows.items():
            self._unknown[name] += int((numbers == UNKNOWN).sum())
            self._twins[name] += int((~here.found[name].sure & (numbers != UNKNOWN)).sum())
            self._say(self.federation.active, name, "train", here.number, "rows", numbers)
        for name in rows:
            self._say(name, self.federation.active, "train", here.number, "outputs", here.outputs[name])
            self._means.add(name, rows[name], here.outputs[name])
        here.found, here.outputs = {}, {}

    def _say_gradients(self, here: _Round) -> None:
        for name in self._modules:
            if name in here.gradients:
                gradient = here.gradients.pop(name)
                self._say(self.federation.active, name, "train", here.number, "output gradients", gradient)

    def _say_earlier(self, parties: Iterable[str]) -> None:
        """Record these parties' predictions so far as outputs, since they are not of the final model."""
        earlier = {name: self._predicted.pop(name) for name in parties if name in self._predicted}
        rows = {name: np.flatnonzero(kept.there) for name, kept in earlier.items() if kept.there.any()}
        if rows:
            self._say_prediction(rows, {name: earlier[name].cells[here] for name, here in rows.items()}, "outputs")

    def _say_prediction(
        self, rows: Mapping[str, IntArray], cells: Mapping[str, Array], word: str = "embeddings"
    ) -> None:
        number, self._predictions = self._predictions, self._predictions + 1
        for name, numbers in rows.items():
            self._say(self.federation.active, name, "predict", number, "rows", numbers, word != "embeddings")
        for name, part in cells.items():
            self._say(name, self.federation.active, "predict", number, word, part, word != "embeddings")

    def _say(
        self, sender: str, receiver: str, phase: str, number: int, name: str, payload: Array, limited: bool = True
    ) -> None:
        """As in `split_network`: messages are kept up to the limit, beyond it hashes and sizes; embeddings are kept whole."""
        self._room -= payload.nbytes if limited else 0
        kept = None if self._room >= 0 or not limited else np.zeros(0, dtype=np.int64)
        self._log.send(sender, receiver, phase, number, name, payload, kept)

    def _remarked(self, asked: list[str], cells: Mapping[str, Array], deep: list[str]) -> list[str]:
        """What readers of the transcript should know about how it was made."""
        remarks = []
        if asked:
            whom = ", ".join(f"'{name}'" for name in asked)
            remarks.append(
                f"the loop did not predict all rows after training, so the tap ran the bottom model of {whom} once"
            )
        for name in deep:
            remarks.append(
                f"the bottom of '{name}' is not a single linear layer, which the attacker knows; it counts as a deeper cut"
            )
        if not self._rounds:
            remarks.append("no training round was recorded: no module ran in training mode with gradients on")
        for name in self._modules:
            if self._unknown[name]:
                remarks.append(
                    f"{self._unknown[name]:,} training rows were not found in the table of '{name}' ({UNKNOWN} in 'rows')"
                )
            if self._twins[name]:
                remarks.append(
                    f"{self._twins[name]:,} training rows have duplicates in the table of '{name}', which were assigned in turn"
                )
            if cells[name].dtype.itemsize < 4:
                remarks.append(
                    f"'{name}' sends numbers of {8 * cells[name].dtype.itemsize} bits; attacks assume 32 or more"
                )
        if self._strangers:
            remarks.append(f"{self._strangers:,} prediction outputs were of rows not in the table and were not kept")
        if self._room < 0:
            remarks.append("messages beyond 'archive_mb' were counted and hashed, not kept")
        return remarks
