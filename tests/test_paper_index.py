"""The index of the papers: what its rows name is there, and every part of a paper that says something has a row."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.generate import DOCS
from docs.generate.paper_index import PAPERS, PaperPart, Row, parts, rows
from plumbob.attacks import ATTACKS
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.defences import DEFENCES
from plumbob.papers import CLAIMS
from plumbob.protocols import PROTOCOLS
from plumbob.threats import THREATS

ROOT = DOCS.parent
REGISTERED = {"attack": ATTACKS, "defence": DEFENCES, "protocol": PROTOCOLS, "threat": THREATS}
BESIDE = ("precheck", "psi")  # defences that are steps before a protocol: a page and no class
EVERY = [pytest.param(row, id=f"{paper}: {row.where}, {row.what[:30]}") for paper in PAPERS for row in rows(paper)]
# What each paper prints that can be run: sections, equations, algorithms, theorems, tables and figures with results.
PRINTED = {
    "luo2021": "II-A II-B III-A III-B III-C IV-A IV-B V-A V-B VI-A VI-B VI-C VII Algorithm:1,2 Example:1,2 "
    "Table:II,III Fig:5,6,7,8,9,10,11 Eq:1,2,3,4,5,6,7,8,9,11,12,13,14,15,16,17",
    "jiang2022": "3.1 3.2 4.1 4.2.1 4.2.2 4.3.1 4.3.2 5.1 5.2.1 5.2.2 5.3 6.1.1 6.1.2 6.1.3.1 6.1.3.2 6.1.3.3 6.2 Algorithm:1,2 "
    "Table:1 Fig:5,6,7,8,9,10,11,12,13,14,15 Eq:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22",
    "weng2022": "2.2 2.3.1 2.3.2 3 4.1 4.2 4.3 5.1.1 5.1.3 5.3 5.4 6 Algorithm:1 Table:1,3,5,6,7,8 Fig:3,4,5,6,7,8,9 "
    "Eq:1,2,3,4,5,6,7,8,9",
    "jin2021": "3.1 3.2 3.3 3.4 4.1 4.2 4.3 4.4 4.5 G.1 G.2 G.3 G.4 Algorithm:1,2,3,4,5 Theorem:1,2 Table:2,3,4,5,6,7,8,9,10,11 "
    "Fig:1,5,8 Eq:1,2,3,4,5,6,7,8,9",
    "ye2022": "III-A III-B III-C III-D IV-A IV-B IV-C V-A V-B VI-A VI-C VI-D VI-E VII Algorithm:1,2,3,4 Theorem:1,2,3,4,5 "
    "Table:I Fig:2,3,4,5",
}


@pytest.mark.parametrize("row", EVERY)
def test_what_a_row_names_is_there(row: Row) -> None:
    for place in row.lives:
        kind, _, name = place.partition(" ")
        assert (name in REGISTERED[kind] or name in BESIDE) if kind in REGISTERED else (ROOT / place).is_file(), place
    for test in row.tests:
        path, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test
    assert row.lives
    assert row.tests


@pytest.mark.parametrize("row", [*EVERY, *(pytest.param(part, id=part.what) for part in parts())])
def test_what_a_row_says_to_run_can_be_run(row: Row | PaperPart) -> None:
    for command in filter(None, row.run.split(" | ")):
        if command.startswith("plumbob reproduce "):
            assert command.removeprefix("plumbob reproduce ") in {claim.name for claim in CLAIMS.values()}, command
        elif command.startswith("plumbob "):
            assert command.split()[1] in ("audit", "bench", "list", "precheck"), command
        else:
            part = yaml.safe_load(command)
            if "data" not in part:  # a part of `data` is no plan by itself
                make_plan(part, DOCS)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_part_has_a_row(paper: str) -> None:
    places = " ; ".join(row.where for row in rows(paper))
    missing = []
    for part in PRINTED[paper].split():
        word, _, numbers = part.partition(":")
        for number in numbers.split(",") if numbers else [""]:
            if not _named(places, word, number):
                missing.append(f"{word} {number}".strip())
    assert missing == []


def _named(places: str, word: str, number: str) -> bool:
    """Whether a place names a section, or a numbered thing, by itself or within a range such as `Eq 3-8`."""
    if not number:
        return (
            re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])(?!\.\d)|(?<![\w.-]){re.escape(word)}\.", places)
            is not None
        )
    for found in re.finditer(rf"{word}(?:e?s)? ((?:[\dIVX]+[a-z]?(?:-[\da-z]+)?(?:, (?=[\dIVX]+\b))?)+)", places):
        for piece in found[1].split(", "):
            low, _, high = piece.partition("-")
            if number == low or number == low.rstrip("abcdef"):
                return True
            if high.isdigit() and low.isdigit() and number.isdigit() and int(low) <= int(number) <= int(high):
                return True
    return False


@pytest.mark.parametrize("part", [pytest.param(part, id=part.what) for part in parts()])
def test_figures_of_a_part_come_from_a_committed_result(part: PaperPart) -> None:
    """A figure typed by hand would not follow a result that changes."""
    assert part.claim in {"", *(claim.name for claim in CLAIMS.values())}
    typed = re.sub(r"{[^}]*}", "", part.template)
    assert part.came_out
    if not part.claim:
        assert not re.search(r"\d+(\.\d+)?\s*%|0?\.\d", typed), typed
