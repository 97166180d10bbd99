"""Targets of what a user writes: plans with keys of the real schema and wrong values, and gates."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from plumbob.attacks import attacks
from plumbob.auditing.planning.gate import MEASURES, Gate
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import read_plan
from plumbob.data.prepare import CHOICES
from plumbob.defences import DEFENCES
from plumbob.protocols import PROTOCOLS
from plumbob.threats import THREATS
from tests.fuzz import mutate
from tests.fuzz.guard import Files

FIXTURES = Path(__file__).parents[1] / "formats" / "fixtures"
MODELS = {name: (FIXTURES / name).read_bytes() for name in ("logistic-2.onnx", "xgboost-2.json")}
EXAMPLES: tuple[dict[str, Any], ...] = (
    {
        "data": "breast",
        "protocols": ["logistic_regression"],
        "attacks": ["box_solving"],
        "unknown": [0.3],
        "trials": 2,
        "seed": 1,
    },
    {
        "data": {
            "parties": {"bank": "bank.csv", "shop": {"file": "shop.csv", "columns": ["a"]}},
            "id": "id",
            "label": "y",
            "active": "bank",
        },
        "threats": [{"name": "mine", "knows": ["model"], "auxiliary_rows": 20, "colluding": ["shop"]}],
        "defences": ["none", {"name": "rounding", "settings": {"digits": 2}}],
        "gate": "max_gain<0.2 and exact_columns==0",
    },
    {
        "data": {
            "file": "all.csv",
            "label": "y",
            "parties": {"bank": ["a", "b"], "shop": ["c"]},
            "active": "bank",
            "label_bins": 3,
        }
    },
    {"data": {"recorded": "run"}, "effort": "quick"},
    {"data": "digits", "protocols": [{"model": "logistic-2.onnx", "columns": ["a", "b", "c", "d"]}], "defences": "all"},
    {
        "data": {"name": "breast", "sample": 100, "rules": {"missing": "median"}},
        "protocols": [{"name": "neural_network", "settings": {"hidden": [8]}}],
    },
    {"data": "breast", "protocols": [{"name": name} for name in PROTOCOLS], "threats": list(THREATS)},
)
NAMES = (
    *PROTOCOLS,
    *THREATS,
    *DEFENCES,
    *attacks(),
    *CHOICES,
    *(w for words in CHOICES.values() for w in words),
)


def _keys(kind: Any, found: set[str]) -> set[str]:
    """Every key that any part of a plan has."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            found.add(name)
            _keys(field.annotation, found)
    for inner in get_args(kind):
        _keys(inner, found)
    return found


SETTINGS = {key for made in (*PROTOCOLS.values(), *DEFENCES.values()) for key in vars(made())}
KEYS = (*sorted(_keys(Plan, set())), *sorted(SETTINGS))


def _value(rng: random.Random) -> Any:
    """A wrong value, or a right one at the wrong place."""
    kind = rng.randrange(6)
    if kind <= 2:
        return mutate.wild(rng)
    if kind == 3:
        return rng.choice(NAMES)
    if kind == 4:
        return [rng.choice(NAMES) for _ in range(rng.randrange(3))]
    return {rng.choice(KEYS): _value(rng) for _ in range(rng.randrange(4))}


def _chosen(rng: random.Random) -> dict[str, Any]:
    """A plan that names a real protocol or defence with its real settings, and wild values for them."""
    kinds = rng.choice((PROTOCOLS, DEFENCES))
    name = rng.choice(list(kinds))
    keys = list(vars(kinds[name]())) or ["x"]
    settings = {rng.choice(keys): _value(rng) for _ in range(rng.randrange(1, 3))}
    part = "defences" if kinds is DEFENCES else "protocols"
    return {"data": "breast", part: [{"name": name, "settings": settings}]}


def make_plan(rng: random.Random) -> Files:
    way = rng.randrange(5)
    if way == 0:
        raw: Any = {rng.choice(KEYS): _value(rng) for _ in range(rng.randrange(5))}
    elif way == 1:
        raw = _chosen(rng)
    else:
        raw = mutate.changed(rng, rng.choice(EXAMPLES), _value)
    if rng.random() < 0.5:
        data = mutate.json_bytes(rng, raw)
    else:
        data = yaml.safe_dump(raw, allow_unicode=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.25:
        data = mutate.damaged(rng, data, yaml.safe_dump(rng.choice(EXAMPLES)).encode())
    return {"plan.yaml": data} | MODELS


def read_a_plan(folder: Path) -> None:
    plan = read_plan(folder / "plan.yaml")
    (folder / "again.yaml").write_text(plan.filled().to_yaml(folder), encoding="utf-8")
    again = read_plan(folder / "again.yaml")
    assert again.digest == plan.filled().digest, "a plan that is written and read is another"


def make_gate(rng: random.Random) -> Files:
    parts = (
        *MEASURES,
        "mean(",
        "mean",
        "(",
        ")",
        "<",
        "<=",
        ">",
        "==",
        "=",
        "!=",
        "and",
        "AND",
        " ",
        "0.2",
        "0",
        "1e3",
        "-1",
        "1e999",
        ".5",
        "5.",
        "٣",
    )
    text = " ".join(str(rng.choice(parts)) for _ in range(rng.randrange(12)))
    if rng.random() < 0.7:
        measures, limits = list(MEASURES), (*mutate.NUMBERS, 0.2, 0.3, 0, 1, 2)
        right = (
            f"{rng.choice(measures)} {rng.choice('<>')} {rng.choice(limits)}" for _ in range(rng.choice((1, 1, 2)))
        )
        text = " and ".join((*right, text) if rng.random() < 0.2 else right)
    data = text.replace(" ", rng.choice((" ", " ", "", "\n"))).encode()
    return {"gate": mutate.damaged(rng, data, data * 200) if rng.random() < 0.4 else data}


def read_a_gate(folder: Path) -> None:
    text = (folder / "gate").read_bytes().decode("utf-8", "replace")
    gate = Gate.parse(text)
    assert Gate.parse(gate.text).text == gate.text, "a gate that is written and read is another"
