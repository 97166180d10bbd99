"""Attacks that do what an attack must not: reach for the truth, raise, hang, take all memory, die, answer nonsense.

`Cheat` tries every way it knows and puts the names of those that worked into its certificate. Where to look is in a module
`places`, which the test that runs it has made.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.threats import View
from plumbob.transcript import Transcript

WAYS: dict[str, Callable[[Any], object]] = {}
LENGTH = 16  # bytes of the secret that the audit's process holds


def way(function: Callable[[Any], object]) -> Callable[[Any], object]:
    WAYS[function.__name__] = function
    return function


def is_truth(thing: object) -> bool:
    return isinstance(thing, Transcript) and any("columns" in thing.sealed(party) for party in thing.parties)


@way
def frames(places: Any) -> bool:
    outer = [info.frame for info in inspect.stack()]
    held = [thing for frame in outer for thing in frame.f_locals.values()]
    return any(is_truth(thing) or is_truth(getattr(thing, "log", None)) for thing in held)


@way
def garbage(places: Any) -> bool:
    return any(is_truth(thing) for thing in gc.get_objects())


@way
def globals_of_modules(places: Any) -> bool:
    work: Any = sys.modules["plumbob.auditing.running.work"]
    return work._process.bench is not None


@way
def environment(places: Any) -> bool:
    return "A_SECRET_OF_THE_AUDIT" in os.environ


@way
def environment_of_the_audit(places: Any) -> bool:
    return b"=" in Path(f"/proc/{places.AUDIT}/environ").read_bytes()


@way
def memory_of_the_audit(places: Any) -> bool:
    with Path(f"/proc/{places.AUDIT}/mem").open("rb", buffering=0) as memory:
        memory.seek(places.ADDRESS)
        return len(memory.read(LENGTH)) == LENGTH


@way
def memory_by_system_call(places: Any) -> bool:
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    buffer = ctypes.create_string_buffer(LENGTH)
    ours, theirs = Vector(ctypes.addressof(buffer), LENGTH), Vector(places.ADDRESS, LENGTH)
    read = ctypes.CDLL(None).process_vm_readv(places.AUDIT, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return int(read) == LENGTH


@way
def descriptors(places: Any) -> bool:
    """A file that the audit has open: its findings, its store, the control of other processes."""
    links = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            links.append(str(file.readlink()))
    return any(link.endswith("findings.jsonl") or link.startswith("socket:") for link in links)


@way
def table(places: Any) -> bool:
    return "hidden" in Path(places.TABLE).read_text()


@way
def mode_of_the_table(places: Any) -> bool:
    Path(places.TABLE).chmod(0o777)
    return True


@way
def date_of_the_table(places: Any) -> bool:
    os.utime(places.TABLE, (0, 0))
    return True


@way
def folder_of_the_audit(places: Any) -> bool:
    return bool(list(Path(places.TABLE).parent.iterdir()))


@way
def accounts_of_the_system(places: Any) -> bool:
    return bool(Path("/etc/passwd").read_text())


@way
def folder_for_temporary_files(places: Any) -> bool:
    with tempfile.TemporaryFile(dir=places.TEMPORARY):
        return True


@way
def a_file_for_the_next_attack(places: Any) -> bool:
    path = Path(tempfile.gettempdir()) / "left behind"
    path.write_text("for the next")
    path.unlink()
    return True


@way
def shared_memory(places: Any) -> bool:
    return bool(Path(places.SHARED).read_bytes())


@way
def a_network_server(places: Any) -> bool:
    with socket.create_connection(("127.0.0.1", places.PORT), timeout=2):
        return True


@way
def a_server_in_the_file_system(places: Any) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(places.SOCKET)
    return True


@way
def a_server_without_a_file(places: Any) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{places.ABSTRACT}")
    return True


@way
def other_processes(places: Any) -> bool:
    return bool(Path(f"/proc/{places.AUDIT}/cmdline").read_bytes())


@way
def a_signal_to_the_audit(places: Any) -> bool:
    os.kill(places.AUDIT, 0)
    return True


@way
def a_signal_to_its_own_group(places: Any) -> bool:
    """The audit would have to be in it."""
    return os.getpgid(places.AUDIT) == os.getpgrp()


@way
def another_program(places: Any) -> bool:
    return subprocess.run([sys.executable, "-c", "pass"], check=True).returncode == 0


@way
def another_process(places: Any) -> bool:
    process = os.fork()
    if not process:
        os._exit(0)
    os.waitpid(process, 0)
    return True


def found(places: ModuleType) -> list[str]:
    """The ways that worked."""
    worked = []
    for name, attempt in WAYS.items():
        with suppress(Exception):
            if attempt(places):
                worked.append(name)
    return sorted(worked)


class _Example(Attack):
    summary = "for tests"
    paper = "plumbob"
    protocols = ("logistic_regression",)
    workload = "matrices"


class Cheat(_Example):
    name = "cheat"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        worked = found(importlib.import_module("places"))
        return Guess(view.unknown_names, values=nothing(view).values, certificate=", ".join(worked))


class Raises(_Example):
    name = "raises"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        raise ValueError(f"cells of the view: {view.own.tolist()}")


class Hangs(_Example):
    name = "hangs"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        while True:
            time.sleep(1)


class Eats(_Example):
    name = "eats"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        return Guess(view.unknown_names, values=np.ones((20, 2**27)))


class Dies(_Example):
    name = "dies"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        signal.raise_signal(signal.SIGKILL)
        return nothing(view)


class Leaves(_Example):
    name = "leaves"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        os._exit(3)


class Forgets(_Example):
    name = "forgets"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        return None  # type: ignore[return-value]  # that is the mistake


class Misfits(_Example):
    name = "misfits"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        return Guess(view.unknown_names, values=np.zeros((1, 1)))


class Babbles(_Example):
    name = "babbles"

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        for file in range(3, 20):
            with suppress(OSError):
                os.write(file, b"\xff" * 4096)
        os._exit(0)
