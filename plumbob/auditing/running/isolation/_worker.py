"""The program that attacks run in: `python -I _worker.py SOCKET STARTER FOLDER`, with an empty environment.

    the audit -> watcher -> waiter, the first process of its namespaces -> one fork for each attack
                               -> its twin, with large libraries -> one fork for each attack that needs them

The watcher ends with the audit, and all others with it. A waiter loads libraries once, and never reads a view or imports what
is not Plumbob's or a library. Each attack is a fork that reads its view from a pipe of its own, gives up what it could
reach, and only then imports and runs the attack. It answers through another pipe, so no attack meets the messages of another.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

IDLE = 600  # seconds without an attack after which the process ends; the audit then starts another
NEEDS = (
    "torch",
    "torch._dynamo",
    "sklearn",
    "pandas",
    "opacus",
    "xgboost",
)  # libraries that are dear to load and to fork
_DIES_WITH_PARENT = 1
_BROKEN = 70  # exit code where the wall itself could not be built


def main() -> None:
    """The watcher: makes the namespaces, starts the waiter in them, and ends it when the audit ends."""
    control, starter, folder = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3])
    sys.path.insert(0, str(Path(__file__).parents[4]))
    from plumbob.auditing.running.isolation import _walls

    missing = []
    try:
        _walls.enter_namespaces()
    except OSError:
        missing.append(_walls.NAMESPACES)
    own = folder / f"plumbob-attack-{os.getpid()}-{os.urandom(6).hex()}"
    try:
        own.mkdir(mode=0o700)
        os.chdir(own)  # empty, and there until the end: a library that is computing may look for it
    except OSError:
        os.chdir("/")
    tempfile.tempdir = str(Path.cwd())
    waiter = os.fork()
    if waiter == 0:
        _die_with_parent()
        try:
            Waiter(control, missing).serve()
        finally:
            os._exit(0)
    control.close()
    _watch(waiter, starter)
    os.chdir("/")
    shutil.rmtree(own, ignore_errors=True)


def _die_with_parent() -> None:
    """Where the system can: a killed parent leaves no child behind."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)


def _watch(waiter: int, starter: int) -> None:
    """Until the waiter or the audit has ended."""
    with suppress(AttributeError, OSError):
        ends = select.poll()
        for process in (waiter, starter):
            ends.register(os.pidfd_open(process), select.POLLIN)
        if os.getppid() == starter:
            ends.poll()
        with suppress(ProcessLookupError):
            os.kill(waiter, signal.SIGKILL)
    os.waitpid(waiter, 0)


