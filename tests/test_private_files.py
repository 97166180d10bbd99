"""What holds private values can be read by its owner only, whatever the umask says and whatever was there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from plumbob.app import run_audit
from plumbob.attacks.base import nothing
from plumbob.auditing.running.work import keep, transcript_path
from plumbob.files import write_whole
from plumbob.report.pictures import save_sheet
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.worlds import picture_world, world

PLAN = {"data": {"name": "breast", "sample": 120}, "protocols": "logistic_regression", "unknown": 0.3, "rows": 50}


@pytest.fixture(autouse=True)
def permissive() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_transcripts_of_an_audit(tmp_path: Path) -> None:
    run_audit(PLAN | {"trials": 1, "attacks": "equation_solving"}, tmp_path / "out", transcripts=True)
    folder = tmp_path / "out" / "transcripts"
    assert [mode(folder), *map(mode, folder.iterdir())] == [0o700, 0o600]


def test_a_folder_that_others_could_enter_is_closed(tmp_path: Path) -> None:
    (tmp_path / "transcripts").mkdir()
    assert mode(tmp_path / "transcripts") == 0o777
    keep(world(), transcript_path(tmp_path / "transcripts", "one"))
    assert mode(tmp_path / "transcripts") == 0o700


@pytest.mark.parametrize("name", ["saved", "saved.zip"])
def test_saved_transcripts_and_views(tmp_path: Path, name: str) -> None:
    log = world()
    (tmp_path / "view").mkdir()
    log.save(tmp_path / name)
    cut(log, THREATS["active"]).save(tmp_path / "view" / name)
    for path in (tmp_path / name, tmp_path / "view" / name):
        assert mode(path) == (0o600 if path.is_file() else 0o700)
        assert all(mode(part) == 0o600 for part in path.rglob("*"))


def test_pictures(tmp_path: Path) -> None:
    log = picture_world()
    view = cut(log, THREATS["active"])
    save_sheet(tmp_path / "pictures", "key", log, view, nothing(view))
    assert truth_of(log, view).tiles
    assert [mode(tmp_path / "pictures"), *map(mode, (tmp_path / "pictures").iterdir())] == [0o700, 0o600]


def test_a_file_that_others_could_read_is_replaced_and_a_leftover_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for old in (path, tmp_path / ".file.part"):
        old.write_text("old")
        assert mode(old) == 0o666
    write_whole(path, np.arange(3).tobytes(), private=True)
    assert mode(path) == 0o600
