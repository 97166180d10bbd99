"""An audit from plan to folder: open, expand, schedule, run, score, store, summarise, render.

The folder holds `report.html`, `findings.jsonl`, `costs.jsonl`, `plan.yaml` and `environment.json`. It belongs to one plan;
another plan is refused, the same goes on where it stopped. Findings go to a store, in the folder or shared with other audits;
the lines of the folder are written from there, in the plan's order, so the same command always ends with the same bytes.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbob.attacks import Guess
from plumbob.auditing.concluding import failures
from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.idle_defences import effective, idle, idle_places
from plumbob.auditing.concluding.summarise import Summary
from plumbob.auditing.concluding.untried import Untried
from plumbob.auditing.costing.estimate import Estimate, estimate
from plumbob.auditing.planning.gate import Outcome
from plumbob.auditing.planning.matrix import of_plan
from plumbob.auditing.planning.plan import Plan, check_gate
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.auditing.planning.plan_fits_data import check_fit, for_its_classes
from plumbob.auditing.planning.pre_training_check import label_stand_ins, precheck
from plumbob.auditing.running.execution_engines import Pool, engine_named, run_job, started
from plumbob.auditing.running.expand import gaps, inapplicable, keyed, untried, versions
from plumbob.auditing.running.finding import Finding, parted, read_findings
from plumbob.auditing.running.isolation.attacker import place_of
from plumbob.auditing.running.open_data import Source, open_source, with_models
from plumbob.auditing.running.run import Workbench, steady
from plumbob.auditing.running.schedule import pieces
from plumbob.auditing.running.store import Store
from plumbob.auditing.running.work import Extras, Job, keep, transcript_path
from plumbob.errors import BadInput
from plumbob.federation import Dropped
from plumbob.files import open_regular, read_regular, read_text, real, write_whole
from plumbob.files import shown as short
from plumbob.known_defences import KnownDefences
from plumbob.os_specific import lock
from plumbob.recorded.seals import sent_in
from plumbob.report import assessment, page
from plumbob.report import notebook as shown
from plumbob.report.facts import Asked
from plumbob.report.pictures import save_sheet, sheet_path
from plumbob.trust import Trust

if TYPE_CHECKING:
    import pandas as pd

NOTICED = 20.0  # seconds below which no machine is so slow that the audit takes a minute
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENOLCK, errno.EFBIG}
UNWRITABLE |= {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTSUP, errno.ELOOP, errno.EEXIST}
LINES, COSTS = "findings.jsonl", "costs.jsonl"


@dataclass(frozen=True, repr=False)
class Result:
    """What an audit found, what that means, and where it lies."""

    folder: Path
    findings: tuple[Finding, ...]
    conclusion: Conclusion
    notes: tuple[str, ...]
    reused: int = 0  # findings that were there before
    gate: Outcome | None = None  # what the plan's gate says of them, where it has one
    asked: Asked = field(default_factory=Asked)
    idle: tuple[Untried, ...] = ()  # defences that changed nothing, whose findings are left out

    @property
    def not_audited(self) -> tuple[Dropped, ...]:
        """Columns of the parties' files that took no part, and why."""
        return self.asked.dropped

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Every setting with a verdict on each column."""
        return self.conclusion.summaries

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def to_frame(self) -> pd.DataFrame:
        """One row per column and setting: level, gain with its interval, and the verdict in words."""
        return shown.as_frame(self.summaries)

    def __repr__(self) -> str:
        return f"Result(folder={str(self.folder)!r}, {len(self.findings):,} findings)"

    def __str__(self) -> str:
        return f"{shown.as_text(self.findings, self.conclusion, self.asked)}\nReport: {self.report}"

    def _repr_html_(self) -> str:
        return shown.as_html(self.conclusion)


def run_audit(
    plan: Plan | dict[str, Any] | Path | str,
    out: Path | str,
    *,
    workers: int | None = None,
    engine: str = "processes",
    store: Path | str | None = None,
    transcripts: bool = False,
    show_pictures: bool = False,
    trust_code: bool = False,
    command: str = "",
    progress: Callable[[int, int], None] = lambda done, total: None,
    tell: Callable[[Estimate], None] | None = None,
    frames: Mapping[str, pd.DataFrame] | None = None,
) -> Result:
    """Run a plan (or go on with it) and write its folder.

    `store` names a folder that audits share; without it what is found is kept in the audit's own. `engine` is processes, ray,
    dask, or the address of a cluster. `workers` is 1 for processes and all of a cluster, unless it is given.
    Of published data sets of pictures the report shows some rows, real and recovered; of others only if `show_pictures`.
    `trust_code` lets a plan name what runs code of others: pickled models, whole PyTorch modules, networks of other packages.
    `tell` gets an estimate of a new audit before the work starts.
    `frames` are tables in memory, by the file name that the plan gives them.

    >>> import tempfile
    >>> tiny = {"data": "breast", "trials": 1, "unknown": [0.1], "protocols": ["logistic_regression"], "rows": 50}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_audit(tiny, Path(folder) / "out")
    ...     result.report.exists(), len(result.findings) > 0
    (True, True)
    """
    folder, trust = Path(out), Trust(code=trust_code)
    kept = Store(Path(store), uuid.uuid4().hex) if store is not None else Store(folder / "store", "this audit")
    plan, source = _opened(plan, trust, frames)
    for planned in plan.fitting_attacks:
        place_of(planned.attack())
    wanted = [key for _, todo in keyed(plan, source) for _, key in todo]
    chosen = engine_named(engine)
    with _writing(folder):
        _check_folder(folder, plan, trust)
    _check_store(kept, folder)
    if tell is not None and not folder.exists():
        tell(_rough(plan, source, workers or 1))
    with started(chosen, workers) as pool, _writing(folder), _claimed(folder, plan, trust):
        extras = Extras(
            folder / "transcripts" if transcripts else None,
            folder / "pictures" if source.public or show_pictures else None,
            save_sheet,
        )
        kept.end()  # an audit that was killed may have left something there
        there = sum(key in kept for key in wanted)
        try:
            findings = _found(folder, Job(plan, source, kept, extras), wanted, pool, progress)
        finally:
            kept.end()
        result = _judged(folder, plan, source, findings, there)
        _render(result, plan, source, command, _sheets(extras.gallery, findings))
    return result


def estimate_audit(
    plan: Plan | dict[str, Any] | Path | str, *, workers: int = 1, transcripts: bool = False, trust_code: bool = False
) -> Estimate:
    """What `run_audit` would cost on this machine: the data are opened, nothing is trained or written."""
    return estimate(*_opened(plan, Trust(code=trust_code)), workers=workers, transcripts=transcripts)


def attack_again(
    plan: Plan | dict[str, Any] | Path | str, key: str, *, trust_code: bool = False
) -> Callable[[], Guess]:
    """One attack of a plan, to be run in this process, without wall and limits, so that it fails where one can look.

    `key` is that of its finding, or how it begins.
    """
    plan, source = _opened(plan, Trust(code=trust_code))
    found = [(unit, case) for unit, todo in keyed(plan, source) for case, word in todo if word.startswith(key)]
    if len(found) != 1:
        raise BadInput(
            f"{len(found)} findings of this plan have a key that begins with '{key}'; findings.jsonl has the keys"
        )

    def again() -> Guess:
        with steady():
            return Workbench(plan, source, found[0][0]).here(found[0][1])

    return again


def _opened(
    plan: Plan | dict[str, Any] | Path | str, trust: Trust, frames: Mapping[str, pd.DataFrame] | None = None
) -> tuple[Plan, Source]:
    """Open: the plan with its defaults and the tables it speaks of, checked against each other."""
    plan = _plan(plan, trust).filled()
    plan.check_trust(trust)
    source = with_models(open_source(plan.data, plan.seed, frames), plan.protocols, trust=trust)
    log = source.recorded
    plan = plan if log is None else plan.of_recording(log.protocol, KnownDefences.sealed_in(log).names, sent_in(log))
    plan, source = for_its_classes(plan, source)
    check_fit(plan, source)
    return plan, source


def _rough(plan: Plan, source: Source, workers: int) -> Estimate:
    """An estimate that measures this machine only where it could matter to somebody who waits."""
    made = estimate(plan, source, workers=workers, speeds={})
    return made if made.wall_seconds < NOTICED else estimate(plan, source, workers=workers)


def _found(
    folder: Path, job: Job, wanted: list[str], pool: Pool, progress: Callable[[int, int], None]
) -> list[Finding]:
    """Schedule, run, score, store: compute what is not there yet, and write the folder's lines as it comes."""
    earlier = read_findings(folder / LINES)
    if {finding.key for finding in earlier} - {parted(word)[0] for word in wanted}:
        raise BadInput(f"{folder} holds findings of other data or of another version; choose another folder (--out)")
    if job.extras.transcripts is not None and job.source.alignment is not None:
        keep(job.source.alignment, transcript_path(job.extras.transcripts, "alignment"))
    job.store.opened()
    if real(job.store.folder.parent) == real(folder):  # a shared store takes only what it saw computed
        for finding in (one for one in earlier if one.address in wanted):  # of a store that is gone
            job.store.adopt(finding)
    lines = _Lines(folder, job.store, wanted)
    done = 0
    progress(done, len(wanted))

    def tick() -> None:
        nonlocal done
        done += 1
        lines.extend()
        progress(done, len(wanted))

    run_job(job, pieces(job.plan, job.source, pool.workers), pool, tick)
    lines.extend()
    return [job.store.read(key) for key in wanted]


