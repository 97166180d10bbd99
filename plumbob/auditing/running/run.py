"""One unit at work: rows, models and transcripts in, findings out, always the same numbers.

A unit is one protocol and one trial: the model is trained once and then predicted with under every split of the columns,
threat and attack. Every draw comes from a generator seeded by what it is for, so neither order nor
workers nor a crash changes a number.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from threadpoolctl import threadpool_limits

from plumbob import bundle
from plumbob.attacks import Guess
from plumbob.attacks.base import nothing
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.data_flows import flows_of
from plumbob.auditing.running.exchange import exchange_of, known_by
from plumbob.auditing.running.expand import Case, Unit, attack_cases, draws, facing
from plumbob.auditing.running.finding import Finding, parted
from plumbob.auditing.running.isolation.attacker import Attempt, attempt
from plumbob.auditing.running.isolation.limits import Allowance, Limits
from plumbob.auditing.running.open_data import Source
from plumbob.bundle import Array
from plumbob.defences import Defence
from plumbob.errors import BadInput, Unfit
from plumbob.federation import Federation, IntArray, halves
from plumbob.os_specific import peak_mb
from plumbob.protocols import TrainingProtocol
from plumbob.protocols.base import (
    IN_THE_CLEAR,
    SAID_MASKED,
    Model,
    PredictionProtocol,
    column_positions,
    predict,
    predicting,
    training,
)
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.shared.networks import one_thread
from plumbob.recorded.seals import accuracy_of, defence_of
from plumbob.scoring.ceiling import ceiling_score
from plumbob.scoring.column_ceiling import CEILING
from plumbob.scoring.score import Score, score
from plumbob.scoring.truth import truth_of
from plumbob.scoring.usefulness import Usefulness, usefulness
from plumbob.threats import AuxiliaryRows, Schema, Threat, View, WhiteBox, cut
from plumbob.transcript import COORDINATOR, Transcript

LOSSES = 60  # points of a training's loss that a finding keeps
Show = Callable[[str, Transcript, View, Guess], None]


def generator(seed: int, *purpose: object) -> np.random.Generator:
    """A generator for one purpose: the same for the same words, independent for others."""
    return np.random.default_rng(np.frombuffer(seeded(seed, *purpose), dtype=np.uint32))


def seeded(seed: int, *purpose: object) -> bytes:
    """What a generator for one purpose begins with."""
    return hashlib.sha256(bundle.canonical([seed, *map(str, purpose)]).encode()).digest()


@contextmanager
def steady() -> Iterator[None]:
    """One thread of linear algebra meanwhile: sums in one order, so the same bits whatever the process was given."""
    with threadpool_limits(1), one_thread():
        yield


def most_predicted(plan: Plan) -> int:
    """The most rows of the prediction set that a threat of the plan knows completely."""
    granted = [named.threat().grant(AuxiliaryRows) for named in plan.threats]
    return max((one.count for one in granted if isinstance(one, AuxiliaryRows) and one.predicted), default=0)


@dataclass(frozen=True)
class _Run:
    """One transcript, and what it cost."""

    log: Transcript
    exchange: str
    train_seconds: float
    predict_seconds: float
    accuracy: float | None
    withheld: float = 0.0
    encryption: str = ""
    key_bits: int = 0
    trained: bool = True
    defence: str = ""  # of a recorded run, where it is known to have had one
    usual: float | None = None  # share of the most frequent class among the rows that the accuracy is of
    useful: Usefulness = field(default_factory=Usefulness)


class Workbench:
    """One unit being worked on: its rows, the models trained on them so far, and the transcript made last."""

    def __init__(self, plan: Plan, source: Source, unit: Unit) -> None:
        self.plan, self.source, self.unit, self.digest = plan, source, unit, source.digest
        self.train, others = halves(source.label, generator(plan.seed, "rows", unit.trial), plan.train_share)
        known = most_predicted(plan)
        self.acquainted = others[len(others) - known :]  # complete rows of the prediction set, and no target
        self.rows = np.sort(others[: len(others) - known][: plan.rows])
        self._models: dict[str, tuple[Model, float]] = {}
        self._last: tuple[object, _Run] | None = None
        self._ceilings: dict[tuple[str, ...], Score] = {}  # of the last transcript, by who is curious

    def log(self, case: Case) -> Transcript:
        """What a case is found in; made once for all cases of the same split and defence that follow each other."""
        return self._run(case).log

    def finding(self, case: Case, name: str, show: Show | None = None, allowance: Allowance | None = None) -> Finding:
        """The finding of one case, under the key it goes by. `show` gets what a finding with pictures was made from."""
        refused = self._refused(case)
        done = self._run(replace(case, sent="") if refused else case)
        words, unaware = draws(self.plan, self.digest, self.unit, case), tuple[str, ...]()
        if case.attack is None:
            view, judged, tried = self._ceiling(case, done.log)
            guess = nothing(view)
        else:
            view = cut(done.log, case.remaining, self.source.trust)
            limits = (allowance or Allowance()).limits(len(view.own))
            tried = (
                _never(refused)
                if refused
                else _attempt(self.plan, self.unit, case, view, seeded(self.plan.seed, "attack", words), limits)
            )
            guess = tried.guess or nothing(view, tried.failed)
            unaware = case.attack.attack().unaware_of(view.defence.names)
            judged = score(guess, truth_of(done.log, view), view, generator(self.plan.seed, "score", words))
            judged = judged.without_claims(tried.failed) if tried.failed else judged
        if show is not None and judged.images is not None:
            show(name, done.log, view, guess)
        total = len(view.known) + len(view.unknown)
        return Finding(
            key=parted(name)[0],
            code=parted(name)[1],
            data=self.source.name,
            protocol=self.unit.protocol.title,
            threat=case.threat.name,
            attack=case.title,
            defence=done.defence or case.defence.title,
            unknown=len(view.unknown) / total,
            known_columns=len(view.known),
            unknown_columns=len(view.unknown),
            classes=len(self.source.classes),
            trial=self.unit.trial,
            seed=self.plan.seed,
            model_accuracy=done.accuracy,
            withheld=done.withheld,
            score=judged,
            seconds=tried.seconds,
            peak_mb=tried.peak_mb,
            white_box=view.model is not None and case.remaining.grant(WhiteBox) is not None,
            train_seconds=done.train_seconds,
            predict_seconds=done.predict_seconds,
            bytes_sent=done.log.bytes_sent(),
            bytes_by_party=done.log.bytes_by_party(),
            encryption=done.encryption,
            key_bits=done.key_bits,
            trained=done.trained,
            training_loss=training_losses(done.log),
            certificate=guess.certificate,
            usual_class=done.usual,
            auc=done.useful.auc,
            calibration=done.useful.calibration,
            flows=flows_of(done.log, recorded=self.source.recorded is not None) if self.unit.trial == 0 else (),
            view=tried.view,
            exchange=known_by(done.exchange, case.remaining),
            not_isolated=tried.not_isolated,
            unaware=" and ".join(unaware),
        )

    def _ceiling(self, case: Case, log: Transcript) -> tuple[View, Score, Attempt]:
        """What could be learnt, with all that is seen. It does not depend on what else is known: once for all such threats.

        It is scoring, which holds the truth: no attack, and so not behind the wall.
        """
        started = time.perf_counter()
        view = cut(log, replace(case.threat, grants=(WhiteBox(), Schema())), self.source.trust)
        if view.curious not in self._ceilings:
            alike = replace(case, threat=Threat(CEILING, " ".join(view.curious)))
            rng = generator(self.plan.seed, CEILING, draws(self.plan, self.digest, self.unit, alike))
            self._ceilings[view.curious] = ceiling_score(view, truth_of(log, view), rng)
        made = Attempt(nothing(view), "", "", "", time.perf_counter() - started, peak_mb(), "")
        return view, self._ceilings[view.curious], made

    def here(self, case: Case) -> Guess:
        """The guess of one case, made in this process, which holds the truth: to see why an attack fails."""
        words = draws(self.plan, self.digest, self.unit, case)
        view = cut(self.log(case), case.remaining, self.source.trust)
        assert case.attack is not None  # of a ceiling there is no guess
        return case.attack.attack().run(view, generator(self.plan.seed, "attack", words))

    def _refused(self, case: Case) -> str:
        """Why what an attack's party would send cannot be sent, such as a code that is longer than a plaintext; else empty."""
        if not case.sent or self.source.recorded is not None:
            return ""
        try:
            _as_sent(training(self.unit.protocol.protocol()), case).ready(len(self.train[: self.plan.rows]))
        except BadInput as error:
            return str(error)
        return ""

    def _run(self, case: Case) -> _Run:
        if self._last is None or self._last[0] != case.place:
            self._last, self._ceilings = None, {}  # one transcript at a time: it may be large
            self._last = (case.place, self._transcript(case))
        return self._last[1]

    def _transcript(self, case: Case) -> _Run:
        """The transcript of one split and defence, of training where that is the exchange, else of prediction."""
        if self.source.recorded is not None:
            return _recorded(self.source.recorded)
        plan, trial = self.plan, self.unit.trial
        federation, order = self.source.deal(case.unknown, generator(plan.seed, "columns", case.unknown, trial))
        defence = case.defence.defence()
        protocol = defence.protect(self.unit.protocol.protocol()).trusting(self.source.trust)
        if protocol.phase == "training":
            return self._trained(_as_sent(training(protocol), case), federation)
        told = facing(plan, defence, federation.rows(self.train))
        return self._predicted(predicting(protocol), told, federation, order)

    def _trained(self, protocol: TrainingProtocol, federation: Federation) -> _Run:
        """Here the rows of training are the ones at risk, and the plan's `rows` limits them."""
        target, others = federation.rows(np.sort(self.train[: self.plan.rows])), federation.rows(self.rows)
        rng, started = (
            generator(self.plan.seed, "model", self.unit.protocol.drawn, self.unit.trial),
            time.perf_counter(),
        )
        log = protocol.train(target, others, rng)
        accuracy = float(log.sealed(COORDINATOR)["test accuracy"][0])
        return _Run(
            log,
            exchange_of(log, protocol),
            time.perf_counter() - started,
            0.0,
            accuracy,
            encryption=protocol.encryption,
            key_bits=protocol.key_bits,
            trained=protocol.learns,
            usual=_usual(others.label),
        )

    def _predicted(
        self, protocol: PredictionProtocol, defence: Defence, federation: Federation, order: IntArray
    ) -> _Run:
        model, train_seconds = self._model(protocol, federation, order)
        target, trainer = federation.rows(self.rows), federation.rows(self.train)
        started = time.perf_counter()
        release = defence.release(protocol, model, target)
        known = federation.rows(self.acquainted) if len(self.acquainted) else None
        log = predict(protocol, model, target, trainer, release=release, defence=defence.known(), acquainted=known)
        seconds = time.perf_counter() - started
        accuracy, withheld = _answered(log, target.label)
        return _Run(
            log,
            exchange_of(log, protocol),
            train_seconds,
            seconds,
            accuracy,
            withheld,
            encryption=protocol.gathering().encryption,
            key_bits=protocol.gathering().key_bits,
            usual=_usual(target.label),
            useful=usefulness(_scores(log), target.label),
        )

    def _model(self, protocol: PredictionProtocol, federation: Federation, order: IntArray) -> tuple[Model, float]:
        """Trained once per protocol as defended, or once per split where the model depends on who holds what; timed."""
        own = self.source.models.get(self.unit.protocol.title)
        if own is not None:
            return own.reordered(order), 0.0
        values, label, classes = self.source.values, self.source.label[self.train], len(self.source.classes)
        rng = generator(self.plan.seed, "model", self.unit.protocol.drawn, self.unit.trial)
        if protocol.by_party:
            blocks = list(column_positions(federation).values())
            return _timed(lambda: protocol.fit(values[self.train][:, order], label, classes, rng, blocks))
        trained = repr(protocol)
        if trained not in self._models:
            self._models[trained] = _timed(lambda: protocol.fit(values[self.train], label, classes, rng))
        model, seconds = self._models[trained]
        return model.reordered(order), seconds


