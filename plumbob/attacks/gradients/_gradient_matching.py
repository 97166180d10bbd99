"""Gradient matching: dummy rows and labels, optimised until their batches' gradients match those sent to the server.

    min over x, y of  D( gradient(x_b, y_b), uploaded gradient of batch b )  +  what an attack believes of rows
What jin2021's attack and its rivals share. Iteration t takes the batch of round t mod T and moves that batch's rows only, by an
Adam that keeps its moments row by row. What D is, and what is believed, each attack says in its own file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt

import numpy as np

from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.attacks.gradients._defended_gradients import changed
from plumbob.attacks.gradients._table_nine import TableNineRow, row_that_fits
from plumbob.attacks.gradients._worker_uploads import Uploads, Worker, needs_coordinator
from plumbob.errors import BadInput, positive, whole
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.kinds import COLUMNS, Kind
from plumbob.known_defences import KnownSecureAggregation
from plumbob.lazy_imports import Tensor, nn, torch
from plumbob.protocols.gradients.split_training import TOP
from plumbob.protocols.shared.networks import one_thread
from plumbob.setting_sources import ours, printed
from plumbob.setting_types import Positive, Whole
from plumbob.threats import View

MATCHING_ADAM_BETAS, MATCHING_ADAM_EPSILON = (0.9, 0.999), 1e-7  # of Adam, in the authors' code
LABEL_STEP_RATIO = 1e4  # the authors give labels the gradient of 100 |.|^2, and data that of 0.01 |.|^2
SNAPSHOTS = 10
UNAWARE = "gradients are matched as if no defence had changed them"
Pairs = list[tuple[Tensor, Tensor]]  # made-up and real gradients, one pair per parameter


# Ours: enough to see who learns something. What the paper takes for its data sets is a multiple of it.
FAST = {"iterations": 300, "rate": 1e-2}
RIVAL_SOURCES = {
    "iterations": printed("Section 4.1: as many as CAFE; Table 5, for the data that fit"),
    "rate": ours("the paper names none; that of CAFE's Step III in Table 9"),
    "report_every": ours("how often the guess so far is kept; it changes no guess"),
}


class ServerAttack(Attack):
    """The base of these attacks: the server's view, and a number of iterations."""

    paper = "jin2021"
    protocols = ("split_training",)
    addresses = (*COLUMNS, Kind.LABEL)
    corrupted = True
    by_default = False  # thousands of iterations to learn less than gradient peeling solves for
    needs_active = False
    presets = {"fast": FAST, "small": FAST | {"iterations": 20}}
    sources = RIVAL_SOURCES
    iterations: int | None
    report_every: int | None

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        needs_coordinator(view)
        reason = _limit(Uploads(view))
        if reason:
            return nothing(view, reason)
        with one_thread():
            guess = self.descend(MatchingServer(view), rng)
        return replace(guess, untried=UNAWARE) if changed(view.defence) else guess

    @abstractmethod
    def descend(self, server: MatchingServer, rng: np.random.Generator) -> Guess:
        """The guess that the iterations end in."""

    def length(self, server: MatchingServer) -> int:
        """The iterations, those of the row of Table 9 that fits where none are given."""
        return self.iterations or server.published.iterations

    def _store_length(self, iterations: int | None, report_every: int | None) -> None:
        self.iterations = None if iterations is None else whole("iterations", iterations, 1)
        self.report_every = None if report_every is None else whole("report_every", report_every, 1)


def _limit(uploads: Uploads) -> str:
    """What dummy gradients cannot be compared with."""
    if uploads.hidden:
        return "gradients are matched row by row, and row numbers mean nothing where indices are hidden"
    if KnownSecureAggregation in uploads.view.defence:
        return "gradients are matched worker by worker, and of masked ones only the sum over workers is known"
    return ""


class Rival(ServerAttack):
    """One that moves dummies at one rate."""

    rate: float | None

    def pace(self, server: MatchingServer) -> float:
        """The rate, that of CAFE's Step III where none is given."""
        return self.rate or server.published.rates[2]

    def _store_rate(self, rate: float | None) -> None:
        self.rate = None if rate is None else positive("rate", rate)


