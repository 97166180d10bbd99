"""The command line, end to end, in processes of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from plumbob import listing
from plumbob.auditing.planning.plan_file import read_plan
from tests.commands import Running, plumbob

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"

TINY = """
data: breast
protocols: [logistic_regression, decision_tree]
attacks: [equation_solving, posterior_mean, path_restriction]
unknown: [0.1, 0.5]
trials: 2
rows: 100
"""


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The sentence on stderr, after checking that it is one, with exit code 2 and no traceback."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("plumbob: ")
    assert done.stdout == ""
    return done.stderr


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Surroundings with a store for tests of what is done with findings: the same plan is computed once for all of them."""
    own = tmp_path_factory.getbasetemp()
    home = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return os.environ | {"PLUMBOB_STORE": str(home / "plumbob-store-of-test-cli")}


def two_files(folder: Path, rows: int = 120) -> None:
    """A bank and a shop that share most of their customers, in different order."""
    rng = np.random.default_rng(0)
    ids = np.array([f"c{i:04d}" for i in range(rows + 20)])
    income, basket = rng.normal(size=rows + 20), rng.normal(size=rows + 20)
    bank = pd.DataFrame({"id": ids[:rows], "age": rng.integers(18, 80, rows), "income": income[:rows].round(3)})
    bank["default"] = np.where(income[:rows] + basket[:rows] + rng.normal(size=rows) > 0, "yes", "no")
    shop = pd.DataFrame(
        {"id": ids[20:], "basket": basket[20:].round(3), "city": rng.choice(["rome", "oslo", "bern"], rows)}
    )
    bank.sample(frac=1, random_state=1).to_csv(folder / "bank.csv", index=False)
    shop.sample(frac=1, random_state=2).to_csv(folder / "shop.csv", index=False)


OWN = """
data:
  parties: {bank: bank.csv, shop: shop.csv}
  id: id
  label: default
attacks: [equation_solving, posterior_mean, path_restriction]
trials: 1
"""


@pytest.mark.nodata
@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("{name: GIA, settings: {stepz: 5}}", "has no setting 'stepz'; did you mean 'steps'?"),
        ("{name: GIA, settings: {rate: fast}}", "setting 'rate': expected a number above 0, got 'fast'"),
        ("{name: GIA, settings: {rate: -1}}", "setting 'rate': expected a number above 0, got -1"),
    ],
    ids=["no such setting", "of the wrong type", "out of range"],
)
def test_settings_that_an_attack_cannot_have_are_refused_and_nothing_is_written(
    attack: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(f"data: breast\nattacks: [{attack}]\n")
    assert words in refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


@pytest.mark.nodata
def test_an_audit_writes_its_folder_and_says_where(plan: Path, tmp_path: Path) -> None:
    done = plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Report: out/report.html" in done.stdout
    assert done.stderr == ""
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "report.html",
        "assessment.html",
        "findings.jsonl",
        "costs.jsonl",
        "plan.yaml",
        "environment.json",
        "store",
    }
    lines = (tmp_path / "out" / "findings.jsonl").read_text().splitlines()
    # two attacks and a ceiling on the regression, one attack and a ceiling on the tree; two shares, two trials
    assert len(lines) == 3 * 2 * 2 + 2 * 2 * 2


def test_workers_and_interruptions_change_no_number(plan: Path, tmp_path: Path) -> None:
    """One worker, two workers, and a run killed after its first findings and continued: the same findings."""
    plumbob("audit", "plan.yaml", "--out", "one", cwd=tmp_path)
    plumbob("audit", "plan.yaml", "--out", "two", "--workers", "2", cwd=tmp_path)
    whole = (tmp_path / "one" / "findings.jsonl").read_text().splitlines()
    shutil.copytree(tmp_path / "one", tmp_path / "three")
    store = tmp_path / "three" / "findings.jsonl"
    store.write_text("\n".join(whole[:3]) + "\n" + whole[3][:100])  # as a crash leaves it
    (tmp_path / "three" / "report.html").unlink()
    assert plumbob("audit", "plan.yaml", "--out", "three", cwd=tmp_path).returncode == 0

    one, two, three = ((tmp_path / name / "findings.jsonl").read_bytes() for name in ("one", "two", "three"))
    assert one == two == three
    assert (tmp_path / "three" / "report.html").exists()


