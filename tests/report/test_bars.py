"""The bar of a column: both lanes on one scale, and nothing drawn that is not known."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import Standing, conclude
from plumbob.auditing.running.finding import Finding
from plumbob.report.bars import EDGE, WIDTH, bar, lanes, legend
from tests.report import samples


def standing(findings: list[Finding], name: str = "c") -> Standing:
    (judged,) = conclude(findings).situations
    return next(one for one in judged.standings if one.verdict.column == name)


def one_column(error: float, **changes: float) -> list[Finding]:
    """One column in three trials that agree; the best baseline errs by 0.04."""
    column = samples.column("c", error, np.random.default_rng(0))
    return [samples.finding([replace(column, **changes)], trial=trial) for trial in range(3)]


def drawn(one: Standing, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(str(bar(one)))
    return [e for e in root.iter() if (e.get("class") or "").split()[:1] == [kind]]


def width(one: Standing, kind: str) -> float:
    (rect,) = drawn(one, kind)
    return float(rect.get("width", "")) / (WIDTH - 2 * EDGE)


def test_the_floor_is_the_share_of_the_variance_not_of_the_best_guess() -> None:
    """A guess from own columns leaves half of the variance: removing half of that error explains three quarters."""
    leak = standing(one_column(0.02, baseline_error=0.04, gain=0.5, gain_error=0.02, r2=0.75))
    at = lanes(leak)
    assert at.floor == pytest.approx(0.75)
    assert (at.low, at.high) == (
        pytest.approx(1 - (1 - leak.verdict.low) / 2),
        pytest.approx(1 - (1 - leak.verdict.high) / 2),
    )
    assert at.low < at.floor < at.high
    assert width(leak, "floor") == pytest.approx(0.75, abs=0.002)
    assert at.unseen is None


def test_what_may_have_gone_unseen_is_a_bracket_from_what_guessing_explains() -> None:
    harmless = one_column(0.0404, gain=-0.01, gain_error=0.01, r2=0.495, tie=0.0)
    safe = standing(samples.capped(harmless, high=0.06))
    assert safe.level == "none"
    start, end = lanes(safe).unseen or (0.0, 0.0)
    assert start == pytest.approx(0.5)
    assert end == pytest.approx(0.5 + 0.06 * 0.5)
    assert not drawn(safe, "floor")
    assert len(drawn(safe, "unseen")) == 1
    unknown = standing(harmless)  # without a ceiling any gain is possible
    assert lanes(unknown).unseen == (pytest.approx(0.5), 1.0)


def test_the_ceiling_stands_above_the_floor_and_may_be_lower() -> None:
    found = standing(samples.capped(one_column(0.0), high=0.2))
    at = lanes(found)
    assert (at.own, at.full) == (pytest.approx(0.1), pytest.approx(0.2))  # of learners
    assert at.floor == at.top == 1.0  # algebra found more, so that more is possible
    assert lanes(standing(samples.capped(one_column(0.0415), high=0.2))).top == pytest.approx(0.3)
    assert width(found, "own") == pytest.approx(0.1, abs=0.002)
    assert width(found, "told") == pytest.approx(0.1, abs=0.002)
    assert not drawn(standing(one_column(0.0)), "own")  # none was computed


def test_branches_and_labels_are_shares_of_the_mistakes_of_guessing() -> None:
    found = conclude(samples.branches(shares=(0.3,))).situations[0].standings
    assert all(lanes(one).floor == pytest.approx(max(0.0, one.verdict.gain)) for one in found if one.level.leaks)


def test_a_column_that_nobody_attacked_has_neither_floor_nor_bracket() -> None:
    (only,) = (f for f in samples.capped(one_column(0.0)) if f.score.ceilings and f.trial == 0)
    untested = standing([only])
    assert untested.level == "not tested"
    assert not drawn(untested, "floor")
    assert not drawn(untested, "unseen")
    assert drawn(untested, "own")


def test_a_leak_that_removes_no_error_has_its_sign() -> None:
    found = {one.verdict.column: one for one in conclude(samples.every_level()).situations[0].standings}
    for name in ("recovered for some", "in order"):
        assert lanes(found[name]).floor == 0
        (mark,) = drawn(found[name], "mark")
        assert (mark.get("class") or "").split()[1] == found[name].level.css
    assert not drawn(found["safe"], "mark")
    assert not drawn(found["leaking"], "mark")


def test_everything_stays_inside_and_is_said_in_words() -> None:
    for one in conclude(samples.capped(samples.audit(), high=0.97)).situations[0].standings:
        root = ElementTree.fromstring(str(bar(one)))
        assert one.words in root.get("aria-label", "")
        for rect in root.iter("rect"):
            assert EDGE <= float(rect.get("x", "")) <= WIDTH
            assert float(rect.get("x", "")) + float(rect.get("width", "")) <= WIDTH - EDGE + 1.01
    assert len(legend()) == 5
