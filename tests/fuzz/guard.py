"""What happens to one case: accepted, refused in one sentence, or a failure with its reason.

A reader of files may return or raise BadInput with one sentence. Another exception, more than 5 seconds, more than 1 GB of
memory, a write outside of the case's folder, a process or a connection is a failure. Python's own audit events tell of the last.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from plumbob import memory
from plumbob.errors import BadInput
from tests.fuzz.special import Content, put

SECONDS = 5.0
GROWTH = 2**30  # bytes of memory above what the process had before the first case
LONGEST = 3_000  # characters of a sentence
CHANGES = (
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.utime",
)
PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "socket.bind")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Files = Mapping[str, Content]


class Hang(BaseException):
    """The time is up; no library on the way may answer it."""


@dataclass(frozen=True)
class Outcome:
    """`failure` is empty where the case passed; `sentence` is what a refusal said."""

    seconds: float
    sentence: str = ""
    failure: str = ""


class _Watch:
    """What the audit hook saw; a hook cannot be taken away, so it is there once and switched."""

    folder: str = ""
    seen: list[str] = []
    hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _Watch.folder:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, str | bytes | os.PathLike) and flags & WRITING:
            _check(event, path)
    elif event in CHANGES:
        for path in arguments[:2]:
            if isinstance(path, str | bytes | os.PathLike):
                _check(event, path)
    elif event in PROGRAMS:
        _Watch.seen.append(event)


def _check(event: str, path: str | bytes | os.PathLike[str]) -> None:
    place = os.path.realpath(os.fsdecode(path))
    if place != os.devnull and not place.startswith(_Watch.folder + os.sep):
        _Watch.seen.append(f"{event} of {place}")


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Whatever is written outside of the folder meanwhile, and every process and connection that is started."""
    if not _Watch.hooked:
        sys.addaudithook(_hook)
        _Watch.hooked = True
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # imports on the way write none
    _Watch.seen, _Watch.folder = [], os.path.realpath(folder)
    try:
        yield _Watch.seen
    finally:
        _Watch.folder, sys.dont_write_bytecode = "", bytecode


def _late(number: int, frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def timed(seconds: float) -> Iterator[None]:
    """Hang after so many seconds."""
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak() -> int:
    """The most bytes of memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def memory_of_a_case() -> Iterator[None]:
    """As much as a case may take is free: a bomb is refused on a machine of any size."""
    before = os.environ.get(memory.VARIABLE)
    os.environ[memory.VARIABLE] = str(GROWTH // 2**20)
    try:
        yield
    finally:
        os.environ.pop(memory.VARIABLE)
        if before is not None:
            os.environ[memory.VARIABLE] = before


def judged(read: Callable[[Path], object], folder: Path, files: Files, start: int) -> Outcome:
    """Put the files into the folder, read them, and say what came of it. `start` is the memory before the first case."""
    for name, data in files.items():
        put(folder / name, data)
    began, sentence, failure = time.perf_counter(), "", ""
    with warnings.catch_warnings(), memory_of_a_case(), watched(folder) as seen:
        warnings.simplefilter("ignore")
        try:
            with timed(SECONDS):
                read(folder)
        except BadInput as error:
            sentence = str(error)
            failure = wrong_sentence(sentence)
        except Hang:
            failure = f"more than {SECONDS:g} seconds"
        except (Exception, SystemExit) as error:
            failure = f"{type(error).__name__}: {str(error)[:200]!r} {_place(error)}"
    seconds = time.perf_counter() - began
    if not failure and seen:
        failure = f"outside of its folder: {seen[0]}"
    if not failure and peak() - start > GROWTH:
        failure = f"memory grew by {(peak() - start) / 1e6:,.0f} MB"
    return Outcome(seconds, sentence, failure)


def wrong_sentence(text: str) -> str:
    """Why a refusal is not one readable sentence; empty if it is."""
    steering = [char for char in text if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
    if steering:
        return f"a refusal with the character {steering[0]!r}: {text[:200]!r}"
    if not text.strip() or len(text) > LONGEST:
        return f"a refusal of {len(text):,} characters: {text[:200]!r}"
    return ""


def _place(error: BaseException) -> str:
    """The last of our own lines on the way, which tells failures apart."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}plumbob{os.sep}" in frame.filename] or frames[-1:]
    return f"in {Path(ours[-1].filename).name}, line {ours[-1].lineno}"