def _judged(folder: Path, plan: Plan, source: Source, findings: list[Finding], there: int) -> Result:
    """Conclude: the verdicts and what the gate says of them, once for all reports."""
    without, places = idle(findings), tuple(idle_places(findings))
    findings = effective(findings)
    conclusion = replace(conclude(findings, gaps(plan), plan.limit), idle=places)
    gate = check_gate(plan)
    return Result(
        folder,
        tuple(findings),
        conclusion,
        (
            *source.notes,
            *_cautions(source),
            *(one.words for one in (*untried(plan), *without)),
            *failures.notes(findings),
        ),
        there,
        None if gate is None else gate.outcome(findings, conclusion),
        _asked(plan, source),
        tuple(without),
    )


def _asked(plan: Plan, source: Source) -> Asked:
    """What reports say of the plan."""
    federation = source.federation
    return Asked(
        parties=() if federation is None else tuple(party.name for party in federation.parties),
        active="" if federation is None else federation.active,
        threats=tuple(threat.threat() for threat in plan.threats),
        matrix=tuple(of_plan(plan)),
        gated=plan.gate is not None,
        sweeps=plan.data.recorded is None,
        dropped=source.dropped,
        matched=source.matched,
        inapplicable=tuple(one.words for one in inapplicable(plan)),
    )


