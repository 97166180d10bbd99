"""A party of `split_network` that does not follow it: what it is given, what leaves it, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import Federation, IntArray
from plumbob.lazy_imports import torch
from plumbob.protocols.base import column_positions, note
from plumbob.protocols.shared.conduct import (
    KIND,
    SENT,
    ChosenGradients,
    Conduct,
    GradientChoice,
    OwnOptimiser,
    Standing,
    Steps,
)
from plumbob.transcript import Transcript


@dataclass
class DeviatingParty:
    """One training under way; of an honest one nothing is changed."""

    conduct: Conduct | None = None
    party: str = ""
    choice: GradientChoice | None = None
    steps: Steps | None = None
    _told: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        conduct: Conduct | None,
        federation: Federation,
        others: Federation,
        rng: np.random.Generator,
        *,
        summed: bool,
        width: int,
        rounds: int,
    ) -> DeviatingParty:
        """`rng` is not advanced, so that batches and first weights are those of an honest run."""
        if isinstance(conduct, OwnOptimiser):
            return cls(conduct, federation.passive[0], steps=conduct.begin())
        if not isinstance(conduct, ChosenGradients):
            return cls()
        places = column_positions(federation)
        hidden = {name: places[name] for name in federation.passive}
        if summed:
            hidden = {"": np.concatenate(list(hidden.values()))}
        count = conduct.auxiliary
        if count > len(others):
            raise BadInput(f"the threat grants {count:,} auxiliary rows, but only {len(others):,} are available")
        active = federation[federation.active]
        standing = Standing(
            own=active.values if active.columns else np.zeros((len(federation), 0)),
            label=federation.label,
            classes=len(federation.classes),
            known=places[federation.active],
            hidden=hidden,
            width=width,
            rounds=rounds,
            others=others.values[:count] if count else None,
            others_label=others.label[:count] if count else None,
        )
        return cls(conduct, federation.active, choice=conduct.begin(standing, rng.spawn(1)[0]))

    def told(self, outputs: Mapping[str, Array]) -> None:
        """What the active party got in this round, by sender; of a sum the sender is ''."""
        self._told = dict(outputs) if self.choice is not None else {}

    def gradients(self, parties: Sequence[str], rows: IntArray, honest: Array) -> dict[str, Array]:
        """What the active party sends back, by receiver."""
        if self.choice is None:
            return dict.fromkeys(parties, honest)
        found: dict[str, Array] = {}
        for sender, told in self._told.items():
            chosen = np.asarray(self.choice.gradients(sender, rows, told, honest), dtype=honest.dtype)
            if chosen.shape != honest.shape or not np.isfinite(chosen).all():
                raise BadInput(
                    f"split_network: {self.kind}: expected finite gradients of {honest.shape}, got {chosen.shape}"
                )
            found |= dict.fromkeys([sender] if sender else parties, chosen)
        return found

    @property
    def kind(self) -> str:
        return "" if self.conduct is None else self.conduct.kind

    def changed(self, bottoms: Mapping[str, torch.nn.Module]) -> None:
        """Before everybody's step: a passive party changes its own."""
        if self.steps is not None:
            self.steps.change(list(bottoms[self.party].parameters()))

    def write(self, log: Transcript) -> None:
        """Seal what it remembers as its notes."""
        if self.conduct is None:
            return
        note(log, self.party, KIND, np.frombuffer(self.kind.encode(), dtype=np.uint8))
        for name, array in (self.choice.notes() if self.choice is not None else {}).items():
            note(log, self.party, f"{SENT}{name}", array)
