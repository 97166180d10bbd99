"""Targets: files of models, findings with their costs, and the list of audits over a broken folder."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from plumbob.auditing.running.finding import read_findings
from plumbob.formats import read_model
from plumbob.view.pages import list_page
from plumbob.view.runs import Runs
from tests.fuzz import mutate
from tests.fuzz.guard import Files
from tests.fuzz.plans import FIXTURES
from tests.view.audits import PLAN, one

WIDEST = 1_000  # inputs of a model that is asked for scores


@cache
def _models() -> dict[str, bytes]:
    import torch

    found = {path.name: path.read_bytes() for path in sorted(FIXTURES.iterdir()) if path.suffix in (".onnx", ".ubj")}
    found |= {name: (FIXTURES / name).read_bytes() for name in ("xgboost-2.json", "xgboost-3.json")}
    for name, sizes in (("linear.pt", (4, 3)), ("network.pt", (4, 5, 2))):
        layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
        state = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU()))).state_dict()
        file = io.BytesIO()
        torch.save({key: torch.full_like(value, 0.1) for key, value in state.items()}, file)
        found[name] = file.getvalue()
    return found


def make_model(rng: random.Random) -> Files:
    name = rng.choice(list(_models()))
    data, suffix = _models()[name], Path(name).suffix
    if suffix == ".json" and rng.random() < 0.8:
        data = mutate.json_bytes(rng, mutate.changed(rng, json.loads(data)))
    elif suffix == ".pt" and rng.random() < 0.5:
        members = mutate.unzipped(data)
        inside = rng.choice(list(members))
        members[inside] = mutate.damaged(rng, members[inside], members[rng.choice(list(members))])
        data = mutate.zipped(members)
    elif suffix == ".onnx" and rng.random() < 0.5:
        data = _words_changed(rng, data)
    else:
        other = _models()[rng.choice(list(_models()))]
        data = mutate.damaged(rng, data, other)
    if rng.random() < 0.02:
        suffix = rng.choice((".json", ".ubj", ".onnx", ".pt", ".pkl", ".skops", ".x"))
    return {f"model{suffix}": data}


def _words_changed(rng: random.Random, data: bytes) -> bytes:
    """A name in the file swapped for another of the same length, or a byte for its neighbour: lengths stay what they were."""
    words = (
        b"LEAF",
        b"Gemm",
        b"Relu",
        b"Cast",
        b"Add",
        b"Mul",
        b"Div",
        b"Sub",
        b"BRANCH_LEQ",
        b"SOFTMAX",
        b"LOGISTIC",
        b"NONE",
    )
    at = rng.randrange(len(data))
    if rng.random() < 0.4:
        word = rng.choice(words)
        return data.replace(
            word, rng.choice([w for w in words if len(w) == len(word)] or [word[::-1]]), rng.choice((1, -1))
        )
    return data[:at] + bytes([(data[at] + rng.choice((1, -1, 2, 64, 128))) % 256]) + data[at + 1 :]


def read_a_model(folder: Path) -> None:
    own = read_model(next(path for path in folder.iterdir() if path.stem == "model"))
    if own.size <= WIDEST:
        own.model.arrays()
        own.model.scores(np.full((3, own.size), 0.5))


@cache
def _lines() -> tuple[str, ...]:
    return tuple(finding.to_line() for finding in one())


def _findings(rng: random.Random) -> dict[str, bytes]:
    found: list[bytes] = []
    costs: list[bytes] = []
    for line in _lines():
        raw = json.loads(line)
        cost: Any = {key: raw[key] for key in ("key", "seconds", "peak_mb", "train_seconds", "predict_seconds")}
        raw = mutate.changed(rng, raw) if rng.random() < 0.8 else raw
        cost = mutate.changed(rng, cost) if rng.random() < 0.2 else cost
        found.append(mutate.json_bytes(rng, raw))
        costs.append(mutate.json_bytes(rng, cost))
    data = b"\n".join(found) + rng.choice((b"\n", b"\n", b"", b"\n\n"))
    data = mutate.damaged(rng, data, data) if rng.random() < 0.2 else data
    files = {"findings.jsonl": data}
    if rng.random() < 0.5:
        files["costs.jsonl"] = b"\n".join(costs) + b"\n"
    return files


def make_findings(rng: random.Random) -> Files:
    return _findings(rng)


def read_the_findings(folder: Path) -> None:
    for finding in read_findings(folder / "findings.jsonl"):
        assert isinstance(finding.key, str)


def make_runs(rng: random.Random) -> Files:
    """Two audits, broken and half written."""
    files: dict[str, bytes] = {}
    for name in ("a", "b/c"):
        plan = PLAN.encode()
        inside = _findings(rng) if rng.random() < 0.9 else {}
        inside |= {"plan.yaml": mutate.damaged(rng, plan, plan) if rng.random() < 0.5 else plan}
        inside |= {"report.html": b"<!doctype html>"} if rng.random() < 0.7 else {}
        inside |= {"environment.json": b"{}"} if rng.random() < 0.3 else {}
        files |= {f"{name}/{file}": data for file, data in inside.items()}
    return files


def read_the_runs(folder: Path) -> None:
    """The list is made whatever the files hold: a refusal here would be a mistake too."""
    runs = Runs(folder).all()
    json.dumps([run.facts() for run in runs])
    list_page(str(folder), runs)
