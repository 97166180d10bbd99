"""Data nobody tuned for, a few seeds of it: planted leaks are called exact, safe columns safe; and the check can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbob.data.files import read_frame
from plumbob.papers.ours.unseen import audited, judged, wrong
from plumbob.papers.ours.unseen_worlds import WORLDS, world, write

QUICK = (1, 2, 5, 7, 11, 12, 15, 17)  # trees and cuts, which take a second each; the rest is for `plumbob reproduce`


@pytest.mark.parametrize("seed", QUICK)
def test_every_planted_column_is_judged_right(seed: int) -> None:
    made, mistakes = judged(seed)
    assert made.exact or made.safe
    assert mistakes == []


def test_the_commands_give_the_verdicts_too() -> None:
    assert judged(5, commands=True)[1] == []


def test_a_wrong_verdict_is_found(tmp_path: Path) -> None:
    """The check would be worthless if it called every verdict right: exact columns are no safe ones, nor the reverse."""
    made = world(5)
    findings = audited(made, tmp_path, 5, commands=False)
    assert wrong(made, findings) == []
    swapped = type(made)(**vars(made) | {"exact": made.safe, "safe": made.exact})
    assert len(wrong(swapped, findings)) == len(made.safe) + len(made.exact)


@pytest.mark.parametrize("seed", range(2 * len(WORLDS)))
def test_files_hold_what_was_made(seed: int, tmp_path: Path) -> None:
    made = world(seed)
    files = write(made, tmp_path, seed)
    assert world(seed) == made
    assert made.exact or made.safe
    for party, file in files.items():
        frame = read_frame(file, text=["id"])
        assert set(frame.columns) == {"id", *made.columns[party], *(["target"] if party == made.active else [])}
        assert len(made.label) * 0.97 <= len(frame) <= len(made.label)
