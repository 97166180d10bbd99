"""Measure what `plumbob audit --estimate` predicts: every protocol, attack and defence on a small grid of sizes.

    python -m benchmarks.costs measure docs/results/cost-points.jsonl
    python -m benchmarks.costs fit docs/results/cost-points.jsonl plumbob/auditing/costing/costs.json

Each point is one unit of an audit in a forked process of its own. Seconds are of processor time: those that a finding tells
are taken times the share of the wall clock that the unit really got. Laws are fitted by non-negative least squares on relative
errors.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.estimates import took
from benchmarks.timing import _processor_time as processor_time
from plumbob.app import environment
from plumbob.attacks import name_of
from plumbob.auditing.costing import cost
from plumbob.auditing.costing.cost import Size
from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.chosen import unnamed
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.planning.sweep import fits
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import Source
from plumbob.crypto.psi import intersect
from plumbob.defences import defence_named
from plumbob.federation import Column, Table
from plumbob.protocols import PROTOCOLS, protocol_named
from plumbob.scoring.column_ceiling import CEILING

Point = dict[str, Any]
KEYLESS = ("encrypted_logistic_regression", "secure_boost")  # which no defence of a plan changes
GRID = ((400, 8, 2, 0.25), (400, 30, 2, 0.5), (600, 24, 6, 0.2), (2_400, 8, 6, 0.5), (6_000, 20, 2, 0.3))
HEAVY = ((240, 8, 2, 0.25), (240, 24, 2, 0.5), (300, 16, 5, 0.3), (1_200, 10, 3, 0.4))  # where a row is dear
KEYED = ((300, 8, 2, 0.5), (300, 20, 2, 0.3), (700, 12, 2, 0.4))
LIGHT = (40_000, 20, 2, 0.3)  # where it is cheap
LARGE = (12_000, 20, 2, 0.3)  # where small sizes do not tell how an attack grows with the rows
GRIDS: dict[str, tuple[tuple[int, int, int, float], ...]] = {
    "random_forest": HEAVY,
    "neural_network": HEAVY,
    "split_models": HEAVY,
    "boosted_trees": HEAVY,
    "xgboost_columns": HEAVY,
}
GRIDS |= {"encrypted_logistic_regression": KEYED, "secure_boost": KEYED}
GRIDS |= {
    "decision_tree": (*GRID, LIGHT),
    "split_network": (*GRID, LIGHT),
    "logistic_regression": GRID,
    "split_training": GRID[:4],
}
DEAR = ("neural_network", "none", "dropout", "dp_sgd")  # where rows are dear: only what changes its training
TINY = (210, 6, 2, 0.4)
IDS = 1_000
CACHED = 0.003  # seconds below which a ceiling was there already, from another threat of the same parties
AUXILIARY = "active-auxiliary"
LEAST = {
    "data": "breast",
    "protocols": ["decision_tree"],
    "trials": 1,
    "unknown": [0.3],
    "rows": 50,
}  # start and end alone
POINT = ("protocol", "settings", "size", "defence", "set")  # what names a point
MIDDLE = (240, 12, 3, 0.4)  # where defences are compared with none
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "neural_network": ({}, {"hidden": [60, 20]}),
    "random_forest": ({}, {"trees": 20, "depth": 4}),
    "split_models": ({},),
    "encrypted_logistic_regression": (
        {"key_bits": 1_024, "epochs": 2},
        {"key_bits": 2_048, "epochs": 1},
        {"key_bits": 0},
    ),
    "secure_boost": ({"key_bits": 1_024, "trees": 2}, {"key_bits": 2_048, "trees": 1}, {"key_bits": 0}),
}


def grid(protocol: str) -> tuple[tuple[int, int, int, float], ...]:
    """The sizes at which a protocol is measured."""
    return GRIDS.get(protocol, GRID)


def points() -> Iterator[Point]:
    """What is measured: the grid of every protocol with its settings, then every defence at one size."""
    for name in PROTOCOLS:
        for i, settings in enumerate(SETTINGS.get(name, ({},))):
            for size in grid(name) if i == 0 else grid(name)[-2:]:
                yield {"protocol": name, "settings": settings, "size": size, "defence": "none", "set": {}}
    for name in ("random_forest", "neural_network"):
        yield {"protocol": name, "settings": {}, "size": LARGE, "defence": "none", "set": {}}
    for name in PROTOCOLS:
        for defence, settings in dict(sweep.every()).items():
            skipped = name in KEYLESS or (grid(name) is HEAVY and (name != DEAR[0] or defence not in DEAR))
            if fits(defence_named(defence, **settings), protocol_named(name)) and not skipped:
                yield {"protocol": name, "settings": {}, "size": MIDDLE, "defence": defence, "set": settings}


def plan_of(point: Point) -> Plan:
    """The plan of one trial that makes the point; of classes beyond two a protocol of two takes the first."""
    training = PROTOCOLS[point["protocol"]].phase == "training"
    threats = (
        ["active-training", "corrupted-coordinator", "coordinator", "passive-training"]
        if training
        else ["active", "active-black-box-auxiliary"]
    )
    raw = {
        "data": "breast",
        "protocols": [{"name": point["protocol"], "settings": point["settings"]}],
        "threats": threats,
        "unknown": [point["size"][3]],
        "attacks": [
            one.model_dump() for one in unnamed("standard")
        ],  # those too that a plan leaves out beside a better one
        "trials": 1,
        "rows": 1_000_000,
        "defences": [{"name": point["defence"], "settings": point["set"]}],
    }
    if not training and point["size"] == MIDDLE:
        raw["threats"] = ["active", AUXILIARY]
    return make_plan(raw).filled()


def made(rows: int, columns: int, classes: int) -> Source:
    """A table with shared factors, a third of its columns whole numbers and some of them yes or no."""
    rng = np.random.default_rng(rows + columns)
    factors = rng.normal(size=(rows, max(2, columns // 3)))
    values = factors @ rng.normal(size=(factors.shape[1], columns)) + rng.normal(size=(rows, columns))
    values = (values - values.min(axis=0)) / (values.max(axis=0) - values.min(axis=0))
    kinds = []
    for j in range(columns):
        if j % 3 == 0:
            values[:, j] = np.round(20 * values[:, j]) / 20
            kinds.append(Column(f"x{j}", low=0, high=20, step=1))
        elif j % 5 == 1:
            values[:, j] = values[:, j] > 0.5
            kinds.append(Column(f"x{j}", kind="binary", step=1))
        else:
            kinds.append(Column(f"x{j}"))
    goal = values @ rng.normal(size=columns)
    label = np.digitize(goal, np.quantile(goal, np.arange(1, classes) / classes)).astype(np.int64)
    return Source("made", None, Table("made", tuple(kinds), values, label, tuple(map(str, range(classes)))), ())


def size_of(point: Point) -> Size:
    rows, columns, classes, share = point["size"]
    protocol = plan_of(point).protocols[0].protocol()
    train = rows // 2
    return Size(train, train, columns, max(1, round(share * columns)), classes, point["protocol"], vars(protocol))


def measure(point: Point) -> Point | None:
    """The point with its costs, measured in a process of its own; None where no attack fits or the protocol refuses."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(point, theirs))
    child.start()
    theirs.close()
    try:
        found: Point | None = ours.recv()
    except EOFError:
        found = None
    child.join()
    return found


