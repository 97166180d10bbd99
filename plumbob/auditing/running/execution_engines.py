"""Engines: where pieces of work are done. Processes of this machine, or a ray or dask cluster; one code path through joblib.

    processes    ray, ray://HOST:PORT    dask, dask://HOST:PORT

Two commands on one store share the work: each takes what the other has not claimed, and at the end waits for the rest.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.running.expand import keyed
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import Source
from plumbob.auditing.running.schedule import SHARES, Piece, pieces
from plumbob.auditing.running.store import Store
from plumbob.auditing.running.work import Job, Parcel, forget, work, work_apart
from plumbob.errors import BadInput, suggest
from plumbob.files import write_whole

Tick = Callable[[], None]
KINDS = ("processes", "ray", "dask")
PACKAGES = {"ray": "ray", "dask": "distributed"}
PATIENCE = 15  # seconds to wait for a cluster to answer
FOLLOWING = 0.5  # seconds after which a worker looks whether its audit still runs


@dataclass(frozen=True)
class Engine:
    """Which kind, and the cluster's address where it is not started here."""

    kind: str = "processes"
    address: str = ""

    @property
    def title(self) -> str:
        return f"{self.kind}://{self.address}" if self.address else self.kind


def engine_named(text: str) -> Engine:
    """An engine from what the user wrote; what is misspelt or not installed is refused before any work.

    >>> engine_named("processes")
    Engine(kind='processes', address='')
    """
    kind, _, address = text.partition("://")
    if kind not in KINDS:
        raise BadInput(f"--engine: no engine '{kind}'{suggest(kind, KINDS)}")
    if "://" in text and (
        kind == "processes" or not re.fullmatch(r"[^\s/:]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5}", address)
    ):
        raise BadInput(f"--engine: expected processes, ray, dask, ray://HOST:PORT or dask://HOST:PORT, got '{text}'")
    package = PACKAGES.get(kind)
    if package is not None and importlib.util.find_spec(package) is None:
        raise BadInput(f"--engine {kind} needs {package}, which is not installed; pip install plumbob[dist]")
    return Engine(kind, address)


@dataclass(frozen=True)
class Pool:
    """How many workers there are, which of joblib's backends has them, and whether they may be on other machines."""

    workers: int = 1
    backend: str = "loky"

    @property
    def remote(self) -> bool:
        return self.backend != "loky"

    def results(self, calls: Iterable[Any]) -> Iterator[Any]:
        """What the calls return, as they are done; a worker that was killed is one sentence."""
        from joblib import Parallel, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        waves = self.backend == "ray"  # which returns lists only
        with parallel_config(backend=self.backend, n_jobs=self.workers):
            parallel = Parallel(
                return_as="list" if waves else "generator_unordered", batch_size=1, pre_dispatch=self.workers
            )
        try:
            if not waves:
                yield from parallel(calls)
                return
            with parallel:
                rest = iter(calls)
                while wave := list(islice(rest, SHARES * self.workers)):
                    yield from parallel(wave)
        except TerminatedWorkerError as error:
            raise BadInput(
                "a worker was killed, perhaps for want of memory; what is done is kept, the same command goes on "
                "with fewer at once (--workers)"
            ) from error


@contextmanager
def started(engine: Engine, workers: int | None) -> Iterator[Pool]:
    """The engine's workers, until the work is done; all that a cluster has unless a number is given."""
    if engine.kind == "processes":
        yield Pool(workers or 1)
        return
    connect = _ray if engine.kind == "ray" else _dask
    with connect(engine, workers) as count:
        yield Pool(count, engine.kind)


@contextmanager
def _ray(engine: Engine, workers: int | None) -> Iterator[int]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # an audit tells nobody that it ran
    ray: Any = import_module("ray")
    where: dict[str, Any] = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
    if engine.address:
        where = {"address": engine.title}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **where)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"--engine: {engine.title} does not answer; is the cluster up and of the same version?"
        ) from error
    try:
        import_module("ray.util.joblib").register_ray()
        yield workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        ray.shutdown()


