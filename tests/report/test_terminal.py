import io
import re

from rich.console import Console

from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.running.finding import Finding
from plumbob.report.terminal import print_summary
from tests.report import samples


def printed(findings: list[Finding], encoding: str = "utf-8", conclusion: Conclusion | None = None) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    print_summary(findings, Console(file=file, width=160, force_terminal=False, color_system=None), conclusion)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_the_answer_comes_first() -> None:
    assert (
        printed(samples.values()).splitlines()[0]
        == "◆ Yes: 6 of 10 columns leak (1 in order only) to the active party; 4 of 10 are undecided."
    )


def test_at_most_twelve_columns_and_the_rest_counted() -> None:
    text = printed(samples.values([f"column {i}" for i in range(50)], shares=(0.3,)))
    assert sum(line.startswith(" column ") and "%" in line for line in text.splitlines()) == 12
    assert "and 38 more in the report" in text


def test_every_attack_has_a_line_below_its_baselines() -> None:
    lines = printed(samples.audit()).splitlines()
    errors = [line for line in lines if line.startswith("    ") and (": error " in line or ": wrong branches " in line)]
    assert len(errors) == 9 + 3 + 1
    place = next(i for i, line in enumerate(lines) if line.startswith("    path restriction: wrong branches "))
    assert lines[place - 1].startswith("  20 % unknown, wrong branches of guessing: best constant ")
    assert "random path" in lines[place - 1]
    assert len(set(lines) & {line for line in lines if "of guessing: " in line}) == sum(
        "of guessing: " in one for one in lines
    )


def test_names_are_neither_markup_nor_control_sequences() -> None:
    text = printed(samples.values(samples.HOSTILE, shares=(0.3,)))
    assert "[bold red]markup[/]" in text
    assert not any(bad in text for bad in ("\x1b", "\u202e", "\x9b"))


def test_a_terminal_without_unicode_gets_question_marks() -> None:
    assert printed(samples.audit(), "ascii").startswith(
        "? Yes: 7 of 10 columns leak (1 in order only) in at least one of 3 situations; 3 of 10 are undecided."
    )


def test_nothing_measured() -> None:
    assert "Nothing was measured" in printed([])


def test_a_sweep_has_a_table_of_costs() -> None:
    lines = printed(samples.capped(samples.sweep())).splitlines()
    assert any(line.startswith("For logistic regression on bank, take hide_model") for line in lines[:12])
    row = next(line.split() for line in lines if line.startswith(" verification"))
    assert row[-1] == "0.40"
    assert any(line.startswith(" hide_model") and line.rstrip().endswith("✓") for line in lines)
    assert any(line.startswith("and the attacks in 8 situations with other defences") for line in lines)


def test_every_situation_has_one_line_tested_or_not() -> None:
    findings = samples.capped(samples.sweep())
    gaps = [
        Gap("logistic_regression", "active-black-box", "label_only", "needs the model (white box)"),
        Gap("logistic_regression", "passive", "none", "it gets no message", meaningful=False),
    ]
    conclusion = conclude(findings, gaps)
    lines = printed(findings, conclusion=conclusion).splitlines()
    start = lines.index(f"{len(conclusion.situations)} situations:")
    told = lines[start + 1 : start + 1 + len(conclusion.situations)]
    for judged in conclusion.situations:
        place = judged.situation
        where = f" with {place.defence}:" if place.defence != "none" else " bank:"
        assert sum(f" {place.threat}, " in line and where in f"{line} " for line in told) == 1
    assert (
        "  □ active-black-box, logistic regression on bank, with label_only: Not tested: needs the model (white box)."
        in told
    )
    assert "  – passive, logistic regression on bank: Not applicable: it gets no message." in told


def test_what_was_not_found_has_its_limit_in_the_table() -> None:
    assert re.search(r" loan +○ no leak above 6 % +below 6 % ", printed(samples.capped(samples.harmless(), high=0.06)))
    assert re.search(
        r" loan +◐ undecided: .* is possible .*up to 17 % ", printed(samples.capped(samples.harmless(), high=0.17))
    )


def test_it_ends_with_what_to_do_next() -> None:
    text = printed(samples.values())
    assert "\n  2. Look for a defence" in text.partition("What to do next:\n  1. Withhold")[2]
    assert "     plumbob audit plan.yaml --sweep --out swept" in text