def begun(folder: Path) -> Running:
    """A long audit that has made its first finding."""
    (folder / "plan.yaml").write_text(TINY.replace("trials: 2", "trials: 40"))
    running = Running("audit", "plan.yaml", "--out", "out", cwd=folder)
    assert running.until(lambda: lines_of(folder / "out") > 0)
    return running


def lines_of(folder: Path) -> int:
    """How many findings an audit has written."""
    lines = folder / "findings.jsonl"
    return lines.read_bytes().count(b"\n") if lines.exists() else 0


def test_control_c_keeps_what_is_done_and_the_same_command_goes_on(tmp_path: Path) -> None:
    running = begun(tmp_path)
    os.kill(running.pid, signal.SIGINT)
    done = running.result()
    assert done.returncode == 130
    *before, last = done.stderr.splitlines()
    assert "finished work is kept" in last
    assert all("--estimate says more" in line for line in before)
    kept = (tmp_path / "out" / "findings.jsonl").read_text()
    again = Running("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert again.until(lambda: lines_of(tmp_path / "out") > kept.count("\n"))
    os.kill(again.pid, signal.SIGINT)
    again.result()
    assert (tmp_path / "out" / "findings.jsonl").read_text().startswith(kept[: kept.rfind("\n") + 1])


def test_two_audits_do_not_share_a_folder(tmp_path: Path) -> None:
    first = begun(tmp_path)
    sentence = refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    os.kill(first.pid, signal.SIGINT)
    first.result()
    assert "another audit is writing" in sentence


@pytest.mark.parametrize(
    ("change_to", "words"),
    [
        ("unknown: [0.1, 0.99]", "leaves the active party none"),
        ("unknown: [0.0001, 0.0002]", "the same number of the 30 columns"),
        (
            "unknown: [0.1]\ntrain_share: 0.95",
            "leave 28 to predict; 50 are needed. Set `train_share: 0.9` or supply 990 shared rows",
        ),
        ("unknown: [0.1]\nthreats: [collusion]", "needs at least two passive parties"),
        ("unknown: [0.1]\nthreats: [{name: x, auxiliary_rows: 100000}]", "only 284 exist"),
        ("unknown: [0.1]\nthreats: [active-black-box]", "no attack of this plan fits"),
        ("unknown: [0.1]\ndefences: [{name: dp_sgd, settings: {epsilon: 0}}]", "expected an epsilon above 0, got 0"),
        ("unknown: [0.1]\ndefences: [{name: noise, settings: {repeats: 0}}]", "from 1 to 10,000, got 0"),
    ],
)
def test_a_plan_that_cannot_be_run_on_its_data_leaves_no_folder(tmp_path: Path, change_to: str, words: str) -> None:
    (tmp_path / "plan.yaml").write_text(TINY.replace("unknown: [0.1, 0.5]", change_to))
    assert words in refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert not (tmp_path / "out").exists()


def test_a_batch_larger_than_the_table_leaves_no_folder(tmp_path: Path) -> None:
    settings = "{batch_size: 500}"
    (tmp_path / "plan.yaml").write_text(
        f"data: breast\nprotocols: [{{name: split_training, settings: {settings}}}]\nthreats: [coordinator]\nrows: 100\n"
    )
    sentence = refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert "500 rows cannot be drawn from 100" in sentence
    assert not (tmp_path / "out").exists()


def test_json_prints_the_findings(plan: Path, tmp_path: Path, shared: dict[str, str]) -> None:
    done = plumbob("audit", "plan.yaml", "--out", "out", "--json", cwd=tmp_path, env=shared)
    assert [json.loads(line)["attack"] for line in done.stdout.splitlines()].count("path_restriction") == 4


@pytest.fixture
def unread() -> Iterator[str]:
    """The path of a pipe whose reader has left, as in `plumbob list matrix | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    yield f"/proc/{os.getpid()}/fd/{writing}"
    os.close(writing)


def test_a_reader_who_leaves_is_no_failure(tmp_path: Path, unread: str) -> None:
    done = Running("list", "claims", "--json", cwd=tmp_path, write=unread).result()
    assert (done.returncode, done.stderr) == (0, "")


def test_a_setting_that_an_attack_cannot_have_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("attacks: [{name: GIA, settings: {rate: 0}}]\n")
    said = refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert "attack 'gradient_inversion': setting 'rate': expected a number above 0, got 0" in said
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]


def test_a_broken_gate_exits_with_1_though_nobody_reads_what_it_prints(plan: Path, tmp_path: Path, unread: str) -> None:
    """As under `set -o pipefail`: a reader that leaves must not let a leak through."""
    words = ("audit", "plan.yaml", "--out", "out", "--gate", "max_gain<0.01", "--junit", "g.xml")
    done = Running(*words, cwd=tmp_path, write=unread).result()
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "g.xml").exists()


@pytest.mark.parametrize("words", [("list", "attacks"), ("list", "claims", "--json"), ("--version",)], ids=" ".join)
def test_output_that_cannot_be_written_is_one_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    sentence = refused(Running(*words, cwd=tmp_path, write="/dev/full").result())
    assert sentence == "plumbob: cannot write to standard output: no space left on device\n"


def test_a_gate_that_holds_exits_with_0_and_a_broken_one_with_1(plan: Path, tmp_path: Path) -> None:
    words = ("audit", "plan.yaml", "--out", "out")
    holds = plumbob(*words, "--gate", "exact_columns<30 and min_accuracy>0.5", "--junit", "gate.xml", cwd=tmp_path)
    assert holds.returncode == 0, holds.stderr
    assert "Gate holds: exact_columns<30 and min_accuracy>0.5" in holds.stdout
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "0"
    broken = plumbob(*words, "--gate", "max_gain<0.01", "--junit", "gate.xml", cwd=tmp_path)
    assert broken.returncode == 1
    assert broken.stderr == ""
    assert "Report: out/report.html" in broken.stdout
    assert "Gate broken: max_gain<0.01" in broken.stdout
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") != "0"
    assert "gate: max_gain<0.01" in (tmp_path / "out" / "plan.yaml").read_text()


def test_the_gate_of_the_plan_counts_unless_the_flag_says_otherwise(
    plan: Path, tmp_path: Path, shared: dict[str, str]
) -> None:
    words = ("audit", "plan.yaml", "--out", "out", "--json")
    bare = plumbob(*words, cwd=tmp_path, env=shared)
    plan.write_text(TINY + "gate: max_gain<0.01\n")
    told = plumbob(*words, cwd=tmp_path, env=shared)
    assert (bare.returncode, told.returncode) == (0, 1)
    *findings, last = told.stdout.splitlines()
    assert findings == bare.stdout.splitlines()
    assert json.loads(last)["holds"] is False
    assert {"column", "attack", "threat", "defence", "value", "low", "high"} <= set(json.loads(last)["broken_by"][0])
    assert plumbob(*words, "--gate", "min_accuracy>0.5", cwd=tmp_path, env=shared).returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--gate", "max_gain<20"], "always holds"),
        (["--gate", "max_gian<0.2"], "did you mean 'max_gain'?"),
        (["--junit", "gate.xml"], "say which gate (--gate"),
        (["--gate", "max_gain<0.2", "--junit", "nowhere/gate.xml"], "the parent folder does not exist"),
    ],
)
def test_a_wrong_gate_is_refused_before_the_work(plan: Path, tmp_path: Path, options: list[str], words: str) -> None:
    assert words in refused(plumbob("audit", "plan.yaml", "--out", "out", *options, cwd=tmp_path))
    assert not (tmp_path / "out").exists()


def test_a_sweep_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "data: {name: breast, sample: 220}\nunknown: 0.1\nprotocols: decision_tree\nattacks: path_restriction\n"
        "trials: 2\nrows: 60\n"
    )
    done = plumbob("audit", "plan.yaml", "--out", "out", "--sweep", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "For decision tree on breast, " in done.stdout
    assert "purifier" in done.stdout
    kept = (tmp_path / "out" / "plan.yaml").read_text()
    assert "name: label_only" in kept
    assert "name: dropout" not in kept
    page = (tmp_path / "out" / "report.html").read_text()
    assert "rounding (digits=1) on decision_tree was not tried: it changes nothing here" in page
    assert "plumbob audit plan.yaml --sweep" in page
    assert "hide_model on decision_tree was not tried" in page


def test_the_seed_decides(plan: Path, tmp_path: Path) -> None:
    one = plumbob("audit", "plan.yaml", "--out", "a", "--seed", "1", "--json", cwd=tmp_path).stdout
    two = plumbob("audit", "plan.yaml", "--out", "b", "--seed", "2", "--json", cwd=tmp_path).stdout
    errors = [[json.loads(line)["score"]["error"] for line in out.splitlines()] for out in (one, two)]
    assert errors[0] != errors[1]


@pytest.mark.nodata
@pytest.mark.parametrize("align", ["psi", "ids"])
def test_two_csv_files_to_a_verdict(tmp_path: Path, align: str) -> None:
    two_files(tmp_path)
    (tmp_path / "plan.yaml").write_text(OWN.replace("  id: id", f"  id: id\n  align: {align}"))
    done = plumbob("audit", "plan.yaml", "--out", "out", "--transcripts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    findings = [json.loads(line) for line in (tmp_path / "out" / "findings.jsonl").read_text().splitlines()]
    assert {c["name"] for f in findings for c in f["score"]["columns"]} == {"shop.basket", "shop.city"}
    assert (tmp_path / "out" / "transcripts" / "alignment.zip").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "100 of 120 rows are shared" in page


def test_psi_and_plain_ids_find_the_same_rows(tmp_path: Path) -> None:
    two_files(tmp_path)
    outs = []
    for align in ("psi", "ids"):
        (tmp_path / "plan.yaml").write_text(OWN.replace("  id: id", f"  id: id\n  align: {align}"))
        done = plumbob("audit", "plan.yaml", "--out", align, "--json", cwd=tmp_path)
        outs.append([json.loads(line)["score"] for line in done.stdout.splitlines()])
    assert outs[0] == outs[1]


def test_no_raw_value_leaves_in_reports_or_findings(tmp_path: Path) -> None:
    two_files(tmp_path)
    shop = pd.read_csv(tmp_path / "shop.csv")
    shop["city"] = shop["city"].map({"rome": "MARKERROME", "oslo": "MARKEROSLO", "bern": "MARKERBERN"})
    shop["basket"] = shop["basket"] * 0 + np.linspace(8361947.125, 8362947.125, len(shop))
    shop.to_csv(tmp_path / "shop.csv", index=False)
    (tmp_path / "plan.yaml").write_text(OWN)
    done = plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    everything = (
        done.stdout + done.stderr + "".join(p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file())
    )
    assert "MARKER" not in everything
    assert "836194" not in everything


def change(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def unknown_column(folder: Path) -> None:
    change(
        folder / "plan.yaml",
        "parties: {bank: bank.csv, shop: shop.csv}",
        "parties: {bank: bank.csv, shop: {file: shop.csv, columns: [baskt]}}",
    )


def no_overlap(folder: Path) -> None:
    change(folder / "shop.csv", "c0", "d0")
    change(folder / "shop.csv", "c1", "d1")


def label_missing(folder: Path) -> None:
    change(folder / "plan.yaml", "label: default", "label: defalt")


def label_constant(folder: Path) -> None:
    change(folder / "bank.csv", ",yes", ",no")


def not_a_number(folder: Path) -> None:
    frame = pd.read_csv(folder / "shop.csv")
    frame.loc[3, "basket"] = np.nan
    frame.to_csv(folder / "shop.csv", index=False)


def text_in_a_number(folder: Path) -> None:
    frame = pd.read_csv(folder / "shop.csv", dtype=str)
    frame.loc[3, "basket"] = "SECRETTEXT"
    frame.to_csv(folder / "shop.csv", index=False)


def empty_file(folder: Path) -> None:
    (folder / "shop.csv").write_text("")


def header_only(folder: Path) -> None:
    (folder / "shop.csv").write_text("id,basket\n")


def no_columns(folder: Path) -> None:
    frame = pd.read_csv(folder / "shop.csv")
    frame[["id"]].to_csv(folder / "shop.csv", index=False)


def wrong_key(folder: Path) -> None:
    change(folder / "plan.yaml", "trials: 1", "trails: 1")


def no_file(folder: Path) -> None:
    (folder / "shop.csv").unlink()


def no_id(folder: Path) -> None:
    change(folder / "plan.yaml", "  id: id", "  id: customer")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (unknown_column, "no column 'baskt'; did you mean 'basket'?"),
        (no_overlap, "do not overlap"),
        (label_missing, "no party has a label column 'defalt'; did you mean 'default'?"),
        (label_constant, "label"),
        (not_a_number, "party 'shop': column 'basket' has 1 missing value"),
        (text_in_a_number, "party 'shop': column 'basket'"),
        (empty_file, "shop.csv"),
        (header_only, "shop.csv"),
        (no_columns, "party 'shop' has no columns"),
        (wrong_key, "'trails' is not a key of a plan; did you mean 'trials'?"),
        (no_file, "shop.csv"),
        (no_id, "customer"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path: Path, spoil, words: str) -> None:
    two_files(tmp_path)
    (tmp_path / "plan.yaml").write_text(OWN)
    spoil(tmp_path)
    sentence = refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert words in sentence
    assert "SECRETTEXT" not in sentence
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_plan_is_refused_and_left_alone(plan: Path, tmp_path: Path, shared: dict[str, str]) -> None:
    plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path, env=shared)
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    plan.write_text(TINY.replace("trials: 2", "trials: 3"))
    assert "another plan" in refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path, env=shared))
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == before


def test_changed_data_do_not_meet_old_findings(tmp_path: Path) -> None:
    two_files(tmp_path)
    (tmp_path / "plan.yaml").write_text(OWN)
    plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    two_files(tmp_path, rows=130)
    assert "findings of other data" in refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))


def test_a_folder_with_other_things_is_refused(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    assert "not empty" in refused(plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path))
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"
    assert "is a file" in refused(plumbob("audit", "plan.yaml", "--out", "plan.yaml", cwd=tmp_path))


FLAGS = ("init", "--party", "bank=bank.csv", "--party", "shop=shop.csv", "--id", "id", "--label", "default")
QUICK = ("--effort", "quick", "--protocol", "decision_tree")


@pytest.mark.nodata
def test_from_two_files_to_a_finished_audit_without_an_edit(tmp_path: Path) -> None:
    for name in ("bank.csv", "shop.csv"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    made = plumbob(*FLAGS, *QUICK, "--out", "plan.yaml", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "shop: 400 rows, 400 distinct ids; columns: 3 numbers, 1 of two values" in made.stdout
    assert "shared by all parties: 316 rows; 'bank' is active, its label has 2 classes" in made.stdout
    assert made.stdout.endswith("Next: plumbob audit plan.yaml\n")
    done = plumbob("audit", "plan.yaml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_a_plan_is_not_overwritten_unasked(tmp_path: Path) -> None:
    two_files(tmp_path)
    (tmp_path / "plan.yaml").write_text("mine")
    assert "--force" in refused(plumbob(*FLAGS, cwd=tmp_path))
    assert (tmp_path / "plan.yaml").read_text() == "mine"
    assert plumbob(*FLAGS, "--force", cwd=tmp_path).returncode == 0
    assert read_plan(tmp_path / "plan.yaml").data.active == "bank"


def test_without_a_person_a_missing_flag_is_named(tmp_path: Path) -> None:
    two_files(tmp_path)
    words = list(FLAGS)
    for flag, cut in (("--label", words[:-2]), ("--id", words[:-4]), ("--party", words[:1])):
        assert flag in refused(plumbob(*cut, cwd=tmp_path))
    assert not (tmp_path / "plan.yaml").exists()


def test_hostile_column_names_from_files_to_the_gate(tmp_path: Path) -> None:
    two_files(tmp_path)
    shop = pd.read_csv(tmp_path / "shop.csv")
    names = {"basket": "<script>&\x1b[31m", "city": '"]]>: {- # *'}
    shop.rename(columns=names).to_csv(tmp_path / "shop.csv", index=False)
    made = plumbob(*FLAGS, *QUICK, "--ignore", "age", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    words = ("--out", "out", "--gate", "mean(max_gain)<=0 and min_accuracy>0.99", "--junit", "gate.xml")
    done = plumbob("audit", "plan.yaml", *words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "\x1b" not in made.stdout + done.stdout
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("tests") == "2"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(no_overlap, "do not overlap"), (label_constant, "label"), (text_in_a_number, "--ignore"), (no_file, "shop.csv")],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_init_refuses_what_cannot_work_and_writes_nothing(tmp_path: Path, spoil, words: str) -> None:
    two_files(tmp_path)
    spoil(tmp_path)
    sentence = refused(plumbob(*FLAGS, cwd=tmp_path))
    assert words in sentence
    assert "SECRETTEXT" not in sentence
    assert not (tmp_path / "plan.yaml").exists()


def dialogue(*words: str, answers: str, cwd: Path) -> tuple[int, str]:
    """A command at a terminal of its own, with these lines typed."""
    ours, theirs = pty.openpty()
    running = Running(*words, cwd=cwd, read=os.ttyname(theirs))
    os.write(ours, answers.encode())
    done = running.result()
    os.close(theirs)
    os.close(ours)
    return done.returncode, done.stdout + done.stderr


def test_a_dialogue_asks_again_and_takes_defaults(tmp_path: Path) -> None:
    two_files(tmp_path)
    typed = [
        "bank=bank.csv shop=shopp.csv",
        "bank=bank.csv shop=shop.csv",
        "",
        "defalt",
        "default",
        "decision_tree",
        "",
        "none, rounding",
        "heroic",
        "quick",
        "bank.csv",
        "mine.yaml",
    ]
    code, shown = dialogue("init", answers="\n".join(typed) + "\n", cwd=tmp_path)
    assert code == 0, shown
    for words in ("did you mean 'shop.csv'?", "did you mean 'default'?", "no effort 'heroic'", "already exists"):
        assert words in shown
    plan = read_plan(tmp_path / "mine.yaml")
    assert (plan.data.id, plan.data.label, plan.effort) == ("id", "default", "quick")
    assert [part.name for part in (*plan.protocols, *plan.threats)] == ["decision_tree", "active"]
    assert [defence.name for defence in plan.defences] == ["none", "rounding"]


def test_a_dialogue_that_ends_early_writes_nothing(tmp_path: Path) -> None:
    code, shown = dialogue("init", answers="breast\n\x04", cwd=tmp_path)
    assert code == 2
    assert "nothing was written" in shown
    assert list(tmp_path.iterdir()) == []


def test_at_a_terminal_flags_that_say_enough_ask_nothing(tmp_path: Path) -> None:
    two_files(tmp_path)
    code, shown = dialogue(*FLAGS, answers="", cwd=tmp_path)
    assert code == 0
    assert "> " not in shown


@pytest.fixture
def small_disk(tmp_path: Path):
    """A real file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_sentence_and_what_fitted_is_kept(plan: Path, tmp_path: Path, small_disk: Path) -> None:
    sentence = refused(plumbob("audit", "plan.yaml", "--out", str(small_disk / "out"), cwd=tmp_path))
    assert "no space left on device" in sentence
    assert (small_disk / "out" / "findings.jsonl").stat().st_size > 0


def test_a_read_only_folder_is_one_sentence(plan: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    if os.geteuid() == 0:  # root may write anywhere; /proc it may not
        sentence = refused(plumbob("audit", "plan.yaml", "--out", "/proc/plumbob", cwd=tmp_path))
    else:
        sentence = refused(plumbob("audit", "plan.yaml", "--out", str(locked / "out"), cwd=tmp_path))
    assert "cannot make the folder" in sentence


@pytest.mark.nodata
@pytest.mark.parametrize("what", ["attacks", "defences", "protocols", "threats", "matrix", "data", "claims"])
def test_listings(what: str) -> None:
    found = listing.entries(what)
    assert found
    assert all(entry["name"] and entry["summary"] for entry in found)
    assert json.loads(json.dumps(found)) == found
    shown = io.StringIO()
    listing.show(what, found, Console(file=shown, width=300))
    words = shown.getvalue().replace(" ", "_") if what == "matrix" else shown.getvalue()
    assert all(part in words for entry in found for part in entry["name"].split(" / "))


@pytest.mark.parametrize("what", ["attacks", "defences", "threats", "data", "claims"])
def test_nothing_of_a_listing_is_cut_where_the_terminal_is_narrow(what: str) -> None:
    found, shown = listing.entries(what), io.StringIO()
    listing.show(what, found, Console(file=shown, width=80))
    text = "".join(shown.getvalue().split())
    assert "…" not in text
    assert all(part in text for entry in found for part in entry.get("protocols", [entry["name"]]))


@pytest.mark.nodata
def test_a_listing_for_programs(tmp_path: Path) -> None:
    found = json.loads(plumbob("list", "attacks", "--json", cwd=tmp_path).stdout)
    assert {entry["name"] for entry in found} >= {"equation_solving", "path_restriction", "posterior_mean"}


@pytest.mark.nodata
def test_the_matrix_says_what_fits_and_why_the_rest_does_not() -> None:
    threats = {threat["name"]: threat["fits"] for threat in listing.entries("threats")}
    assert threats["active"]["equation_solving on logistic_regression"] == ""
    assert "white box" in threats["active-black-box"]["equation_solving on logistic_regression"]
    assert "only" in threats["active"]["equation_solving on neural_network"]
    assert "ranges" in threats["active-model-only"]["posterior_mean on logistic_regression"]


@pytest.mark.nodata
def test_fetch_offline_is_one_sentence(tmp_path: Path) -> None:
    env = os.environ | {
        "PLUMBOB_DATA": str(tmp_path / "none"),
        "XDG_CACHE_HOME": str(tmp_path),
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    sentence = refused(plumbob("data", "fetch", "satellite", cwd=tmp_path, env=env))
    assert "network connection" in sentence


@pytest.mark.nodata
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["init", "--help"],
        ["audit", "--help"],
        ["reproduce", "--help"],
        ["list", "--help"],
        ["view", "--help"],
        ["data", "fetch", "--help"],
    ],
)
def test_help_has_an_example(words: list[str], tmp_path: Path) -> None:
    done = plumbob(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert "Example: plumbob" in done.stdout or words == ["--help"]


def test_what_trains_nothing_loads_no_torch() -> None:
    heavy = "import sys, plumbob.listing, plumbob.app; print([m for m in ('torch', 'scipy.stats') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.nodata
def test_wrong_words_exit_with_2(tmp_path: Path) -> None:
    assert plumbob("audit", "--effort", "heroic", cwd=tmp_path).returncode == 2
    assert plumbob("audit", "none.yaml", cwd=tmp_path).returncode == 2
    assert "luo2021" in refused(plumbob("reproduce", "luo2012", cwd=tmp_path))


@pytest.mark.nodata
def test_reproduce_prints_one_object_a_line(tmp_path: Path) -> None:
    done = plumbob("reproduce", "luo2021/L1", "--json", "--out", "kept", cwd=tmp_path)
    outcome = json.loads(done.stdout)
    assert {"claim", "status", "measured", "expected", "trials", "scale", "why"} <= set(outcome)
    assert outcome["status"] == "reproduced"
    assert plumbob("reproduce", "luo2021/L1", "--json", "--out", "kept", cwd=tmp_path).stdout == done.stdout
