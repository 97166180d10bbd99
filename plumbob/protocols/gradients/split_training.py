"""Split training with a server (jin2021): workers keep their columns and send up gradients of their own networks.

The coordinator is the server: it holds all parameters and decides which rows a batch has. In every round
    1  it sends the workers the batch's row numbers, and the parameters where they have changed          "rows"
    2  each worker sends the active party its network's outputs on them                                  "outputs"
    3  the active party, which has the label and the top network, answers with the loss's gradient       "output gradients"
    4  every party sends the coordinator the gradients of its parameters, means over the batch           "gradient/..."
The server gets no output and no label, only sums over a batch: (1/K) sum over n in batch of dL_n/dparameter. With
`optimizer: static` parameters stay as they are, jin2021's strongest setting for an attacker; else the server takes steps.
With `warm_up` the networks have been trained for so many epochs before the first round that the server looks at (Section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput, boolean, one_of, positive, whole
from plumbob.federation import Federation, FloatArray, IntArray, Party, shape_of
from plumbob.lazy_imports import torch
from plumbob.protocols.base import IN_THE_CLEAR, opened
from plumbob.protocols.gradients._round_archive import Archive
from plumbob.protocols.gradients._warm_up import WarmUp, warm_up
from plumbob.protocols.shared.guards import Arrived, GradientGuard, GradientOutline, GuardedProtocol, Guarding, Upload
from plumbob.protocols.shared.networks import (
    MOST_OUTPUTS,
    MOST_WIDTH,
    NetworkPlan,
    known_network,
    mixing,
    one_thread,
    seeded,
)
from plumbob.transcript import COORDINATOR, Transcript

Optimizer = Literal["static", "sgd", "adam"]
Batches = Literal["epochs", "random"]
GradientGuarding = Guarding[GradientOutline, GradientGuard[Any]]
TOP = "top"  # the active party's second network, over all outputs
ROWS_TAKEN = "rows taken"  # a note of the parties: which rows the server's numbers stood for, round after round
MOST_EPOCHS = 100_000  # of the warm-up that a plan may ask for
TESTED = 2_000  # rows of other people that the test accuracy is taken on


class SplitTraining(GuardedProtocol):
    """Workers with networks of their own, a server with the gradients. Any `torch.nn.Module` by name."""

    name = "split_training"
    identity = (
        "SplitTraining(network, top, outputs, width, batch_size, rounds, batches, optimizer, learning_rate, "
        "double, archive_mb, guards)"
    )
    summary = "workers send a server the gradients of their own networks, batch by batch (jin2021)"
    parts = ("gradients",)
    tells = {"active": ("outputs",), "passive": ("output gradients",), COORDINATOR: ("gradient",)}
    key_bits = 0
    cost_terms = ("1", "rounds", "rounds batch w")  # a step a round
    presets = {"small": {"width": 16, "outputs": 4, "batch_size": 20}}
    glossary = {
        "rows": "which rows are asked about",
        "gradient": "gradients of a network’s layers",
        "parameter": "parameters of a network’s layers",
        "outputs": "outputs of a party’s first layers for each row",
        "output gradients": "gradients of these outputs",
    }

    def __init__(
        self,
        network: str = "auto",
        top: str = "linear",
        width: int = 64,
        outputs: int = 10,
        batch_size: int = 40,
        rounds: int = 0,
        batches: Batches = "random",
        optimizer: Optimizer = "static",
        learning_rate: float = 0.001,
        double: bool = False,
        archive_mb: int = 1_000,
        guards: Sequence[GradientGuarding] = (),
        warm_up: int = 0,
    ) -> None:
        self.network = network if network == "auto" else known_network("network", network)
        self.top = known_network("top", top)
        self.outputs = whole("outputs", outputs, 1, MOST_OUTPUTS)
        self.width = whole("width", width, 1, MOST_WIDTH)
        self.batch_size = whole("batch_size", batch_size, 1)
        self.rounds = whole("rounds", rounds, 0)  # 0: as many as separate the rows, and a quarter more
        one_of("batches", batches, get_args(Batches))
        one_of("optimizer", optimizer, get_args(Optimizer))
        self.batches, self.optimizer = batches, optimizer
        self.learning_rate = positive("learning_rate", learning_rate)
        self.double = boolean("double", double)  # 64-bit numbers
        self.archive_mb = whole("archive_mb", archive_mb, 1)
        self.guards: tuple[GradientGuarding, ...] = tuple(guards)
        self.warm_up = whole("warm_up", warm_up, 0, MOST_EPOCHS)  # epochs of Adam at `learning_rate` before the rounds

    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        self.ready(len(federation))
        if TOP in (party.name for party in federation.parties):
            raise BadInput(
                f"a party cannot be called '{TOP}': split training uses that name for the top network; choose another one"
            )
        log = opened(self.name, federation, others)
        with seeded(rng):
            run = _Run(self, federation, log, rng)
        for guard in run.guards:
            guard.known().seal(log)
        with one_thread():
            losses = [run.round(number) for number in range(run.rounds)]
        run.seal_rows()
        log.seal(COORDINATOR, "training loss", np.array(losses))
        log.seal(COORDINATOR, "test accuracy", np.array([run.accuracy(others)]))
        return log

    def ready(self, rows: int) -> None:
        if self.batch_size > rows:
            raise BadInput(f"batch_size: {self.batch_size:,} rows cannot be drawn from {rows:,}")

    @property
    def networks(self) -> tuple[str, ...]:
        return tuple(name for name in (self.network, self.top) if name != "auto")

    @property
    def encryption(self) -> str:
        return IN_THE_CLEAR

    @property
    def learns(self) -> bool:
        return self.optimizer != "static"

    def plan(self, party: Party) -> NetworkPlan:
        """The network of one party's columns."""
        shape = shape_of(party.columns)
        picture = shape is not None and min(shape[1:]) >= 4
        name = self.network if self.network != "auto" else "cafe" if picture else "mlp"
        return NetworkPlan(party.name, name, shape or (len(party.columns),), self.outputs, self.width, self.double)


