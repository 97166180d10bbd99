"""Claims: golden ones, the three-valued evidence behind figures, and outcomes that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plumbob.papers import CLAIMS, outcome, outcomes, select
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Part, Scale, part
from plumbob.papers.evidence import below, every, falls, rises
from plumbob.papers.results import write_pages

pytestmark = pytest.mark.nodata


def toy(check: CheckResult) -> Claim:
    return Claim("luo2021", "L1", "Example 1", "a toy", lambda scale, seed: check)


@pytest.mark.parametrize("name", ["luo2021/L1", "luo2021/L2", "luo2021/L16"])
def test_the_worked_examples_are_reproduced(name: str) -> None:
    (claim,) = select(name)
    assert outcome(claim, "smoke", 0).status == "reproduced"


def test_a_slope_is_seen_where_there_is_one_and_not_where_there_is_none() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(np.linspace(0.1, 0.6, 6), 10)
    noise = rng.normal(scale=0.05, size=60)
    assert rises(x, 0.3 * x + noise) is True
    assert rises(x, -0.3 * x + noise) is False
    assert falls(x, -0.3 * x + noise) is True
    decided = [rises(x, rng.normal(size=60)) for _ in range(400)]
    assert sum(answer is not None for answer in decided) < 0.09 * 400


def test_below_is_paired() -> None:
    base = np.random.default_rng(1).normal(size=10)
    assert below(base, base + 0.1 + 0.01 * np.arange(10)) is True
    assert below(base + 0.1, base) is False
    assert below([1.0, -1.0, 1.0], [0.9, -0.8, 1.0]) is None


def test_one_no_decides() -> None:
    assert every([True, True]) is True
    assert every([True, None]) is None
    assert every([None, False, True]) is False


@pytest.mark.parametrize(("holds", "status"), [(True, "reproduced"), (False, "contradicted"), (None, "open")])
def test_what_a_check_says_becomes_a_status(holds: bool | None, status: str) -> None:
    assert outcome(toy(CheckResult(holds, {}, "x", 1)), "smoke", 0).status == status


def test_a_kept_outcome_is_not_computed_again_unless_the_version_differs(tmp_path: Path) -> None:
    calls = []

    def check(scale: str, seed: int) -> CheckResult:
        calls.append(seed)
        return CheckResult(True, {"n": len(calls)}, "x", 1)

    claim = replace(toy(CheckResult(True, {}, "x", 1)), check=check)
    first = outcome(claim, "smoke", 3, tmp_path)
    assert outcome(claim, "smoke", 3, tmp_path) == first
    (kept,) = tmp_path.glob("*.json")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"version": "0.0.0"}))
    assert outcome(claim, "smoke", 3, tmp_path).measured == {"n": 2}


def test_a_page_shows_every_outcome_and_its_figures(tmp_path: Path) -> None:
    figure = ClaimFigure(
        "bank",
        "share",
        "MSE",
        [Curve("ESA", [0.1, 0.5], [0.1, 0.2], [0.01, 0.02]), Curve("uniform", [0.1, 0.5], [0.3, 0.3])],
    )
    claim = toy(CheckResult(False, {"MSE": [0.1, 0.25]}, "grows", 3, "because | of this", (figure,)))
    outcome(claim, "smoke", 0, tmp_path)
    (page,) = write_pages(tmp_path, [claim], {"plumbob": "1"})
    text = page.read_text()
    assert "**contradicted**" in text
    assert "Because | of this." in text
    assert "0.1, 0.25" in text
    assert (tmp_path / "luo2021-L1-smoke-0-bank.svg").read_text().count("<path") > 3


def test_claims_are_listed_by_paper_and_number() -> None:
    numbers = [(claim.paper, int(claim.id[1:])) for claim in CLAIMS.values()]
    assert numbers == sorted(numbers)


def test_workers_find_the_same() -> None:
    claims = [CLAIMS["luo2021/L16"], CLAIMS["jin2021/C13"]]
    one, two = (
        {o.claim: o.measured for found in outcomes(claims, "smoke", 0, None, workers) for o in found}
        for workers in (1, 2)
    )
    assert len(one) == 2
    assert one == two


def test_an_interrupted_check_goes_on_from_its_last_part(tmp_path: Path) -> None:
    done: list[str] = []

    def work(name: str) -> Part:
        done.append(name)
        if name == "second" and done.count("second") == 1:
            raise KeyboardInterrupt
        return Part({name: 1.5}, [True], [Curve("c", [0.0], [1.0])], {name: b"\x00png"})

    def check(scale: Scale, seed: int) -> CheckResult:
        parts = [part(name, lambda name=name: work(name)) for name in ("first", "second")]
        return CheckResult(
            True, {k: v for p in parts for k, v in p.measured.items()}, "", 1, sheets=tuple(parts[0].sheets.items())
        )

    claim = Claim("toy", "T1", "nowhere", "toy", check)
    with pytest.raises(KeyboardInterrupt):
        outcome(claim, "smoke", 0, tmp_path)
    made = outcome(claim, "smoke", 0, tmp_path)
    assert done == ["first", "second", "second"]
    assert made.measured == {"first": 1.5, "second": 1.5}
    assert (tmp_path / "toy-T1-smoke-0-first.png").read_bytes() == b"\x00png"
    assert not list(tmp_path.glob(".*.part"))
