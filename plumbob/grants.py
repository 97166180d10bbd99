"""What a threat is made of: who is curious, what it is granted beyond its messages, and whether it may choose what it sends.

Each grant is a small type. An attack states the grants it requires, and says in words which of them a threat withholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from plumbob.errors import BadInput, suggest
from plumbob.transcript import COORDINATOR


@dataclass(frozen=True)
class Grant:
    """Something a curious party knows beyond the messages it saw."""

    @property
    def words(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class WhiteBox(Grant):
    """The parameters of the whole joint model. Without it the threat is black box."""

    words = "the whole model"


@dataclass(frozen=True)
class Schema(Grant):
    """Names, ranges and types of the other parties' columns, including the number of decimals."""

    words = "the names, ranges and decimals of the columns"


@dataclass(frozen=True)
class AuxiliaryRows(Grant):
    """`count` complete rows of other people, with the columns of all parties: of the training rows, or of those `predicted`."""

    count: int = 100
    predicted: bool = False  # jiang2022, Section 5.3: known records of the prediction set; the others are attacked

    def __post_init__(self) -> None:
        if self.count < 2:
            raise BadInput(f"auxiliary rows: expected at least 2, got {self.count}")

    @property
    def words(self) -> str:
        asked = " whose scores are asked for too" if self.predicted else ""
        return f"{self.count:,} complete rows of other people{asked}"

    def __repr__(self) -> str:  # which seeds hash
        return f"AuxiliaryRows(count={self.count}{', predicted=True' if self.predicted else ''})"


@dataclass(frozen=True)
class KnownPeople(Grant):
    """Complete rows, labels included, of `count` of the very people whose rows are in the federation: insider knowledge."""

    count: int = 20

    def __post_init__(self) -> None:
        if self.count < 2:
            raise BadInput(f"known people: expected at least 2, got {self.count}")

    @property
    def words(self) -> str:
        return f"the complete rows of {self.count:,} of these people"


@dataclass(frozen=True)
class KnownLabels(Grant):
    """The labels of `count` people of each class whose rows are in the federation; fu2022 calls them auxiliary labels."""

    count: int = 4

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BadInput(f"known labels: expected at least 1 for each class, got {self.count}")

    @property
    def words(self) -> str:
        return f"the labels of {self.count:,} of these people for each class"


@dataclass(frozen=True)
class Deviation(Grant):
    """What a curious party may do that the protocol does not ask for. `words` go on from `who` and "that"."""

    active: ClassVar[bool] = True  # whether the active party does it, or a passive one

    @property
    def who(self) -> str:
        return "an active party" if self.active else "a passive party"


@dataclass(frozen=True)
class LowBits(Deviation):
    """The bits of its gradients below their precision, which change no model."""

    words = "sets the low bits of its gradients"


@dataclass(frozen=True)
class AnyGradient(LowBits):
    """Any number in place of a gradient; so also its low bits."""

    words = "sends any gradient"


@dataclass(frozen=True)
class OwnSteps(Deviation):
    """Other steps of its own bottom model than the optimizer that was agreed on takes; nobody else sees them."""

    active = False
    words = "trains its part of the model at rates of its own"


@dataclass(frozen=True)
class Threat:
    """Who is curious, and what it is granted: the active party and its accomplices, the coordinator alone, or passive parties.

    >>> Threat("active", "the active party", (WhiteBox(), Schema())).grants
    (WhiteBox(), Schema())
    """

    name: str
    summary: str
    grants: tuple[Grant, ...] = ()
    colluding: tuple[str, ...] = ()  # passive parties that tell the active one all they have
    colluding_all_but: int | None = None  # or: all passive parties except the last so many
    corrupted: bool = False  # whether the coordinator is among the curious, and tells the active party all it has
    active: bool = True  # whether the active party is among them; if not: the coordinator by itself if corrupted, else
    # the passive parties in `colluding`, or the first one
    identity: str = ""  # what seeds hash in place of the summary, where its words have changed

    def grant(self, kind: type[Grant]) -> Grant | None:
        return next((grant for grant in self.grants if isinstance(grant, kind)), None)

    @property
    def knowledge(self) -> tuple[str, ...]:
        """What it knows beyond its messages, in words."""
        return tuple(grant.words for grant in self.grants if not isinstance(grant, Deviation))

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """What it may do that the protocol does not ask for; nothing where it is only curious."""
        return tuple(grant for grant in self.grants if isinstance(grant, Deviation))

    def curious(self, active: str, parties: Sequence[str]) -> tuple[str, ...]:
        """Names of the curious parties in a federation, the active one first."""
        if not self.active and self.corrupted:
            return (COORDINATOR,)
        passive = [name for name in parties if name != active]
        for name in self.colluding:
            if name not in passive:
                raise BadInput(f"threat '{self.name}': no passive party '{name}'{suggest(name, passive)}")
        if not self.active:
            return self.colluding or (passive[0],)
        colluding = list(self.colluding)
        if self.colluding_all_but is not None:
            colluding = passive[: max(0, len(passive) - self.colluding_all_but)]
            if not colluding:
                raise BadInput(f"threat '{self.name}' needs at least two passive parties, got {', '.join(passive)}")
        if len(colluding) == len(passive):
            raise BadInput(f"threat '{self.name}': all parties collude, so no column is left to infer")
        return (active, *colluding, *([COORDINATOR] if self.corrupted else []))

    def within(self, other: Threat) -> bool:
        """Whether the same parties are curious in another threat, and know no less there.

        >>> from plumbob.threats import THREATS
        >>> THREATS["active"].within(THREATS["active-auxiliary"]), THREATS["active-auxiliary"].within(THREATS["active"])
        (True, False)
        """
        parties = ("colluding", "colluding_all_but", "corrupted", "active")
        if any(getattr(self, name) != getattr(other, name) for name in parties):
            return False
        return all(_covers(other.grant(type(grant)), grant) for grant in self.grants)


def _covers(more: Grant | None, grant: Grant) -> bool:
    if isinstance(grant, AuxiliaryRows):
        return isinstance(more, AuxiliaryRows) and more.count >= grant.count and more.predicted == grant.predicted
    if isinstance(grant, KnownPeople):
        return isinstance(more, KnownPeople) and more.count >= grant.count
    if isinstance(grant, KnownLabels):
        return isinstance(more, KnownLabels) and more.count >= grant.count
    return more is not None


def describe(threat: Threat) -> dict[str, Any]:
    """A threat as plain data, for hashes: the original fields, and newer ones that differ from their defaults."""
    always = ("name", "colluding", "colluding_all_but", "corrupted", "active")
    later = [f.name for f in fields(threat) if f.name not in (*always, "summary", "identity", "grants")]
    plain = {name: getattr(threat, name) for name in always} | {"grants": [repr(grant) for grant in threat.grants]}
    plain |= {name: getattr(threat, name) for name in later if getattr(threat, name) != getattr(Threat("", ""), name)}
    return plain | {"summary": threat.identity or threat.summary}
