"""`plumbob.audit`: an audit in one call, from files, data frames or a plan."""

from __future__ import annotations

import difflib
import inspect
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbob.app import Result, run_audit
from plumbob.attacks import Attack
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.data.files import FRAME
from plumbob.errors import BadInput, whole
from plumbob.files import users_paths

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit"]

Names = str | Sequence[str | Mapping[str, Any]]
Attacks = str | Sequence[str | Mapping[str, Any] | Attack]


def audit(
    plan: Plan | Mapping[str, Any] | Path | str | None = None,
    /,
    *,
    id: str | None = None,
    label: str | None = None,
    active: str | None = None,
    protocols: Names | None = None,
    threats: Names | None = None,
    defences: Names | None = None,
    attacks: Attacks | None = None,
    effort: str | None = None,
    seed: int | None = None,
    trials: int | None = None,
    missing: str | None = None,
    out: Path | str | None = None,
    workers: int | None = None,
    **parties: pd.DataFrame | Path | str,
) -> Result:
    """Run a federation, play the curious party, and say what it learns about every column.

    Give each party as a keyword: its name, and a CSV or Parquet file or a DataFrame. `id` is the column by which rows are
    matched, `label` the column to predict; the party that holds it is the active one. Or give a plan: a file, a dictionary or a
    `Plan`. With neither, built-in data are audited.

    Protocols, threats, defences and attacks are names, or `{"name": ..., "settings": ...}`; attacks may be objects.

    By default two protocols are run, the active party is curious, there is no defence, every attack that applies is tried, and
    the effort is quick. `missing` says what to do with empty cells (`median`, `drop_rows`, `drop_column`). Report and findings
    go to the folder `out`, where the same call resumes after an interruption; without it, to a temporary folder.

    >>> result = audit({"data": "breast", "protocols": "logistic_regression", "unknown": 0.1, "trials": 1, "rows": 50})
    >>> result.report.exists(), list(result.to_frame().columns[:3])
    (True, ['data', 'protocol', 'threat'])
    """
    options: dict[str, Any] = {"protocols": protocols, "threats": threats, "defences": defences, "attacks": attacks}
    options |= {"effort": effort, "seed": seed, "trials": trials}
    changes = {key: value for key, value in options.items() if value is not None}
    about = {"id": id, "label": label, "active": active, "missing": missing}
    if parties and plan is not None:
        raise BadInput("give a plan or parties, not both: a plan names its own ('data')")
    if not parties and any(given is not None for given in about.values()):
        raise BadInput(f"{', '.join(map(repr, about))} go with parties, such as bank='bank.csv', shop='shop.csv'")
    if workers is not None:
        whole("workers", workers, 1, 1_024)
    frames = {name: given for name, given in parties.items() if hasattr(given, "columns")}
    files = {name: _frame_name(name) if name in frames else _file(name, given) for name, given in parties.items()}
    if parties:
        chosen = make_plan({"effort": "quick"} | changes | {"data": _data(files, about)}, source="plumbob.audit")
    else:
        chosen = _planned(plan, changes)
    folder = Path(tempfile.mkdtemp(prefix="plumbob-")) / "audit" if out is None else _path("out", out)
    given = {_frame_name(name): frame for name, frame in frames.items()}
    with users_paths():
        return run_audit(chosen, folder, workers=workers, frames=given, command=_command(parties) if frames else "")


def _command(parties: Mapping[str, object]) -> str:
    """The call that repeats an audit of DataFrames: its plan alone cannot."""
    return f"plumbob.audit({', '.join(f'{name}={name}' for name in parties)}, ...)"


def _frame_name(party: str) -> str:
    """The file name under which a plan speaks of a party's DataFrame."""
    return re.sub(r"[^\w .-]", "_", party) + FRAME


def _path(what: str, given: object) -> Path:
    if not isinstance(given, str | Path):
        raise BadInput(f"{what}: expected a path or, for a party, a DataFrame, got {type(given).__name__}")
    return Path(given)


def _file(party: str, given: object) -> str:
    """A party's file; a keyword that is nearly one of ours is more likely misspelt than the name of a party."""
    path = _path(f"party '{party}'", given)
    near = difflib.get_close_matches(party, _KEYWORDS, n=1, cutoff=0.75)
    if near and not path.exists():
        raise BadInput(
            f"plumbob.audit has no argument '{party}', and no file '{path}' is there; did you mean '{near[0]}'?"
        )
    return str(path.absolute())


def _data(files: Mapping[str, str], about: Mapping[str, str | None]) -> dict[str, Any]:
    """The section `data` of a plan of these parties."""
    data: dict[str, Any] = {"parties": {name: {"file": file} for name, file in files.items()}}
    data |= {key: value for key, value in about.items() if value is not None and key != "missing"}
    return data if about["missing"] is None else data | {"rules": {"missing": about["missing"]}}


def _planned(plan: Plan | Mapping[str, Any] | Path | str | None, changes: dict[str, Any]) -> Plan:
    """The plan that was given, with what the call says besides."""
    if plan is None:
        return make_plan({"effort": "quick"} | changes, source="plumbob.audit")
    if isinstance(plan, Mapping):
        return make_plan({"effort": "quick"} | dict(plan) | changes, source="plumbob.audit")
    read = plan if isinstance(plan, Plan) else read_plan(_path("plan", plan))
    if not changes:
        return read
    return make_plan(read.model_dump(mode="json", exclude_unset=True) | changes, source="plumbob.audit")


_KEYWORDS = [name for name, one in inspect.signature(audit).parameters.items() if one.kind is one.KEYWORD_ONLY]