class Waiter:
    """Waits for attacks, forks for each, and says how it ended."""

    def __init__(self, control: socket.socket, missing: list[str]) -> None:
        from plumbob.auditing.running.isolation import _walls

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.control, self.missing, self.alone = control, missing, not missing
        self.tried: set[str] = set()
        self.twin: int | None = None
        self._load(["plumbob.auditing.running.isolation.messages"])
        sys.path[:] = self._order()[0]["path"]
        self.readable = _walls.readable()
        self.missing += _walls.lacking()
        self._say({"missing": self.missing})

    def serve(self) -> None:
        """One attack after the other, until the audit closes its end."""
        while self._called():
            order, files = self._order()
            if "twin" in order:
                self._fork_twin(files[0])
                continue
            self._load(order["modules"])
            attack = os.fork()
            if attack == 0:
                self._attack(order, *files)
            for pipe in files:
                os.close(pipe)
            self._say(self._outlast(attack, order["seconds"]))

    def _called(self) -> bool:
        """Whether the audit has something to say; not if it is silent for long, unless a twin is at work."""
        waiting = select.poll()
        waiting.register(self.control, select.POLLIN)
        while not waiting.poll(IDLE * 1000):
            if self.twin is None or os.waitpid(self.twin, os.WNOHANG)[0]:
                return False
        return True

    def _fork_twin(self, control: int) -> None:
        """Another waiter, for attacks that need large libraries; it speaks with the audit by itself."""
        self.twin = os.fork()
        if self.twin:
            os.close(control)
            return
        _die_with_parent()
        self.control.close()
        self.control, self.twin = socket.socket(fileno=control), None

    def _load(self, modules: Sequence[str]) -> None:
        """Libraries, once for all attacks that follow."""
        gc.disable()  # nearly all that they make stays
        for name in modules:
            self.tried.add(name)
            with suppress(Exception):  # what cannot be loaded here cannot be loaded by the attack: it will say so
                importlib.import_module(name)
        gc.enable()
        if modules:
            gc.collect()
            gc.freeze()  # looking for garbage in a fork would copy every page that it shares

    def _order(self) -> tuple[dict[str, Any], list[int]]:
        """A line of JSON from the audit, and the pipes that come with it. Without one, the audit is over."""
        text, pipes, _, _ = socket.recv_fds(self.control, 2**16, 2)
        while text and not text.endswith(b"\n"):
            more = self.control.recv(2**16)
            text = text + more if more else b""
        if not text:
            self._end()
        return json.loads(text), pipes

    def _end(self) -> NoReturn:
        """The audit is over. The twin is waited for, so that its time counts as the audit's."""
        if self.twin is not None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.twin, signal.SIGKILL)
                os.waitpid(self.twin, 0)
        os._exit(0)

    def _say(self, words: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.control.sendall(json.dumps(words).encode() + b"\n")

    def _outlast(self, attack: int, seconds: float) -> dict[str, Any]:
        """How an attack ended, at the latest after so many seconds."""
        deadline, late = time.monotonic() + seconds, False
        ends = select.poll()
        ends.register(self.control, select.POLLIN)
        pidfd = os.pidfd_open(attack) if hasattr(os, "pidfd_open") else None
        if pidfd is not None:
            ends.register(pidfd, select.POLLIN)
        ended, status, usage = os.wait4(attack, os.WNOHANG)
        while not ended:
            left = max(0.0, deadline - time.monotonic())
            ready = ends.poll(1000 * (min(left, 3600.0) if pidfd is not None else min(left, 0.02)))
            late = time.monotonic() >= deadline
            if late or any(file == self.control.fileno() for file, _ in ready):  # out of time, or the audit is over
                os.kill(attack, signal.SIGKILL)
                ended, status, usage = os.wait4(attack, 0)
            else:
                ended, status, usage = os.wait4(attack, os.WNOHANG)
        self._clear(attack)
        if pidfd is not None:
            os.close(pidfd)
        code = os.waitstatus_to_exitcode(status)
        return {"late": late, "code": code, "peak": usage.ru_maxrss}

    def _clear(self, attack: int) -> None:
        """Nothing that an attack started outlives it. Where calls are filtered it cannot start anything."""
        alone = self.alone and os.getpid() == 1 and self.twin is None
        with suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL) if alone else os.killpg(attack, signal.SIGKILL)
        with suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                self.twin = None if ended == self.twin else self.twin

    def _attack(self, order: Mapping[str, Any], reading: int, writing: int) -> NoReturn:
        """In the fork: read the view, close everything, run the attack, answer."""
        from plumbob.auditing.running.isolation import messages

        code = _BROKEN
        try:
            os.setsid()
            _die_with_parent()
            _close_but(reading, writing)
            head, arrays = messages.unpacked(lambda buffer: _read(reading, buffer), 2**63)
            os.close(reading)
            self._confine(head["packages"], order["memory_mb"])
            for part in messages.packed(*_answer(head, arrays)):
                write(writing, part)
            code = 0
        finally:
            os._exit(code)

    def _confine(self, packages: Mapping[str, Sequence[str]], megabytes: float) -> None:
        """What the attack could reach is out of reach from here on; a part that should be there and fails ends the process."""
        from plumbob.auditing.running.isolation import _walls

        sys.dont_write_bytecode = True
        sys.meta_path.insert(0, _Needed(frozenset(NEEDS) - self.tried))
        if packages:
            sys.meta_path.insert(0, _Granted(packages))
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(
                "800", encoding="ascii"
            )  # if memory runs out, this and not the audit
        _walls.limit_memory(megabytes)
        if _walls.LINUX:
            _walls.give_up_privileges()
        if _walls.LANDLOCK not in self.missing:
            _walls.close_files(
                [*self.readable, os.path.realpath("/proc/self")], [path for one in packages.values() for path in one]
            )
        if _walls.SYSTEM_CALLS not in self.missing:
            _walls.close_system_calls()


