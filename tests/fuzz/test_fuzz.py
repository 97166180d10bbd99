"""A hundred damaged files of every kind give an answer or a sentence; more of them with `-m slow` and `python -m tests.fuzz`."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plumbob.errors import BadInput
from tests.fuzz.guard import judged, peak, watched, wrong_sentence
from tests.fuzz.targets import TARGETS, Steered

FEW = {"plans": 60, "runs": 10}  # the slow ones
QUIET = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}


def passes(name: str, rng: random.Random, folder: Path) -> None:
    target = TARGETS[name]
    outcome = judged(target.read, folder, target.make(rng), peak())
    assert not outcome.failure, outcome.failure


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_read_or_refused_in_a_sentence(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=FEW.get(name, 100), phases=[Phase.generate], **QUIET)
    @given(st.randoms(use_true_random=True))
    def check(rng: random.Random) -> None:
        passes(name, rng, tmp_path_factory.mktemp("case"))

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_damaged_files_are_read_or_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=3_000, phases=[Phase.generate], **QUIET)
    @given(st.randoms(use_true_random=True))
    def check(rng: random.Random) -> None:
        passes(name, rng, tmp_path_factory.mktemp("case"))

    check()


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_steer_a_case(name: str) -> None:
    """What atheris does: the same bytes make the same files, and bytes that end are no mistake."""
    make = TARGETS[name].make
    make(Steered(b""))
    assert make(Steered(bytes(range(200)))) == make(Steered(bytes(range(200))))


def fails(folder: Path, read: object) -> str:
    return judged(read, folder, {"a": b""}, peak()).failure  # type: ignore[arg-type]  # readers of any kind


def test_the_guard_sees_what_it_is_there_for(tmp_path: Path) -> None:
    """Each of the ways to fail, on purpose."""
    inside, outside = tmp_path / "case", tmp_path / "outside"

    def crash(folder: Path) -> None:
        raise KeyError("x")

    def two_lines(folder: Path) -> None:
        error = BadInput("one")
        error.args = ("one\ntwo",)
        raise error

    def sentence(folder: Path) -> None:
        raise BadInput("expected one thing, got another")

    assert "KeyError" in fails(inside, crash)
    assert "'\\n'" in fails(inside, two_lines)
    assert fails(inside, sentence) == ""
    assert fails(inside, lambda folder: (folder / "b").write_text("x")) == ""
    assert "open of" in fails(inside, lambda folder: outside.write_text("x"))
    assert "os.mkdir of" in fails(inside, lambda folder: (tmp_path / "other").mkdir())
    assert "os.system" in fails(inside, lambda folder: os.system(f"{sys.executable} -c pass"))
    assert wrong_sentence("") != ""


def test_the_guard_stops_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.guard.SECONDS", 0.05)

    def endless(folder: Path) -> None:
        while True:
            pass

    assert "seconds" in fails(tmp_path / "case", endless)


def test_nothing_is_watched_outside_of_a_case(tmp_path: Path) -> None:
    with watched(tmp_path / "case") as seen:
        pass
    (tmp_path / "x").write_text("x")
    assert seen == []