@contextmanager
def _dask(engine: Engine, workers: int | None) -> Iterator[int]:
    distributed: Any = import_module("distributed")
    with ExitStack() as stack:
        where: Any = f"tcp://{engine.address}"
        if not engine.address:
            where = distributed.LocalCluster(
                n_workers=workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
            stack.enter_context(where)
        try:
            client = stack.enter_context(distributed.Client(where, timeout=PATIENCE))
        except (OSError, TimeoutError) as error:
            raise BadInput(
                f"--engine: {engine.title} does not answer; is the cluster up and of the same version?"
            ) from error
        cores = sum(client.ncores().values())
        if not cores:
            raise BadInput(f"--engine: {engine.title} has no workers; start some first")
        yield workers or cores


def run_job(job: Job, todo: list[Piece], pool: Pool, tick: Tick = lambda: None) -> None:
    """Everything that is not done, here or by whoever else works on the store; returns when all of it is there."""
    polite = True  # at first: pieces that nobody is at. Then: whatever is free.
    job = replace(job, mark=job.store.mark)
    near = True  # until a round of workers that do not see the store has done nothing
    todo = [left for piece in todo if (left := _missing(job, piece, tick)).todo]  # where nothing is, no worker starts
    try:
        while todo:
            rounds = _near(job, todo, pool, polite, tick) if near else _far(job, todo, pool, tick)
            handled = {key for keys in rounds for key in keys}
            todo = [left for piece in todo if (left := piece.only({k for _, k in piece.todo} - handled)).todo]
            if todo and not handled and pool.remote and near:
                near = False
            elif todo and not polite and not handled:
                job.store.wait(todo[0].todo[0][1])
            polite = False
    finally:
        forget()


def _missing(job: Job, piece: Piece, tick: Tick) -> Piece:
    """A piece without what is there already."""
    left = [key for case, key in piece.todo if not job.done(piece.unit, case, key)]
    for _ in range(len(piece.todo) - len(left)):
        tick()
    return piece.only(left)


def _near(job: Job, todo: list[Piece], pool: Pool, polite: bool, tick: Tick) -> Iterator[list[str]]:
    """Workers see the store: they claim, compute and keep."""
    if pool.workers == 1 and not pool.remote:
        yield from (work(job, piece, polite, tick) for piece in todo)
        return
    from joblib import delayed

    starter = 0 if pool.remote else os.getpid()
    for keys in pool.results(delayed(_worked)(starter, job, piece, polite) for piece in todo):
        for _ in keys:
            tick()
        yield keys


def _worked(starter: int, job: Job, piece: Piece, polite: bool) -> list[str]:
    _follow(starter)
    return work(job, piece, polite)


@cache
def _follow(starter: int) -> None:
    """End this process soon after the one that started it: a killed audit leaves no worker behind that holds its claims."""

    def watch() -> None:
        while os.getppid() == starter:
            time.sleep(FOLLOWING)
        os._exit(1)

    if os.getppid() == starter:
        threading.Thread(target=watch, daemon=True).start()


def _far(job: Job, todo: list[Piece], pool: Pool, tick: Tick) -> Iterator[list[str]]:
    """Workers do not see the store: claims are held here while they compute, and what they send is kept here."""
    from joblib import delayed

    held: dict[str, ExitStack] = {}

    def free() -> Iterator[Any]:
        for piece in todo:
            mine = [(case, key) for case, key in piece.todo if _hold(job.store, key, held)]
            missing = [key for case, key in mine if not job.done(piece.unit, case, key)]
            if mine:
                yield delayed(_sent)(job, piece.only(missing), [key for _, key in mine])

    try:
        for keys, parcel in pool.results(free()):
            _unpack(job, parcel)
            for key in keys:
                held.pop(key).close()
                tick()
            yield keys
    finally:
        for claim in held.values():
            claim.close()


def _hold(store: Store, key: str, held: dict[str, ExitStack]) -> bool:
    """Claim a finding beyond this call; whether it could be had."""
    stack = ExitStack()
    if not stack.enter_context(store.claim(key)):
        stack.close()
        return False
    held[key] = stack
    return True


def _sent(job: Job, piece: Piece, keys: list[str]) -> tuple[list[str], Parcel]:
    return keys, work_apart(job, piece)


def _unpack(job: Job, parcel: Parcel) -> None:
    """Files first: a finding that is there has all that belongs to it."""
    places = {"transcripts": job.extras.transcripts, "pictures": job.extras.gallery}
    for name, data in parcel.files.items():
        folder = places[name.split("/")[0]]
        assert folder is not None
        folder.mkdir(exist_ok=True)
        write_whole(folder / name.split("/")[-1], data)
    for finding in parcel.findings:
        job.store.put(finding)


def run(plan: Plan, source: Source, *, workers: int = 1) -> list[Finding]:
    """The findings of a plan in its order, for programs that want no folder: the same work, in a store that is then removed."""
    with tempfile.TemporaryDirectory(prefix="plumbob-") as folder:
        store = Store(Path(folder) / "store").opened()
        run_job(Job(plan, source, store), pieces(plan, source, workers), Pool(workers))
        return [store.read(key) for _, todo in keyed(plan, source) for _, key in todo]
