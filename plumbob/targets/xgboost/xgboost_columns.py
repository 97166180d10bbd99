"""xgboost's own vertical federated training, unmodified: its server, one worker process per party, `DataSplitMode.COL`.

Nothing of it is ours but the recorder on each connection. In every round, by way of the server (here: the coordinator)
    1  the label holder's gradients and second derivatives of all rows go to everybody       "gradients"
    2  for every node of a level each party tells its best split: column, threshold, gain    "split candidates"
    3  each party tells which rows go left at its own splits, and gets those of all parties  "sides", "missing"
What else crosses (counts of columns and rows, the base score, sizes) keeps the name of its operation. With `predict` the parties
score the training rows together afterwards: then the sides of all rows at all nodes cross, not only at those on their way.
Every worker ends with the whole model. It is a note of its party, `model/...`: columns, thresholds and weights.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput, boolean, not_negative, one_of, positive, whole
from plumbob.federation import Federation, FloatArray, IntArray
from plumbob.lazy_imports import xgboost
from plumbob.protocols.base import IN_THE_CLEAR, TrainingProtocol, column_positions, note, opened
from plumbob.protocols.shared.trees import DEEPEST, LEAF
from plumbob.targets.xgboost._processes import Job, run
from plumbob.targets.xgboost._wire import Call
from plumbob.transcript import COORDINATOR, Transcript

Method = Literal["hist", "approx"]
MISSING = (
    "protocol 'xgboost_columns' needs the package xgboost, which is not installed: pip install 'plumbob[boost]' "
    "(xgboost-cpu has no federated plugin)"
)


def installed() -> bool:
    """Whether the package with the federated plugin is there; `xgboost-cpu` is another one, without it."""
    try:
        importlib.metadata.version("xgboost")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


class XgboostColumns(TrainingProtocol):
    """Trees of `depth` in `trees` rounds; with more than two classes, one tree per class and round."""

    name = "xgboost_columns"
    identity = "XgboostColumns(trees, depth, shrinkage, penalty, bins, method, predict, timeout)"
    summary = "xgboost's own column-wise federated training, in real processes, with all traffic recorded"
    key_bits = 0
    cost_terms = ("1", "t 2^h", "t h N d")  # as boosted trees, after processes have started
    workload = "loops"
    uses_torch = False
    presets = {"small": {"trees": 4, "depth": 2}}
    glossary = {"gradients": "gradients"}
    tells = dict.fromkeys(("active", "passive", COORDINATOR), ("gradients", "sides", "missing"))

    def __init__(
        self,
        *,
        trees: int = 20,
        depth: int = 3,
        shrinkage: float = 0.3,
        penalty: float = 1.0,
        bins: int = 256,
        method: Method = "hist",
        predict: bool = False,
        timeout: int = 300,
    ) -> None:
        self.trees = whole("xgboost: trees", trees, 1, 10_000)
        self.depth = whole("xgboost: depth", depth, 1, DEEPEST)
        self.shrinkage = positive("xgboost: shrinkage", shrinkage)
        self.penalty = not_negative("xgboost: penalty", penalty)
        self.bins = whole("xgboost: bins", bins, 2, 4_096)
        one_of("xgboost: method", method, get_args(Method))
        self.method = method
        self.predict = boolean("xgboost: predict", predict)
        self.timeout = whole("xgboost: timeout", timeout, 1, 86_400)  # seconds

    @property
    def encryption(self) -> str:
        return IN_THE_CLEAR

    def ready(self, rows: int) -> None:
        """Refuse where xgboost is not installed."""
        if not installed():
            raise BadInput(MISSING)

    def train(self, federation: Federation, others: Federation, rng: np.random.Generator) -> Transcript:
        self.ready(len(federation))
        log = opened(self.name, federation, others)
        ranks = [federation.active, *federation.passive]
        results = run([self._job(federation, name) for name in ranks], self.timeout)
        where = column_positions(federation)
        order = np.concatenate([where[name] for name in ranks])  # xgboost's column k in the joint model
        for name in (*ranks, COORDINATOR):
            note(log, name, "columns", order)
        write_messages(log, ranks, [result.calls for result in results], len(federation))
        for name, result in zip(ranks, results, strict=True):
            for key, array in arrays_of(result.model, order).items():
                note(log, name, f"model/{key}", array)
        for key, array in arrays_of(results[0].model, order).items():
            log.seal(COORDINATOR, f"model/{key}", array)
        scores = _scores(results[0].model, others.values[:, order], len(federation.classes))
        log.seal(COORDINATOR, "other scores", scores)
        log.seal(COORDINATOR, "test accuracy", np.array([np.mean(scores.argmax(axis=1) == others.label)]))
        return log

    def _job(self, federation: Federation, name: str) -> Job:
        classes = len(federation.classes)
        parameters: dict[str, Any] = {
            "tree_method": self.method,
            "max_depth": self.depth,
            "eta": self.shrinkage,
            "lambda": self.penalty,
            "max_bin": self.bins,
            "nthread": 1,
            "objective": "binary:logistic" if classes == 2 else "multi:softprob",
        }
        if classes > 2:
            parameters["num_class"] = classes
        arrays: dict[str, Array] = {"values": federation[name].values.astype(np.float32)}
        if name == federation.active:
            arrays["label"] = federation.label.astype(np.float32)
        return Job(name, {"parameters": parameters, "rounds": self.trees, "predict": self.predict}, arrays)


def write_messages(log: Transcript, ranks: Sequence[str], recorded: Sequence[list[Call]], rows: int) -> None:
    """Every call as messages: what each party sends the server, then what the server sends each party."""
    phase, round, searched = "setup", -1, False
    for together in zip(*recorded, strict=True):
        if len({(call.sequence, call.method) for call in together}) > 1:
            raise ValueError("xgboost: the recorded order of calls differs between parties")
        name = _name(together[0], rows)
        if name == "gradients":
            phase, round = "train", round + 1
        elif name == "split candidates":
            searched = True
        elif name == "sides":
            # In training splits are looked for before rows are sent to sides; a prediction looks for none.
            phase, round = (phase, round) if searched else ("predict", 0)
            searched = False
        for party, call in zip(ranks, together, strict=True):
            if call.request.size:
                log.send(party, COORDINATOR, phase, max(round, 0), name, _typed(name, call.request, rows))
        for party, call in zip(ranks, together, strict=True):
            log.send(COORDINATOR, party, phase, max(round, 0), name, _typed(name, call.reply, rows))


def _name(call: Call, rows: int) -> str:
    if call.method == "Broadcast" and call.reply.size >= 8 * rows and call.reply.size % (8 * rows) == 0 and rows > 1:
        return "gradients"
    if call.method.startswith("Allgather") and call.reply[:2].tobytes() == b"{L":
        return "split candidates"
    if call.method == "Allreduce" and call.reply.dtype == np.uint8:
        return {"or": "sides", "and": "missing"}.get(call.operation, "allreduce")
    return call.method.lower()


def _typed(name: str, payload: Array, rows: int) -> Array:
    """Gradients as rows x trees x (first, second derivative); the rest as it came."""
    return payload.view("<f4").reshape(rows, -1, 2) if name == "gradients" else payload


def arrays_of(model: bytes, order: IntArray) -> dict[str, Array]:
    """A saved model as nodes: tree, left and right child, column in the joint model (or LEAF), threshold or leaf weight."""
    learner = json.loads(model)["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]

    def joined(key: str) -> Array:
        return np.concatenate([np.asarray(tree[key]) for tree in trees])

    left, numbers = joined("left_children"), joined("split_conditions").astype(np.float32).astype(np.float64)
    inner = left >= 0
    base = learner["learner_model_param"]["base_score"].strip("[]").split(",")
    return {
        "tree": np.repeat(np.arange(len(trees)), [len(tree["left_children"]) for tree in trees]),
        "left": left,
        "right": joined("right_children"),
        "feature": np.where(inner, order[joined("split_indices")], LEAF),
        "threshold": np.where(inner, numbers, 0.0),
        "weight": np.where(inner, 0.0, numbers),
        "base score": np.array([float(number) for number in base]),
    }


def _scores(model: bytes, values: FloatArray, classes: int) -> FloatArray:
    """What the model says of rows with all columns, outside of the federation."""

    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(model))
    told = booster.predict(xgboost.DMatrix(values.astype(np.float32), nthread=1)).astype(np.float64)
    return np.stack([1 - told, told], axis=1) if classes == 2 else np.asarray(told.reshape(-1, classes))
