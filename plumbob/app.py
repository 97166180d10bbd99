"""An audit from plan to folder: `report.html`, `findings.jsonl`, `plan.yaml`, `environment.json`, resumable.

The folder belongs to one plan. The same command on the same folder goes on where it stopped; another plan is refused.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plumbob import __version__
from plumbob.audit.estimate import Estimate, estimate
from plumbob.audit.finding import Finding, append_findings, drop_torn_line, read_findings
from plumbob.audit.fit import check_fit
from plumbob.audit.judge import Summary, summarise
from plumbob.audit.plan import Plan, make_plan, read_plan
from plumbob.audit.run import cases, key, run, units, untried
from plumbob.audit.source import Source, open_source
from plumbob.defences.precheck import precheck
from plumbob.errors import BadInput
from plumbob.report import assessment, page
from plumbob.report.pictures import save_sheet, sheet_path
from plumbob.transcript import Transcript

NOTICED = 20.0  # seconds below which no machine is so slow that the audit takes a minute
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "openmined-psi")


@dataclass(frozen=True)
class Result:
    """What an audit found, and where it lies."""

    folder: Path
    findings: tuple[Finding, ...]
    summaries: tuple[Summary, ...]
    notes: tuple[str, ...]

    @property
    def report(self) -> Path:
        return self.folder / "report.html"


def run_audit(
    plan: Plan | dict[str, Any] | Path | str,
    out: Path | str,
    *,
    workers: int = 1,
    transcripts: bool = False,
    show_pictures: bool = False,
    command: str = "",
    progress: Callable[[int, int], None] = lambda done, total: None,
    tell: Callable[[Estimate], None] | None = None,
) -> Result:
    """Run a plan (or go on with it) and write its folder.

    Of published data sets of pictures the report shows some rows, real and recovered; of others only if `show_pictures`.
    `tell` gets an estimate of a new audit before the work starts.

    >>> import tempfile
    >>> tiny = {"data": "breast", "trials": 1, "unknown": [0.1], "protocols": ["logistic_regression"], "rows": 50}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_audit(tiny, Path(folder) / "out")
    ...     result.report.exists(), len(result.findings) > 0
    (True, True)
    """
    plan = _plan(plan).filled()
    source = open_source(plan.data, plan.seed)
    plan = plan if source.recorded is None else plan.of_recording(source.recorded.protocol)
    folder = Path(out)
    wanted = [key(plan, source.digest, unit, case) for unit in units(plan) for case in cases(plan, unit)]
    check_fit(plan, source)
    if tell is not None and not folder.exists():
        tell(_rough(plan, source, workers))
    with _writing(folder), _claimed(folder, plan):
        store = folder / "findings.jsonl"
        drop_torn_line(store)
        earlier = read_findings(store)
        known = frozenset(finding.key for finding in earlier)
        if known - set(wanted):
            raise BadInput(
                f"{folder} holds findings of other data or of another version; choose another folder (--out)"
            )
        keep = partial(_keep, folder / "transcripts") if transcripts else None
        if transcripts and source.alignment is not None:
            _keep(folder / "transcripts", source.alignment, "alignment")
        gallery = folder / "pictures" if source.public or show_pictures else None
        show = partial(save_sheet, gallery) if gallery is not None else None
        done = known - _unseen(gallery, earlier)
        total = len(units(plan))
        progress(0, total)
        for count, findings in enumerate(run(plan, source, workers=workers, done=done, keep=keep, show=show), 1):
            append_findings(store, [finding for finding in findings if finding.key not in known])
            progress(count, total)
        order = {name: i for i, name in enumerate(wanted)}
        findings = sorted(read_findings(store), key=lambda finding: order[finding.key])
        notes = (*source.notes, *_cautions(source), *untried(plan))
        _render(folder, plan, findings, notes, command, _sheets(gallery, findings))
        _whole(
            folder / "assessment.html",
            assessment.render(assessment.subject(plan, source), findings, made=environment()),
        )
    return Result(folder, tuple(findings), tuple(summarise(findings)), notes)


def estimate_audit(
    plan: Plan | dict[str, Any] | Path | str, *, workers: int = 1, transcripts: bool = False
) -> Estimate:
    """What `run_audit` would cost on this machine: the data are opened, nothing is trained or written."""
    plan = _plan(plan).filled()
    source = open_source(plan.data, plan.seed)
    plan = plan if source.recorded is None else plan.of_recording(source.recorded.protocol)
    check_fit(plan, source)
    return estimate(plan, source, workers=workers, transcripts=transcripts)


def _rough(plan: Plan, source: Source, workers: int) -> Estimate:
    """An estimate that measures this machine only where it could matter to somebody who waits."""
    made = estimate(plan, source, workers=workers, speeds={})
    return made if made.wall_seconds < NOTICED else estimate(plan, source, workers=workers)


def _unseen(gallery: Path | None, findings: list[Finding]) -> set[str]:
    """Findings whose pictures are wanted now but were not when they were made: these attacks are run again."""
    if gallery is None:
        return set()
    return {f.key for f in findings if f.score.images is not None and not sheet_path(gallery, f.key).exists()}


def _sheets(gallery: Path | None, findings: list[Finding]) -> dict[str, bytes]:
    """The contact sheets that may be shown, by key."""
    if gallery is None:
        return {}
    paths = {finding.key: sheet_path(gallery, finding.key) for finding in findings if finding.score.images is not None}
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}


def _plan(plan: Plan | dict[str, Any] | Path | str) -> Plan:
    if isinstance(plan, Plan):
        return plan
    return make_plan(plan) if isinstance(plan, dict) else read_plan(Path(plan))


def _cautions(source: Source) -> tuple[str, ...]:
    """What could be told before training, where the parties are fixed."""
    return tuple(caution.words for caution in precheck(source.federation)) if source.federation is not None else ()


@contextmanager
def _claimed(folder: Path, plan: Plan) -> Iterator[None]:
    """The folder is this plan's and this process's alone, until the audit is done."""
    _claim(folder, plan)
    with (folder / "findings.jsonl").open("a") as store:
        try:
            fcntl.flock(store, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput(
                f"another audit is writing to {folder}; wait for it or choose another folder (--out)"
            ) from error
        if (folder / "plan.yaml").read_text(encoding="utf-8") != plan.to_yaml(folder):
            _whole(folder / "plan.yaml", plan.to_yaml(folder))  # the same plan with another gate
        yield


def _claim(folder: Path, plan: Plan) -> None:
    """Make the folder this plan's, or refuse: nothing of another plan is ever overwritten."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; name a folder (--out)")
    kept = folder / "plan.yaml"
    if kept.exists():
        try:
            same = read_plan(kept).digest == plan.digest
        except BadInput:
            same = False
        if not same:
            raise BadInput(f"{folder} holds the audit of another plan; choose another folder (--out)")
        return
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty and holds no audit; choose another folder (--out)")
    folder.mkdir(parents=True, exist_ok=True)
    _whole(kept, plan.to_yaml(folder))


