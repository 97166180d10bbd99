"""Processes of one federated run: a server, one worker a party, and a recorder on the connection of each worker.

xgboost's server listens on all addresses of the machine. So it, the workers and the recorders have a key of their own, made for
this run and given to nobody else: whoever cannot show it is turned away before a word of the collective is said.
Whatever happens, no process stays: they are killed on the way out, and end by themselves when this one is gone (see `worker`).
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from plumbob.bundle import Array
from plumbob.crypto.certificate import self_signed
from plumbob.errors import BadInput
from plumbob.targets.xgboost._recorder import Recorder
from plumbob.targets.xgboost._wire import Call
from plumbob.targets.xgboost._worker import NO_PLUGIN

_SCRIPT = Path(__file__).with_name("_worker.py")
_POLL = 0.02  # seconds between two looks at the workers


@dataclass(frozen=True)
class Job:
    """One party's work: its name, what it is told and its own arrays. Its place in the list is its rank."""

    party: str
    task: Mapping[str, Any]
    arrays: Mapping[str, Array]


@dataclass(frozen=True)
class Result:
    """What a worker has afterwards, and its side of every call."""

    model: bytes
    calls: list[Call]


def run(jobs: Sequence[Job], timeout: int) -> list[Result]:
    """Run all workers to completion; BadInput if one dies or if it takes longer than `timeout` seconds."""
    deadline = time.monotonic() + timeout
    pair = self_signed()
    shared = {"workers": len(jobs), "key": pair.key, "certificate": pair.certificate}
    with ExitStack() as stack:
        server = stack.enter_context(_Process("the server", {**shared, "role": "server", "timeout": timeout}, {}))
        workers, recorders = [], []
        for rank, job in enumerate(jobs):
            recorder = stack.enter_context(Recorder(pair))
            task = {**job.task, **shared, "role": "worker", "rank": rank}
            task["server"] = f"127.0.0.1:{recorder.port}"
            workers.append(stack.enter_context(_Process(f"the worker of '{job.party}'", task, job.arrays)))
            recorders.append(recorder)
        port = server.port(deadline)  # which all start beside each other: importing xgboost is most of the time
        for recorder in recorders:
            recorder.start(port)
        while any(worker.running() for worker in workers):
            server.running()
            if time.monotonic() > deadline:
                raise BadInput(
                    f"xgboost: training took longer than {timeout:,} seconds; raise 'timeout' or use fewer rows"
                )
            time.sleep(_POLL)
        return [Result(w.answer(), r.calls()) for w, r in zip(workers, recorders, strict=True)]


class _Process:
    """A child that runs `_worker.py`, gets one block and is killed on the way out."""

    def __init__(self, name: str, task: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        self.name = name
        block = io.BytesIO()
        np.savez(block, allow_pickle=False, task=np.array(json.dumps(task)), **arrays)
        self._block = block.getvalue()

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._errors: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())
        self._answer: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())
        self._child = subprocess.Popen(
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=self._answer,
            stderr=self._errors,
        )
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # a child that is gone is noticed by `running`
            self._child.stdin.write(len(self._block).to_bytes(8, "big") + self._block)
            self._child.stdin.flush()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._child.wait()
        with suppress(BrokenPipeError):
            self._child.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        self._stack.close()

    def running(self) -> bool:
        """Whether it is still running; raises if it failed."""
        code = self._child.poll()
        if code is None or code == 0:
            return code is None
        if code == NO_PLUGIN:
            raise BadInput(
                "this xgboost was built without its federated plugin; on Linux: pip install 'plumbob[boost]'"
            )
        words = self._last_word()
        raise BadInput(f"xgboost: {self.name} ended with code {code}{words} before training was done")

    def _last_word(self) -> str:
        """The type of the error, which contains no value."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split()
        return f" ({lines[-1]})" if lines and lines[-1].isidentifier() else ""

    def answer(self) -> bytes:
        self._answer.seek(0)
        return self._answer.read()

    def port(self, deadline: float) -> int:
        """The port that the server tells once it listens."""
        while not self.answer().endswith(b"\n"):
            self.running()
            if time.monotonic() > deadline:
                raise BadInput("xgboost: the federated server did not start in time; raise 'timeout'")
            time.sleep(_POLL)
        return int(self.answer())
