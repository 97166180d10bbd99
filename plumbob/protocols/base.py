"""The base class of protocols: parties that train and predict together, with every message in a transcript."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import FILLED, Federation, FloatArray, IntArray, Party
from plumbob.grants import Deviation
from plumbob.identity import Identified, Workload
from plumbob.known_defences import KnownDefences
from plumbob.protocols.shared.conduct import Conduct
from plumbob.protocols.shared.gathering import Gathering
from plumbob.protocols.shared.networks import check_networks
from plumbob.transcript import COORDINATOR, Transcript
from plumbob.trust import NO_CODE, Trust

MOST_WEIGHTS = 50_000_000  # of a network that is trained

ASKED = 1_000  # at most so many auxiliary rows are asked about
ADDS_UP = 1e-4  # how far a row's scores may add up to something else than 1: models may compute in single precision
IN_THE_CLEAR, MASKED = "in the clear", "as masked sums"  # what protocols without ciphertexts say of their messages
SAID_MASKED = "as masked sums, by what the recording says"
KEYS = (0, 1_024, 2_048, 3_072)  # bits of Paillier keys; 0 is no encryption
NOTHING_KNOWN = KnownDefences()
Phase = Literal["prediction", "training"]
Release = Callable[[FloatArray, Federation], FloatArray]  # scores, the rows they are of -> what is told of them


class Model(ABC):
    """A joint model over all columns, as plain arrays."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The parameters, as the coordinator seals them and a white-box threat gets them."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """The model of such arrays."""

    @abstractmethod
    def scores(self, values: FloatArray) -> FloatArray:
        """Confidence scores, one row per row and one column per class."""

    @abstractmethod
    def reordered(self, order: IntArray) -> Self:
        """The same model for columns in another order: its column i is this one's column order[i]."""

    @abstractmethod
    def part(self, columns: IntArray) -> dict[str, Array]:
        """What the party that owns these columns needs in order to take part in a prediction."""


class Protocol(Identified, ABC):
    """One way to work together: what is exchanged, by whom, and where a defence can change it. Settings go to the constructor."""

    phase: ClassVar[Phase]  # the exchange that is recorded and attacked
    roles: ClassVar[tuple[str, ...]] = ("active", "passive", COORDINATOR)  # who takes part
    # By role, the messages that say something of other parties' rows, readable or not. A role that is not named gets none.
    tells: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    sweep_settings: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {}
    )  # with which a sweep trains it, if the plan is silent
    parts: ClassVar[tuple[str, ...]] = ()  # the points at which a defence can change it
    key_bits: int = 0  # of the Paillier key; 0 for none
    glossary: ClassVar[Mapping[str, str]] = MappingProxyType({})  # what its messages hold, by name, for the assessment
    key_messages: ClassVar[tuple[str, ...]] = ()  # names of messages that bring a public key
    masked_messages: ClassVar[tuple[str, ...]] = ()  # names of messages whose numbers their receiver cannot read
    open_to: ClassVar[tuple[type[Deviation], ...]] = ()  # what parties may do in it that it does not ask for
    cost_terms: ClassVar[tuple[str, ...]] = ("1", "N d")  # of training: names in `auditing/costing/cost.py`'s TERMS
    workload: ClassVar[Workload] = "networks"
    uses_torch: ClassVar[bool] = True  # which takes seconds to load
    _trust: Trust = NO_CODE  # no setting: findings do not depend on it, and no plan can set it

    def trusting(self, trust: Trust) -> Self:
        """The same protocol, which may load networks of other packages if the caller trusts them; refused here if not."""
        check_networks(self.networks, trust)
        allowed = copy.copy(self)
        allowed._trust = trust
        return allowed

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of networks that it was given."""
        return ()

    @property
    def sent(self) -> Conduct | None:
        """What one of its parties does that the protocol does not ask for; nothing where all are honest."""
        return None

    def deviating(self, sent: Conduct) -> Self:
        """The same protocol with a party that behaves like this."""
        raise BadInput(f"'{self.name}': none of its parties can send {sent.kind}")

    def ready(self, rows: int) -> None:
        """Refuse, in one sentence, settings that cannot be trained on that many rows or on this machine."""
        return

    def fits(self, columns: int, classes: int) -> None:
        """Refuse, in one sentence, a model of that many columns and classes which is too large."""
        return

    def told(self, role: str) -> tuple[str, ...]:
        """Names of the messages by which a role learns something of other parties' rows."""
        return self.tells.get(role, ()) if role in self.roles else ()

    @property
    def learns(self) -> bool:
        """Whether parameters change; if not, accuracy means nothing."""
        return True


