"""What one worker does with a piece of the schedule: claim, compute and keep one finding at a time.

Workers that see the store write to it. Those that do not send findings and files back to the command that sent the piece.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from plumbob.attacks import Guess
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import Case, Unit
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.isolation import attacker
from plumbob.auditing.running.isolation.limits import Allowance
from plumbob.auditing.running.open_data import Source
from plumbob.auditing.running.run import Workbench, steady
from plumbob.auditing.running.schedule import Piece
from plumbob.auditing.running.store import Store
from plumbob.files import private_folder
from plumbob.threats import View
from plumbob.transcript import Transcript

Draw = Callable[[Path, str, Transcript, View, Guess], None]
Tick = Callable[[], None]


@dataclass(frozen=True)
class Extras:
    """Files that are wanted beside the findings: transcripts, and pictures by a function that draws them."""

    transcripts: Path | None = None
    gallery: Path | None = None
    draw: Draw | None = None

    def at(self, folder: Path) -> Extras:
        """The same, in another folder."""
        return replace(
            self,
            transcripts=self.transcripts and folder / "transcripts",
            gallery=self.gallery and folder / "pictures",
        )

    def transcript(self, unit: Unit, case: Case) -> Path | None:
        """Where the transcript of a case goes, if it is wanted."""
        if self.transcripts is None:
            return None
        share = "parties" if case.unknown is None else f"{case.unknown:g}"
        name = f"{unit.protocol.title}-{share}-{case.defence.title}-{unit.trial}"
        name += f"-{case.title}" if case.sent else ""  # where the attack's party does not follow the protocol
        return transcript_path(self.transcripts, name)

    def show(self, name: str, log: Transcript, view: View, guess: Guess) -> None:
        """Draw the picture of a finding that has one."""
        if self.gallery is not None and self.draw is not None:
            self.draw(self.gallery, name, log, view, guess)


@dataclass(frozen=True)
class Job:
    """All that a worker needs, whatever its piece."""

    plan: Plan
    source: Source
    store: Store
    extras: Extras = field(default_factory=Extras)
    mark: str = ""  # of the store, where it was opened: a worker that sees another there leaves the work
    workers: int = 1  # that share a machine; 0: one for each of its cores

    @property
    def allowance(self) -> Allowance:
        return Allowance(self.plan.attack_seconds, self.plan.attack_memory_mb, self.workers)

    def done(self, unit: Unit, case: Case, key: str) -> bool:
        """Whether the finding and every file that is wanted with it are there."""
        return key in self.store and self._drawn(key) and self._kept(unit, case)

    def _kept(self, unit: Unit, case: Case) -> bool:
        path = self.extras.transcript(unit, case)
        return path is None or path.exists()

    def _drawn(self, key: str) -> bool:
        gallery = self.extras.gallery
        if gallery is None or (gallery / f"{key}.png").exists():
            return True
        return self.store.read(key).score.images is None

    def make(self, bench: Workbench, case: Case, key: str) -> Finding | None:
        """The finding and its files; no finding where only its transcript is missing."""
        path = self.extras.transcript(bench.unit, case)
        if path is not None:
            keep(bench.log(case), path)
        if key in self.store and self._drawn(key):
            return None
        return bench.finding(case, key, self.extras.show, self.allowance)


def transcript_path(folder: Path, name: str) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9_.=-]+', '_', name)}.zip"


def keep(log: Transcript, path: Path) -> None:
    """Save a transcript, unless it is there."""
    private_folder(path.parent)
    if not path.exists():
        log.save(path)


class _Process(threading.local):
    """What a worker keeps from one piece for the next: the models of the unit it works on."""

    home = ""
    bench: Workbench | None = None

    def workbench(self, job: Job, piece: Piece) -> Workbench:
        if self.bench is None or self.home != piece.home:
            self.home, self.bench = piece.home, Workbench(job.plan, job.source, piece.unit)
        return self.bench


_process = _Process()


def forget() -> None:
    """Let go of the last unit's tables, models and transcript, and end the process that attacks ran in."""
    _process.home, _process.bench = "", None
    attacker.close()


_turn = threading.Lock()  # torch's generator and thread counts belong to the process: one piece at a time in each


def work(job: Job, piece: Piece, polite: bool, tick: Tick = lambda: None) -> list[str]:
    """Compute what is not done; returns the keys that are done now. A polite worker leaves a piece that another is at."""
    handled: list[str] = []
    if job.mark and job.store.mark != job.mark:
        return handled
    attacker.warm()  # it loads libraries while the first model is trained
    with _turn, steady():
        for case, key in piece.todo:
            with job.store.claim(key) as mine:
                if not mine and polite:
                    return handled
                if not mine:
                    continue
                if not job.done(piece.unit, case, key):
                    finding = job.make(_process.workbench(job, piece), case, key)
                    if finding is not None:
                        job.store.put(finding)
            handled.append(key)
            tick()
    return handled


@dataclass(frozen=True)
class Parcel:
    """What a worker that does not see the store sends back."""

    findings: tuple[Finding, ...]
    files: dict[str, bytes]


def work_apart(job: Job, piece: Piece) -> Parcel:
    """Compute every case of a piece without looking at the store: whoever sends it here has claimed it."""
    attacker.warm()
    with tempfile.TemporaryDirectory() as folder, _turn, steady():
        nowhere = replace(job, store=Store(Path(folder) / "none"), extras=job.extras.at(Path(folder)))
        bench = _process.workbench(job, piece)
        made = [nowhere.make(bench, case, key) for case, key in piece.todo]
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return Parcel(tuple(finding for finding in made if finding is not None), files)
