"""The sections of a report beside the answer: who could learn what, rows at risk, the gate, before and after."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import samples
from rich.console import Console

from plumbob import listing
from plumbob.audit.finding import Finding
from plumbob.audit.frontier import frontiers
from plumbob.audit.gate import Gate
from plumbob.audit.judge import in_words, summarise
from plumbob.audit.learnt import unlearnt
from plumbob.audit.matrix import matrix, of_plan
from plumbob.audit.plan_file import make_plan
from plumbob.report.answer import answers
from plumbob.report.before_after import before_after
from plumbob.report.gating import outcome
from plumbob.report.matrix import grids, markdown
from plumbob.report.page import render
from plumbob.report.risk import sentence, short_sentence
from plumbob.report.terminal import print_summary

DOCS = Path(__file__).parents[2] / "docs"
COUNTS = {"all_1": 41.0, "half_1": 80.0, "any_1": 200.0, "all_5": 3.0, "half_5": 0.0, "any_5": 220.0}
COUNTS |= {f"{name}_chance": 0.0 for name in COUNTS}


def told(findings: list[Finding], **counts: float) -> list[Finding]:
    return [replace(f, score=replace(f.score, rows_at_risk=COUNTS | counts)) for f in findings]


def test_the_page_of_the_docs_is_made_from_the_code() -> None:
    """Write it again with markdown(matrix()) where this fails."""
    assert (DOCS / "matrix.md").read_text(encoding="utf-8") == markdown(matrix())


def test_every_cell_of_the_matrix_has_attacks_or_a_reason() -> None:
    rows = [(block, row) for block in matrix() for row in block.rows]
    assert len(rows) == 9 * 9
    assert all(row.fits or row.reasons for _, row in rows)
    cell = next(r for b, r in rows if (b.protocol, r.threat) == ("logistic_regression", "active-black-box"))
    assert dict(cell.reasons)["needs the model (white box)"]


def test_a_report_says_what_was_run_what_fits_and_why_none_does() -> None:
    plan = make_plan({"data": "breast", "protocols": "logistic_regression", "attacks": ["posterior_mean"]})
    found = summarise(samples.values(shares=(0.3,), attacks=("posterior_mean",)))
    grid = grids(of_plan(plan), found)[0]
    cells = {cell.threat: cell for cell in grid.cells}
    assert grid.cells[0].threat == "active"  # the plan's own first
    assert [one.words for one in cells["active"].attempts] == ["posterior mean: leaking"]
    assert "equation solving" in cells["active"].others
    assert cells["active-black-box-auxiliary"].state == "fits, not run"
    assert cells["coordinator"].state == "none fits"
    assert cells["coordinator"].reasons


def test_no_listing_is_cut_in_a_narrow_terminal() -> None:
    for what in ("threats", "matrix"):
        shown = io.StringIO()
        listing.show(what, listing.entries(what), Console(file=shown, width=80))
        assert "…" not in shown.getvalue()
        assert max(map(len, shown.getvalue().splitlines())) <= 80


def test_people_at_risk_are_counted_and_few_are_not_told() -> None:
    answer = answers(summarise(told(samples.values(shares=(0.3,)))))[0]
    assert sentence(answer).startswith(
        "41 of 1,000 people have all 10 hidden columns recovered to within 1 %, 80 at least half"
    )
    assert (
        short_sentence(answer)
        == "41 of 1,000 people have all 10 hidden columns recovered to within 1 %, 200 at least one."
    )
    some = answers(summarise(told(samples.values(shares=(0.3,)), all_1=3.0)))[0]
    assert sentence(some).startswith("Fewer than 5 of 1,000 people")
    none = answers(summarise(told(samples.harmless())))[0]
    assert "that is chance" in sentence(none)
    assert short_sentence(none) == ""
    assert sentence(answers(summarise(samples.values()))[0]) == ""  # findings of an older version


def test_old_findings_still_load() -> None:
    raw = json.loads(samples.values(shares=(0.3,))[0].to_line())
    raw.pop("usual_class")
    raw["score"].pop("rows_at_risk")
    for column in raw["score"]["columns"]:
        for name in ("rows_1_chance", "rows_1", "rows_exact", "two_values"):
            column.pop(name)
    assert Finding.from_line(json.dumps(raw)).score.rows_at_risk == {}


def test_the_gate_is_in_the_report_with_values_and_limits() -> None:
    findings = samples.values(shares=(0.3,))
    gate = Gate.parse("max_gain<0.2 and min_accuracy>0.8")
    found = outcome(gate, gate.check(findings), ["nowhere"])
    assert not found.holds
    assert found.headline == "The gate is broken: 1 of 2 checks failed"
    assert [(line.limit, line.value, line.holds) for line in found.lines] == [
        ("max_gain<0.2", "1.000", False),
        ("min_accuracy>0.8", "0.890", True),
    ]
    page = render(findings, title="t", question="", plan="", environment={}, notes=[], command="", gate=found)
    assert "✗ failed" in page
    assert "✓ passed" in page
    assert "no attack of this plan fits: <bdi>nowhere" in page


def test_before_and_after_say_what_remains() -> None:
    findings = samples.sweep()
    summaries = summarise(findings)
    figure = before_after(frontiers(findings, summaries)[0], answers(summaries))
    assert figure is not None
    assert figure.heading == "Before and after: hide_model"
    assert figure.caption == (
        "Without defence 10 of 10 columns leak, with hide_model 0. What remains: no leak above baseline was found."
    )
    assert figure.drawings[0].count("hollow") == len(samples.NAMES)


def test_a_model_that_learnt_nothing_is_said_to() -> None:
    flat = [replace(f, usual_class=0.9) for f in samples.values(shares=(0.3,))]
    assert "89 % of the rows right, the most frequent class alone 90 %: the model learnt nothing" in unlearnt(flat)[0]
    assert unlearnt([replace(f, usual_class=0.6) for f in flat]) == []
    assert unlearnt([replace(f, usual_class=None) for f in flat]) == []
    assert unlearnt([replace(f, usual_class=0.8, withheld=0.5, model_accuracy=0.45) for f in flat]) == []
    noisy = [replace(f, defence="noise", model_accuracy=0.5, usual_class=0.6) for f in flat]
    assert "of no use" in unlearnt([*(replace(f, usual_class=0.6) for f in flat), *noisy])[0]
    shown = io.StringIO()
    print_summary(flat, Console(file=shown, width=200))
    assert "Mind: logistic regression (no defence)" in shown.getvalue()


def test_two_values_have_no_order() -> None:
    assert "order" not in in_words("order", "values", 0.0, 0.0, 0.7, 1, 1, True)
    columns = [replace(c, two_values=True) for c in samples.values(shares=(0.3,))[0].score.columns]
    last = replace(columns[-1], rank=0.9, gain=-0.1)
    base = samples.finding([*columns[:-1], last])
    found = answers(summarise([base]))[0]
    assert next(c for c in found.columns if c.level == "order").badge == "high or low only"
    assert "told from low ones" in found.breakdown


def test_counts_come_from_a_real_score() -> None:
    from plumbob.attacks.base import Guess
    from plumbob.scoring.score import score, truth_of
    from plumbob.threats import THREATS, cut
    from tests.worlds import world

    log = world()
    view = cut(log, THREATS["active"])
    truth = truth_of(log, view)
    judged = score(Guess(truth.names, truth.values), truth, view, np.random.default_rng(0))
    assert 0 < judged.rows_at_risk["all_1"] <= judged.rows
    assert all(0 < column.rows_1 <= column.rows_exact <= judged.rows for column in judged.columns)