class PredictionProtocol(Protocol):
    """One kind of joint model. `fit` trains it centrally, as luo2021 does; `predict` is the real exchange."""

    phase = "prediction"
    parts = ("inputs", "training", "scores", "knowledge")
    tells = MappingProxyType({"active": ("scores",), COORDINATOR: ("answer",)})
    glossary = MappingProxyType(
        {
            "rows": "which rows are asked about",
            "answer": "a party’s contribution for each row",
            "scores": "the model’s answer for each row",
            "weights": "the receiver’s part of the model",
        }
    )
    by_party: ClassVar[bool] = False  # whether the model itself depends on who holds which columns

    @abstractmethod
    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> Model:
        """Train on complete rows; `blocks` are the parties' columns, for protocols in which they matter."""

    @abstractmethod
    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        """What a party sends the coordinator about the requested rows: a function of its own columns and part."""

    @abstractmethod
    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        """The coordinator's scores from all parties' answers."""

    def collector(self, active: str) -> str:
        """Who gets the answers and combines them: the coordinator, unless a protocol does without one."""
        return COORDINATOR

    def gathering(self) -> Gathering:
        """How the answers get there in one prediction: in the clear, unless a protocol adds them up unseen."""
        return Gathering()


class TrainingProtocol(Protocol):
    """Training is the exchange: every message of it crosses the channel and stands in the transcript.

    What a party works out for itself from what it got (an opened ciphertext, a code it hid in its own numbers) is no message.
    It is sealed as a note of that party, `notes/<name>`, and reaches a view only if that party is among the curious.
    """

    phase = "training"

    @abstractmethod
    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        """Train on the federation's rows; `others` are rows of other people, for the test accuracy and auxiliary rows.

        `rng` draws what needs no secrecy (batches, first weights); keys and masks come from the system.
        """

    @property
    def encryption(self) -> str:
        """The encryption it uses, in words."""
        return f"Paillier, {self.key_bits:,}-bit key" if self.key_bits else "none"


def predicting(protocol: Protocol) -> PredictionProtocol:
    """The protocol, if it is one of prediction; else BadInput."""
    if not isinstance(protocol, PredictionProtocol):
        raise BadInput(f"expected a prediction protocol, got '{protocol.name}', which exchanges messages in training")
    return protocol


def training(protocol: Protocol) -> TrainingProtocol:
    """The protocol, if its messages are those of training; else BadInput."""
    if not isinstance(protocol, TrainingProtocol):
        raise BadInput(f"expected a training protocol, got '{protocol.name}'")
    return protocol


def column_positions(federation: Federation) -> dict[str, IntArray]:
    """Each party's columns, as positions in the joint model."""
    owners = np.array([feature.party for feature in federation.features])
    return {party.name: np.flatnonzero(owners == party.name) for party in federation.parties}


