"""Logistic regression under Paillier with a coordinator (weng2022 Table 1): only the coordinator can decrypt.

Rounds run over the same mini-batches in every epoch, as Section 4.1 needs them (`batches: once`), over mini-batches dealt
anew in every epoch (`epoch`), or each over rows drawn for it alone, as Section 2.3 prints (`iteration`); then the active party
names the rows before each round ("batch"). In one round, D being the slopes of `taylor_regression.py`:
    1  the active party sends [[T X - 2^(2f+1) y]] of its own columns and bias                        "partial"
    2  each passive party adds its T X and passes the sum on; the last one has [[D]]
       and sends it to all others                                                                     "partial", "residual"
    3  each party sends [[X' D]] of its own columns to the coordinator                                "encrypted gradient"
    4  the coordinator opens them and sends each party its own: gradients, or weights it updated      "gradients", "coefficients"
Everything a party sends was masked anew. With more than two classes there is a model for each class against the rest, as in
FATE; they run side by side. All weights start at zero. A view of the coordinator holds what it can open among the
messages to the active party (`notes`: "opened residuals"), never its key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto import paillier
from plumbob.crypto.encoding import Packing
from plumbob.crypto.plain import AnyPublicKey, Batch, KeyPair, as_bytes, integers, joined, key_pair
from plumbob.errors import BadInput, boolean, not_negative, one_of, positive, whole
from plumbob.federation import Federation, IntArray
from plumbob.protocols.base import KEYS, TrainingProtocol, note, opened
from plumbob.protocols.shared.taylor_regression import BigIntegers, Rule, Schedule, Trained, partition, targets
from plumbob.transcript import COORDINATOR, Transcript

RETURNS = ("gradients", "coefficients")
DRAWN = ("once", "epoch", "iteration")  # when batches are drawn
DIVERGED_WEIGHT = 1_000  # a weight beyond which training has diverged: columns lie in [0, 1]
_HEADROOM = 24  # bits by which sums of products exceed the product of two numbers of f bits


class EncryptedLogisticRegression(TrainingProtocol):
    """Taylor logistic regression on ciphertexts, for any number of parties and classes."""

    name = "encrypted_logistic_regression"
    identity = (
        "EncryptedRegression(key_bits, batch_size, epochs, learning_rate, decay, penalty, fraction_bits, "
        "returns, masked, open_all)"
    )
    summary = "logistic regression trained on Paillier ciphertexts, with a coordinator that decrypts the gradients"
    cost_terms = ("1", "b^4", "e N d", "e N b^3", "e N d b^2", "e N / batch d b^3")  # powers and products
    workload = "powers"
    uses_torch = False
    presets = {"small": {"key_bits": 0, "batch_size": 40, "epochs": 8, "learning_rate": 0.3}}
    glossary = {
        "public key": "a public key",
        "settings": "settings of the training",
        "batches": "which rows are trained on together",
        "batch": "which rows are trained on in this round",
        "partial": "partial sums of the model for each row",
        "residual": "errors of the model for each row",
        "encrypted gradient": "gradients, for the holder of the key",
        "masked gradient": "gradients under a mask",
        "opened gradient": "gradients under the receiver’s own mask",
        "gradients": "gradients",
        "coefficients": "coefficients of the model",
    }
    tells = {
        "active": ("residual", "gradients", "coefficients"),
        "passive": ("partial", "residual", "gradients", "coefficients"),
        COORDINATOR: ("encrypted gradient",),
    }
    key_messages = ("public key",)
    masked_messages = ("masked gradient", "opened gradient")  # the second under its receiver's mask

    def __init__(
        self,
        *,
        key_bits: int = 2_048,
        batch_size: int = 64,
        epochs: int = 10,
        learning_rate: float = 0.1,
        decay: float = 0.0,
        penalty: float = 0.0,
        fraction_bits: int = 32,
        returns: str = "gradients",
        masked: bool = False,
        open_all: bool = True,
        batches: str = "once",
    ) -> None:
        one_of("encrypted logistic regression: key_bits", key_bits, KEYS)
        one_of("encrypted logistic regression: returns", returns, RETURNS)
        one_of("encrypted logistic regression: batches", batches, DRAWN)
        boolean("encrypted logistic regression: masked", masked)
        boolean("encrypted logistic regression: open_all", open_all)
        if masked and not key_bits:
            raise BadInput(
                "encrypted logistic regression: masked needs a key (key_bits above 0); without one nothing is hidden"
            )
        if masked and batches != "once":
            raise BadInput(
                f"encrypted logistic regression: masked needs batches: once, got {batches}; sums over ever other rows would "
                "tell more of each row"
            )
        self.key_bits = key_bits
        self.batch_size = whole("encrypted logistic regression: batch_size", batch_size, 1)
        self.epochs = whole("encrypted logistic regression: epochs", epochs, 1)
        self.learning_rate = positive("encrypted logistic regression: learning_rate", learning_rate)
        self.decay = not_negative("encrypted logistic regression: decay", decay)
        self.penalty = not_negative("encrypted logistic regression: penalty", penalty)
        self.fraction_bits = whole("encrypted logistic regression: fraction_bits", fraction_bits, 8, 60)
        self.returns = returns
        self.masked = masked  # without coordinator, each party under a key of its own: `_masked_regression.py`
        self.open_all = open_all  # a corrupted coordinator opens the residuals too, not only the gradients
        self.batches = batches

    def schedule(self, rows: int, rng: np.random.Generator) -> tuple[Schedule, IntArray | None]:
        """The rows of every round; and the batch of each row, where that is the same in all epochs."""
        if self.batches == "once":
            batch = partition(rows, self.batch_size, rng, even=self.masked)
            return Schedule.kept(batch, self.epochs), batch
        drawn = Schedule.shuffled if self.batches == "epoch" else Schedule.sampled
        return drawn(rows, self.batch_size, self.epochs, rng), None

    @property
    def rule(self) -> Rule:
        return Rule(self.learning_rate, self.decay, self.penalty, self.fraction_bits)

    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        from plumbob.protocols.sums._masked_regression import run_masked

        log = opened(self.name, federation, others)
        schedule, batch = self.schedule(len(federation), rng)
        note(log, federation.active, "label", federation.label)
        order = [federation.active, *federation.passive]
        parties = [WorkingParty(federation, name, self.rule) for name in order]
        for name in (party.name for party in federation.parties):  # in the order of the joint columns
            log.send(COORDINATOR, name, "setup", 0, "settings", self.rule.array())
        for name in federation.passive if batch is not None else ():
            log.send(federation.active, name, "setup", 0, "batches", batch)  # type: ignore[arg-type]  # not None
        (run_masked if self.masked else _run)(self, log, parties, schedule)
        seal_model(log, federation, others, self.rule, {party.name: party.weights for party in parties})
        return log


class WorkingParty:
    """A party at work: its columns in fixed point, and its weights. The active one has the bias too."""

    def __init__(self, federation: Federation, name: str, rule: Rule) -> None:
        self.name, self.rule, self.active = name, rule, name == federation.active
        encoded = rule.encode(federation[name].values)
        goals = targets(federation.label, len(federation.classes))
        if self.active:
            encoded = np.hstack([encoded, np.full((len(encoded), 1), 1 << rule.fraction_bits, dtype=object)])
        self.columns: BigIntegers = encoded
        self._signs: BigIntegers = rule.signs(goals)
        self.weights: BigIntegers = np.zeros((len(goals), encoded.shape[1]), dtype=object)

    @property
    def models(self) -> int:
        return len(self.weights)

    def share(self, rows: IntArray) -> BigIntegers:
        """Its part of D, models x rows: T X, and for the active party the label's part too."""
        product: BigIntegers = self.weights @ self.columns[rows].T
        return product + self._signs[:, rows] if self.active else product

    def encrypted_gradient(self, residual: Batch, rows: IntArray) -> Batch:
        """[[X' D]], the models one after the other; not yet masked anew."""
        size, columns = len(rows), self.columns[rows]
        return joined([residual[one * size : (one + 1) * size].products(columns) for one in range(self.models)])

    def step(self, gradient: BigIntegers, rows: int, epoch: int) -> None:
        self.weights = self.rule.stepped(self.weights, gradient, rows, epoch, self.active)
        if np.abs(self.weights).max(initial=0) >> self.rule.fraction_bits > DIVERGED_WEIGHT:
            raise BadInput("encrypted logistic regression: training diverged; use a lower learning_rate")

    def shaped(self, flat: Sequence[int]) -> BigIntegers:
        return np.array(flat, dtype=object).reshape(self.weights.shape)


