"""The store: one file per finding, named by its key, and a claim on whatever is being computed.

A file is written beside its place and moved there, so a kill leaves all of it or nothing. A claim is a lock of the operating
system (flock): it ends with the process that holds it, however that ends, so nothing has to be cleaned up after a crash.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plumbob import os_specific as platform_only
from plumbob.auditing.running.finding import BROKEN, Finding, lost_cost, parted, read_cost, reason
from plumbob.errors import BadInput
from plumbob.files import open_regular, parse_json, read_text, write_whole

MARK = "store.json"  # makes a folder a store
LARGEST = 64 * 2**20  # bytes of one finding
FORMAT = 2  # 1 kept findings by their key alone


@dataclass(frozen=True)
class Store:
    """Findings of any number of plans, shared by any number of processes that see the folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "store").opened()
    ...     with store.claim("a key") as first, store.claim("a key") as second:
    ...         first, second, "a key" in store
    (True, False, False)
    """

    folder: Path

    def check(self) -> None:
        """Refuse a folder that holds something else, before anything is made."""
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"{self.folder} is a file; a store is a folder (--store)")
        if self.folder.is_dir() and any(not path.name.startswith(".") for path in self.folder.iterdir()):
            try:
                found = int(parse_json(read_text(self.folder / MARK, most=LARGEST))["format"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise BadInput(f"{self.folder} is not empty and not a store; choose another (--store)") from error
            if found != FORMAT:
                raise BadInput(
                    f"{self.folder} is a store of format {found}, and this version of Plumbob reads format {FORMAT}; "
                    "choose another folder (--store, or --out where the store lies in it)"
                )

    def opened(self) -> Store:
        """The store, made if it was not there."""
        self.check()
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{uuid.uuid4().hex}.part"
        if not (self.folder / MARK).exists():
            try:
                part.write_text(json.dumps({"format": FORMAT, "id": uuid.uuid4().hex}) + "\n", encoding="utf-8")
                os.link(part, self.folder / MARK)
            except FileExistsError:
                pass  # another command was faster; it is the same store
            finally:
                part.unlink(missing_ok=True)
        for name in ("findings", "costs", "claims"):
            (self.folder / name).mkdir(exist_ok=True)
        return self

    @property
    def mark(self) -> str:
        """What only this store's folder holds, or nothing where it cannot be seen."""
        try:
            return read_text(self.folder / MARK, most=LARGEST)
        except OSError:
            return ""

    def __contains__(self, key: str) -> bool:
        return self._finding(key).exists()

    def lines(self, key: str) -> tuple[str, str]:
        """A finding and its cost as they were written, once it is known that they are whole; a cost that was lost is 0."""
        return self._opened(key)[:2]

    def read(self, key: str) -> Finding:
        """One finding, with its cost."""
        return self._opened(key)[2]

    def _opened(self, key: str) -> tuple[str, str, Finding]:
        """The two lines as they were written, and what they say."""
        found = ""
        try:
            found, cost = read_text(self._finding(key), most=LARGEST), f"{lost_cost(*parted(key))}\n"
            with suppress(FileNotFoundError):
                cost = read_text(self._cost(key), most=LARGEST)
            finding = Finding.from_line(found, read_cost(cost))
        except BROKEN as error:
            why = reason(found) if found else "not a finding"
            raise BadInput(f"{self._finding(key)}: {why}; remove the file and run again") from error
        if finding.address != key:
            raise BadInput(f"{self._finding(key)}: holds the finding of another key; remove the file and run again")
        return found, cost, finding

    def put(self, finding: Finding) -> None:
        """Keep a finding that was computed under a claim; when this returns it is on the disk. One that is there stays."""
        if finding.address in self:
            return
        self._write(finding)
        with open_regular(self.folder / "written", append=True) as log:  # one write at the end of the file: never torn
            log.write(f"{finding.address}\n".encode())

    def adopt(self, finding: Finding) -> None:
        """Keep a finding that was computed elsewhere, unless it is there or somebody is at it."""
        if finding.address not in self:
            with self.claim(finding.address) as mine:
                if mine and finding.address not in self:
                    self._write(finding)

    def _write(self, finding: Finding) -> None:
        """The cost first: a finding that is there has one."""
        write_whole(self._cost(finding.address), finding.cost_line() + "\n", durable=True)
        write_whole(self._finding(finding.address), finding.found_line() + "\n", durable=True)

    @contextmanager
    def claim(self, key: str, *, wait: bool = False) -> Iterator[bool]:
        """Whether this caller alone may compute the finding now: not while another thread or process is at it."""
        path = self.folder / "claims" / key
        lock = _locked(path, wait)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                path.unlink(missing_ok=True)  # while it is locked, so that nobody else can have locked the same file
                os.close(lock)

    def wait(self, key: str) -> None:
        """Return when nobody computes the finding any more, be it done or its worker dead."""
        with self.claim(key, wait=True):
            pass

    def written(self) -> list[str]:
        """The key of every finding that was computed, in the order of time; one that was computed twice is listed twice."""
        log = self.folder / "written"
        return read_text(log).splitlines() if log.exists() else []

    def _finding(self, key: str) -> Path:
        return self.folder / "findings" / f"{key}.json"

    def _cost(self, key: str) -> Path:
        return self.folder / "costs" / f"{key}.json"


def _locked(path: Path, wait: bool) -> int | None:
    """The file, made and locked; None if another has it. A file that its holder removed meanwhile does not count."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        try:
            if not platform_only.lock(lock, wait=wait):
                os.close(lock)
                return None
            if _same(lock, path):
                return lock
            os.close(lock)
        except BaseException:
            os.close(lock)
            raise


def _same(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
