"""Commands of Plumbob in processes of their own, whose imports are paid once.

A server process imports what audits need and forks for every command. So a command has a process, streams, exit code, folder and
surroundings of its own, and begins where `python -m plumbob` would be three seconds later.

The same server forks the process for attacks that need large libraries, a second and a half later than it would be there: it
enters its own namespaces as usual, and has loaded before what it would load now. tests/auditing/test_wall.py and audits with
several workers start it as users do.
"""

from __future__ import annotations

import atexit
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from plumbob.auditing.running import execution_engines, work
from plumbob.auditing.running.isolation import _worker, attacker

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.imported"])
COLD, WARM, FORGET = attacker._Attacker._twin, attacker.warm, execution_engines.forget  # how users have it
PATIENCE = 200.0  # seconds for a command, on a machine that others use as well


@dataclass(frozen=True)
class Spent:
    """What a command took: processor seconds, and the most memory it ever had, that of its imports included."""

    seconds: float
    peak_mb: float


class Running:
    """`plumbob WORDS`, begun: the leader of a process group of its own. Its input is empty unless it is told what to read."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        read: str = os.devnull,  # a path, such as that of a terminal
        write: str = "",  # a path for what it prints, such as that of a pipe; otherwise `result` has it
    ) -> None:
        self._words, self._folder = words, TemporaryDirectory()
        self._out, self._err = Path(self._folder.name, "out"), Path(self._folder.name, "err")
        streams = (read, write or str(self._out), str(self._err))
        surroundings = dict(os.environ if env is None else env)
        self._process = _FORKS.Process(target=_run, args=(words, cwd, surroundings, streams))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def until(self, seen: Callable[[], bool], timeout: float = PATIENCE) -> bool:
        """Wait until something is seen, or the command has ended; whether it was seen."""
        deadline = time.monotonic() + timeout
        while not (there := seen()) and self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return there

    def poll(self) -> int | None:
        """Its exit code, once it has one: a signal's number with a minus, as `subprocess.Popen` says it."""
        return self._process.exitcode

    def wait(self, timeout: float = PATIENCE) -> int:
        return self.result(timeout).returncode

    def result(self, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """How it ended and what it printed."""
        self._process.join(timeout)
        with self._folder:
            if (code := self.poll()) is None:
                self.kill()
                raise subprocess.TimeoutExpired(self._words, timeout)
            texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (self._out, self._err)]
            told = self._err.with_name("spent")
            self.spent = Spent(*map(float, told.read_text(encoding="ascii").split())) if told.exists() else Spent(0, 0)
        return subprocess.CompletedProcess(self._words, code, *texts)

    def kill(self) -> None:
        """End it and its workers."""
        for end in (os.killpg, os.kill):  # it may not have become the leader of a group yet
            with suppress(ProcessLookupError):
                end(self.pid, signal.SIGKILL)
        self._process.join()


def plumbob(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """`plumbob WORDS`, from its beginning to its end."""
    return Running(*words, cwd=cwd, env=env).result(timeout)


def measured(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = PATIENCE
) -> tuple[subprocess.CompletedProcess[str], Spent]:
    """The same of a command without workers, and what it took."""
    running = Running(*words, cwd=cwd, env=env)
    return running.result(timeout), running.spent


def warm_attackers() -> None:
    """From here on, audits of this process have attacks that need large libraries in forks of the server.

    And an audit leaves the process of its attacks to the next, unless that would start it otherwise.
    """

    def twin(asking: attacker._Attacker) -> attacker._Waiter:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            arguments = (theirs, os.getpid(), tempfile.gettempdir())
            _FORKS.Process(target=_attack, args=arguments, daemon=True).start()
        return _greeted(ours)

    def start() -> None:
        if begun.get(threading.get_ident()) != (how := _how_attackers_start()):
            attacker.close()
        begun[threading.get_ident()] = how
        WARM()

    begun: dict[int, object] = {}
    if _one_thread():
        attacker._Attacker._twin = twin  # type: ignore[method-assign]
        attacker.warm = start
        execution_engines.forget = _forget_but_attackers


def _how_attackers_start() -> object:
    steering = {name: value for name, value in os.environ.items() if attacker._STEERING.fullmatch(name)}
    return os.getpid(), steering, tempfile.gettempdir(), [attacker._absolute(path) for path in sys.path]


def _forget_but_attackers() -> None:
    work._process.home, work._process.bench = "", None


def _spare_attacker() -> None:
    """The same for a fork of the server, which cannot ask for others: one, made now, before it has read anything."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    starter, spare = os.getpid(), [ours]
    if not os.fork():
        ours.close()
        if theirs.recv(1, socket.MSG_PEEK):
            _attack(theirs, starter, tempfile.gettempdir())
        os._exit(0)
    theirs.close()

    def twin(asking: attacker._Attacker) -> attacker._Waiter:
        return _greeted(spare.pop()) if spare else COLD(asking)

    attacker._Attacker._twin = twin  # type: ignore[method-assign]


def _one_thread() -> bool:
    """Whether the server's libraries count on one thread, as those of attacks do."""
    return all(os.environ.get(name, "1") == "1" for name in attacker._FIXED if name.endswith("_THREADS"))


def _greeted(control: socket.socket) -> attacker._Waiter:
    waiter = attacker._Waiter(control)
    waiter.say({"path": [attacker._absolute(path) for path in sys.path]})
    waiter.hear()
    return waiter


def _attack(control: socket.socket, starter: int, folder: str) -> None:
    os.setsid()
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.environ.clear()
    os.environ.update(attacker._FIXED)
    os.getppid = lambda: starter  # where its parent is the server, which outlives the audit
    sys.argv = [str(attacker.WORKER), str(control.detach()), str(starter), folder]
    _worker.main()


def _run(words: tuple[str, ...], cwd: Path, surroundings: dict[str, str], streams: tuple[str, str, str]) -> None:
    from plumbob.cli import main

    os.setsid()
    for number, (path, how) in enumerate(zip(streams, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(path, how | (os.O_CREAT if how else 0)), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # multiprocessing has closed it
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(surroundings)
    sys.path[:0] = [str(cwd), *filter(None, surroundings.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["plumbob", *words]
    if words[:1] == ("audit",) and _one_thread():
        _spare_attacker()
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 2**10}"
    Path(streams[2]).with_name("spent").write_text(spent, encoding="ascii")
    threading._shutdown()  # what an interpreter does at its end and a fork does not
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(int(str(code)))