def _run(
    protocol: EncryptedLogisticRegression, log: Transcript, parties: Sequence[WorkingParty], schedule: Schedule
) -> None:
    """The coordinator's key, and all rounds."""
    pair = key_pair(protocol.key_bits)
    for party in parties:
        log.send(COORDINATOR, party.name, "setup", 0, "public key", key_bytes(pair.public))
    seen: list[int] = []
    for turn, rows in enumerate(schedule.rows):
        if protocol.batches != "once":
            for party in parties[1:]:
                log.send(parties[0].name, party.name, "train", turn, "batch", rows)
        residual = _residual(log, turn, pair.public, parties, rows)
        if protocol.open_all:
            seen += opened_batch(pair, residual, 2 * protocol.fraction_bits + _HEADROOM)
        for party in parties:
            sent = party.encrypted_gradient(residual, rows).rerandomised().to_array()
            received = log.send(party.name, COORDINATOR, "train", turn, "encrypted gradient", sent)
            gradient = pair.decrypt(pair.public.ciphertexts(received))  # type: ignore[arg-type]  # of the same kind
            _returned(protocol, log, turn, party, gradient, (schedule.epoch(turn), len(rows)))
    if protocol.open_all:
        note(log, COORDINATOR, "opened residuals", as_bytes(seen))


