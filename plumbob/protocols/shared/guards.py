"""How a defence changes the messages of a training on their way out: each training gets a guard of its own.

    protocol.guarded(defence)      the same protocol with one more defence
    defence.begin(outline)         the guard of one training, made before the first round
A guard has a method for each place where it can act. `GradientGuard` has those of `split_training`, `EmbeddingGuard` those of
`split_network`, and `LabelGuard` besides those of its active party; what a guard does not override stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar
from typing import Protocol as Interface

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.known_defences import KnownDefences
from plumbob.lazy_imports import torch
from plumbob.protocols.base import TrainingProtocol
from plumbob.protocols.shared.networks import NetworkPlan, mixing


@dataclass(frozen=True)
class Outline:
    """What is agreed before the first round."""

    rows: int


OutlineT = TypeVar("OutlineT", bound=Outline, contravariant=True)
GuardT = TypeVar("GuardT", bound="Guard[Any]", covariant=True)


class Guarding(Interface[OutlineT, GuardT]):
    """What makes a guard for each training: a defence."""

    def begin(self, outline: OutlineT) -> GuardT: ...

    def known(self) -> KnownDefences: ...


DefenceT = TypeVar("DefenceT", bound=Guarding[Any, Any])


class Guard(Generic[DefenceT]):
    """A defence in one training."""

    def __init__(self, defence: DefenceT) -> None:
        self.defence = defence

    def known(self) -> KnownDefences:
        """What everybody knows of the defence."""
        return self.defence.known()


class GuardedProtocol(TrainingProtocol):
    """A training whose messages defences can change on their way out."""

    guards: tuple[Guarding[Any, Any], ...]

    def guarded(self, defence: Guarding[Any, Any]) -> Self:
        """The same protocol with one more defence; one that must come last stays last."""
        changed = copy.copy(self)
        changed.guards = tuple(sorted((*self.guards, defence), key=lambda guard: getattr(guard, "last", False)))
        return changed


# Gradients on their way to the server: `split_training`

Arrived = dict[str, dict[str, Array]]  # by party and parameter, what the server got in one round


@dataclass(frozen=True)
class GradientOutline(Outline):
    """What workers and server agree on."""

    rounds: int
    batch_size: int
    most: int  # rounds that the most used row is in
    plans: Mapping[str, NetworkPlan]  # by party, the top network among them
    shapes: Mapping[str, Mapping[str, tuple[int, ...]]]  # of parameters, by party


@dataclass(frozen=True)
class Upload:
    """What one party is about to send up in a round. `gradients` are means over the batch, by parameter."""

    party: str
    round: int
    module: torch.nn.Module
    inputs: torch.Tensor
    output_gradients: torch.Tensor  # of the batch's mean loss, row by row
    gradients: dict[str, torch.Tensor]

    def by_row(self) -> dict[str, torch.Tensor]:
        """The gradient of every row's own loss, for defences that clip row by row."""

        parameters = {name: p.detach() for name, p in self.module.named_parameters()}
        where = f"the network of '{self.party}'"
        if mixing(self.module):
            raise BadInput(
                f"{where} has {mixing(self.module)}, which mixes rows: a row has no gradient of its own to clip"
            )

        def one(parts: dict[str, torch.Tensor], row: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
            out = torch.func.functional_call(self.module, parts, (row[None],))
            total: torch.Tensor = (out[0] * above).sum()
            return total

        grads = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))
        try:
            return dict(grads(parameters, self.inputs, self.output_gradients * len(self.inputs)))
        except RuntimeError as error:  # as for dropout, or numbers taken out of tensors
            raise BadInput(f"{where} does not support per-row gradients: {str(error).splitlines()[0]}") from error


class GradientGuard(Guard[DefenceT]):
    """A guard at the point `gradients`."""

    def upload(self, upload: Upload, rng: np.random.Generator) -> dict[str, torch.Tensor]:
        """What a party sends in place of its gradients."""
        return upload.gradients

    def rows(self, rows: IntArray, total: int, round: int, rng: np.random.Generator) -> IntArray:
        """The rows that the parties take when the server asks for `rows`."""
        return rows

    def received(self, arrived: Arrived) -> Arrived:
        """The gradients with which the server takes its step."""
        return arrived


# Embeddings on their way to the active party: `split_network`


@dataclass(frozen=True)
class EmbeddingOutline(Outline):
    """What the parties agree on."""

    columns: Mapping[str, int]  # by passive party
    width: int  # of the cut layer
    cut: int  # layers below it
    bias: bool = False  # whether passive parties' first layers have one
    classes: int = 2
    epochs: int = 1  # each row is in one batch of each


class EmbeddingGuard(Guard[DefenceT]):
    """A guard at the point `embeddings`."""

    def inputs(self, party: str, values: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """A passive party's columns as its bottom model gets them: once for all rows trained on, once for other rows."""
        return values

    def bottom(self, party: str, module: torch.nn.Module, columns: int) -> torch.nn.Module:
        """The bottom model that is trained in place of `module`; it gets so many `columns`, fabricated ones included."""
        return module

    def fabricated(self, party: str) -> int:
        """How many columns of `inputs`, the last ones, are made up."""
        return 0

    def dropped(self, party: str) -> IntArray:
        """Which of the party's columns it does not use, by position."""
        return np.zeros(0, dtype=np.int64)

    def send(self, party: str, outputs: torch.Tensor, phase: str, rng: np.random.Generator) -> torch.Tensor:
        """What is sent in place of the outputs; gradients are taken as if these had been sent."""
        return outputs

    def penalty(self, party: str, inputs: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor | None:
        """What a passive party lowers beside the joint loss, by a step on its bottom model alone; None for nothing."""
        return None


# Labels at the active party, and the gradients it sends back: `split_network`


@dataclass(frozen=True)
class Backward:
    """What the active party is about to send back in a round."""

    rows: IntArray
    label: torch.Tensor  # the classes of these rows
    logits: torch.Tensor  # what its model said of them
    gradients: torch.Tensor  # of the batch's mean loss at the passive parties' outputs, rows x width


class LabelGuard(EmbeddingGuard[DefenceT]):
    """A guard at the point `labels`: it acts at the active party as well, which holds them."""

    def targets(self, epoch: int, targets: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """What is trained on in this epoch in place of `targets`, rows x classes: a row of zeros for one that is left out."""
        return targets

    def entry(self, width: int, dtype: torch.dtype) -> torch.nn.Module | None:
        """A module of the active party through which the passive parties' outputs go before all else."""
        return None

    def top(self, module: torch.nn.Module) -> torch.nn.Module:
        """The top model that is trained in place of `module`."""
        return module

    def burden(self, received: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
        """What the active party adds to the loss of a batch; None for nothing."""
        return None

    def residuals(self, gradients: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """The gradients of the mean loss at the logits with which everything goes on."""
        return gradients

    def back(self, backward: Backward, rng: np.random.Generator) -> torch.Tensor:
        """What passive parties get in place of the gradients at their outputs, all of them the same."""
        return backward.gradients

    def decoded(self, scores: torch.Tensor) -> torch.Tensor:
        """Scores of the classes from those of what was trained on."""
        return scores
