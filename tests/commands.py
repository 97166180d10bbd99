"""Commands of Plumbob in processes of their own, whose imports are paid once.

A server process imports what audits need and forks for every command. So a command has a process, streams, exit code, folder and
surroundings of its own, and begins where `python -m plumbob` would be three seconds later.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.imported"])


@dataclass(frozen=True)
class Spent:
    """What a command took: processor seconds, and the most memory it ever had, that of its imports included."""

    seconds: float
    peak_mb: float


def plumbob(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 200
) -> subprocess.CompletedProcess[str]:
    """`plumbob WORDS` with nothing on its standard input. Workers are started anew, so their commands are, too."""
    if "--workers" in words:
        command, nothing = [sys.executable, "-m", "plumbob", *words], subprocess.DEVNULL
        return subprocess.run(command, capture_output=True, text=True, stdin=nothing, cwd=cwd, env=env, timeout=timeout)
    return measured(*words, cwd=cwd, env=env, timeout=timeout)[0]


def measured(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 200
) -> tuple[subprocess.CompletedProcess[str], Spent]:
    """The same of a command without workers, and what it took."""
    with TemporaryDirectory() as streams:
        out, err = Path(streams, "out"), Path(streams, "err")
        surroundings = dict(os.environ if env is None else env)
        process = _FORKS.Process(target=_run, args=(words, cwd, surroundings, out, err))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout)
        texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, err)]
        spent = (
            Path(streams, "spent").read_text(encoding="ascii").split() if Path(streams, "spent").exists() else (0, 0)
        )
        return subprocess.CompletedProcess(words, process.exitcode, *texts), Spent(*map(float, spent))


def _run(words: tuple[str, ...], cwd: Path, surroundings: dict[str, str], out: Path, err: Path) -> None:
    from plumbob.cli import main

    for number, (path, how) in enumerate(((os.devnull, os.O_RDONLY), (out, os.O_WRONLY), (err, os.O_WRONLY))):
        os.dup2(os.open(path, how | os.O_CREAT), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # multiprocessing has closed it
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(surroundings)
    sys.path[:0] = [str(cwd), *filter(None, surroundings.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["plumbob", *words]
    try:
        main()
    finally:
        used = resource.getrusage(resource.RUSAGE_SELF)
        spent = f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 2**10}"
        out.with_name("spent").write_text(spent, encoding="ascii")
