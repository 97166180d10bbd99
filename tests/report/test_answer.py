from dataclasses import replace

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.report.answer import answers, how, overall, sure, worst_columns
from plumbob.report.exposure import known_before
from plumbob.report.facts import Asked, holdings
from plumbob.report.phrases import plain, short
from plumbob.report.protection import idle_words
from tests.report import samples


def test_the_headline_counts_every_kind_of_leak() -> None:
    (found,) = answers(conclude(samples.capped(samples.values())))
    counted = {level: number for level, number in found.counts.items() if number}
    assert counted == {"exact": 1, "leak": 4, "order": 1, "none": 4}
    assert found.headline == (
        "Yes: 6 of 10 columns leak (1 in order only) to the active party; no leak above 3 % was found in the other 4"
    )
    assert overall([found]) == found.headline


def test_no_leak_is_said_as_such() -> None:
    (found,) = answers(conclude(samples.capped(samples.harmless(), high=0.06)))
    assert found.headline == "No leak above 6 % in 10 columns"
    assert how(found) == "Tried without success: generative regression."


def test_what_is_not_known_is_in_the_headline() -> None:
    (unknown,) = answers(conclude(samples.harmless()))  # no ceiling was computed
    assert unknown.headline == "Not known: no leak was found, but all 10 are undecided"
    (leaking,) = answers(conclude(samples.values()))
    assert leaking.headline == "Yes: 6 of 10 columns leak (1 in order only) to the active party; 4 of 10 are undecided"
    gap = Gap("logistic_regression", "collusion", "none", "no attack of this plan applies")
    tested = samples.capped(samples.harmless())
    said = overall(answers(conclude(tested, [gap])))
    assert said == "Not known: 1 of 2 situations was not tested; elsewhere no leak above 3 % in 10 columns"
    silent = Gap("logistic_regression", "passive", "none", "it gets no message", meaningful=False)
    assert overall(answers(conclude(tested, [silent]))) == "No leak above 3 % in 10 columns"
    covered = replace(silent, threat="active-black-box", covered_by="active", why="covered by active")
    said = overall(answers(conclude(tested, [gap, covered])))
    assert said.startswith("Not known: 1 of 3 situations was not tested and 1 was not run; elsewhere no leak above 3 %")


def test_what_learners_reach_where_no_attack_was_run_is_said_and_counted() -> None:
    gap = Gap("logistic_regression", "coordinator", "none", "Plumbob has no attack for this party here")
    seen = samples.capped(samples.values(shares=(0.3,), threat="coordinator"), high=0.9)
    findings = [*samples.capped(samples.harmless()), *(f for f in seen if f.score.metric == "ceiling")]
    found = answers(conclude(findings, [gap]))
    missing = next(answer for answer in found if answer.untested)
    assert "learners with complete rows of other people explain" in missing.untested
    assert missing.untested.endswith("(own columns alone 10 %); treat it as leaking")
    assert overall(found).startswith("Not known: no leak was found, but all 10 are not tested")  # the worst of both
    assert {one.attack for one in missing.columns} == {""}
    silent = replace(gap, meaningful=False, covered_by="active", why="covered by active")
    covered = answers(conclude(findings, [silent]))
    assert [answer.columns for answer in covered if answer.untested] == [
        ()
    ]  # nothing was tried: nothing to draw or count
    assert overall(covered) == "No leak above 3 % in 10 columns; 1 was not run"


def test_a_party_that_knows_the_values_before_is_named() -> None:
    (found,) = answers(conclude(samples.values(shares=(0.3,))))
    column = found.columns[2]
    assert column.beforehand < 0.5
    known = replace(column, verdict=replace(column.verdict, gain=-1.0, r2=0.8))  # the best guess has R2 = 0.9
    assert known.beforehand == pytest.approx(0.9)
    assert "(90 % of the variance)" in known_before(known)
    assert known_before(column) == ""


def test_a_column_is_named_by_its_strongest_attack() -> None:
    (found,) = answers(conclude(samples.values()))
    worst = {column.verdict.column: column for column in found.columns}
    assert worst["income"].attack == "box_solving"
    assert worst["income"].level == "exact"
    assert worst["loan"].attack == "generative_regression"
    assert worst["loan"].level == "order"
    assert [c.severity for c in found.columns] == sorted((c.severity for c in found.columns), reverse=True)


def test_the_worst_case_is_over_protocols_but_apart_for_defences() -> None:
    columns = worst_columns(answers(conclude(samples.capped(samples.audit()))))
    assert len(columns) == 2 * len(samples.NAMES)
    undefended = {c.verdict.column: c for c in columns if c.situation.defence == "none"}
    assert undefended["duration"].situation.protocol == "decision_tree"
    assert all(c.level == "none" for c in columns if c.situation.defence != "none")


