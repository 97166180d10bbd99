"""Labels that a passive party reads in encrypted training: in its own gradients (P29) and in the rows of nodes (P30).

Half of the columns are the passive party's, which knows 4 labels of each class. What counts is the gain over the best of the
most frequent class and the semi-supervised model of its own columns with the same labels, with an interval over all rows of
all trials.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumbob.attacks import attack_named
from plumbob.attacks.own_column_labels import labels_of_own_columns
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, FloatArray, IntArray, Table, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.protocols.shared.histogram_boosting import HistogramModel
from plumbob.protocols.sums.encrypted_logistic_regression import EncryptedLogisticRegression
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from plumbob.transcript import COORDINATOR, Transcript

TABLES = {"smoke": ("breast",), "paper": ("bank", "credit", "breast", "mushroom", "covertype")}
REGRESSED_ROWS = {"smoke": 64, "paper": 192}
REGRESSED_TRIALS = {"smoke": 1, "paper": 1}
SEVERAL_CLASSES = 64  # rows, and four epochs under a key, where there is a model for each of seven classes
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "the same batches of 32": {"batch_size": 32, "batches": "once", "epochs": 4},
    "batches of 64 drawn anew": {"batch_size": 64, "batches": "epoch", "epochs": 8},
}
BY_BATCH = ("bank", "credit")
BATCHES = (16, 32, 64, 96)  # of how many rows a batch may be, measured without a key: the numbers opened are the same
TREE_ROWS = {"smoke": 200, "paper": 2_000}
TREE_TRIALS = {"smoke": 1, "paper": 3}
KEYED_ROWS = {"smoke": 40, "paper": 200}
PASSIVE = THREATS["passive-known-labels"]


@dataclass(frozen=True)
class Read:
    """One guess of labels: which rows were right, with and without messages, where none was known."""

    with_messages: FloatArray
    without: FloatArray
    seconds: float = 0.0

    @classmethod
    def of(cls, name: str, log: Transcript, rng: np.random.Generator, **settings: Any) -> Read:
        view = cut(log, PASSIVE)
        started = time.process_time()
        guess = attack_named(name, **settings).run(view, rng)
        seconds = time.process_time() - started
        truth = truth_of(log, view)
        assert truth.label is not None
        assert guess.labels is not None
        label, asked = truth.label, view.known_labels < 0
        alone = labels_of_own_columns(view)
        usual = np.full(len(label), np.bincount(label[asked]).argmax())
        best = max(
            (one for one in (usual, alone) if one is not None), key=lambda one: np.mean(one[asked] == label[asked])
        )
        right = guess.labels == label
        if guess.unnamed:
            judged = score(guess, truth, view, np.random.default_rng(0))
            right = np.arange(len(label)) < round(
                (judged.label_accuracy or 0.0) * len(label)
            )  # the share is what counts
        return cls((right[asked]).astype(np.float64), (best[asked] == label[asked]).astype(np.float64), seconds)


def told(found: Sequence[Read]) -> dict[str, Any]:
    """Accuracy, that of the baseline, and the gain with a 95 % interval."""
    right, usual = (np.concatenate(part) for part in zip(*((r.with_messages, r.without) for r in found), strict=True))
    gain = right - usual
    margin = 1.96 * float(gain.std()) / np.sqrt(len(gain))
    return {
        "labels right": round(float(right.mean()), 4),
        "without messages": round(float(usual.mean()), 4),
        "gain": f"{gain.mean():+.3f} ± {margin:.3f}",
        "seconds": round(float(np.mean([r.seconds for r in found])), 1),
    }


def federated(
    data: str, rows: int, seed: int, trial: int, *, two_classes: bool = False
) -> tuple[Federation, Federation]:
    """Rows to train on and others; of several classes, the most frequent one against the rest where the loss has two."""
    rng = generator(seed, "labels of sums", data, trial)
    table = registry.load(data)
    whole = split_at_random(merged(table) if two_classes else table, 0.5, rng)
    one, other = halves(whole.label, rng)
    return whole.rows(np.sort(one[:rows])), whole.rows(other[:1_000])


def merged(table: Table) -> Table:
    """Two classes: the most frequent one, and all others."""
    if len(table.classes) == 2:
        return table
    label = np.asarray(table.label)
    most = int(np.bincount(label).argmax())
    return replace(table, label=np.equal(label, most).astype(np.int64), classes=("others", table.classes[most]))


def own_gradients(scale: Scale, seed: int) -> CheckResult:
    """P29. Encrypted logistic regression under keys of 2,048 bits: which share of the labels a passive party reads."""
    measured: dict[str, object] = {}
    solved: list[bool] = []
    for data in TABLES[scale]:
        for words, schedule in SCHEDULES.items():
            found = []
            for trial in range(REGRESSED_TRIALS[scale]):
                log = _regressed(data, scale, seed, trial, 2_048, schedule)
                found.append(Read.of("label_lattice", log, generator(seed, "attack", trial)))
            columns = len(cut(log, PASSIVE).known)
            rows = len(log.sealed(log.active)["label"])
            key = f"{data}, {words}"
            measured[key] = {"rows": rows, "own columns": columns} | told(found)
            solved.append(told(found)["labels right"] >= 0.99)
    if scale == "paper":
        measured |= _by_batch(seed)
    expected = "at least 99 % of the labels of three of the five tables or more, where batches are drawn anew"
    why = "what is opened for a party are as many sums of its labels as it has columns, in every round; the key does not matter"
    anew = solved[1::2]
    holds = sum(anew) >= min(3, len(anew))
    return CheckResult(holds, measured, expected, REGRESSED_TRIALS[scale], why)


def _regressed(
    data: str, scale: Scale, seed: int, trial: int, key_bits: int, schedule: Mapping[str, Any]
) -> Transcript:
    several = len(registry.load(data).classes) > 2
    rows = min(REGRESSED_ROWS[scale], SEVERAL_CLASSES) if several else REGRESSED_ROWS[scale]
    settings = dict(schedule) | ({"epochs": min(4, schedule["epochs"])} if several and key_bits else {})
    settings |= {"epochs": 2} if scale == "smoke" else {}
    parties = federated(data, rows, seed, trial)
    protocol = EncryptedLogisticRegression(key_bits=key_bits, open_all=False, **settings)
    return protocol.train(*parties, generator(seed, "training", data, trial))


def _by_batch(seed: int) -> dict[str, object]:
    """How large a batch may be where the same ones recur."""
    found: dict[str, object] = {}
    for data in BY_BATCH:
        shares = {}
        for size in BATCHES:
            schedule = {"batch_size": size, "batches": "once", "epochs": 8}
            read = Read.of(
                "label_lattice", _regressed(data, "paper", seed, 0, 0, schedule), generator(seed, "attack", 0)
            )
            shares[f"batches of {size}"] = round(float(read.with_messages.mean()), 3)
        found[f"{data}, by batch size"] = shares
    return found


def rows_of_nodes(scale: Scale, seed: int) -> CheckResult:
    """P30. SecureBoost, 10 trees of depth 3: labels by the published attack and ours, and by an oracle that has the model."""
    measured: dict[str, object] = {}
    gains: list[bool] = []
    for data in TABLES[scale]:
        found: dict[str, list[Read]] = {"id2graph": [], "latent_leaves": []}
        oracle = []
        for trial in range(TREE_TRIALS[scale]):
            parties = federated(data, TREE_ROWS[scale], seed, trial, two_classes=True)
            log = SecureBoost(key_bits=0).train(*parties, generator(seed, "trees", data, trial))
            for name, reads in found.items():
                reads.append(Read.of(name, log, generator(seed, "attack", trial)))
            oracle.append(float(np.mean(_model(log).scores(parties[0].values).argmax(axis=1) == parties[0].label)))
        measured[data] = {name: told(reads) for name, reads in found.items()} | {
            "oracle with the whole model and all columns": round(float(np.mean(oracle)), 4)
        }
        gain = np.concatenate([r.with_messages - r.without for r in found["latent_leaves"]])
        gains.append(bool(gain.mean() > 1.96 * gain.std() / np.sqrt(len(gain))))
    measured["the same guess under a key of 2,048 bits"] = _keyed(scale, seed)
    expected = "latent leaves gains more than its interval on three of the five tables or more; keys make no difference"
    why = (
        "ID2Graph does not name its groups: they are named by rows other than those counted. Of covertype the most frequent "
        "class against the others. Messages are read without a key; a run with one gives the same guess"
    )
    return CheckResult(sum(gains) >= min(3, len(gains)), measured, expected, TREE_TRIALS[scale], why)


def _model(log: Transcript) -> HistogramModel:
    sealed = {
        key.removeprefix("model/"): value for key, value in log.sealed(COORDINATOR).items() if key.startswith("model/")
    }
    start = float(sealed.pop("start")[0])
    return HistogramModel(**sealed, start=start, loss="logistic")


def _keyed(scale: Scale, seed: int) -> bool:
    guesses: list[IntArray] = []
    for bits in (0, 2_048):
        parties = federated("breast", KEYED_ROWS[scale], seed, 0)
        log = SecureBoost(key_bits=bits, trees=2).train(*parties, generator(seed, "keyed"))
        guess = attack_named("latent_leaves").run(cut(log, PASSIVE), generator(seed, "attack"))
        assert guess.labels is not None
        guesses.append(guess.labels)
    return bool((guesses[0] == guesses[1]).all())


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P29", "encrypted regression", "a passive party's own gradients hold the labels", own_gradients),
    Claim("plumbob", "P30", "SecureBoost", "the rows of nodes classify people for a passive party", rows_of_nodes),
)
