"""Processes of one federated run: a server, one worker a party, and a recorder on the connection of each worker.

Whatever happens, no process stays: they are killed on the way out, and end by themselves when this one is gone (see `worker`).
"""

from __future__ import annotations

import io
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.protocols.federated.wire import Call, calls
from plumbob.protocols.federated.worker import NO_PLUGIN

_SCRIPT = Path(__file__).with_name("worker.py")
_POLL = 0.02  # seconds between two looks at the workers
_CHUNK = 65_536


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
    """Run all workers to their end; one sentence where one dies, or where it takes longer than `timeout` seconds."""
    deadline = time.monotonic() + timeout
    with ExitStack() as stack:
        server = stack.enter_context(
            _Process("the server", {"role": "server", "workers": len(jobs), "timeout": timeout}, {})
        )
        workers, recorders = [], []
        for rank, job in enumerate(jobs):
            recorder = stack.enter_context(Recorder())
            task = {**job.task, "role": "worker", "rank": rank, "workers": len(jobs)}
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
                    f"xgboost: training took longer than {timeout:,} seconds; raise 'timeout' or take fewer rows"
                )
            time.sleep(_POLL)
        return [Result(w.answer(), r.calls()) for w, r in zip(workers, recorders, strict=True)]


class _Process:
    """A child that runs `worker.py`, gets one block and is killed on the way out."""

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
        """Whether it still works; refuses one that failed."""
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
        """The kind of error, which holds no value."""
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


@dataclass
class _Connection:
    """Two sockets with their bytes so far, what the worker wrote and what the server wrote."""

    worker: socket.socket
    server: socket.socket
    upwards: bytearray = field(default_factory=bytearray)
    downwards: bytearray = field(default_factory=bytearray)


class Recorder:
    """A door on loopback, on a port of the system's choice, that passes everything on to the server and keeps a copy."""

    def __init__(self) -> None:
        self._connections: list[_Connection] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        return self

    def start(self, server_port: int) -> None:
        """Open the door; who knocked before has waited."""
        self._server_port = server_port
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._halt()
        for one in self._connections:
            one.worker.close()
            one.server.close()
        for end in (self._listener, self._stop, self._stopped):
            end.close()

    def calls(self) -> list[Call]:
        """All calls so far, in order; nothing is recorded after that."""
        self._halt()
        found = [call for one in self._connections for call in calls(bytes(one.upwards), bytes(one.downwards))]
        return sorted(found, key=lambda call: call.sequence)

    def _halt(self) -> None:
        with suppress(OSError):
            self._stop.send(b".")
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _pass_on(self) -> None:
        with selectors.DefaultSelector() as watched:
            watched.register(self._listener, selectors.EVENT_READ)
            watched.register(self._stopped, selectors.EVENT_READ)
            while True:
                for ready, _ in watched.select():
                    if ready.fileobj is self._stopped:
                        return
                    if ready.fileobj is self._listener:
                        self._accept(watched)
                    else:
                        self._copy(watched, *ready.data)

    def _accept(self, watched: selectors.BaseSelector) -> None:
        worker, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port))
        except OSError:  # the server is gone, which `run` notices
            worker.close()
            return
        one = _Connection(worker, server)
        self._connections.append(one)
        watched.register(worker, selectors.EVENT_READ, (worker, server, one.upwards))
        watched.register(server, selectors.EVENT_READ, (server, worker, one.downwards))

    def _copy(
        self, watched: selectors.BaseSelector, source: socket.socket, target: socket.socket, kept: bytearray
    ) -> None:
        try:
            chunk = source.recv(_CHUNK)
            kept.extend(chunk)
            if chunk:
                target.sendall(chunk)
                return
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        watched.unregister(source)