def _as_sent(protocol: TrainingProtocol, case: Case) -> TrainingProtocol:
    """The protocol with a party that does what the attack brings, where it brings anything."""
    conduct = case.attack.attack().sends() if case.sent and case.attack is not None else None
    return protocol if conduct is None else protocol.deviating(conduct.granted(case.remaining))


def _never(why: str) -> Attempt:
    """An attack that could not be made."""
    return Attempt(None, why, "", "", 0.0, peak_mb(), "")


def _recorded(log: Transcript) -> _Run:
    """A run that was made before, by a tap, by another framework or by an earlier audit: its times are not known."""
    defence = defence_of(log)
    if any(message.name == "scores" for message in log.messages):
        label = log.sealed(log.active).get("label")
        accuracy, withheld = _answered(log, label)
        return _Run(
            log,
            "",
            0.0,
            0.0,
            accuracy,
            withheld,
            defence=defence,
            usual=_usual(label),
            useful=usefulness(_scores(log), label),
        )
    masked = any(message.name.startswith("masked ") for message in log.messages)
    encryption = (SAID_MASKED if masked else IN_THE_CLEAR) if log.protocol == SplitNetwork.name else ""
    return _Run(log, "", 0.0, 0.0, accuracy_of(log), encryption=encryption, defence=defence)


