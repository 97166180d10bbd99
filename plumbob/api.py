"""`plumbob.audit`: an audit in one call, from files, data frames or a plan."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbob.app import Result, run_audit
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit"]
FRAME = ".frame"  # ends the name under which a plan speaks of a table that was given in memory

Names = str | Sequence[str | Mapping[str, Any]]


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
    attacks: Names | None = None,
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

    By default two protocols are run, the active party is curious, there is no defence, every attack that applies is tried, and
    the effort is quick. `missing` says what to do with empty cells (`median`, `drop_rows`, `drop_column`). Report and findings
    go to the folder `out`, where the same call resumes after an interruption; without it, to a temporary folder.

    >>> result = audit({"data": "breast", "protocols": "logistic_regression", "unknown": 0.1, "trials": 1, "rows": 50})
    >>> result.report.exists(), list(result.to_frame().columns[:3])
    (True, ['data', 'protocol', 'threat'])
    """
    options = {"protocols": protocols, "threats": threats, "defences": defences, "attacks": attacks}
    changes = {
        key: value for key, value in (options | {"effort": effort, "seed": seed, "trials": trials}).items() if value
    }
    if seed is not None:
        changes["seed"] = seed
    frames = {name: given for name, given in parties.items() if hasattr(given, "columns")}
    if parties:
        if plan is not None:
            raise BadInput("give a plan or parties, not both: a plan names its own ('data')")
        data = _data(parties, frames, {"id": id, "label": label, "active": active}, missing)
        chosen = make_plan({"effort": "quick"} | changes | {"data": data}, source="plumbob.audit")
    else:
        if any(given is not None for given in (id, label, active, missing)):
            raise BadInput(
                "'id', 'label', 'active' and 'missing' go with parties, such as bank='bank.csv', shop='shop.csv'"
            )
        chosen = _planned(plan, changes)
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="plumbob-")) / "audit"
    return run_audit(
        chosen, folder, workers=workers, frames={f"{name}{FRAME}": frame for name, frame in frames.items()}
    )


def _data(
    parties: Mapping[str, Any], frames: Mapping[str, Any], keys: dict[str, Any], missing: str | None
) -> dict[str, Any]:
    """The section `data` of a plan of these parties."""
    files = {
        name: f"{name}{FRAME}" if name in frames else str(Path(given).absolute()) for name, given in parties.items()
    }
    data: dict[str, Any] = {"parties": {name: {"file": file} for name, file in files.items()}}
    data |= {key: value for key, value in keys.items() if value is not None}
    return data if missing is None else data | {"rules": {"missing": missing}}


def _planned(plan: Plan | Mapping[str, Any] | Path | str | None, changes: dict[str, Any]) -> Plan:
    """The plan that was given, with what the call says besides."""
    if plan is None:
        return make_plan({"effort": "quick"} | changes, source="plumbob.audit")
    if isinstance(plan, Mapping):
        return make_plan({"effort": "quick"} | dict(plan) | changes, source="plumbob.audit")
    read = plan if isinstance(plan, Plan) else read_plan(Path(plan))
    if not changes:
        return read
    return make_plan(read.model_dump(mode="json", exclude_unset=True) | changes, source="plumbob.audit")
