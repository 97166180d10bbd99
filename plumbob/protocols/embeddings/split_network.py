"""A network cut at its first layer (ye2022): the active party gets the outputs of the other parties' parts, row by row.

Every party has a bottom model on its own columns; the active party adds up their outputs and has the rest, the top model.
    z = sum over parties of bottom(x),   scores = top(z),   with one layer below the cut z = W x of a passive party
In every round of training
    1  the active party sends the row numbers of the batch                                    "rows"
    2  each passive party answers with its bottom model's outputs                             "outputs"
    3  the active party sends back the loss's gradient at them, dL/dz                         "output gradients"
After training it asks for all rows once more, and the parameters are then the same for all:  "rows", "embeddings".

With `aggregation: masked` passive parties mask their outputs pairwise ("masked outputs", "masked embeddings"), and the active
party opens the sum over them and nothing else; those of prediction are its note `embeddings`.

Other people are predicted in the same way, for the test accuracy. Who knows some of those in full gets their embeddings too
(`predicted answers`, for threats whose auxiliary rows are `predicted`).

Messages of training are kept up to `archive_mb`. Of all rounds, kept or not, the active party keeps the mean by row (its notes
`mean outputs` and `times sent`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto.masking import fixed_point, from_system, opened_sum, pairwise_masks
from plumbob.errors import BadInput, boolean, not_negative, one_of, positive, whole
from plumbob.federation import Federation, IntArray, Party, shape_of
from plumbob.grants import AnyGradient, OwnSteps
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.base import IN_THE_CLEAR, MASKED, check_weights, note, opened
from plumbob.protocols.embeddings._active_side import ActiveSide, area
from plumbob.protocols.embeddings._deviating_party import DeviatingParty
from plumbob.protocols.embeddings._sealed_parts import note_own_part, seal_predicted
from plumbob.protocols.shared.conduct import ChosenGradients, Conduct, OwnOptimiser
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline, GuardedProtocol, Guarding
from plumbob.protocols.shared.networks import NetworkPlan, bottom_layers, known_network, one_thread, seeded, top_layers
from plumbob.protocols.shared.row_means import RowMeans
from plumbob.transcript import COORDINATOR, Transcript

Optimizer = Literal["sgd", "momentum", "rmsprop", "adam"]
Aggregation = Literal["none", "masked"]
EmbeddingGuarding = Guarding[EmbeddingOutline, EmbeddingGuard[Any]]
MOMENTUM = 0.9
DROPS = (3, 6, 9)  # tenths of the epochs after which the learning rate is divided by 10
BITS = 32  # after the binary point of masked outputs
ASKED = 65_536  # rows that the active party asks for at once in prediction
TESTED = 10_000  # rows of other people that the test accuracy is taken on
AUTO = "auto"


class SplitNetwork(GuardedProtocol):
    """Bottom models at the parties, the top model at the active one. Any `torch.nn.Module` by name."""

    name = "split_network"
    identity = (
        "SplitNetwork(hidden, cut, bottom, top, bias, optimizer, aggregation, learning_rate, weight_decay, "
        "epochs, batch_size, double, archive_mb, guards)"
    )
    summary = "a network split at its first layer: passive parties send embeddings of their columns to the active party (ye2022)"
    roles = ("active", "passive")
    tells = {"active": ("outputs", "embeddings"), "passive": ("output gradients",)}
    parts = ("embeddings", "labels")
    open_to = (AnyGradient, OwnSteps)
    key_bits = 0
    cost_terms = ("1", "e N / batch", "e N w")  # each epoch each row meets each weight
    # As long as ye2022 trains it: noise that a defence draws anew falls with the root of the epochs.
    sweep_settings = MappingProxyType({"epochs": 100})
    presets = {"small": {"hidden": (16, 8), "epochs": 4, "batch_size": 40}}
    glossary = {
        "outputs": "outputs of a party’s first layers for each row",
        "embeddings": "outputs of a party’s first layers for each row",
        "output gradients": "gradients of these outputs",
    }
    masked_messages = ("masked outputs", "masked embeddings")

    def __init__(
        self,
        hidden: Sequence[int] = (60, 30, 10),
        cut: int = 1,
        bottom: str = AUTO,
        top: str = AUTO,
        bias: bool = False,
        optimizer: Optimizer = "momentum",
        learning_rate: float = 0.1,
        weight_decay: float = 1e-4,
        batch_size: int = 256,
        epochs: int = 20,
        aggregation: Aggregation = "none",
        double: bool = False,
        archive_mb: int = 200,
        guards: Sequence[EmbeddingGuarding] = (),
    ) -> None:
        if not isinstance(hidden, list | tuple) or not hidden:
            raise BadInput(f"hidden: expected the widths of at least one layer, got {hidden!r}")
        self.hidden = tuple(whole("hidden", size, 1, 100_000) for size in hidden)  # the cut layer's width comes first
        self.cut = whole("cut", cut, 1, 4)  # layers below the cut
        check_weights("hidden", (*self.hidden[:1] * self.cut, *self.hidden[1:]))
        self.bottom = bottom if bottom == AUTO else known_network("bottom", bottom)
        self.top = top if top == AUTO else known_network("top", top)
        self.bias = boolean("bias", bias)  # in bottom models of passive parties
        one_of("optimizer", optimizer, get_args(Optimizer))
        one_of("aggregation", aggregation, get_args(Aggregation))
        self.optimizer, self.aggregation = optimizer, aggregation
        self.learning_rate = positive("learning_rate", learning_rate)
        self.weight_decay = not_negative("weight_decay", weight_decay)
        self.epochs = whole("epochs", epochs, 1, 100_000)
        self.batch_size = whole("batch_size", batch_size, 1)
        self.double = boolean("double", double)  # 64-bit numbers
        self.archive_mb = whole("archive_mb", archive_mb, 1)
        self.guards: tuple[EmbeddingGuarding, ...] = tuple(guards)
        self._conduct: Conduct | None = None

    @property
    def sent(self) -> Conduct | None:
        return self._conduct

    def deviating(self, sent: Conduct) -> Self:
        if not isinstance(sent, ChosenGradients | OwnOptimiser):
            return super().deviating(sent)
        other = copy.copy(self)
        other._conduct = sent
        return other

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(name for name in (self.bottom, self.top) if name != AUTO)

    @property
    def encryption(self) -> str:
        return MASKED if self.aggregation == "masked" else IN_THE_CLEAR

    @property
    def width(self) -> int:
        """Of the cut layer: how many numbers a passive party sends for a row."""
        return self.hidden[0]

    def fits(self, columns: int, classes: int) -> None:
        check_weights("hidden", (columns, *self.hidden[:1] * self.cut, *self.hidden[1:], classes))

    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        if self.aggregation == "masked" and len(federation.passive) < 2:
            raise BadInput(
                "aggregation: masked outputs need at least 2 passive parties, got 1; the sum of one output hides nothing"
            )
        log = opened(self.name, federation, others)
        with one_thread(), seeded(rng):
            run = _Run(self, federation, log, rng)
            run.deviating = DeviatingParty.of(
                *(self._conduct, federation, others, rng),
                summed=self.aggregation == "masked",
                width=self.width,
                rounds=self.epochs * math.ceil(len(federation) / self.batch_size),
            )
            for guard in run.guards:
                guard.known().seal(log)
            losses = [run.epoch(number) for number in range(self.epochs)]
            run.ask()
            run.means.write(log)
            log.seal(COORDINATOR, "training loss", np.array(losses))
            log.seal(COORDINATOR, "test accuracy", np.array([run.accuracy(others)]))
        for party in federation.passive:
            for key, parameter in run.bottoms[party].named_parameters():
                log.seal(party, f"bottom/{key}", parameter.detach().numpy())
            run.seal_changes(party)
        note_own_part(log, federation, run.side.top, run.bottoms)
        run.deviating.write(log)
        return log

    def bottom_of(self, party: Party, bias: bool) -> torch.nn.Module:
        """The bottom model of one party's columns, which it gets as rows x columns."""

        if self.bottom == AUTO:
            return bottom_layers(len(party.columns), self.width, self.cut, bias).to(self.dtype)
        shape = shape_of(party.columns)
        plan = NetworkPlan(party.name, self.bottom, shape or (len(party.columns),), self.width, self.width, self.double)
        built = plan.build(self._trust)
        return built if shape is None else nn.Sequential(nn.Unflatten(1, shape), built)

    def top_of(self, classes: int) -> torch.nn.Module:
        """The top model, from the sum of all outputs to the classes."""
        if self.top == AUTO:
            return top_layers((*self.hidden, classes)).to(self.dtype)
        return NetworkPlan("top", self.top, (self.width,), classes, self.width, self.double).build(self._trust)

    @property
    def dtype(self) -> torch.dtype:

        return torch.float64 if self.double else torch.float32


