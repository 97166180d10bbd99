"""What is listed of the audits under a folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from plumbob.auditing.running.finding import read_findings
from plumbob.errors import BadInput
from plumbob.view.compare import compare
from plumbob.view.runs import FINDINGS, Runs, folders
from tests.view import audits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return audits.tree(tmp_path, pages=False)


def test_nested_folders_are_found_and_the_newest_comes_first(root: Path) -> None:
    found = Runs(root).all()
    whole = [run.path for run in found if run.finished]
    assert whole == ["team/rounded", "bare", "hostile/a b ü"]
    assert "notes" not in [run.path for run in found]  # a plan alone is no audit


def test_a_whole_audit_tells_its_facts(root: Path) -> None:
    run = Runs(root).open("bare").run
    assert (run.data, run.protocols, run.defences) == (("bank",), ("logistic_regression",), ("none",))
    assert (run.columns, run.leaking, run.exact, run.verdict) == (10, 5, 1, "exact")
    assert (run.seed, run.date, run.worst_gain, run.wrong) == (7, "1970-01-05 00:00", 1.0, "")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("half", "no report yet"),
        ("planless", "no plan.yaml"),
        ("torn", "findings.jsonl cannot be read"),
        ("strange", "line 1: not a finding"),
    ],
)
def test_what_is_wrong_is_said_and_hides_nothing_else(root: Path, path: str, words: str) -> None:
    run = {run.path: run for run in Runs(root).all()}[path]
    assert not run.finished
    assert words in f"{run.wrong} {run.progress}"
    assert str(root) not in run.wrong


def test_findings_that_are_no_sense_are_one_line(root: Path) -> None:
    store = root / "bare" / "findings.jsonl"
    store.write_text(
        store.read_text().replace('"columns":[{', '"columns":[{"name":5,', 1).replace('"rows":1000', '"rows":"x"')
    )
    run = Runs(root).open("bare").run
    assert "make no sense" in run.wrong or "not a finding" in run.wrong


def test_a_changed_folder_is_read_again(root: Path) -> None:
    runs = Runs(root)
    assert runs.open("bare").run.findings == 2
    with (root / "bare" / "findings.jsonl").open("a") as store:
        store.write(audits.one()[0].to_line() + "\n")
    assert runs.open("bare").run.findings == 3


def test_links_are_not_followed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = audits.write(tmp_path_factory.mktemp("outside") / "secret", audits.one())
    (root / "linked").symlink_to(outside)
    (root / "bare" / "report.html").unlink()
    (root / "bare" / "report.html").symlink_to(outside / "report.html")
    runs = Runs(root)
    assert "linked" not in list(folders(root))
    assert runs.file("bare", "report.html") is None
    assert not runs.open("bare").run.report
    assert runs.file("../secret", "report.html") is None


def test_the_view_touches_no_file_that_a_plan_names(root: Path) -> None:
    """The model was moved away, or never was a file: the audit is finished all the same."""
    os.mkfifo(root / "pipe.onnx")
    for name, model in (("moved", "/nowhere/at/all/scorer.onnx"), ("pipe", "../pipe.onnx")):
        protocol = f"{{name: logistic_regression, model: {model}, sha256: {'a' * 64}}}"
        audits.write(root / name, audits.one(), plan=audits.PLAN.replace("logistic_regression", protocol))
    nameless = "protocols: [{model: /nowhere/at/all/scorer.onnx}]\n"
    audits.write(root / "nameless", audits.one(), plan=nameless)
    found = {run.path: run for run in Runs(root).all()}
    for name in ("moved", "pipe"):
        assert (found[name].wrong, found[name].finished) == ("", True)
    assert "'protocols.0.name': field required" in found["nameless"].wrong
    assert not any("/nowhere" in str(run.facts()) or str(root) in str(run.facts()) for run in found.values())


@pytest.mark.parametrize("name", ["findings.jsonl", "costs.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_only_ordinary_lines_are_read(name: str, kind: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root / "bare" / name
    place.unlink(missing_ok=True)
    if kind == "link":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        monkeypatch.setattr("plumbob.view.runs.LARGEST", 10 * 2**20)
        with place.open("wb") as file:
            file.truncate(10 * 2**20 + 1)
    words = {"link": "is a link", "pipe": "is no file", "large": "is larger than 10 MB"}[kind]
    run = Runs(root).open("bare").run
    assert f"{name} {words}" in run.wrong
    assert not run.finished


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not there"):
        Runs(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="a file"):
        Runs(tmp_path / "file")


def test_two_audits_differ_in_words(root: Path) -> None:
    runs = Runs(root)
    found = compare(runs.open("bare"), runs.open("team/rounded"))
    assert found.headline == "Of 10 columns, 0 worse in the second, 5 better"
    assert {row.name for row in found.differ} >= {"seed", "defences"}
    assert "trials" in {row.name for row in found.agree}
    income = next(row for row in found.columns if row.name == "income")
    assert income.change.startswith("better: recovered became no leak, gain −")
    alike = compare(runs.open("bare"), runs.open("bare"))
    assert alike.headline == "No difference in 10 columns"
    assert not alike.differ


def test_what_is_not_known_is_neither_better_nor_worse(root: Path) -> None:
    bare = read_findings(root / "bare" / FINDINGS)
    audits.write(root / "unknown", [one for one in bare if one.score.metric != "ceiling"])
    runs = Runs(root)
    found = compare(runs.open("bare"), runs.open("unknown"))
    assert found.headline == "Of 10 columns, 0 worse in the second, 0 better, 5 unclear"
    changes = {row.change for row in found.columns if row.change}
    assert changes == {"unclear: no leak became undecided"}
    assert found.situations[0].second.endswith("5 not known")


def test_audits_that_differ_and_find_the_same_are_not_called_alike(root: Path) -> None:
    audits.write(
        root / "forest", [replace(one, protocol="random_forest") for one in read_findings(root / "bare" / FINDINGS)]
    )
    runs = Runs(root)
    found = compare(runs.open("bare"), runs.open("forest"))
    assert found.headline == "No difference in 10 columns, though the protocols differ"


def test_a_label_that_is_learnt_counts(root: Path) -> None:
    told = [
        replace(one, score=replace(one.score, label_accuracy=1.0, label_baseline=0.5))
        for one in read_findings(root / "bare" / FINDINGS)
    ]
    audits.write(root / "labels", told)
    runs = Runs(root)
    run = runs.open("labels").run
    assert (run.columns, run.label, run.verdict) == (10, "exact", "exact")
    assert runs.open("bare").run.label == ""
    found = compare(runs.open("bare"), runs.open("labels"))
    assert found.headline == "Of 10 columns and the label, 0 worse in the second, 0 better, 1 in one only"
    assert any(row.name == "the label" and row.change == "only in the second" for row in found.columns)


def test_no_folder_of_this_machine_is_shown(root: Path) -> None:
    plan = "data: {file: secret/place/people.csv, label: y, active: a, parties: {a: [u], b: [v]}}\n"
    audits.write(root / "own", audits.one(), plan=plan)
    runs = Runs(root)
    rows = compare(runs.open("own"), runs.open("bare")).differ
    assert "people.csv" in {row.first for row in rows}
    assert not any("secret" in row.first or os.sep + "place" in row.first for row in rows)