def _measure(point: Point, out: Connection) -> None:
    from plumbob.errors import BadInput

    plan, source = plan_of(point), made(*point["size"][:3])
    before = _highest()
    cpu, wall = processor_time(), time.perf_counter()
    try:
        findings = run(plan, source)
    except BadInput:
        findings = []
    wall, cpu = time.perf_counter() - wall, processor_time() - cpu
    if not findings:
        out.send(None)
        return
    share = cpu / wall
    out.send(
        point
        | {
            "cpu": cpu,
            "train": share * findings[0].train_seconds,
            "predict": share * findings[0].predict_seconds,
            "attacks": [[name_of(f.attack), f.threat, share * f.seconds, f.unknown_columns] for f in findings],
            "grown": _highest() - before,  # a forked process does not hold all that its parent does
            "lines": [[len(f.to_line()), f.unknown_columns] for f in findings],
        }
    )


def seconds_per_id() -> float:
    """Of a private set intersection, both sides together; it grows in proportion."""
    ids = [f"id{i}" for i in range(IDS)]
    started = processor_time()
    intersect(lambda sender, receiver, name, payload: payload, "bank", ids, "shop", ids)
    return (processor_time() - started) / (2 * IDS)


def warm() -> float:
    """Use every library once, here, so that no forked process pays for it; the seconds that the first use of a network takes."""
    spent = []
    for protocol in ("logistic_regression", "logistic_regression", *PROTOCOLS):
        settings = {"key_bits": 1_024} if protocol in KEYLESS else {}
        point = {"protocol": protocol, "settings": settings, "size": TINY, "defence": "none", "set": {}}
        plan, started = plan_of(point), processor_time()
        run(plan, made(*TINY[:3]))
        spent.append(processor_time() - started)
    return spent[0] - spent[1]