def test_several_situations_are_counted_worst_first() -> None:
    found = answers(conclude(samples.capped(samples.harmless() + samples.values())))
    assert [a.leaking > 0 for a in found] == [True, False]
    assert overall(found) == (
        "Yes: 6 of 10 columns leak (1 in order only) in at least one of 2 situations; no leak above 3 % was found in the other 4"
    )


def test_all_shares_count_and_it_is_stated() -> None:
    (several,) = answers(conclude(samples.values()))
    (one,) = answers(conclude(samples.values(shares=(0.3,))))
    assert "3 shares of unknown columns were tried, 20 % to 60 %; each column counts by its worst case." in holdings(
        several, Asked()
    )
    assert holdings(one, Asked()) == "The curious side holds 9 of the 19 columns; the others were attacked."


def test_changing_columns_are_stated() -> None:
    rng = np.random.default_rng(0)
    trials = [
        samples.finding([samples.column(name, 0.05, rng) for name in names], trial=i)
        for i, names in enumerate((["a", "b"], ["b", "c"]))
    ]
    (found,) = answers(conclude(trials))
    assert len(found.columns) == 3
    assert "changed from trial to trial" in holdings(found, Asked())


def test_one_trial_warns() -> None:
    (found,) = answers(conclude(samples.values(trials=1)))
    assert "One trial" in sure(found)
    (found,) = answers(conclude(samples.values(trials=5)))
    assert "One trial" not in sure(found)
    assert sure(found).startswith("5 trials of each attack, 1,000 rows.")


def test_a_column_that_leaks_in_some_trials_counts_and_says_so() -> None:
    rng = np.random.default_rng(0)
    trials = [
        samples.finding([samples.column("c", error, rng)], trial=i) for i, error in enumerate((0.004, 0.9, 0.004))
    ]
    (found,) = answers(conclude(trials))
    assert found.counts["leak"] == 1
    assert found.columns[0].words.endswith("in 2 of 3 trials")


def test_nothing_measured() -> None:
    assert answers(conclude([])) == []
    assert overall([]) == "Nothing was measured, so there is no answer"


def test_an_unknown_threat_keeps_its_name() -> None:
    (found,) = answers(conclude(samples.capped(samples.values(shares=(0.3,), threat="our own\nthreat"))))
    assert "leak (1 in order only) to our own threat; " in found.headline


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[31mred\x9b", "[31mred"),
        ("\u202eevil\u2066", "evil"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\x00", "(unnamed)"),
        ("lone \ud800", "lone"),
    ],
)
def test_names_lose_what_steers_the_reader(name: str, shown: str) -> None:
    assert plain(name) == shown


def test_long_names_are_cut_in_the_middle() -> None:
    assert short("a" * 200 + "z") == "a" * 40 + "…" + "a" * 38 + "z"


def test_what_was_not_run_is_told_with_what_is_known_of_who_stands_for_it() -> None:
    """Attacks are lower bounds: undecided columns of the tested attacker bound nothing."""
    why = "no better known than active, which sees the same and knows no less"
    gap = Gap("logistic_regression", "active-black-box", "none", why, meaningful=False, covered_by="active")
    found = {
        a.situation.threat: a
        for a in answers(conclude([replace(f, defence="none") for f in samples.harmless()], [gap]))
    }
    assert found["active-black-box"].untested == f"Not run: {why}: 0 of 10 columns leak, 10 not known"
    leaking = {a.situation.threat: a for a in answers(conclude(samples.values(), [gap]))}
    assert f"{why}: 6 of 10 columns leak, 4 not known" in leaking["active-black-box"].untested


def test_under_a_defence_that_changes_nothing_the_warning_stays() -> None:
    gap = Gap("logistic_regression", "active", "rounding", "no attack of this plan applies")
    found = conclude(samples.values(), [gap])
    place = next(one.situation for one in found.situations if one.gap is not None)
    without = next(a for a in answers(found) if a.situation == place)
    assert without.untested == "Not tested: no attack of this plan applies"
    idle = replace(found, idle=((place.data, place.protocol, place.defence),))
    told = next(a for a in answers(idle) if a.situation == place)
    assert told.untested.endswith("; same messages as without defence: treat it as leaking")
    assert idle_words(idle) == [
        "For logistic regression on bank, rounding changes nothing: messages are as without defence, and what leaks there "
        "leaks all the same."
    ]