def _render(
    folder: Path,
    plan: Plan,
    findings: list[Finding],
    notes: tuple[str, ...],
    command: str,
    sheets: dict[str, bytes],
) -> None:
    surroundings = environment()
    _whole(folder / "environment.json", json.dumps(surroundings, indent=1) + "\n")
    threats = "; ".join(threat.threat().summary for threat in plan.threats)
    text = page.render(
        findings,
        title=f"Privacy audit: {findings[0].data if findings else 'no findings'}",
        question=f"What does the curious party learn about the other parties' columns? Curious here: {threats}.",
        plan=plan.to_yaml(folder),
        environment=surroundings,
        notes=notes,
        command=command or f"plumbob audit plan.yaml --out {folder.name}",
        sheets=sheets,
        assessment="assessment.html",
    )
    _whole(folder / "report.html", text)


def environment() -> dict[str, str]:
    """Versions that could change a number."""
    found = {"plumbob": __version__, "python": platform.python_version(), "system": platform.system()}
    return found | {"machine": platform.machine(), "cores": str(os.cpu_count())} | {p: version(p) for p in PACKAGES}


def _keep(folder: Path, log: Transcript, name: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9_.=-]+', '_', name)}.zip"
    if not path.exists():
        log.save(path)


def write_whole(path: Path, text: str) -> None:
    """A text file, whole or not at all; where it cannot be written, one sentence."""
    with _writing(path):
        _whole(path, text)


def _whole(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A disk that is full or a folder that may not be written becomes one sentence."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
        raise BadInput(f"cannot write to {folder}: {reason}; what was found before is kept") from error
