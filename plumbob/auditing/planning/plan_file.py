"""From YAML to a plan: safe parsing, short forms expanded, every mistake reported in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from plumbob.auditing.planning import sweep
from plumbob.auditing.planning.chosen import unnamed
from plumbob.auditing.planning.plan import PATHS, Plan
from plumbob.errors import BadInput, suggest
from plumbob.files import read_text, reading, shown
from plumbob.formats import digest_of, read_model
from plumbob.trust import NO_CODE, Trust

PLAN_LIMIT = 2**20
DEEPEST = 50  # brackets within brackets


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: no plan needs them, and a few lines of them can expand to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed in a plan")
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level >= DEEPEST:  # reading on takes time that grows with the square of the brackets
            raise yaml.YAMLError("nested too deeply")
        super().fetch_flow_collection_start(token)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in keys.items():
            if count > 1:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key '{key}'", node.start_mark)
        return super().construct_mapping(node, deep)


def read_plan(path: Path, *, trust: Trust = NO_CODE, look: bool = True) -> Plan:
    """A plan from a YAML file; its paths are relative to the file's folder. Without `look`, no file it names is opened."""
    what = f"the plan {shown(path)}"
    with reading(what, f"no plan file at {shown(path)}"):
        text = read_text(path, what, most=PLAN_LIMIT)
    return plan_from_text(text, str(path), path.parent, trust=trust, look=look)


def plan_from_text(text: str, source: str, folder: Path, *, trust: Trust = NO_CODE, look: bool = True) -> Plan:
    """A plan from YAML; its paths are relative to `folder`."""
    try:
        raw = yaml.load(text, _PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInput(f"{source}{where}: not valid YAML: {problem}") from error
    if raw is None:
        raise BadInput(f"{source} is empty; write a plan with `plumbob init`, or name none to audit built-in data")
    return make_plan(raw, source=source, folder=folder, trust=trust, look=look)


def make_plan(
    raw: Any, source: str = "plan", folder: Path = Path(), *, trust: Trust = NO_CODE, look: bool = True
) -> Plan:
    """A checked plan from plain data, or one clear sentence if it is invalid. Only the caller can allow code, never the plan.

    Where a plan says what a model's file is (`name`) and holds (`sha256`), the file is not opened; without `look` none is.
    """
    if not isinstance(raw, Mapping):
        raise BadInput(f"{source}: expected keys and values, got {type(raw).__name__}")
    swept = raw.get("defences") in (sweep.NAME, [sweep.NAME])
    try:
        kept = {k: v for k, v in raw.items() if not (swept and k == "defences")}
        plan = Plan.model_validate(_expanded(kept, folder, trust, look))
        plan.check_trust(trust)
        return plan.swept() if swept else plan
    except ValidationError as error:
        raise BadInput(f"{source}: {_sentence(error)}") from error
    except UnicodeEncodeError as error:
        raise BadInput(f"{source}: it contains an invalid character (a lone surrogate)") from error
    except RecursionError as error:
        raise BadInput(f"{source}: nested too deeply") from error
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from error


def _expanded(raw: Mapping[str, Any], folder: Path, trust: Trust, look: bool) -> dict[str, Any]:
    """Expand short forms, and resolve relative paths from the plan's folder."""
    plan = dict(raw)
    folder = folder.resolve() if look else folder.absolute()
    if isinstance(plan.get("data"), str):
        plan["data"] = {"name": plan["data"]}
    if isinstance(plan.get("data"), Mapping):
        plan["data"] = _expanded_data(dict(plan["data"]), folder, look)
    for key in ("threats", "protocols", "defences"):
        if isinstance(plan.get(key), str):
            plan[key] = [plan[key]]
        if isinstance(plan.get(key), list):
            plan[key] = [{"name": item} if isinstance(item, str) else item for item in plan[key]]
    if isinstance(plan.get("protocols"), list):
        rooted = [_rooted(item, folder, look) for item in plan["protocols"]]
        plan["protocols"] = [_expanded_model(item, trust) if look else item for item in rooted]
    if plan.get("attacks") == "all":
        plan["attacks"] = [one.model_dump() for one in unnamed("thorough")]
    if isinstance(plan.get("attacks"), str):
        plan["attacks"] = [plan["attacks"]]
    if isinstance(plan.get("unknown"), int | float):
        plan["unknown"] = [plan["unknown"]]
    return plan


def _expanded_model(protocol: Any, trust: Trust) -> Any:
    """A protocol with a model: the file determines the protocol and the checksum."""
    if not isinstance(protocol, Mapping) or not isinstance(protocol.get("model"), str):
        return protocol
    path, found = Path(protocol["model"]), dict(protocol)
    if found.get("sha256") is None:
        found["sha256"] = digest_of(path)
    return found if "name" in found else found | {"name": read_model(path, trust=trust).kind}


def _expanded_data(data: dict[str, Any], folder: Path, look: bool) -> dict[str, Any]:
    parties = data.get("parties")
    if isinstance(parties, Mapping):
        short = {
            name: {"file": party}
            if isinstance(party, str)
            else {"columns": party}
            if isinstance(party, list)
            else party
            for name, party in parties.items()
        }
        data["parties"] = {name: _rooted(party, folder, look) for name, party in short.items()}
    return dict(_rooted(data, folder, look))


def _rooted(entry: Any, folder: Path, look: bool) -> Any:
    """An entry with absolute paths; links are followed only if files may be opened."""
    if not isinstance(entry, Mapping):
        return entry
    paths = {key: entry[key] for key in PATHS if isinstance(entry.get(key), str)}
    rooted = {key: folder / path for key, path in paths.items()}
    try:
        return dict(entry) | {key: str(path.resolve() if look else path) for key, path in rooted.items()}
    except (ValueError, OSError, RuntimeError) as error:  # a zero byte, a name too long, links in a circle
        raise BadInput(f"'{next(iter(paths))}': expected the path of a file, got an invalid path") from error


def _sentence(error: ValidationError) -> str:
    """The first problem that pydantic found, in one sentence with the place and, for an unknown key, the closest one."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        inside = f" of '{'.'.join(place[:-1])}'" if place[:-1] else " of a plan"
        return f"'{place[-1]}' is not a key{inside}{suggest(place[-1], _keys_at(place[:-1]))}"
    where = f"'{'.'.join(place)}': " if place else ""
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}{message[:1].lower()}{message[1:]}"


def _keys_at(place: list[str]) -> list[str]:
    """Keys allowed at a place of the plan."""
    kind: Any = Plan
    for step in place:
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            kind = _inside(kind) or kind  # a list index or a party's name: go into the container
            continue
        kind = kind.model_fields[step].annotation if step in kind.model_fields else kind
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return list(kind.model_fields)


def _inside(kind: Any) -> Any:
    """The part of a plan that a container, or one that may be missing, holds."""
    for inner in get_args(kind):
        part = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else _inside(inner)
        if part is not None:
            return part
    return None