def _close_but(*kept: int) -> None:
    """Every file but these and the three that lead nowhere."""
    start = 3
    for file in sorted(kept):
        os.closerange(start, file)
        start = file + 1
    os.closerange(start, max(start, 65_536))


def _read(pipe: int, buffer: memoryview) -> None:
    while len(buffer):
        count = os.readv(pipe, [buffer])
        if not count:
            raise EOFError
        buffer = buffer[count:]


def write(pipe: int, part: memoryview | bytes) -> None:
    while len(part):
        part = part[os.write(pipe, part) :]


class _Needs(BaseException):
    """A library that is dear to load: the waiter shall load it, once, and this attack begins anew."""


class _Needed:
    """Finds no module: stops where a dear library would be loaded in a fork, to be loaded again in the next."""

    def __init__(self, dear: frozenset[str]) -> None:
        self._dear = dear

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self._dear:
            raise _Needs(name)
        return None


class _Granted:
    """Finds packages that are not installed where the audit found them: their folders cannot be searched from here."""

    def __init__(self, packages: Mapping[str, Sequence[str]]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        places = self._packages.get(name)
        if not places:
            return None
        start = Path(places[0]) / "__init__.py"
        if not Path(places[0]).is_dir():
            return importlib.util.spec_from_file_location(name, places[0])
        if start.is_file():
            return importlib.util.spec_from_file_location(name, start, submodule_search_locations=list(places))
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = list(places)
        return spec


def _answer(head: Mapping[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the attack: its guess, or how it failed, in words that hold no cell of the view."""
    import numpy as np

    from plumbob.attacks.base import Guess
    from plumbob.auditing.running.isolation import messages
    from plumbob.errors import BadInput, Unfit
    from plumbob.identity import tupled
    from plumbob.threats import View
    from plumbob.trust import Trust

    before, started = set(sys.modules), time.perf_counter()

    def told(outcome: str, **words: Any) -> dict[str, Any]:
        loaded = [name for name in sys.modules if name not in before]
        return {"outcome": outcome, "seconds": time.perf_counter() - started, "loaded": loaded, **words}

    try:
        view = View.of_parts(Path("the view"), head["view"], arrays, Trust(head["trust"]))
        module, name = head["attack"]
        kind = getattr(importlib.import_module(module), name)
        rng = np.random.default_rng(np.frombuffer(bytes.fromhex(head["seed"]), dtype=np.uint32))
        started = time.perf_counter()
        settings = {key: tupled(value) for key, value in head["settings"].items()}
        guess = kind(**settings).run(view, rng)
        if not isinstance(guess, Guess):
            return told("no guess"), {}
        words, found = messages.packed_guess(guess)
        return told("guess", guess=words), found
    except _Needs as need:
        return told("needs", module=str(need)), {}
    except Unfit as error:
        return told("unfit", why=str(error)), {}
    except MemoryError:
        return told("memory"), {}
    except BaseException as error:
        if "DefaultCPUAllocator" in str(error):  # torch's way to say that memory ran out
            return told("memory"), {}
        why = str(error) if isinstance(error, BadInput) else ""
        return told("raised", why=why, type=type(error).__name__, place=_place(error, head["attack"][0])), {}


def _place(error: BaseException, module: str) -> str:
    """File and line of the last frame in the attack's own package."""
    top = module.partition(".")[0]
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] == top and ".isolation." not in name:
            place = f"{name.replace('.', '/')}.py:{line}"
    return place


if __name__ == "__main__":
    main()