class Matching(Rival):
    """An attack defined by its objective: dummy rows and labels are optimised to minimise it."""

    def __init__(
        self, *, iterations: Whole | None = None, rate: Positive | None = None, report_every: Whole | None = None
    ) -> None:
        self._store_length(iterations, report_every)
        self._store_rate(rate)

    def descend(self, server: MatchingServer, rng: np.random.Generator) -> Guess:
        dummies = Dummies.drawn(server, seed_of(rng))
        return search(self, server, dummies, lambda batch: self.objective(batch, server))

    @abstractmethod
    def objective(self, batch: MadeUpBatch, server: MatchingServer) -> Tensor:
        """What is to become small on one batch."""


class RowAdam:
    """Adam on some rows at a time: the others keep their values and moments.

    Corrected by the number of the iteration, not of the row's own updates, and once more in the rate: as the authors do.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.first, self.second = torch.zeros_like(values), torch.zeros_like(values)

    def step(self, rows: Tensor, gradient: Tensor, rate: float, iteration: int) -> None:
        """`iteration` counts from 0."""
        grown = [1 - beta ** (iteration + 1) for beta in MATCHING_ADAM_BETAS]
        first = self.first[rows].mul_(MATCHING_ADAM_BETAS[0]).add_(gradient, alpha=1 - MATCHING_ADAM_BETAS[0])
        second = (
            self.second[rows]
            .mul_(MATCHING_ADAM_BETAS[1])
            .addcmul_(gradient, gradient, value=1 - MATCHING_ADAM_BETAS[1])
        )
        self.first[rows], self.second[rows] = first, second
        length = (second / grown[1]).sqrt_().add_(MATCHING_ADAM_EPSILON)
        self.values[rows] -= (rate * sqrt(grown[1]) / grown[0] ** 2) * first / length


@dataclass
class Dummies:
    """Dummy rows of every unknown worker and dummy labels, with their optimisers."""

    data: dict[str, RowAdam]
    logits: RowAdam

    @classmethod
    def drawn(
        cls, server: MatchingServer, generator: torch.Generator, workers: Sequence[Worker] | None = None
    ) -> Dummies:
        """From U(0, 1), as the authors do; of the given workers, or of all unknown ones."""
        rows = server.rows
        chosen = server.uploads.attacked if workers is None else workers
        data = {w.name: RowAdam(torch.rand(rows, *w.plan.shape, generator=generator)) for w in chosen}
        return cls(data, RowAdam(torch.rand(rows, server.classes, generator=generator)))


@dataclass
class MadeUpBatch:
    """One batch of dummy rows, sent through all networks as they were in that batch's round."""

    server: MatchingServer
    round: int
    rows: Tensor
    inputs: dict[str, Tensor]
    logits: Tensor
    caught: dict[str, list[Tensor]]
    outputs: list[Tensor] = field(default_factory=list)

    def pairs(self) -> Pairs:
        """Gradients of the mean loss, beside those uploaded; of the cells that were kept in this round."""
        scores = self.server.modules[TOP](torch.stack(self.outputs, dim=1))
        chances = torch.softmax(self.logits, dim=1)
        loss = -(chances * torch.log_softmax(scores, dim=1)).sum(1).mean()
        kept = self.server.kept(self.round)
        wanted = [parameter for parameter, _, _ in kept]
        fake = torch.autograd.grad(loss, wanted, create_graph=True, materialize_grads=True)
        return [
            (g.reshape(-1) if cells is None else g.reshape(-1)[cells], real)
            for g, (_, real, cells) in zip(fake, kept, strict=True)
        ]


@dataclass(frozen=True)
class _Uploaded:
    """One parameter's gradients, by round."""

    place: dict[int, int]
    values: Tensor
    cells: Tensor | None  # where only some were kept