class _Lines:
    """`findings.jsonl` and `costs.jsonl`: always the plan's lines from the first to the last that is there without a gap."""

    def __init__(self, folder: Path, store: Store, wanted: list[str]) -> None:
        self._paths, self._store, self._wanted, self._next = (folder / LINES, folder / COSTS), store, wanted, 0
        for path, content in zip(self._paths, self._ready(), strict=True):
            _mend(path, content)

    def extend(self) -> None:
        """Add what has come. The store has it on the disk already."""
        for path, content in zip(self._paths, self._ready(), strict=True):
            with open_regular(path, append=True) as file:
                file.write(content)

    def _ready(self) -> tuple[bytes, bytes]:
        found = []
        while self._next < len(self._wanted) and self._wanted[self._next] in self._store:
            found.append(self._store.lines(self._wanted[self._next]))
            self._next += 1
        return "".join(line for line, _ in found).encode(), "".join(line for _, line in found).encode()


def _mend(path: Path, content: bytes) -> None:
    """Make a file hold this, in its place, for it may be locked; after a crash its end may be missing or torn."""
    with open_regular(path, append=True) as file:
        here = read_regular(path)
        if not content.startswith(here):
            file.truncate(0)
            here = b""
        file.write(content[len(here) :])


def _check_store(store: Store, folder: Path) -> None:
    """Before anything is made: a store that can be one, and is not the audit's folder itself."""
    if real(store.folder) == real(folder):
        raise BadInput(f"{folder} cannot be both the audit's folder (--out) and the store (--store); name two")
    if real(store.folder.parent) != real(folder):
        store.check()


def _sheets(gallery: Path | None, findings: list[Finding]) -> dict[str, bytes]:
    """The contact sheets that may be shown, by key."""
    if gallery is None:
        return {}
    paths = {
        finding.key: sheet_path(gallery, finding.address) for finding in findings if finding.score.images is not None
    }
    return {name: read_regular(path) for name, path in paths.items() if path.exists()}