def _residual(log: Transcript, turn: int, key: AnyPublicKey, parties: Sequence[WorkingParty], rows: IntArray) -> Batch:
    """Steps 1 and 2: the sum goes round; who adds the last part sends it to all others."""
    active, *passive = parties
    running: Batch = key.encrypt(active.share(rows).ravel())
    for before, party in zip(parties, passive, strict=False):
        received = log.send(before.name, party.name, "train", turn, "partial", running.to_array())
        running = (key.ciphertexts(received) + party.share(rows).ravel()).rerandomised()
    for party in parties[:-1]:
        log.send(parties[-1].name, party.name, "train", turn, "residual", running.to_array())
    return running


def _returned(
    protocol: EncryptedLogisticRegression,
    log: Transcript,
    turn: int,
    party: WorkingParty,
    gradient: Sequence[int],
    when: tuple[int, int],
) -> None:
    """Step 4: the party gets its gradient and makes the step, or gets its weights with the step made."""
    epoch, rows = when
    if protocol.returns == "gradients":
        received = log.send(COORDINATOR, party.name, "train", turn, "gradients", as_bytes(gradient))
        party.step(party.shaped(integers(received)), rows, epoch)
    else:
        party.step(party.shaped(gradient), rows, epoch)  # made by the coordinator, which knows the rule and the start
        log.send(COORDINATOR, party.name, "train", turn, "coefficients", as_bytes(party.weights.ravel().tolist()))


def opened_batch(pair: KeyPair, batch: Batch, bits: int) -> list[int]:
    """What a key holder reads in a batch: many ciphertexts shifted into one before it is opened, which is the costly part."""
    together = (pair.public.bits - 2) // (bits + 1)
    if together < 2:
        return pair.decrypt(batch)  # type: ignore[arg-type]  # of the same kind
    groups = -(-len(batch) // together)
    columns = [batch[one * groups : (one + 1) * groups] for one in range(-(-len(batch) // groups))]
    packed = columns[-1]
    for column in reversed(columns[:-1]):
        shifted = packed * (1 << bits)
        packed = joined([column[: len(shifted)] + shifted, column[len(shifted) :]])  # type: ignore[operator]  # as above
    opened_numbers = pair.decrypt(packed)  # type: ignore[arg-type]  # as above
    slots = Packing([bits] * len(columns)).unpack(opened_numbers)
    return [slots[i % groups][i // groups] for i in range(len(batch))]


def key_bytes(key: AnyPublicKey) -> Array:
    """n and h of a public key; nothing where there is none."""
    return as_bytes([key.n, key.h]) if isinstance(key, paillier.PublicKey) else np.zeros((0, 1), dtype=np.uint8)


def seal_model(
    log: Transcript, federation: Federation, others: Federation, rule: Rule, weights: dict[str, BigIntegers]
) -> None:
    """The final model, for scoring and for threats that grant it, and its accuracy on the other rows."""
    columns = np.hstack([weights[party.name][:, : len(party.columns)] for party in federation.parties])
    trained = Trained(rule.decode(columns).T, rule.decode(weights[federation.active][:, -1]))
    log.seal(COORDINATOR, "model/weights", trained.weights)
    log.seal(COORDINATOR, "model/bias", trained.bias)
    log.seal(COORDINATOR, "test accuracy", np.array([trained.accuracy(others.values, others.label)]))


def plaintext_taylor(
    federation: Federation, settings: EncryptedLogisticRegression, rng: np.random.Generator
) -> Trained:
    """The same training in double precision with all columns in one place, to compare with."""
    values, goals = federation.values, targets(federation.label, len(federation.classes)).T
    weights, bias = np.zeros((values.shape[1], goals.shape[1])), np.zeros(goals.shape[1])
    schedule, _ = settings.schedule(len(federation), rng)
    for turn, rows in enumerate(schedule.rows):
        rate = settings.rule.rate(schedule.epoch(turn))
        slopes = (values[rows] @ weights + bias) / 4.0 - goals[rows] / 2.0
        gradient = values[rows].T @ slopes / len(rows) + settings.penalty * weights
        weights, bias = weights - rate * gradient, bias - rate * slopes.mean(axis=0)
    return Trained(weights, bias)
