"""The answer in short sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.running.finding import Finding
from plumbob.report.answer import answers
from plumbob.report.facts import Asked, facts, holdings, not_known, taking_part
from plumbob.threats import THREATS
from tests.report import samples

BANK = Asked(parties=("bank", "shop"), active="bank", threats=(THREATS["active"],))


def said(findings: list[Finding], asked: Asked = BANK, gaps: tuple[Gap, ...] = ()) -> dict[str, str]:
    return {fact.name: fact.said for fact in facts(answers(conclude(findings, gaps)), asked)}


def test_the_answer_names_who_learns_what_and_how_sure_it_is() -> None:
    told = said(samples.capped(samples.values(shares=(0.3,))))
    assert told["Who learns it"].startswith("The active party, which knows the model, column names and ranges.")
    assert told["Worst column"] == "income: recovered exactly, by box solving."
    assert told["Attacked"] == "The bank holds 9 of the 19 columns; the shop's 10 were attacked."
    assert told["Evidence"].startswith("5 trials of each attack, 1,000 rows.")
    assert "Not known" not in told


def test_close_hits_are_told_beside_a_fixed_guess() -> None:
    def fixed(finding: Finding) -> Finding:
        columns = [
            replace(c, within_5=0.21, fixed_1=0.02, fixed_5=0.1, fixed_10=0.2) for c in finding.score.columns[1:]
        ]
        return replace(finding, score=replace(finding.score, columns=tuple(columns)))

    worst = said(list(map(fixed, samples.values(shares=(0.3,)))))["Worst column"]
    assert "21 % of the values were hit to within 5 % of the range; a fixed guess hits 10 %." in worst


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (replace(BANK, parties=("bank", "shop", "ACME 2")), "the shop and ACME 2's 10 were attacked."),
        (
            Asked(("bank", "shop", "club"), "bank", (replace(THREATS["collusion"], name="active"),)),
            "The bank and the shop hold 9 of the 19 columns; the club's 10 were attacked.",
        ),
        (Asked(), "The curious side holds 9 of the 19 columns; the others were attacked."),
    ],
)
def test_who_holds_what(asked: Asked, words: str) -> None:
    (answer,) = answers(conclude(samples.values(shares=(0.3,))))
    assert holdings(answer, asked).endswith(words)


def test_what_taking_part_adds_with_and_without_complete_rows() -> None:
    found = answers(conclude(samples.capped(samples.harmless(), high=0.06)))
    assert taking_part(found, BANK) == (
        "Without complete rows of other people: nothing that attacks found. For whoever has complete rows of other people: "
        "3 points of the variance of housing (own columns alone 10 %, with the messages 13 %)."
    )
    none = answers(conclude(samples.capped(samples.harmless(), high=0.004)))
    assert taking_part(none, BANK).endswith("For whoever has complete rows of other people: at most 0 % in any column.")
    blind = answers(conclude(samples.capped(samples.harmless(), covers=False)))
    assert taking_part(blind, BANK).endswith("not known, since no learner reads these messages.")
    unasked = taking_part(answers(conclude(samples.values())), BANK)
    assert unasked == "Without complete rows of other people: income (recovered exactly)."


def test_what_could_be_imputed_anyway_is_said() -> None:
    """Four columns leak between 56 and 81 % of the variance, one is recovered, one leaks its order."""
    findings = samples.capped(samples.values(shares=(0.3,)))

    def told(own: float) -> str:
        every = [
            replace(f, score=replace(f.score, ceilings=tuple(replace(c, own=own, full=own) for c in f.score.ceilings)))
            for f in findings
        ]
        return taking_part(answers(conclude(every)), BANK)

    assert "impute" not in told(0.1)
    assert told(0.95).endswith(
        "Of 6 columns that leak, whoever has complete rows could impute 4 as well from own columns alone; without such rows, 4 "
        "of these leak through the messages."
    )


def test_a_leak_that_needs_complete_rows_is_not_told_of_an_attacker_without_them() -> None:
    found = answers(conclude(samples.values(threat="active-auxiliary") + samples.harmless()))
    assert taking_part(found, BANK) == (
        "Without complete rows of other people: nothing that attacks found. With complete rows, and what else such attackers "
        "know: income (recovered exactly)."
    )


def test_what_is_not_known_is_counted_over_all_situations() -> None:
    missing = Gap("logistic_regression", "collusion", "none", "no attack of this plan applies")
    silent = Gap("logistic_regression", "passive", "none", "it gets no message", meaningful=False)
    found = answers(conclude(samples.capped(samples.harmless()), [missing, silent]))
    assert not_known(found) == "1 of 3 situations was not tested. Not known is not safe."
    assert (
        not_known(answers(conclude(samples.harmless())))
        == "10 columns are undecided or not tested. Not known is not safe."
    )
    both = answers(conclude(samples.harmless() + samples.capped(samples.values()), [missing]))
    assert not_known(both) == (
        "1 of 3 situations was not tested; in 1 of 3 situations some columns are undecided or not tested. "
        "Not known is not safe."
    )
    assert not_known(answers(conclude(samples.capped(samples.harmless())))) == ""


def test_nothing_measured_has_no_facts() -> None:
    assert facts(answers(conclude([])), BANK) == []