@dataclass
class _Run:
    """One training under way."""

    protocol: SplitTraining
    federation: Federation
    log: Transcript
    rng: np.random.Generator
    modules: dict[str, torch.nn.Module] = field(default_factory=dict)
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    taken: list[IntArray] = field(default_factory=list)  # rows by round, as the parties know them

    def __post_init__(self) -> None:

        protocol, federation = self.protocol, self.federation
        self.plans = {p.name: protocol.plan(p) for p in federation.parties if p.columns}
        # Workers that add up must have as many outputs as there are classes.
        outputs = len(federation.classes) if protocol.top == "sum" else protocol.outputs
        self.plans = {name: replace(plan, outputs=outputs) for name, plan in self.plans.items()}
        joined = (len(self.plans), outputs)
        self.plans[TOP] = NetworkPlan(
            TOP, protocol.top, joined, len(federation.classes), protocol.width, protocol.double
        )
        self.modules = {name: plan.tried(protocol._trust) for name, plan in self.plans.items()}
        for name, module in self.modules.items():
            if protocol.batch_size == 1 and mixing(module):
                raise BadInput(f"batch_size: {mixing(module)} in the network of '{name}' needs at least 2 rows, got 1")
        self.inputs = {name: _tensor(federation[name].values, plan) for name, plan in self.plans.items() if name != TOP}
        self.label = torch.from_numpy(federation.label)
        self.rounds = protocol.rounds or len(federation) + len(federation) // 4
        self.order = _batches(protocol, len(federation), self.rounds, self.rng)
        room = protocol.archive_mb
        self.archive = Archive.of(self.modules, self.order, len(federation), room, moving=protocol.learns)
        self.guards = [guarding.begin(self._outline()) for guarding in protocol.guards]
        if protocol.warm_up:
            how = WarmUp(protocol.warm_up, protocol.batch_size, protocol.learning_rate)
            with one_thread():
                warm_up(how, self.modules, self.inputs, self.label, self.rng.spawn(1)[0])
        for name, plan in self.plans.items():
            self.log.send(COORDINATOR, self._holder(name), "setup", 0, "network", plan.to_array())
            for key, cells in self.archive.cells.get(name, {}).items():
                self.log.seal(COORDINATOR, f"notes/kept/{name}/{key}", cells)
        self._send_parameters(0)
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        kind = kinds.get(protocol.optimizer)
        everything = [p for module in self.modules.values() for p in module.parameters()]
        self.optimizer = None if kind is None else kind(everything, lr=protocol.learning_rate)

    def _outline(self) -> GradientOutline:
        used = np.bincount(np.concatenate(self.order), minlength=len(self.federation))
        shapes = {name: {k: tuple(p.shape) for k, p in m.named_parameters()} for name, m in self.modules.items()}
        size = self.protocol.batch_size
        return GradientOutline(len(self.federation), self.rounds, size, int(used.max()), self.plans, shapes)

    def seal_rows(self) -> None:
        """What every party knows of the batches where the server's numbers mean something else."""
        if all(map(np.array_equal, self.taken, self.order)):
            return
        for party in self.federation.parties:
            self.log.seal(party.name, f"notes/{ROWS_TAKEN}", np.concatenate(self.taken))

    def _holder(self, name: str) -> str:
        return self.federation.active if name == TOP else name

    def _send_parameters(self, round: int) -> None:
        full = self.archive.full(round)
        for name, module in self.modules.items():
            for key, parameter in module.named_parameters():
                kept = None if full else np.zeros(0, dtype=np.int64)
                payload = parameter.detach().numpy()
                where = f"parameter/{name}/{key}"
                self.log.send(COORDINATOR, self._holder(name), "train", round, where, payload, kept)

    def round(self, number: int) -> float:
        """One batch: outputs to the active party, gradients of outputs back, gradients of parameters up."""

        log, active = self.log, self.federation.active
        if number and self.optimizer is not None:
            self._send_parameters(number)
        told, rows = self.order[number], self.order[number]
        for name in self.plans:
            if name != TOP:
                log.send(COORDINATOR, name, "train", number, "rows", told)
        for guard in self.guards:
            rows = guard.rows(rows, len(self.federation), number, self.rng)
        self.taken.append(rows)
        batch = {name: part[torch.from_numpy(rows)] for name, part in self.inputs.items()}
        outputs = {name: self.modules[name](part) for name, part in batch.items()}
        arrived = []
        for name, out in outputs.items():
            if name != active:
                log.send(name, active, "train", number, "outputs", out.detach().numpy())
            arrived.append(out.detach().requires_grad_())
        joined = torch.stack(arrived, dim=1)
        loss = torch.nn.functional.cross_entropy(self.modules[TOP](joined), self.label[torch.from_numpy(rows)])
        top = dict(self.modules[TOP].named_parameters())
        backwards = torch.autograd.grad(loss, [*top.values(), *arrived])
        above = dict(zip(outputs, backwards[len(top) :], strict=True))
        uploads = [Upload(TOP, number, self.modules[TOP], joined.detach(), _top_gradients(self, joined, rows), {})]
        uploads[0].gradients.update(zip(top, backwards[: len(top)], strict=True))
        for name, out in outputs.items():
            if name != active:
                log.send(active, name, "train", number, "output gradients", above[name].numpy())
            parameters = dict(self.modules[name].named_parameters())
            grads = torch.autograd.grad(out, list(parameters.values()), above[name])
            own = dict(zip(parameters, grads, strict=True))
            uploads.append(Upload(name, number, self.modules[name], batch[name], above[name], own))
        self._check_finite(number, [loss, *(g for upload in uploads for g in upload.gradients.values())])
        sent = {upload.party: self._upload(upload) for upload in uploads}
        if self.optimizer is not None:
            self._step(sent)
        return float(loss.detach())

    def _check_finite(self, number: int, numbers: list[torch.Tensor]) -> None:
        """Stop if the loss or a gradient is not finite: what follows would be meaningless."""
        if all(bool(part.isfinite().all()) for part in numbers):
            return
        if self.optimizer is None:
            raise BadInput(f"round {number}: the loss or a gradient is not finite; the networks' outputs are too large")
        rate = self.protocol.learning_rate
        raise BadInput(
            f"training diverged in round {number}: the loss or a gradient is not finite; "
            f"a learning_rate smaller than {rate:g} may help"
        )

    def _upload(self, upload: Upload) -> dict[str, Array]:
        sent = upload.gradients
        for guard in self.guards:
            sent = guard.upload(replace(upload, gradients=sent), self.rng)
        sender, arrived = self._holder(upload.party), {}
        for key in upload.gradients:
            kept = self.archive.kept(upload.party, key, upload.round)
            where = f"gradient/{upload.party}/{key}"
            payload = sent[key].numpy()
            arrived[key] = self.log.send(sender, COORDINATOR, "train", upload.round, where, payload, kept)
        return arrived

    def _step(self, arrived: Arrived) -> None:

        for guard in reversed(self.guards):
            arrived = guard.received(arrived)
        for name, module in self.modules.items():
            for key, parameter in module.named_parameters():
                parameter.grad = torch.from_numpy(np.array(arrived[name][key])).to(parameter.dtype)
        if self.optimizer is not None:
            self.optimizer.step()

    def accuracy(self, others: Federation) -> float:
        """Accuracy on rows that were not used for training."""

        count = min(TESTED, len(others))
        with torch.no_grad():
            outputs = [
                module(_tensor(others[name].values[:count], self.plans[name]))
                for name, module in self.modules.items()
                if name != TOP
            ]
            guessed = self.modules[TOP](torch.stack(outputs, dim=1)).argmax(1).numpy()
        return float(np.mean(guessed == others.label[:count]))


def _top_gradients(run: _Run, joined: torch.Tensor, rows: IntArray) -> torch.Tensor:
    """The gradient of the batch's mean loss at the top network's outputs: (softmax - label) / K."""

    with torch.no_grad():
        scores = torch.softmax(run.modules[TOP](joined), dim=1)
        scores[torch.arange(len(rows)), run.label[torch.from_numpy(rows)]] -= 1
    return scores / len(rows)


def _batches(protocol: SplitTraining, rows: int, rounds: int, rng: np.random.Generator) -> list[IntArray]:
    """Row numbers of every round's batch: a fresh choice each time (jin2021), or epochs through all rows."""
    size = protocol.batch_size
    if protocol.batches == "random":
        return [np.sort(rng.permutation(rows)[:size]) for _ in range(rounds)]
    each = rows // size
    order: list[IntArray] = []
    while len(order) < rounds:
        shuffled = rng.permutation(rows)
        order += [np.sort(shuffled[i * size : (i + 1) * size]) for i in range(each)]
    return order[:rounds]


def _tensor(values: FloatArray, plan: NetworkPlan) -> torch.Tensor:

    numbers = values.astype(np.float64 if plan.double else np.float32)
    return torch.from_numpy(numbers).reshape(len(values), *plan.shape)
