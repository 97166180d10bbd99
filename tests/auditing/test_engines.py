"""Engines: the same bytes wherever the work is done, and pieces that cover a plan once."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plumbob.app import run_audit
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running import execution_engines as engines
from plumbob.auditing.running.execution_engines import Pool, engine_named, run_job
from plumbob.auditing.running.expand import keyed
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.schedule import Piece, pieces
from plumbob.auditing.running.store import Store
from plumbob.auditing.running.work import Extras, Job, work, work_apart
from plumbob.errors import BadInput
from plumbob.report.pictures import save_sheet

PLAN = {
    "data": {"name": "breast", "sample": 150},
    "protocols": ["logistic_regression", "decision_tree"],
    "attacks": [{"name": "equation_solving", "settings": {"adaptive": False}}, "posterior_mean", "path_restriction"],
    "unknown": [0.1, 0.3],
    "defences": ["none", "rounding", {"name": "dp_sgd", "settings": {"epochs": 2}}],
    "trials": 2,
    "rows": 60,
}


def lines(folder: Path) -> bytes:
    return (folder / "findings.jsonl").read_bytes()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan's audit by one process, in order."""
    return run_audit(PLAN, tmp_path_factory.mktemp("here") / "out", transcripts=True).folder


def job_in(folder: Path) -> Job:
    plan = make_plan(PLAN).filled()
    return Job(plan, open_source(plan.data, plan.seed), Store(folder / "store").opened())


@pytest.mark.parametrize("workers", [1, 2, 7, 500])
def test_pieces_cover_every_finding_once_and_tear_no_transcript(tmp_path: Path, workers: int) -> None:
    job = job_in(tmp_path)
    parts = pieces(job.plan, job.source, workers)
    keys = [key for piece in parts for _, key in piece.todo]
    assert sorted(keys) == sorted(key for _, todo in keyed(job.plan, job.source) for _, key in todo)
    assert len(keys) == len(set(keys))
    places = [{(p.home, c.unknown, c.defence.title) for c, _ in p.todo} for p in parts]
    assert sum(map(len, places)) == len(set().union(*places))
    if workers > 1:
        assert all(len(piece.todo) <= max(3, len(keys) / (4 * workers)) for piece in parts)  # attacks and a ceiling


def test_processes_threads_and_hash_seeds_change_no_byte(tmp_path: Path, here: Path) -> None:
    """Two workers with two threads of linear algebra each and another hash seed, against one with one of each."""
    (tmp_path / "plan.yaml").write_text(make_plan(PLAN).to_yaml(tmp_path))
    surroundings = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "7"}
    words = [sys.executable, "-m", "plumbob", "audit", "plan.yaml", "--out", "there", "--workers", "2"]
    subprocess.run(words, cwd=tmp_path, env=surroundings, check=True, stdout=subprocess.DEVNULL, timeout=300)
    assert lines(tmp_path / "there") == lines(here)


def test_order_and_what_was_computed_before_change_no_byte(tmp_path: Path, here: Path) -> None:
    """Backwards and piece by piece, against all in order: nothing is left behind in a process that later numbers see."""
    job = job_in(tmp_path)
    for piece in reversed(pieces(job.plan, job.source, 500)):
        work(job, Piece(piece.unit, piece.todo[::-1], piece.home), polite=False)
    keys = [key for _, todo in keyed(job.plan, job.source) for _, key in todo]
    assert "".join(job.store.lines(key)[0] for key in keys).encode() == lines(here)


def test_workers_that_do_not_see_the_store_send_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    """As on a cluster without a shared folder: claims are held here, findings and files come as return values."""
    plain = job_in(tmp_path)
    (tmp_path / "far").mkdir()
    job = Job(plain.plan, plain.source, plain.store, Extras(tmp_path / "far" / "transcripts", None, save_sheet))
    monkeypatch.setattr(Store, "mark", "of a folder that workers in other processes do not see")
    monkeypatch.setattr(Pool, "remote", True)
    ticks: list[int] = []
    run_job(job, pieces(job.plan, job.source, 2), Pool(2), lambda: ticks.append(1))
    keys = [key for _, todo in keyed(job.plan, job.source) for _, key in todo]
    assert "".join(job.store.lines(key)[0] for key in keys).encode() == lines(here)
    assert len(ticks) == len(keys) == len(job.store.written())
    names = [{path.name for path in (folder / "transcripts").iterdir()} for folder in (here, tmp_path / "far")]
    assert names[0] == names[1]
    assert list((job.store.folder / "claims").iterdir()) == []


def test_what_another_is_at_is_left_to_it_and_taken_when_it_is_gone(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    piece = pieces(job.plan, job.source, 1)[0]
    first, second = piece.todo[0][1], piece.todo[1][1]
    with job.store.claim(first):
        assert work(job, piece, polite=True) == []
        handled = work(job, piece.only([first, second]), polite=False)
    assert handled == [second]
    assert job.store.written() == [second]
    assert work(job, piece.only([first, second]), polite=True) == [first, second]
    assert job.store.written() == [second, first]


def test_a_worker_apart_needs_no_folder_of_ours(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    piece = pieces(job.plan, job.source, 500)[0]
    parcel = work_apart(job, piece)
    assert [finding.address for finding in parcel.findings] == [key for _, key in piece.todo]
    assert job.store.written() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rey", "did you mean 'ray'"),
        ("processes://here:1", "expected processes, ray, dask"),
        ("ray://head", "ray://HOST:PORT"),
        ("dask://head:port", "got 'dask://head:port'"),
    ],
)
def test_a_wrong_engine_is_one_sentence_and_no_folder(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        run_audit(PLAN, tmp_path / "out", engine=text)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["ray", "dask"])
def test_an_engine_that_is_not_installed_is_named_with_what_to_install(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install plumbob\[dist\]"):
        engine_named(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ray", "dask"])
def test_a_cluster_of_this_machine_finds_the_same_bytes(tmp_path: Path, kind: str) -> None:
    pytest.importorskip(engines.PACKAGES[kind], reason=f"{kind} is not installed (pip install plumbob[dist])")
    run_audit(PLAN, tmp_path / "here")
    (tmp_path / "plan.yaml").write_text(make_plan(PLAN).to_yaml(tmp_path))
    words: list[Any] = [sys.executable, "-m", "plumbob", "audit", "plan.yaml", "--out", "there", "--engine", kind]
    subprocess.run([*words, "--workers", "2"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=400)
    assert lines(tmp_path / "there") == lines(tmp_path / "here")
