"""The sections of a report beside the answer: who could learn what, rows at risk, the gate, before and after."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console

from plumbob import listing
from plumbob.auditing.concluding.conclusion import NO_ATTACK, conclude
from plumbob.auditing.concluding.defence_frontier import frontiers
from plumbob.auditing.concluding.model_quality import unlearnt
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.planning.matrix import Block, matrix, of_plan, row
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.finding import Finding
from plumbob.protocols import PROTOCOLS
from plumbob.report.answer import answers, how, overall, sure
from plumbob.report.before_after import before_after
from plumbob.report.gating import gate_section
from plumbob.report.matrix import grids
from plumbob.report.page import About, render
from plumbob.report.risk import of_column, people
from plumbob.report.terminal import print_summary
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS
from tests.report import samples

COUNTS = {"all_1": 41.0, "half_1": 80.0, "any_1": 200.0, "all_5": 3.0, "half_5": 0.0, "any_5": 220.0}
COUNTS |= {f"{name}_chance": 0.0 for name in COUNTS}
HIT = {"all_1": 50.0, "half_1": 90.0, "any_1": 300.0, "all_5": 60.0, "half_5": 95.0, "any_5": 310.0}
COUNTS |= {f"{name}_hit": number for name, number in HIT.items()}


def told(findings: list[Finding], **counts: float) -> list[Finding]:
    return [replace(f, score=replace(f.score, rows_at_risk=COUNTS | counts)) for f in findings]


def test_every_cell_of_the_matrix_has_attacks_or_a_reason() -> None:
    rows = [(block, row) for block in matrix() for row in block.rows]
    taken = [all(isinstance(d, p.open_to) for d in t.deviations) for p in PROTOCOLS.values() for t in THREATS.values()]
    assert len(rows) == sum(taken)
    assert all(row.fits or row.reasons for _, row in rows)
    cell = next(r for b, r in rows if (b.protocol, r.threat) == ("logistic_regression", "active-black-box"))
    assert dict(cell.reasons)["needs the model (white box)"]


def test_a_report_says_what_was_run_what_fits_and_why_none_does() -> None:
    plan = make_plan({"data": "breast", "protocols": "logistic_regression", "attacks": ["posterior_mean"]})
    grid = grids(of_plan(plan), conclude(samples.values(shares=(0.3,), attacks=("posterior_mean",))))[0]
    cells = {cell.threat: cell for cell in grid.cells}
    assert grid.cells[0].threat == "active"  # the plan's own first
    assert [one.words for one in cells["active"].attempts] == ["posterior mean: leaking"]
    assert "equation solving" in cells["active"].others
    assert cells["active-black-box-auxiliary"].state == "fits, not run"
    assert cells["coordinator"].state == "fits, not run"
    assert cells["coordinator"].reasons
    trees = make_plan({"data": "breast", "protocols": "random_forest", "attacks": ["forest_boxes"]})
    silent = {cell.threat: cell for cell in grids(of_plan(trees), conclude([]))[0].cells}["passive-training"]
    assert (silent.state, "'scores' to the active party" in silent.reasons) == ("not applicable", True)
    assert (cells["coordinator"].role, cells["passive-training"].role) == ("the coordinator alone", "a passive party")


def test_no_listing_is_cut_in_a_narrow_terminal() -> None:
    for what in ("threats", "matrix"):
        shown = io.StringIO()
        listing.show(what, listing.entries(what), Console(file=shown, width=80))
        assert "…" not in shown.getvalue()
        assert max(map(len, shown.getvalue().splitlines())) <= 80


def test_people_at_risk_are_counted_and_few_are_not_told() -> None:
    answer = answers(conclude(told(samples.values(shares=(0.3,)))))[0]
    assert people(answer) == (
        "All 10 hidden values of 50 of 1,000 people were guessed to within 1 % of the range; chance: none. "
        "For 200 of 1,000 people at least one hidden value was guessed to within 1 % of the range where the best guess "
        "without a message misses; chance gives none."
    )
    some = answers(conclude(told(samples.values(shares=(0.3,)), all_1=3.0, all_1_hit=4.0, all_1_chance=0.2)))[0]
    assert people(some).startswith(
        "For 200 of 1,000 people at least one"
    )  # no fewer than by chance, as far as it is told
    dealt = {"all_1_chance": 41.0, "half_1_chance": 80.0, "any_1_chance": 190.0}
    lucky = people(answers(conclude(told(samples.values(shares=(0.3,)), **dealt)))[0])
    assert lucky == (
        "No more people are hit than by chance: for 200 of 1,000 a hidden value was guessed to within 1 % of the range where "
        "the best guess without a message misses; chance gives 190."
    )
    assert people(answers(conclude(told(samples.harmless())))[0]).startswith("No more people are hit than by chance")
    assert people(answers(conclude(samples.values()))[0]) == ""  # findings of an older version


def test_everybody_is_said_in_one_sentence() -> None:
    every = dict.fromkeys((f"{share}_{at}_hit" for share in ("all", "half", "any") for at in "15"), 1_000.0)
    beyond = dict.fromkeys(("all_1", "half_1", "any_1"), 988.0)
    answer = answers(conclude(told(samples.values(shares=(0.3,)), **every, **beyond)))[0]
    assert people(answer) == (
        "All 10 hidden values of all 1,000 people tested were guessed to within 1 % of the range; chance: none."
    )
    rng = np.random.default_rng(0)
    exact = [samples.finding([samples.column(name, 0.0, rng) for name in "ab"])]
    whole = answers(conclude(told(exact, **every, **beyond, all_1_chance=3.0)))[0]
    assert people(whole) == "All 2 hidden values of all 1,000 people tested were recovered; chance: fewer than 5."


def test_counts_of_older_versions_are_those_beyond_a_fixed_guess() -> None:
    old = {name: number for name, number in COUNTS.items() if not name.endswith("_hit")}
    findings = samples.values(shares=(0.3,))
    mixed = [replace(f, score=replace(f.score, rows_at_risk=COUNTS if f.trial else old)) for f in findings]
    assert people(answers(conclude(mixed))[0]).startswith("All 10 hidden values of 41 of 1,000 people were guessed")


def test_people_of_a_column_are_told_beside_chance() -> None:
    verdict = answers(conclude(samples.values(shares=(0.3,))))[0].columns[1].verdict
    verdict = replace(verdict, within_1=20 / 384, rows_1=19.0, rows_exact=0.0, rows_1_chance=8.0)
    close = "for 20 of 384 people the guess was within 1 % of the range (a fixed guess: 38)"
    assert of_column(replace(verdict, fixed_1=0.1), 384) == (
        f"{close}; where the best guess without a message misses for 19, by chance 8"
    )
    assert "for all 384 people" in of_column(replace(verdict, within_1=1.0), 384)
    assert of_column(replace(verdict, rows_1=0.0), 384) == (
        "nobody was guessed to within 1 % of the range whom the best guess without a message misses"
    )
    exact = replace(verdict, level=Level.EXACT, within_1=1.0)
    assert of_column(exact, 384) == ""  # the verdict says it


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
    judged = gate.outcome(findings, conclude(findings, [Gap("nowhere", "active", "none", NO_ATTACK)]))
    found = gate_section(judged)
    assert not found.holds
    assert found.headline == "The gate is broken: 2 of 3 checks failed"
    assert [(line.limit, line.value, line.holds) for line in found.lines] == [
        ("max_gain<0.2", "1.000", False),
        ("max_gain<0.2", "not measured", False),
        ("min_accuracy>0.8", "0.890", True),
    ]
    shown = page(findings, gate=judged)
    assert "✗ failed" in shown
    assert "✓ passed" in shown
    assert "<bdi>nowhere, threat active, defence none: not tested, no attack of this plan applies" in shown


def test_before_and_after_say_what_remains() -> None:
    findings = samples.capped(samples.sweep())
    conclusion = conclude(findings)
    figure = before_after(frontiers(findings, conclusion)[0], answers(conclusion))
    assert figure is not None
    assert figure.heading == "Before and after: hide_model"
    assert figure.caption == (
        "Without defence 10 of 10 columns leak, with hide_model 0. What remains: no leak above 3 % in any column."
    )
    assert figure.drawings[0].count("hollow") == len(samples.NAMES)


def test_a_model_that_learnt_nothing_is_said_to_once() -> None:
    flat = [replace(f, usual_class=0.9) for f in samples.values(shares=(0.3,))]
    said = unlearnt(flat)
    assert said.startswith("the model learnt nothing, for it gets no more rows right than the most frequent class")
    assert said.endswith("logistic regression (no defence: 89 % against 90 %)")
    assert unlearnt([replace(f, usual_class=0.6) for f in flat]) == ""
    assert unlearnt([replace(f, usual_class=None) for f in flat]) == ""
    assert unlearnt([replace(f, usual_class=0.8, withheld=0.5, model_accuracy=0.45) for f in flat]) == ""
    assert "understated" not in said  # a column is recovered exactly: there is no more of it to find
    partly = [f for f in flat if f.attack != "box_solving"]
    assert "its leak may be understated and the price" in unlearnt(partly)
    useful = [replace(f, usual_class=0.6) for f in flat]
    noisy = [replace(f, defence=f"noise {i}", model_accuracy=0.5, usual_class=0.6) for f in flat for i in range(5)]
    assert unlearnt([*useful, *noisy]).startswith("5 defences leave a model of no use")
    for text in (printed([*useful, *noisy]), page([*useful, *noisy])):
        assert text.count("Warning") == 1


def printed(findings: list[Finding]) -> str:
    shown = io.StringIO()
    print_summary(findings, Console(file=shown, width=200))
    return shown.getvalue()


def page(findings: list[Finding], **changes: Any) -> str:
    return render(findings, About(**({"title": "t", "command": "plumbob audit"} | changes)))


def test_two_values_have_no_order() -> None:
    columns = [replace(c, two_values=True) for c in samples.values(shares=(0.3,))[0].score.columns]
    last = replace(columns[-1], rank=0.9, tie=0.9, gain=-0.1)
    base = samples.finding([*columns[:-1], last])
    found = answers(conclude([base]))[0]
    order = next(c for c in found.columns if c.level == "order")
    assert order.badge == "high or low only"
    assert "order" not in order.words
    assert "told from low ones" in found.breakdown


def test_two_values_that_leak_are_not_said_to_be_missed() -> None:
    """A guess between two values is within 5 % of neither, and still tells which it is."""
    base = samples.column("member", 0.01, np.random.default_rng(0))
    for two_values, words in (
        (True, "75 % better than guessing"),
        (False, "75 % better than guessing (71 to 79 %); 0 % of the values were hit to within 5 % of the range"),
    ):
        column = replace(base, two_values=two_values, within_5=0.0)
        assert f"Worst column: member, {words}" in how(answers(conclude([samples.finding([column])]))[0])


def test_a_gain_that_is_not_called_a_leak_is_explained() -> None:
    base = samples.column("visits", 0.028, np.random.default_rng(0), rank=0.6)
    found = answers(conclude([samples.finding([replace(base, tie=None, gain=0.25, gain_error=0.117)])]))[0]
    assert found.columns[0].level == "order"
    assert "a gain of 25 % (2 to 48 %) fails the stricter test that covers all columns" in found.columns[0].words
    assert "so it does not count as a leak of values" in sure(found)
    plain = answers(conclude([samples.finding([replace(base, tie=None, gain=0.1, gain_error=0.117)])]))[0]
    assert "stricter" not in plain.columns[0].words + sure(plain)


def test_a_column_that_is_recovered_at_times_is_not_said_to_be_always() -> None:
    rng = np.random.default_rng(0)
    trials = [samples.finding([samples.column("visits", error, rng)], trial=i) for i, error in enumerate((0.0, 0.01))]
    assert "The worst column was recovered in 1 of 2 trials." in sure(answers(conclude(trials))[0])
    assert "recovered in every trial" in sure(answers(conclude(trials[:1]))[0])


def labelled(findings: list[Finding], right: float, usual: float = 0.5) -> list[Finding]:
    return [replace(f, score=replace(f.score, label_accuracy=right, label_baseline=usual)) for f in findings]


def test_the_label_is_part_of_the_answer() -> None:
    findings = samples.capped(labelled(samples.values(threat="passive-training"), 1.0))
    found = answers(conclude(findings))
    assert found[0].headline.startswith(
        "Yes: 6 of 10 columns leak (1 in order only) to a passive party, and the label;"
    )
    assert "Of the label: every label is known, where the best guess without a message gets 50 %." in found[0].breakdown
    other = answers(conclude(findings + samples.capped(samples.values(threat="active-training"))))
    assert (
        overall(other).partition("; ")[0]
        == "Yes: 6 of 10 columns leak (1 in order only), and the label in at least one of 2 situations"
    )
    assert "leak (1 in order only) to a passive party, and the label;" in printed(findings)
    shown = page(findings)
    assert "<dt>Label</dt><dd><bdi>Every label is known, where the best guess without a message gets 50" in shown
    assert "<bdi>the label</bdi>" in shown.split('id="column-table"')[1].split("</table>")[0]
    assert "<dt>Pictures</dt>" not in shown


def test_a_label_alone_is_a_leak_and_chance_is_none() -> None:
    conclusion = conclude(samples.capped(labelled(samples.harmless(), 0.8)))
    only = answers(conclusion)[0]
    assert only.headline == "Yes: the label leaks to the active party; no leak above 3 % was found in 10 columns"
    assert only.level == "leak"
    assert how(only).startswith("Tried without success on columns")
    # 2.5 standard errors in every trial: of five tests at once, that is not enough for any
    lucky = answers(conclude(samples.capped(labelled(samples.harmless(), 0.54))))[0]
    assert lucky.label is not None
    assert (lucky.level, lucky.label.level) == ("undecided", "undecided")
    same = answers(conclude(samples.capped(labelled(samples.harmless(), 1.0, 1.0))))[0]
    assert same.label is not None
    assert not same.label.level.leaks  # there is one class only
    (grid,) = grids(
        [Block("logistic_regression", "prediction", (row("logistic_regression", THREATS["active"]),))], conclusion
    )
    assert [made.words for made in grid.cells[0].attempts] == ["generative regression: leaking (the label)"]


def test_counts_come_from_a_real_score() -> None:
    from plumbob.attacks.base import Guess
    from plumbob.scoring.score import score
    from plumbob.scoring.truth import truth_of
    from plumbob.threats import cut
    from tests.worlds import world

    log = world()
    view = cut(log, THREATS["active"])
    truth = truth_of(log, view)
    judged = score(Guess(truth.names, truth.values), truth, view, np.random.default_rng(0))
    assert 0 < judged.rows_at_risk["all_1"] <= judged.rows
    assert all(0 < column.rows_1 <= column.rows_exact <= judged.rows for column in judged.columns)