def _answered(log: Transcript, label: IntArray | None) -> tuple[float | None, float]:
    """The share of rows that got the right class, where the label is known, and of those that got no answer."""
    scores = _scores(log)
    told = ~np.isnan(scores[:, 0])
    right = None if label is None else told & (np.argmax(np.nan_to_num(scores), axis=1) == label)
    return None if right is None else float(right.mean()), float(1 - told.mean())


def _scores(log: Transcript) -> Array:
    """All that was released, row by row."""
    return np.concatenate([message.payload for message in log.messages if message.name == "scores"])


def _usual(label: IntArray | None) -> float | None:
    """The share of the most frequent class: what an answer without a model gets right."""
    return None if label is None or not len(label) else float(np.bincount(label).max() / len(label))


def _timed(train: Callable[[], Model]) -> tuple[Model, float]:
    started = time.perf_counter()
    return train(), time.perf_counter() - started


def _attempt(plan: Plan, unit: Unit, case: Case, view: View, seed: bytes, limits: Limits) -> Attempt:
    """What the attack says; one that does not fit the network stops the audit only where no other looks at the same."""
    assert case.attack is not None
    tried = attempt(case.attack.attack(), view, seed, limits)
    if not tried.unfit:
        return tried
    if not any(replace(other, attack=case.attack) == case for other in attack_cases(plan, unit) if other != case):
        raise Unfit(tried.unfit)
    return replace(tried, guess=nothing(view, tried.unfit))


def training_losses(log: Transcript) -> tuple[tuple[int, float], ...]:
    """Rounds and losses that the training sealed, evenly chosen from first to last; a loss that is no number is left out."""
    losses = log.sealed(COORDINATOR).get("training loss", np.zeros(0))
    rounds = np.unique(np.linspace(0, len(losses) - 1, min(len(losses), LOSSES)).round().astype(int))
    return tuple((int(i), float(losses[i])) for i in rounds if np.isfinite(losses[i]))