@dataclass
class _Run:
    """One training under way."""

    protocol: SplitNetwork
    federation: Federation
    log: Transcript
    rng: np.random.Generator
    bottoms: dict[str, torch.nn.Module] = field(default_factory=dict)
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    deviating: DeviatingParty = field(default_factory=DeviatingParty)

    def __post_init__(self) -> None:

        protocol, federation = self.protocol, self.federation
        # Batches are the same with and without a defence: its draws come from a generator of their own.
        self.order, self.secret = (np.random.default_rng(self.rng.integers(2**63 - 1, size=4)) for _ in range(2))
        columns = {name: len(federation[name].columns) for name in federation.passive}
        classes = len(federation.classes)
        cut = protocol.width, protocol.cut, protocol.bias
        outline = EmbeddingOutline(len(federation), columns, *cut, classes, protocol.epochs)
        self.guards = [guarding.begin(outline) for guarding in protocol.guards]
        top = protocol.top_of(classes)
        self.side = ActiveSide.of(federation, top, protocol.width, self.guards, protocol.dtype, self.secret)
        self.inputs = self._columns(federation)
        for party in (federation[federation.active], *(federation[name] for name in federation.passive)):
            if party.columns:
                self.bottoms[party.name] = self._bottom(party)
        self._checked()
        self._room = protocol.archive_mb * 1e6
        self.means = RowMeans(len(federation))
        self.optimizer = self._optimizer()
        self.rounds = 0

    def _columns(self, federation: Federation) -> dict[str, torch.Tensor]:
        """Every party's columns as its bottom model gets them."""

        columns = {}
        for party in federation.parties:
            if not party.columns:
                continue
            values = torch.from_numpy(party.values).to(self.protocol.dtype)
            for guard in self.guards if party.name != federation.active else ():
                values = guard.inputs(party.name, values, self.secret)
            columns[party.name] = values
        return columns

    def _bottom(self, party: Party) -> torch.nn.Module:
        active = party.name == self.federation.active
        module = self.protocol.bottom_of(party, bias=active or self.protocol.bias)
        for guard in () if active else self.guards:
            module = guard.bottom(party.name, module, self.inputs[party.name].shape[1])
        return module

    def _checked(self) -> None:
        """Networks of one's own must fit together: found before work starts."""

        width, classes = self.protocol.width, len(self.federation.classes)
        self._learning(False)
        with torch.no_grad():
            for name, module in self.bottoms.items():
                shape = tuple(module(self.inputs[name][:1]).shape)
                if shape != (1, width):
                    raise BadInput(f"bottom: expected {width} outputs for a row of '{name}', got shape {shape[1:]}")
            shape = tuple(self.side.top(torch.zeros(1, width, dtype=self.protocol.dtype)).shape)
        if shape != (1, classes):
            raise BadInput(f"top: expected {classes} outputs for a row, got shape {shape[1:]}")

    def seal_changes(self, party: str) -> None:
        """What defences have made of a party's columns: those it made up, and those it left out."""
        made_up = sum(guard.fabricated(party) for guard in self.guards)
        if made_up:
            self.log.seal(party, "fabricated", self.inputs[party][:, -made_up:].numpy())
        left_out = np.unique(np.concatenate([np.zeros(0, np.int64), *(g.dropped(party) for g in self.guards)]))
        if len(left_out):
            self.log.seal(party, "dropped columns", left_out)

    def _learning(self, on: bool) -> None:
        for module in (*self.side.modules, *self.bottoms.values()):
            module.train(on)

    def _optimizer(self) -> torch.optim.Optimizer:
        """One for all parties: none of these mixes parameters, so it is as if each had its own."""

        protocol = self.protocol
        everything = [p for module in (*self.side.modules, *self.bottoms.values()) for p in module.parameters()]
        rate, decay = protocol.learning_rate, protocol.weight_decay
        if protocol.optimizer == "adam":
            return torch.optim.Adam(everything, lr=rate, weight_decay=decay)
        if protocol.optimizer == "rmsprop":
            return torch.optim.RMSprop(everything, lr=rate, weight_decay=decay)
        momentum = MOMENTUM if protocol.optimizer == "momentum" else 0.0
        return torch.optim.SGD(everything, lr=rate, weight_decay=decay, momentum=momentum)

    def epoch(self, number: int) -> float:
        """All rows once, in batches; the mean loss over them."""
        drops = sum(10 * number >= tenths * self.protocol.epochs for tenths in DROPS)
        for group in self.optimizer.param_groups:
            group["lr"] = self.protocol.learning_rate / 10**drops
        self._learning(True)
        self.side.begin(number)
        loss = sum(self.round(rows) * len(rows) for rows in self._batches()) / len(self.federation)
        if not np.isfinite(loss):
            raise BadInput(f"split_network: the loss of epoch {number + 1} is not finite; use a lower learning_rate")
        return loss

    def _batches(self) -> Iterator[IntArray]:
        shuffled, size = self.order.permutation(len(self.federation)), self.protocol.batch_size
        for start in range(0, len(shuffled), size):
            yield np.sort(shuffled[start : start + size])

    def round(self, rows: IntArray) -> float:
        """One batch: outputs to the active party, their gradients back, and a step of everybody's parameters."""
        active, number = self.federation.active, self.rounds
        self.rounds += 1
        picked = torch.from_numpy(rows)
        for name in self.federation.passive:
            self._send(active, name, "train", number, "rows", rows)
        outputs = {name: module(self.inputs[name][picked]) for name, module in self.bottoms.items()}
        told = self._told(outputs, "train", number, "outputs", rows)
        self.optimizer.zero_grad()
        loss, above, own = self.side.step(rows, self._tensor(told), outputs.get(active))
        back = self.deviating.gradients(self.federation.passive, rows, above.numpy())
        for name, gradient in back.items():
            self._send(active, name, "train", number, "output gradients", gradient)
        grads = [own if name == active else torch.from_numpy(back[name]) for name in outputs]
        burdens = [b for guard in self.guards for b in self._burdens(guard, picked, outputs)]
        torch.autograd.backward([*outputs.values(), *burdens], [*grads, *[None] * len(burdens)])
        self.deviating.changed(self.bottoms)
        self.optimizer.step()
        return loss

    def _burdens(
        self, guard: EmbeddingGuard[Any], picked: torch.Tensor, outputs: Mapping[str, torch.Tensor]
    ) -> list[torch.Tensor]:
        """What passive parties lower beside the joint loss."""
        found = (guard.penalty(name, self.inputs[name][picked], outputs[name]) for name in self.federation.passive)
        return [one for one in found if one is not None]

    def _guarded(self, party: str, outputs: torch.Tensor, phase: str) -> Array:
        """What a passive party sends."""
        sent = outputs.detach()
        for guard in self.guards:
            sent = guard.send(party, sent, phase, self.secret)
        return sent.numpy()

    def _told(
        self, outputs: Mapping[str, torch.Tensor], phase: str, number: int, name: str, rows: IntArray | None = None
    ) -> Array:
        """The passive parties' outputs go to the active one; what it has then is their sum. Of training it keeps means."""
        active, passive = self.federation.active, self.federation.passive
        sent = {party: self._guarded(party, outputs[party], phase) for party in passive}
        if self.protocol.aggregation == "none":
            got = {party: self._send(party, active, phase, number, name, part) for party, part in sent.items()}
            if rows is not None:
                self.deviating.told(got)
                for party, part in got.items():
                    self.means.add(party, rows, part)
            return _sum(list(got.values()))
        masks = pairwise_masks(passive, sent[passive[0]].shape, from_system)
        parts = []
        for party, part in sent.items():
            refusal = f"aggregation: {name} of '{party}' do not fit into 64 bits; use a lower learning_rate"
            masked = fixed_point(part, BITS, refusal) + masks[party]
            parts.append(self._send(party, active, phase, number, f"masked {name}", masked))
        total = opened_sum(parts, BITS)
        if rows is not None:
            self.deviating.told({"": total})
            self.means.add("", rows, total)
        return total

    def _tensor(self, told: Array) -> torch.Tensor:
        return torch.from_numpy(np.array(told)).to(self.protocol.dtype)

    def _send(self, sender: str, receiver: str, phase: str, number: int, name: str, payload: Array) -> Array:
        """Messages of training are kept as long as there is room; of the rest their hashes and sizes."""
        kept = None
        if phase == "train":
            self._room -= payload.nbytes
            kept = None if self._room >= 0 else np.zeros(0, dtype=np.int64)
        return self.log.send(sender, receiver, phase, number, name, payload, kept)

    def ask(self) -> None:
        """Prediction of all rows: the active party gets them with parameters that no longer change."""

        active, passive = self.federation.active, self.federation.passive
        self._learning(False)
        sums = []
        for number, start in enumerate(range(0, len(self.federation), ASKED)):
            rows = np.arange(start, min(start + ASKED, len(self.federation)))
            for name in passive:
                self._send(active, name, "predict", number, "rows", rows)
            with torch.no_grad():
                outputs = {name: self.bottoms[name](self.inputs[name][rows[0] : rows[-1] + 1]) for name in passive}
            sums.append(self._told(outputs, "predict", number, "embeddings"))
        if self.protocol.aggregation == "masked":
            note(self.log, active, "embeddings", np.concatenate(sums))

    def accuracy(self, others: Federation) -> float:
        """Accuracy on rows that were not used for training, sent as in prediction."""

        tested = others.rows(np.arange(min(TESTED, len(others))))
        inputs = self._columns(tested)
        self._learning(False)
        with torch.no_grad():
            outputs = {name: module(inputs[name]) for name, module in self.bottoms.items()}
            sent = {name: self._guarded(name, outputs[name], "predict") for name in others.passive}
            told = _sum(list(sent.values()))
            scores = self.side.predicted(self._tensor(told), outputs.get(others.active))
        seal_predicted(self.log, tested, sent if self.protocol.aggregation == "none" else {"": told})
        self.log.seal(COORDINATOR, "test area", np.array([area(scores.numpy(), tested.label)]))
        return float(np.mean(scores.argmax(1).numpy() == tested.label))


def _sum(parts: Sequence[Array]) -> Array:
    return np.asarray(np.sum(parts, axis=0))
