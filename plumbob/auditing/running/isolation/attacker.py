"""The audit's end of the wall: one attack on one view, in the process of `_worker.py`, with a guess or the reason for none.

Each thread of an audit has a process of its own, started when it is first needed or by `warm`, ended by `close`.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbob.attacks.base import Attack, Guess
from plumbob.auditing.running.isolation import _walls, messages
from plumbob.auditing.running.isolation._worker import NEEDS, write
from plumbob.auditing.running.isolation.limits import Limits
from plumbob.auditing.running.isolation.messages import Garbled
from plumbob.errors import BadInput, one_line
from plumbob.os_specific import peak_mb
from plumbob.scoring.score import LIMITED
from plumbob.threats import View

WORKER = Path(__file__).with_name("_worker.py")
OWN = "plumbob.attacks."  # modules of Plumbob's own attacks, which the process loads once for all that follow
LIBRARIES = ("plumbob", "torch", "scipy", "sklearn", "numpy", "flint", "gmpy2", "joblib", "threadpoolctl", "sympy")
_LIBRARY = re.compile(rf"({'|'.join(LIBRARIES)})(\.\w+)*")
PATIENCE = 10.0  # seconds that an ended process may take to go
# Variables that steer numeric libraries: with others the last bits of a number may be others. Nothing else is handed on.
_STEERING = re.compile(
    r"(OPENBLAS|OMP|MKL|NPY|ATEN|DNNL|ONEDNN|BLIS|KMP|GOTO|CUBLAS|CUDA|TORCH)_[A-Z0-9_]+|LD_LIBRARY_PATH"
)
_FIXED = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"LOGNAME": "attack"}
_UNIT = 2**20 if sys.platform == "darwin" else 2**10  # in which a system counts the peak


@dataclass(frozen=True)
class Attempt:
    """What became of one attack."""

    guess: Guess | None  # none where it failed or does not fit
    failed: str  # why it failed; empty where it did not
    unfit: str  # why it does not fit the network at hand; empty where it does
    view: str  # a hash of the view that was attacked
    seconds: float
    peak_mb: float
    not_isolated: str  # what of the wall is missing on this system


@dataclass(frozen=True)
class _Ended:
    """One fork: what it answered, and how it ended by the word of the process that waited for it."""

    answer: Mapping[str, Any]
    guess: Guess | None
    garbled: str  # why the answer is none
    late: bool
    code: int  # exit code, or less the signal that killed it
    peak: int
    seconds: float

    @property
    def outcome(self) -> object:
        return None if self.late or self.garbled else self.answer.get("outcome")

    def failed(self, limits: Limits) -> str:
        """Why there is no guess, in words that an attack cannot choose, but for names and places in its code."""
        if self.late:
            return limits.too_long
        if self.outcome == "memory":
            return limits.too_large
        if self.outcome == "raised":
            return _raised(self.answer)
        if self.code < 0:
            return f"{LIMITED[2]}signal {-self.code}"
        if self.outcome == "no guess":
            return "it returned no guess"
        if self.garbled or self.outcome != "guess":
            return self.garbled or f"it ended without an answer (exit code {self.code})"
        return ""


def _raised(answer: Mapping[str, Any]) -> str:
    kind, place = (re.sub(r"[^\w./:-]", "", str(answer.get(key, "")))[:120] for key in ("type", "place"))
    why = one_line(str(answer.get("why", "")))[:500]
    return f"the attack raised {kind}{f' at {place}' if place else ''}{f': {why}' if why else ''}"


class _Lost(Exception):
    """The process has ended."""


class _Waiter:
    """This end of a process that waits for attacks and forks for each."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.wanted: set[str] = set()  # libraries that it shall load before the next fork
        self._loaded: set[str] = set()
        self._heard = b""

    def fork(self, head: Mapping[str, Any], view: View, limits: Limits) -> _Ended:
        """Have it fork, send the view, and wait for the answer and for the fork's end."""
        order = {"modules": sorted(self.wanted - self._loaded)}
        self._loaded |= self.wanted
        started = time.perf_counter()
        reading, theirs_out = os.pipe()
        theirs_in, writing = os.pipe()
        try:
            self.say(order | {"seconds": limits.seconds, "memory_mb": limits.memory_mb}, theirs_in, theirs_out)
            meta, arrays = view.parts()
            with suppress(BrokenPipeError):  # it has ended; how, the process says
                for part in messages.packed({**head, "view": meta}, arrays):
                    write(writing, part)
            answer, guess, garbled = self._answer(reading, view, limits)
        finally:
            os.close(writing)
            os.close(reading)
        told = self.hear()
        elapsed = time.perf_counter() - started
        seconds = answer.get("seconds")
        own = seconds if isinstance(seconds, float) and 0 <= seconds <= elapsed else elapsed
        return _Ended(answer, guess, garbled, bool(told["late"]), int(told["code"]), int(told["peak"]), own)

    def _answer(self, pipe: int, view: View, limits: Limits) -> tuple[Mapping[str, Any], Guess | None, str]:
        """What the attack wrote: its answer, the guess in it, or what is wrong with it."""
        try:
            answer, arrays = messages.unpacked(lambda buffer: self._read(pipe, buffer), limits.memory_mb * 2**20)
            guess = messages.guess_of(answer["guess"], arrays, view) if answer.get("outcome") == "guess" else None
        except EOFError:
            return {}, None, ""
        except (Garbled, KeyError) as error:
            return {}, None, str(error)
        except MemoryError:
            return {}, None, limits.too_large
        return answer, guess, ""

    def _read(self, pipe: int, buffer: memoryview) -> None:
        """Fill the buffer from the attack's pipe; EOFError where it has ended before."""
        ends = select.poll()
        ends.register(pipe, select.POLLIN)
        ends.register(self.control, select.POLLIN)
        while len(buffer):
            ready = {file for file, _ in ends.poll()}
            if pipe not in ready:  # the process speaks: the attack is over, and what it wrote is in the pipe by now
                ends.unregister(self.control)
                if not ends.poll(0):
                    raise EOFError
            count = os.readv(pipe, [buffer])
            if not count:
                raise EOFError
            buffer = buffer[count:]

    def say(self, words: Mapping[str, Any], *files: int) -> None:
        """A line to the process, and these files, which are then closed here."""
        try:
            socket.send_fds(self.control, [json.dumps(words).encode() + b"\n"], list(files))
        except OSError as error:
            raise _Lost from error
        finally:
            for file in files:
                os.close(file)

    def hear(self) -> dict[str, Any]:
        """A line of the process."""
        while b"\n" not in self._heard:
            try:
                more = self.control.recv(2**16)
            except ConnectionResetError:
                more = b""
            if not more:
                raise _Lost
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        words: dict[str, Any] = json.loads(line)
        return words