class MatchingServer:
    """What the server holds, as tensors: networks, batches, the gradients that came, and the columns it knows."""

    def __init__(self, view: View) -> None:
        needs_coordinator(view)
        self.uploads = uploads = Uploads(view)
        if uploads.top is None:
            raise BadInput(f"this view names no network of '{TOP}'")
        self.rows, self.classes = len(view.own), uploads.top.outputs
        self.batches = [torch.from_numpy(np.array(rows, dtype=np.int64)) for rows in uploads.batches]
        self.names = [w.name for w in uploads.workers] + [TOP]
        self.modules: dict[str, nn.Module] = {
            name: uploads.module(name).float().requires_grad_(True) for name in self.names
        }
        self._uploaded = {
            (name, key): self._gradients(name, key)
            for name, module in self.modules.items()
            for key, _ in module.named_parameters()
        }
        place = {int(column): i for i, column in enumerate(view.known)}
        self.known = {
            w.name: torch.from_numpy(view.own[:, [place[c] for c in w.columns.tolist()]])
            .float()
            .reshape(self.rows, *w.plan.shape)
            for w in uploads.workers
            if not w.attacked
        }
        self._loaded = 0
        self.caught: dict[str, list[Tensor]] = {}

    def _gradients(self, name: str, key: str) -> _Uploaded:
        found = self.uploads.gradients(name, key)
        size = dict(self.modules[name].named_parameters())[key].numel()
        cells = None if len(found.cells) == size else torch.from_numpy(np.array(found.cells))
        place = {int(number): i for i, number in enumerate(found.rounds)}
        return _Uploaded(place, torch.from_numpy(found.values).float(), cells)

    def kept(self, round: int) -> list[tuple[nn.Parameter, Tensor, Tensor | None]]:
        """Parameters, with what was kept of their gradients in this round, and the cells."""
        return [
            (parameter, uploaded.values[uploaded.place[round]], uploaded.cells)
            for name, module in self.modules.items()
            for key, parameter in module.named_parameters()
            if round in (uploaded := self._uploaded[name, key]).place
        ]

    def rounds(self, name: str, key: str) -> list[int]:
        """Rounds in which anything of a parameter's gradient was kept."""
        return sorted(self._uploaded[name, key].place)

    def gradient(self, name: str, key: str, round: int) -> Tensor:
        uploaded = self._uploaded[name, key]
        return uploaded.values[uploaded.place[round]]

    def load(self, round: int) -> int:
        """Give all networks the last parameters that are known and not of a later round; says of which round these are."""
        wanted = max((c for c in self.uploads.checkpoints if c <= round), default=0)
        if wanted != self._loaded:
            with torch.no_grad():
                for name, module in self.modules.items():
                    arrays = self.uploads.parameters(name, wanted)
                    for key, parameter in module.named_parameters():
                        parameter.copy_(torch.from_numpy(np.array(arrays[key])))
            self._loaded = wanted
        return wanted

    def batch(self, dummies: Dummies, round: int, fixed: dict[str, Tensor] | None = None) -> MadeUpBatch:
        """The round's rows of the dummies, ready to be differentiated; `fixed` are rows that are not to be moved."""
        self.load(round)
        rows = self.batches[round]
        held = self.known | (fixed or {})
        inputs = {name: part[rows] for name, part in held.items()}
        inputs |= {name: part.values[rows].requires_grad_() for name, part in dummies.data.items()}
        logits = dummies.logits.values[rows].requires_grad_()
        for part in self.caught.values():
            part.clear()
        outputs = [self.modules[name](inputs[name]) for name in self.names if name != TOP]
        caught = {name: list(part) for name, part in self.caught.items()}
        return MadeUpBatch(self, round, rows, inputs, logits, caught, outputs)

    def catch_inputs(self, name: str, layer: nn.Module) -> None:
        """From now on, batches hold what this layer is given."""
        kept = self.caught.setdefault(name, [])
        layer.register_forward_pre_hook(lambda _, arguments: kept.append(arguments[0]))

    def catch_outputs(self, name: str, layer: nn.Module) -> None:
        """From now on, batches hold what this layer gives."""
        kept = self.caught.setdefault(name, [])
        layer.register_forward_hook(lambda _, __, output: kept.append(output))

    @cached_property
    def published(self) -> TableNineRow:
        """What the paper runs on data of this shape."""
        return row_that_fits([worker.plan.shape for worker in self.uploads.workers])

    @cached_property
    def pictures(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the unknown workers' inputs, of those that are pictures."""
        return {w.name: w.plan.shape for w in self.uploads.attacked if len(w.plan.shape) == 3}

    def seen(self, iterations: int) -> BoolArray:
        """Which rows were in a batch of the first iterations, up to the given number."""
        found = np.zeros(self.rows, dtype=bool)
        for rows in self.batches[:iterations]:
            found[rows.numpy()] = True
        return found

    def values(self, parts: dict[str, Tensor], seen: BoolArray) -> FloatArray:
        """The unknown columns, clipped; rows that no batch held get the mean of those that one did."""
        made: FloatArray = np.full((self.rows, len(self.uploads.view.unknown)), 0.5)
        for worker in self.uploads.attacked:
            made[:, worker.unknown] = parts[worker.name].reshape(self.rows, -1).numpy()
        np.clip(made, 0.0, 1.0, out=made)
        made[~seen] = made[seen].mean(axis=0)
        return made


Objective = Callable[[MadeUpBatch], Tensor]


def move(
    server: MatchingServer,
    dummies: Dummies,
    objective: Objective,
    rate: float,
    iteration: int,
    fixed: dict[str, Tensor] | None = None,
) -> float:
    """One iteration: down the objective's slope, the rows of one batch. Says what the objective was."""
    batch = server.batch(dummies, iteration % len(server.batches), fixed)
    total = objective(batch)
    leaves = [batch.inputs[name] for name in dummies.data]
    *slopes, above = torch.autograd.grad(total, [*leaves, batch.logits], materialize_grads=True)
    with torch.no_grad():
        for part, slope in zip(dummies.data.values(), slopes, strict=True):
            part.step(batch.rows, slope, rate, iteration)
        dummies.logits.step(batch.rows, LABEL_STEP_RATIO * above, rate, iteration)
    return float(total.detach())


class Reporter:
    """Collects the guess at some iterations."""

    def __init__(self, server: MatchingServer, attack: ServerAttack) -> None:
        self.server, self.length = server, attack.length(server)
        self.every = attack.report_every or max(1, -(-self.length // SNAPSHOTS))
        self.path: list[tuple[int, FloatArray]] = []

    def after(self, iteration: int, parts: Callable[[], dict[str, Tensor]]) -> None:
        """To be called when an iteration (from 0) is done."""
        done = iteration + 1
        if done % self.every == 0 or done == self.length:
            self.path.append((done, self.server.values(parts(), self.server.seen(done))))

    def guess(self, parts: dict[str, Tensor], logits: Tensor) -> Guess:
        seen = self.server.seen(self.length)
        labels: IntArray = np.where(seen, logits.argmax(1).numpy(), -1)
        names = self.server.uploads.view.unknown_names
        return Guess(names, values=self.server.values(parts, seen), labels=labels, path=tuple(self.path))


def search(attack: Rival, server: MatchingServer, dummies: Dummies, objective: Objective) -> Guess:
    """All iterations with one objective, for attacks without other steps."""
    reporter = Reporter(server, attack)

    def parts() -> dict[str, Tensor]:
        return {name: part.values for name, part in dummies.data.items()}

    rate = attack.pace(server)
    for iteration in range(reporter.length):
        move(server, dummies, objective, rate, iteration)
        reporter.after(iteration, parts)
    return reporter.guess(parts(), dummies.logits.values)


def seed_of(rng: np.random.Generator) -> torch.Generator:
    """A generator of torch's, seeded from ours."""
    return torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))


def squared(pairs: Pairs) -> Tensor:
    """|g - g'|^2 over all parameters."""
    return torch.stack([(fake - real).square().sum() for fake, real in pairs]).sum()


def variation(pictures: Tensor) -> Tensor:
    """Total variation: sum of absolute differences of neighbouring pixels, mean over pictures.

    >>> float(variation(torch.tensor([[[[0.0, 1.0], [0.5, 1.0]]]])))
    2.0
    """
    down = (pictures[:, :, 1:] - pictures[:, :, :-1]).abs().sum()
    across = (pictures[..., 1:] - pictures[..., :-1]).abs().sum()
    return (down + across) / len(pictures)