def _highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def laws_in(point: Point) -> dict[str, list[tuple[Size, float]]]:
    """What a point says of each law."""
    from dataclasses import replace

    size, name = size_of(point), point["protocol"]
    found: dict[str, list[tuple[Size, float]]] = defaultdict(list)
    for attack, _, seconds, unknown in point["attacks"]:
        if attack == CEILING and seconds > CACHED:
            found[CEILING].append((replace(size, unknown=unknown), seconds))
    if all(attack == CEILING for attack, *_ in point["attacks"]):
        return found
    found[f"train/{name}"].append((size, point["train"]))
    if PROTOCOLS[name].phase == "prediction":
        found[f"predict/{name}"].append((size, point["predict"]))
    for attack, threat, seconds, unknown in point["attacks"]:
        if attack == CEILING or (threat == AUXILIARY and attack != "shadow_inversion"):
            continue  # with complete rows of other people attacks do something else
        found[f"attack/{attack}/{name}"].append((replace(size, unknown=unknown), seconds))
    rest = point["cpu"] - point["train"] - point["predict"] - sum(part[2] for part in point["attacks"])
    found[f"score/{name}"].append((size, max(1e-4, rest / sum(attack != CEILING for attack, *_ in point["attacks"]))))
    found[f"memory/{name}"].append((size, point["grown"]))
    found[f"line/{name}"].extend(
        (replace(size, unknown=unknown), float(length))
        for (length, unknown), (attack, *_) in zip(point["lines"], point["attacks"], strict=True)
        if attack != CEILING
    )
    return found


def fit(names: Sequence[str], measured: Sequence[tuple[Size, float]], least: float) -> dict[str, float]:
    """Coefficients that no relative error is large with; what is below `least` weighs as that, for nobody waits for it."""
    goal = np.array([max(seconds, least) for _, seconds in measured])
    table = np.array([[cost.TERMS[name](size) for name in names] for size, _ in measured]) / goal[:, None]
    scale = np.maximum(table.max(axis=0), 1e-300)
    weights = np.ones(len(goal))
    for _ in range(10):  # towards errors that are alike as factors: half is as wrong as double
        found, _ = nnls(table / scale * weights[:, None], weights)
        told = np.maximum(table / scale @ found, 1e-3)
        weights = np.abs(np.log(told)) / np.maximum(np.abs(told - 1), 1e-9)
    return {name: float(f"{x:.4g}") for name, x in zip(names, found / scale, strict=True) if x > 0}


def fitted(measured: Sequence[Point], start: Point) -> dict[str, Any]:
    """The file of costs."""
    plain: dict[str, list[tuple[Size, float]]] = defaultdict(list)
    for point in measured:
        if point["defence"] == "none":
            for law, found in laws_in(point).items():
                plain[law].extend(found)
    laws = {}
    for law, found in sorted(plain.items()):
        laws[law] = fit(cost.terms_of(law), found, 1e6 if law.startswith("memory/") else 0.002)
    laws["align"] = {"n": float(f"{start['per_id']:.4g}")}
    factors: dict[str, float] = {}
    for point in measured:
        if point["defence"] == "none" or point["size"] != list(MIDDLE):
            continue
        for law, found in laws_in(point).items():
            if law.startswith(("train/", "predict/", "attack/")):
                there = [max(0.002, seconds) for _, seconds in found]
                bare = [
                    max(0.002, s)
                    for p in measured
                    if p["defence"] == "none" and p["size"] == list(MIDDLE) and p["protocol"] == point["protocol"]
                    for _, s in laws_in(p).get(law, [])
                ]
                if bare and max(there) > 0.004:
                    factors[f"{point['defence']} {law}"] = float(f"{geometric_mean(there) / geometric_mean(bare):.3g}")
    return {
        "laws": laws,
        "factors": factors,
        "speeds": start["speeds"],
        "start_seconds": start["seconds"],
        "warm_seconds": start["warm"],
        "start_bytes": start["bytes"],
        "command": "python -m benchmarks.costs fit docs/results/cost-points.jsonl plumbob/auditing/costing/costs.json",
        "environment": start["environment"],
        "largest": {"rows": max(p["size"][0] for p in measured), "columns": max(p["size"][1] for p in measured)},
    }


def main(words: Sequence[str]) -> None:
    path = Path(words[1])
    if words[0] == "measure":
        _measure_all(path)
        return
    start, *measured = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    Path(words[2]).write_text(json.dumps(fitted(measured, start), indent=1) + "\n", encoding="utf-8")


def _measure_all(path: Path) -> None:
    """Every point that the file does not hold yet, so that a stopped measurement goes on."""
    import sklearn.linear_model
    import sklearn.tree  # noqa: F401  so that every forked process starts with the libraries there

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    done = [{key: point[key] for key in POINT} for point in lines[1:]]
    with path.open("a", encoding="utf-8") as file:
        start: Point = {
            "seconds": min(took("the least", LEAST)["seconds"] for _ in range(2)),
            "environment": environment(),
            "warm": warm(),
        }
        start |= {"bytes": _highest(), "speeds": cost.calibrate(), "per_id": seconds_per_id()}
        if not lines:
            file.write(json.dumps(start) + "\n")
        for point in points():
            if json.loads(json.dumps(point)) in done:
                continue
            found = measure(point)
            if found is not None:
                print(*point.values(), f"{found['cpu']:.2f} s", flush=True)
                file.write(json.dumps(found) + "\n")
                file.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
