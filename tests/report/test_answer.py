import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.report.answer import answers, how, overall, sure, worst_columns
from plumbob.report.facts import Asked, holdings
from plumbob.report.phrases import plain, short
from tests.report import samples


def test_the_headline_counts_every_kind_of_leak() -> None:
    (found,) = answers(conclude(samples.capped(samples.values())))
    counted = {level: number for level, number in found.counts.items() if number}
    assert counted == {"exact": 1, "leak": 4, "order": 1, "none": 4}
    assert found.headline == "Yes: 6 of 10 columns leak (1 in order only) to the active party"
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
    assert overall(found) == "Yes: 6 of 10 columns leak (1 in order only) in at least one of 2 situations"


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
    assert found.headline.endswith("leak (1 in order only) to our own threat")


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
