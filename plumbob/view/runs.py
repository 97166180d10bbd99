"""The audits under a folder: each as one line of facts, a broken one with what is wrong with it.

A folder counts as an audit when it holds `findings.jsonl`, or what only an audit leaves behind. Nothing is written, no
symbolic link is followed, no file that a plan names is touched, and whatever a file holds, the list is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.idle_defences import effective, idle_places
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import read_plan
from plumbob.auditing.running.expand import attack_cases, cases, gaps, units
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.auditing.running.store import MARK as STORE
from plumbob.errors import BadInput
from plumbob.files import real, users_paths
from plumbob.report.answer import Answer, ColumnAnswer, answers
from plumbob.report.phrases import plain
from plumbob.scoring.column_ceiling import LABEL
from plumbob.scoring.leak_levels import Level, worst

FINDINGS, COSTS, PLAN = "findings.jsonl", "costs.jsonl", "plan.yaml"
REPORT, ASSESSMENT, ENVIRONMENT = "report.html", "assessment.html", "environment.json"
LEFT_BEHIND = (FINDINGS, REPORT, ENVIRONMENT)  # beside a plan, what only an audit leaves
NO_AUDITS = {"transcripts", "pictures", "__pycache__", "node_modules"}
DEEPEST = 12  # folders below the one that is viewed
SLACK = 60 * 10**9  # nanoseconds by which a copied report may seem older than its findings
MOST_GAIN = 1 + 1e-6  # nobody is better than exact
LARGEST = 512 * 2**20  # bytes of findings that are read


@dataclass(frozen=True)
class Run:
    """One audit folder. `path` is relative to the folder that is viewed; `wrong` says what is, if anything."""

    path: str
    data: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    threats: tuple[str, ...] = ()
    defences: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    seed: int | None = None
    date: str = ""  # when the last finding was written, UTC
    findings: int = 0
    expected: int | None = None  # findings that the plan asks for
    columns: int = 0
    leaking: int = 0
    exact: int = 0
    worst_gain: float | None = None
    label: str = ""  # the level of the label, where it is learnt
    verdict: str = ""  # the worst level of any column or the label; empty without findings
    finished: bool = False
    report: bool = False
    wrong: str = ""

    @property
    def progress(self) -> str:
        """Finished, or how far it got."""
        if self.finished:
            return "finished"
        of = f" of {self.expected:,}" if self.expected is not None else ""
        return f"unfinished: {self.findings:,}{of} findings" + ("" if self.report else ", no report yet")

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"name": self.path, "summary": self.wrong or self.progress}


@dataclass(frozen=True)
class Opened:
    """A run with what it was read from, for the page that compares two."""

    run: Run
    plan: Plan | None = None
    answers: tuple[Answer, ...] = ()
    columns: dict[str, ColumnAnswer] = field(default_factory=dict)  # every column at its worst, and the label if learnt


class Runs:
    """The audits under one folder. What did not change since it was last read is not read again."""

    def __init__(self, root: Path) -> None:
        with users_paths():
            there = root.is_dir()
        if not there:
            raise BadInput(f"expected a folder with audits, got '{root}', which is {_kind(root)}")
        self.root = root.resolve()
        self._read: dict[str, tuple[tuple[tuple[int, int], ...], Opened]] = {}

    def all(self) -> list[Run]:
        """Every audit, the newest first."""
        found = [self.open(path).run for path in folders(self.root)]
        return sorted(found, key=lambda run: (run.date, run.path), reverse=True)

    def open(self, path: str) -> Opened:
        """One audit of the list, by its path."""
        folder = self.root / path
        stamp = tuple(_stamp(folder / name) for name in (FINDINGS, COSTS, PLAN, REPORT))
        kept = self._read.get(path)
        if kept is None or kept[0] != stamp:
            kept = (stamp, _opened(folder, path))
            self._read[path] = kept
        return kept[1]

    def find(self, path: str) -> Opened | None:
        """The same for a path that came from outside: only if it is on the list."""
        return self.open(path) if path in set(folders(self.root)) else None

    def file(self, path: str, name: str) -> Path | None:
        """A file of an audit on the list, if it really lies in its folder: a link that leads elsewhere is refused."""
        if path not in set(folders(self.root)):
            return None
        place = self.root / path / name
        inside = real(place).is_relative_to(self.root) and not place.is_symlink()
        return place if inside and place.is_file() else None


def folders(root: Path) -> Iterator[str]:
    """Paths of audit folders, relative to the root; the root itself is `.`."""
    for folder, below, files in os.walk(root, followlinks=False, onerror=None):
        depth = len(Path(folder).relative_to(root).parts)
        below[:] = sorted(n for n in below if depth < DEEPEST and not n.startswith(".") and n not in NO_AUDITS)
        if STORE in files:
            below[:] = []  # findings by key, of which the audit's own lines tell
        if FINDINGS in files or (PLAN in files and any(name in files for name in LEFT_BEHIND)):
            yield Path(folder).relative_to(root).as_posix()


def _kind(path: Path) -> str:
    return "a file" if path.exists() else "not there"


def _stamp(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:
        return (0, 0)
    return state.st_mtime_ns, state.st_size


def _opened(folder: Path, path: str) -> Opened:
    """Read one folder; whatever it holds becomes a line of the list."""
    wrong = []
    plan, findings = None, []
    try:
        if (folder / PLAN).is_symlink():
            raise BadInput("it is a link, and links are not followed")
        plan = read_plan(folder / PLAN, look=False) if (folder / PLAN).is_file() else None
        wrong += [] if plan is not None else [f"no {PLAN}"]
    except BadInput as error:
        wrong.append(f"{PLAN}: {_sentence(error, folder)}")
    try:
        findings = _findings(folder / FINDINGS)
        wrong += [] if findings else ["no finding yet"]
    except BadInput as error:
        wrong.append(_sentence(error, folder))
    except (OSError, ValueError, RecursionError) as error:
        wrong.append(f"{FINDINGS} cannot be read ({type(error).__name__})")
    try:
        return _summed(folder, path, plan, findings, wrong)
    except Exception as error:  # files of any content are read here: one of them must not hide the others
        said = [*wrong, f"its findings make no sense ({type(error).__name__})"]
        return Opened(Run(path=path, date=_date(folder), report=_has_report(folder), wrong="; ".join(said)), plan)


def _findings(path: Path) -> list[Finding]:
    if not os.path.lexists(path):
        raise BadInput(f"no {FINDINGS}")
    for place in (path, path.with_name(COSTS)):
        _checked(place)
    return read_findings(path)


def _checked(place: Path) -> None:
    """Only an ordinary file of some size is read: a pipe would never end, a link may lead anywhere."""
    if place.is_symlink():
        raise BadInput(f"{place.name} is a link, and links are not followed")
    if place.exists() and not place.is_file():
        raise BadInput(f"{place.name} is no file")
    if place.exists() and place.stat().st_size > LARGEST:
        raise BadInput(f"{place.name} is larger than {LARGEST // 2**20:,} MB")


def _summed(folder: Path, path: str, plan: Plan | None, findings: list[Finding], wrong: list[str]) -> Opened:
    changed = effective(findings)
    concluded = conclude(changed) if plan is None else conclude(changed, gaps(plan), plan.limit)
    found = tuple(answers(replace(concluded, idle=tuple(idle_places(findings)))))
    computed, findings = findings, attacked(changed)
    columns: dict[str, ColumnAnswer] = {}
    told = [one for answer in found for one in (*answer.columns, *([answer.label] if answer.label else []))]
    for column in told:
        kept = columns.get(column.verdict.column)
        if kept is None or column.severity > kept.severity:
            columns[column.verdict.column] = column
    if not all(column.verdict.gain <= MOST_GAIN for column in columns.values()):
        raise ValueError("a gain above 100 %")
    judged = [column for name, column in columns.items() if name != LABEL]
    label = columns[LABEL].level if LABEL in columns else ""
    asked = cases if len(computed) > len(findings) else attack_cases  # audits of earlier versions hold no ceilings
    expected = None if plan is None else sum(len(asked(plan, unit)) for unit in units(plan))
    report = _has_report(folder)
    # The report is written last. Copies lose the order of times, and another version may ask the same plan for more.
    late = _stamp(folder / REPORT)[0] >= _stamp(folder / FINDINGS)[0] - SLACK
    done = bool(findings) and (late or (expected is not None and len(computed) >= expected))
    run = Run(
        path=path,
        data=_distinct(f.data for f in findings),
        protocols=_distinct(f.protocol for f in findings) or _titles(plan, "protocols"),
        threats=_distinct(f.threat for f in findings) or _titles(plan, "threats"),
        defences=_distinct(f.defence for f in findings) or _titles(plan, "defences"),
        attacks=_distinct(f.attack for f in findings),
        seed=plan.seed if plan is not None else findings[0].seed if findings else None,
        date=_date(folder),
        findings=len(computed),
        expected=expected,
        columns=len(judged),
        leaking=sum(column.level.leaks for column in judged),
        exact=sum(column.level is Level.EXACT for column in judged),
        worst_gain=max((column.verdict.gain for column in judged), default=None),
        label=label,
        verdict=worst(column.level for column in columns.values()) if columns else "",
        finished=done and report and not wrong,
        report=report,
        wrong="; ".join(wrong),
    )
    return Opened(run, plan, found, columns)


def _distinct(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _titles(plan: Plan | None, part: str) -> tuple[str, ...]:
    """What a plan names, where nothing was found yet."""
    chosen = () if plan is None else getattr(plan, part)
    return tuple(getattr(one, "title", one.name) for one in chosen)


def _has_report(folder: Path) -> bool:
    report = folder / REPORT
    return report.is_file() and not report.is_symlink()


def _date(folder: Path) -> str:
    """When the findings were last written; of a folder without them, when the folder was."""
    place = folder / FINDINGS
    seconds = (_stamp(place)[0] or _stamp(folder)[0]) / 1e9
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _sentence(error: BadInput, folder: Path) -> str:
    """What is wrong, without folders of this machine."""
    return plain(" ".join(str(error).replace(f"{folder}{os.sep}", "").split()))