class _Attacker:
    """The processes that the attacks of one thread run in: one waits with few libraries, and another, once needed, with all."""

    def __init__(self) -> None:
        self.starter = os.getpid()
        self.missing: list[str] | None = None  # parts of the wall; the process says it when it is ready
        self._heavy: _Waiter | None = None
        self._needs: dict[str, set[str]] = {}  # by attack: the large libraries that it uses
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._light = _Waiter(control)
        words = [sys.executable, "-I", str(WORKER), str(theirs.fileno()), str(self.starter), tempfile.gettempdir()]
        nowhere = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                words,
                env={k: v for k, v in os.environ.items() if _STEERING.fullmatch(k)} | _FIXED,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # no terminal, no Control-C, and no signals to the audit's group
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
            )
        except OSError as error:
            control.close()
            raise BadInput(
                f"attacks run in a process of their own, which cannot be started: {error.strerror}"
            ) from error
        finally:
            theirs.close()
        with suppress(_Lost):
            self._light.say({"path": [_absolute(path) for path in sys.path]})

    def attempt(self, head: Mapping[str, Any], view: View, limits: Limits) -> Attempt:
        """Run one attack; again where it only asks for a library."""
        if self.missing is None:
            self.missing = [part for part in self._light.hear()["missing"] if part in _walls.PARTS]
        module, name = head["attack"]
        needs = self._needs.setdefault(f"{module}:{name}", set())
        while True:
            waiter = self._waiter(needs)
            waiter.wanted |= {module} if module.startswith(OWN) else set()
            ended = waiter.fork(head, view, limits)
            asked = ended.answer.get("module")
            if ended.outcome != "needs" or asked in needs or asked not in NEEDS:
                break
            needs.add(asked)
        if module.startswith(OWN):
            waiter.wanted |= {name for name in map(str, ended.answer.get("loaded", ())) if _LIBRARY.fullmatch(name)}
        unfit = one_line(str(ended.answer.get("why", ""))) if ended.outcome == "unfit" else ""
        failed = "" if unfit else ended.failed(limits)
        peak = max(peak_mb(), ended.peak / _UNIT)
        guess = None if failed else ended.guess
        return Attempt(guess, failed, unfit, view.digest, ended.seconds, peak, ", ".join(self.missing))

    def _waiter(self, needs: set[str]) -> _Waiter:
        """The one to fork from: where an attack needs no large library, a fork that has none takes a third of the time."""
        if not needs:
            return self._light
        if self._heavy is None:
            self._heavy = self._twin()
        self._heavy.wanted |= needs
        return self._heavy

    def _twin(self) -> _Waiter:
        """A fork of the one that waits, which will load large libraries."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._light.say({"twin": True}, theirs.detach())
        return _Waiter(ours)

    def close(self) -> None:
        """End the processes, if it is this one that started them."""
        controls = [waiter.control for waiter in (self._heavy, self._light) if waiter is not None]
        if os.getpid() != self.starter:
            self._process.returncode = 0  # of this copy: not a child of ours
        else:
            for control in controls:
                with suppress(OSError):
                    control.shutdown(socket.SHUT_RDWR)
        for control in controls:
            control.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Kept(threading.local):
    """The process of this thread."""

    attacker: _Attacker | None = None


_kept = _Kept()


def warm() -> None:
    """Start the process of this thread, if it has none, and return at once."""
    if _kept.attacker is not None and _kept.attacker.starter != os.getpid():
        close()
    if _kept.attacker is None:
        _kept.attacker = _Attacker()
        atexit.register(_kept.attacker.close)


def close() -> None:
    """End the process of this thread, if there is one."""
    if _kept.attacker is not None:
        atexit.unregister(_kept.attacker.close)
        _kept.attacker.close()
        _kept.attacker = None


def attempt(attack: Attack, view: View, seed: bytes, limits: Limits) -> Attempt:
    """Run an attack on a view, with draws from this seed, where it can reach neither the truth nor anything else."""
    head: dict[str, Any] = {
        "attack": place_of(attack),
        "settings": attack.chosen,
        "seed": seed.hex(),
        "trust": view.trust.code,
    }
    own = head["attack"][0].startswith(OWN) and not view.trust.code
    head["packages"] = {} if own else _packages()
    for _ in range(2):  # a process that had nothing to do for long has ended, and another is started
        warm()
        assert _kept.attacker is not None
        try:
            return _kept.attacker.attempt(head, view, limits)
        except _Lost:
            close()
        except BaseException:
            close()  # in the middle of an exchange: what it says next would answer nothing
            raise
    raise BadInput(
        "the process that attacks run in ended twice, perhaps for want of memory; what is done is kept, the same command goes on"
    )


def place_of(attack: Attack) -> tuple[str, str]:
    """Module and name of an attack's class, from which another process can make the same attack; else one sentence."""
    kind = type(attack)
    module = sys.modules.get(kind.__module__)
    if kind.__module__ in ("__main__", "__mp_main__") or getattr(module, kind.__qualname__, None) is not kind:
        raise BadInput(
            f"attack '{attack.name}': attacks run in a process of their own, which cannot import {kind.__qualname__} from "
            f"{kind.__module__}; define it at the top of a module that can be imported, not in a script, notebook or function"
        )
    return kind.__module__, kind.__qualname__


def _absolute(path: str) -> str:
    """An entry of the path for imports, from the folder `/`; what installers put there that is no folder stays as it is."""
    return path if path.startswith("__editable__") else str(Path(path).absolute())


def _packages() -> dict[str, list[str]]:
    """Packages that this process has loaded from elsewhere than where installed ones are, by name, with their places."""
    installed = tuple(f"{path}{os.sep}" for path in _walls.readable())
    found = {}
    for name in [name for name in sys.modules if "." not in name and name not in ("__main__", "__mp_main__")]:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        places = [] if spec is None else list(spec.submodule_search_locations or filter(None, [spec.origin]))
        places = [os.path.realpath(place) for place in places if Path(place).exists()]
        if places and not any(place.startswith(installed) for place in places):
            found[name] = places
    return found