def _plan(plan: Plan | dict[str, Any] | Path | str, trust: Trust) -> Plan:
    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, dict):
        return make_plan(plan, trust=trust)
    return read_plan(Path(plan), trust=trust)


def _cautions(source: Source) -> tuple[str, ...]:
    """What could be told before training, where the parties are fixed."""
    if source.federation is None:
        return ()
    return tuple(caution.words for caution in (*precheck(source.federation), *label_stand_ins(source.federation)))


@contextmanager
def _claimed(folder: Path, plan: Plan, trust: Trust) -> Iterator[None]:
    """The folder is this plan's and this process's alone, until the audit is done."""
    _check_folder(folder, plan, trust)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the folder {short(folder)}: {_reason(error)}; choose another (--out)") from error
    with open_regular(folder / LINES, append=True) as lines:
        if not lock(lines):
            raise BadInput(f"another audit is writing to {folder}; wait for it or choose another folder (--out)")
        _check_folder(folder, plan, trust)  # again: somebody may have begun here meanwhile
        kept, text = folder / "plan.yaml", plan.to_yaml(folder)
        if not kept.exists() or read_text(kept) != text:  # a new audit, or another gate
            write_whole(kept, text)
        yield


def _just_begun(path: Path) -> bool:
    """What an audit has made by the time it writes its plan; one that was killed there leaves it."""
    return path.name in ("plan.yaml", ".plan.yaml.part") or (path.name == LINES and path.stat().st_size == 0)


def _check_folder(folder: Path, plan: Plan, trust: Trust) -> None:
    """Refuse a folder that holds something else: nothing of another plan is ever overwritten."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; name a folder (--out)")
    kept = folder / "plan.yaml"
    if kept.exists():
        try:
            same = read_plan(kept, trust=trust).digest == plan.digest
        except BadInput as error:
            raise BadInput(
                f"{folder} holds the audit of another plan, which cannot be read here ({error}); "
                "choose another folder (--out)"
            ) from error
        if not same:
            raise BadInput(f"{folder} holds the audit of another plan; choose another folder (--out)")
    elif folder.exists() and not all(map(_just_begun, folder.iterdir())):
        raise BadInput(f"{folder} is not empty and holds no audit; choose another folder (--out)")


def _render(result: Result, plan: Plan, source: Source, command: str, sheets: dict[str, bytes]) -> None:
    """Render: the report, the assessment, and with which versions they were made."""
    folder, findings = result.folder, result.findings
    surroundings = environment() | {"isolation": failures.isolation(findings)}
    write_whole(folder / "environment.json", json.dumps(surroundings, indent=1) + "\n")
    about = page.About(
        title=f"Privacy audit: {findings[0].data if findings else 'no findings'}",
        question="What does a curious party learn about the columns of the others?",
        plan=plan.to_yaml(folder),
        environment=surroundings,
        notes=result.notes,
        command=command or f"plumbob audit plan.yaml --out {folder.name}",
        sheets=sheets,
        gate=result.gate,
        assessment="assessment.html",
        asked=result.asked,
    )
    text = page.render(findings, about, result.conclusion)
    subject = assessment.subject(plan, source)
    subject = replace(subject, gaps=(*subject.gaps, *(one.words for one in result.idle)))
    write_whole(
        folder / "assessment.html",
        assessment.render(subject, findings, made=surroundings, conclusion=result.conclusion),
    )
    write_whole(folder / "report.html", text, private=bool(sheets) and not source.public)


def environment() -> dict[str, str]:
    """Versions that could change a number."""
    found = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    return found | {"cores": str(os.cpu_count())} | versions()


def save_text(path: Path, text: str) -> None:
    """A text file, whole or not at all; where it cannot be written, one sentence."""
    with _writing(path):
        write_whole(path, text)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A disk that is full or a folder that may not be written becomes one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        place = Path(error.filename) if isinstance(error.filename, str) else folder
        place = folder if real(place).is_relative_to(real(folder)) else place  # of a store elsewhere, say so
        raise BadInput(f"cannot write to {short(place)}: {_reason(error)}; what was found before is kept") from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else type(error).__name__