def predict(
    protocol: PredictionProtocol,
    model: Model,
    federation: Federation,
    others: Federation,
    *,
    release: Release | None = None,
    defence: KnownDefences = NOTHING_KNOWN,
    acquainted: Federation | None = None,
    batch: int = 65536,
) -> Transcript:
    """Score the federation's rows together; the transcript holds all that crossed.

    The coordinator deals each party its part of the model. For every batch the active party names the rows, each party
    answers from its own columns, the coordinator combines the answers and sends the active party the scores, or what
    `release` makes of them: it is asked once per batch, with the rows that the scores are of.
    `defence` is what is publicly known of it, sealed for the threats: a defence must hold although it is known.
    `others` are rows outside of the prediction (those of training): sealed for scoring and for auxiliary-row grants. So
    are the released scores of the first of them, "other scores": what a party that holds such rows gets when it asks.
    `acquainted` are further rows of the prediction set, sealed in the same way for threats that know some of its rows completely.
    Where the active party itself collects the answers, the scores are a note to itself and cannot be changed on the way.
    """
    collector = protocol.collector(federation.active)
    if release is not None and collector != COORDINATOR:
        raise BadInput(f"'{protocol.name}' without a coordinator: no party can change the scores before they are seen")
    names = tuple(party.name for party in federation.parties)
    log = Transcript(protocol.name, federation.active, names, federation.features, federation.classes)
    columns = column_positions(federation)
    parts: dict[str, dict[str, Array]] = {}
    for party in federation.parties:
        _seal_columns(log, party)
        parts[party.name] = {
            name: log.send(COORDINATOR, party.name, "setup", 0, name, array)
            for name, array in model.part(columns[party.name]).items()
        }
    for name, array in model.arrays().items():
        log.seal(COORDINATOR, f"model/{name}", array)
    defence.seal(log)
    log.seal(COORDINATOR, "other rows", others.values)
    log.seal(COORDINATOR, "other labels", others.label)
    log.seal(COORDINATOR, "row labels", federation.label)  # for scoring: what parties without the label may infer
    gathering = protocol.gathering()
    gathering.begin(log, names, federation.active, collector)
    for round, start in enumerate(range(0, len(federation), batch)):
        rows = np.arange(start, min(start + batch, len(federation)))
        for party in federation.parties:
            asked = rows
            if party.name != federation.active:
                asked = log.send(federation.active, party.name, "predict", round, "rows", rows)
            gathering.send(party.name, round, protocol.answer(party, parts[party.name], asked))
        combined = protocol.combine(model, gathering.opened(round), columns)
        scores = checked(combined, len(rows), len(federation.classes))
        if release is not None:
            scores = release(scores, federation.rows(rows))
        log.send(collector, federation.active, "predict", round, "scores", scores)
    for pool, held in (("other", others), ("predicted", acquainted)):
        if held is None:
            continue
        if pool == "predicted":
            log.seal(COORDINATOR, "predicted rows", held.values)
        asked_about = held.rows(np.arange(min(ASKED, len(held))))
        scores = checked(model.scores(asked_about.values), len(asked_about), len(federation.classes))
        log.seal(COORDINATOR, f"{pool} scores", scores if release is None else release(scores, asked_about))
        if collector != COORDINATOR:  # then the answers about rows that the active party holds go to it as well
            for party in asked_about.parties:
                answer = protocol.answer(party, parts[party.name], np.arange(len(asked_about)))
                log.seal(COORDINATOR, f"{pool} answers/{party.name}", answer)
    return log


def checked(scores: FloatArray, rows: int, classes: int) -> FloatArray:
    """The scores a model gave, if they are probabilities; NaN would be taken for scores that a defence withheld."""
    if scores.shape != (rows, classes):
        raise BadInput(f"model: expected {rows:,} x {classes} scores, one per row and class, got {scores.shape}")
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).any(axis=1).sum())
        raise BadInput(f"model: expected finite scores, got NaN or infinity in {bad:,} of {rows:,} rows")
    if scores.min(initial=0.0) < 0 or np.abs(scores.sum(axis=1) - 1).max(initial=0.0) > ADDS_UP:
        raise BadInput(
            "model: expected probabilities, 0 or more and adding up to 1 in every row; is a softmax missing?"
        )
    return scores


def check_weights(where: str, sizes: Sequence[int]) -> None:
    """Refuse a network of fully connected layers with more weights than an audit trains in reasonable time and memory."""
    count = sum(before * after for before, after in pairwise(sizes))
    if count > MOST_WEIGHTS:
        raise BadInput(
            f"{where}: these layers have {count:,} weights, at most {MOST_WEIGHTS:,} are trained; use narrower ones"
        )


def all_classes(what: str, label: IntArray, classes: int) -> None:
    """Refuse training rows that lack a class: a model of the others has no scores for it."""
    there = np.unique(label)
    if len(there) < classes:
        missing = np.setdiff1d(np.arange(classes), there)
        raise BadInput(
            f"{what}: expected training rows of all {classes} classes, got none of class number {missing[0] + 1}"
        )


def opened(name: str, federation: Federation, others: Federation) -> Transcript:
    """A transcript of these parties, with the columns sealed for scoring and the other rows for auxiliary-row grants."""
    parties = tuple(party.name for party in federation.parties)
    log = Transcript(name, federation.active, parties, federation.features, federation.classes)
    for party in federation.parties:
        _seal_columns(log, party)
    log.seal(federation.active, "label", federation.label)
    log.seal(COORDINATOR, "other rows", others.values)
    log.seal(COORDINATOR, "other labels", others.label)
    return log


def _seal_columns(log: Transcript, party: Party) -> None:
    """What a party holds, and which of it was missing: no message and no view tells the others that."""
    log.seal(party.name, "columns", party.values)
    if party.filled is not None:
        log.seal(party.name, FILLED, party.filled)


def note(log: Transcript, party: str, name: str, array: Array) -> None:
    """Keep something that a party knows by its own work."""
    log.seal(party, f"notes/{name}", array)
