"""Commands of Plumbob in processes of their own, whose imports are paid once.

A server process imports what audits need and forks for every command. So a command has a process, streams, exit code, folder and
surroundings of its own, and begins where `python -m plumbob` would be three seconds later.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.imported"])
PATIENCE = 200.0  # seconds for a command, on a machine that others use as well


class Running:
    """`plumbob WORDS`, begun: the leader of a process group of its own. Its input is empty unless it is told from where to read."""

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

    def ended(self) -> bool:
        return self._process.exitcode is not None

    def until(self, seen: Callable[[], bool], timeout: float = PATIENCE) -> bool:
        """Wait until something is seen, or the command has ended; whether it was seen."""
        deadline = time.monotonic() + timeout
        while not (there := seen()) and not self.ended() and time.monotonic() < deadline:
            time.sleep(0.005)
        return there

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def result(self, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """How it ended and what it printed."""
        self._process.join(timeout)
        if not self.ended():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, 9)
            self._process.join()
            raise subprocess.TimeoutExpired(self._words, timeout)
        with self._folder:
            texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (self._out, self._err)]
        return subprocess.CompletedProcess(self._words, self._process.exitcode or 0, *texts)


def plumbob(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """`plumbob WORDS`, from its beginning to its end."""
    return Running(*words, cwd=cwd, env=env).result(timeout)


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
    code = 0
    try:
        main()
    except SystemExit as stop:
        assert isinstance(stop.code, int | None)
        code = stop.code or 0
    threading._shutdown()  # what an interpreter does at its end and a fork does not
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)
