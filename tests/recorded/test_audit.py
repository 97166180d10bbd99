"""A recorded run is judged as one that Plumbob made itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from plumbob.app import run_audit
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.running.finding import Finding
from plumbob.errors import BadInput
from plumbob.transcript import Transcript
from tests.recorded.loops import EXAMPLES
from tests.recorded.test_folder import put, written
from tests.test_cli import plumbob, refused
from tests.worlds import world

PLAN = {
    "data": {"parties": {"bank": "bank.csv", "shop": "shop.csv"}, "id": "id", "label": "default"},
    "protocols": [{"name": "split_network", "settings": {"hidden": [16, 8], "batch_size": 16, "epochs": 4}}],
    "threats": ["active-training"],
    "trials": 1,
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("bank.csv", "shop.csv", "split_learning.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_attack(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.attack: finding for finding in attacked(findings)}


def recording(path: Path, protocol: str = "split_network") -> Path:
    world(protocol).save(path)
    return path


def test_a_loop_with_a_tap_around_it_ends_in_a_report(desk: Path) -> None:
    subprocess.run([sys.executable, "split_learning.py"], check=True, cwd=desk, timeout=120, capture_output=True)
    done = plumbob("audit", "--recorded", "run.zip", "--out", "out", "--json", cwd=desk)
    assert done.returncode == 0, done.stderr
    finding = by_attack(map(Finding.from_line, done.stdout.splitlines()))["binary_columns"]
    exact = {column.name: column.exact for column in finding.score.columns}
    assert exact["shop.member"] == 1
    assert finding.model_accuracy is None
    assert finding.score.attack_accuracy is None
    page = (desk / "out" / "report.html").read_text()
    assert "recovered exactly" in page
    assert "plumbob audit --recorded run.zip" in page
    assert "the tap ran the bottom model of" in page
    assert plumbob("audit", "--recorded", "run.zip", "--out", "out", "--json", cwd=desk).stdout == done.stdout


def test_a_kept_transcript_is_judged_as_the_audit_that_kept_it(desk: Path) -> None:
    result = run_audit(PLAN, "first", transcripts=True)
    (kept,) = [path for path in (desk / "first" / "transcripts").iterdir() if path.name != "alignment.zip"]
    again = run_audit({"data": {"recorded": str(kept)}}, "second")
    first, second = (by_attack(one.findings)["binary_columns"] for one in (result, again))
    assert second.score.columns == first.score.columns
    assert (second.model_accuracy, second.bytes_by_party) == (first.model_accuracy, first.bytes_by_party)
    assert (second.certificate, second.encryption) == (first.certificate, first.encryption)


def test_a_recording_of_prediction_is_judged_with_the_model(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.zip", "logistic_regression")
    found = run_audit({"data": {"recorded": str(path)}, "attacks": "equation_solving"}, tmp_path / "out").findings
    assert [(f.protocol, f.threat, f.white_box) for f in attacked(found)] == [("logistic_regression", "active", True)]


def test_a_defence_that_a_recording_names_stands_in_its_findings(tmp_path: Path) -> None:
    path = written(tmp_path / "run", put("defence", value={"gaussian_masking": {"sigma": 0.01}}))
    finding = by_attack(run_audit({"data": {"recorded": str(path)}}, tmp_path / "out").findings)["binary_columns"]
    assert finding.defence == "gaussian_masking"


def test_the_names_in_a_recording_are_said_and_not_believed(tmp_path: Path) -> None:
    def named(manifest: dict[str, Any], folder: Path) -> None:
        for name in ("masked outputs", "psi rows"):  # which are the embeddings in the clear
            manifest["messages"].insert(0, manifest["messages"][-1] | {"phase": "train", "name": name})

    path = written(tmp_path / "run", named)
    finding = by_attack(run_audit({"data": {"recorded": str(path)}}, tmp_path / "out").findings)["binary_columns"]
    forms = {flow.name: flow.form for flow in finding.flows}
    assert forms["masked outputs"] == "said to be masked"
    assert forms["psi rows"] == "said to be encrypted"
    assert forms["embeddings"] == "in the clear"
    page = (tmp_path / "out" / "assessment.html").read_text()
    assert page.count("<b>said to be") == 2  # as bold as what is in the clear
    assert "messages cross as masked sums, by what the recording says" in (tmp_path / "out" / "report.html").read_text()


def test_a_folder_of_another_recording_is_refused(tmp_path: Path) -> None:
    path = recording(tmp_path / "run.zip")
    plan = {"data": {"recorded": str(path)}}
    run_audit(plan, tmp_path / "out")
    path.unlink()
    written(tmp_path / "other")
    shutil.move(tmp_path / "other", path)
    with pytest.raises(BadInput, match="findings of other data"):
        run_audit(plan, tmp_path / "out")


def test_the_plan_that_is_kept_repeats_the_audit(tmp_path: Path) -> None:
    recording(tmp_path / "run.zip")
    first = run_audit({"data": {"recorded": str(tmp_path / "run.zip")}}, tmp_path / "out")
    again = run_audit(tmp_path / "out" / "plan.yaml", tmp_path / "again")
    assert [f.key for f in again.findings] == [f.key for f in first.findings]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "trials": ({"trials": 5}, "'trials' cannot be combined with 'recorded'"),
    "rows": ({"rows": 100}, "'rows' cannot be combined with 'recorded'"),
    "unknown": ({"unknown": 0.3}, "names a recorded run"),
    "defences": ({"defences": ["none", "rotation"]}, "'defences' cannot be combined with 'recorded'"),
    "sweep": ({"defences": "sweep"}, "no defence can be tried on it"),
    "protocols": ({"protocols": "decision_tree"}, "the recorded run used split_network"),
    "coordinator": ({"threats": "coordinator"}, "no attack of this plan fits"),
    "auxiliary rows": ({"threats": [{"name": "active-training", "auxiliary_rows": 9_999}]}, "are available"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_change_a_recorded_run_is_refused(case: str, tmp_path: Path) -> None:
    keys, words = REFUSED[case]
    path = recording(tmp_path / "run.zip")
    with pytest.raises(BadInput, match=words):
        run_audit({"data": {"recorded": str(path)}, **keys}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_recording_goes_with_no_other_source(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'label' cannot be combined with 'recorded'"):
        run_audit({"data": {"recorded": "run.zip", "label": "default"}}, tmp_path / "out")


def test_a_model_that_was_not_recorded_is_not_known(tmp_path: Path) -> None:
    log = world("logistic_regression")
    bare = Transcript(log.protocol, log.active, log.parties, log.features, log.classes)
    for message in log.messages:
        bare.send(**message.header, payload=message.payload)
    for party in log.parties:
        bare.seal(party, "columns", log.sealed(party)["columns"])
    bare.save(tmp_path / "run.zip")
    with pytest.raises(BadInput, match="knows the model, and the recorded run holds none"):
        run_audit({"data": {"recorded": str(tmp_path / "run.zip")}}, tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--recorded", "none.zip"], "does not exist"),
        (["--recorded", "run"], "contains NaN or infinity"),
        (["--recorded", "run", "plan.yaml"], "--recorded takes no plan"),
        (["--recorded", "run", "--threat", "actve"], "did you mean 'active'"),
        (["--threat", "active"], "--threat goes with --recorded"),
    ],
)
def test_bad_words_are_one_sentence_and_exit_code_2(words: list[str], sentence: str, tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN))
    data = bytearray((run / "embeddings.npy").read_bytes())
    data[-4:] = b"\x00\x00\xc0\x7f"  # not a number
    (run / "embeddings.npy").write_bytes(bytes(data))
    assert sentence in refused(plumbob("audit", *words, "--out", "out", cwd=tmp_path))
