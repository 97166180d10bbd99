"""What fuzzing found, each as the smallest example of it: once a traceback or a hang, now one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from plumbob.auditing.planning.plan_file import make_plan, plan_from_text
from plumbob.auditing.running.finding import read_findings
from plumbob.data import parquet
from plumbob.data.files import read_frame
from plumbob.data.prepare import prepare
from plumbob.errors import LONGEST, BadInput
from plumbob.formats import read_model
from plumbob.recorded.folder import read_recording
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Transcript
from plumbob.view.pages import list_page
from plumbob.view.runs import Runs
from tests.fuzz.plans import FIXTURES
from tests.recorded.test_folder import written
from tests.view.audits import one, write
from tests.worlds import made_table, world


def refused(read: Callable[..., object], *given: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as caught:
        read(*given, **options)
    return str(caught.value)


def test_a_sentence_is_one_line_of_readable_length() -> None:
    assert str(BadInput("a\nb\u2028c\x1b[31m\x00\ud800")) == "a b c[31m"
    assert "'line break' is not a key" in refused(make_plan, {"line\nbreak": 1})
    long = refused(make_plan, {"protocols": [{"name": "random_forest", "settings": {"trees": "x" * 9_000}}]})
    assert len(long) <= LONGEST
    assert "random forest: trees" in long


def test_a_path_with_a_zero_byte() -> None:
    assert "'recorded': expected the path of a file" in refused(make_plan, {"data": {"recorded": "a\0b"}})


@pytest.mark.parametrize("part", ["protocols", "defences"])
def test_a_setting_called_name(part: str) -> None:
    name = {"protocols": "decision_tree", "defences": "rounding"}[part]
    assert "'name' is not a setting" in refused(make_plan, {part: [{"name": name, "settings": {"name": 1}}]})


def test_half_a_character_as_a_party(tmp_path: Path) -> None:
    text = 'data: {parties: {"\\ud800": a.csv, shop: b.csv}, id: id, label: y, active: bank}'
    assert "an invalid character" in refused(plan_from_text, text, "plan", tmp_path)


def test_half_a_character_as_a_column_of_a_recording(tmp_path: Path) -> None:
    path = written(tmp_path / "run", lambda manifest, _: manifest["features"][0].update(name="\ud800"))
    assert "its manifest is not JSON" in refused(read_recording, path)


def test_a_defence_of_a_recording_with_a_setting_called_name(tmp_path: Path) -> None:
    wrong = {"gaussian_masking": {"name": 1}}
    path = written(tmp_path / "run", lambda manifest, _: manifest.update(defence=wrong))
    assert "has no setting 'name'" in refused(read_recording, path)


def test_a_tower_of_brackets_takes_no_time() -> None:
    """A hundred thousand of them took hours."""
    assert "nested too deeply" in refused(plan_from_text, "data: " + "[" * 100_000, "plan", Path())


def test_a_plan_of_many_keys_takes_no_time() -> None:
    text = "data:\n" + "".join(f"  k{i}: 1\n" for i in range(5_000))
    assert "is not a key" in refused(plan_from_text, text, "plan", Path())


def test_lists_and_bytes_in_parquet(tmp_path: Path) -> None:
    cells = {"a": [[1, 2]] * 3, "b": [b"\xc8\x00"] * 3, "c": [1, 2, 3]}
    pyarrow.parquet.write_table(pyarrow.table(cells), tmp_path / "t.parquet")
    frame = read_frame(tmp_path / "t.parquet")
    for name in ("a", "b"):
        assert f"column '{name}' contains cells that are not" in refused(
            prepare, frame[[name, "c"]], name="t", where="party 't'"
        )


def test_text_in_parquet_that_is_not_utf_8(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(
        pyarrow.table({"a": ["once", "upon"]}), tmp_path / "t.parquet", compression="none", use_dictionary=False
    )
    data = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(data.replace(b"once", b"on\xa1e"))
    assert "the text of column 1 is not UTF-8" in refused(read_frame, tmp_path / "t.parquet")


def test_parquet_whose_statistics_contradict_its_schema(tmp_path: Path) -> None:
    """The library ended the process over a column that the schema says is never null, and the statistics that it may be."""
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), tmp_path / "t.parquet")
    data = (tmp_path / "t.parquet").read_bytes()
    optional, required = b"\x25\x02\x18\x01a", b"\x25\x00\x18\x01a"
    assert data.count(optional) == 1
    (tmp_path / "t.parquet").write_bytes(data.replace(optional, required))
    for read in (read_frame, parquet.need, lambda path: list(parquet.batches(path, 10, None))):
        assert "is not a readable Parquet file" in refused(read, tmp_path / "t.parquet")


def test_whole_numbers_beyond_floats() -> None:
    frame = pd.DataFrame({"a": [10**400, 1, 2]}, dtype=object)
    assert "numbers beyond 1e308" in refused(prepare, frame, name="t", where="party 't'")


def test_an_array_whose_header_does_not_end(tmp_path: Path) -> None:
    folder = written(tmp_path / "run")
    data = (folder / "label.npy").read_bytes()
    (folder / "label.npy").write_bytes(data[:10] + data[10:].replace(b")", b"(").replace(b"}", b"("))
    assert "is not a NumPy array file" in refused(read_recording, folder)


@pytest.mark.parametrize(
    "change", [{"key": {}}, {"key": 5}, {"protocol": 3}, {"score": 1.5}, {"trial": "x"}, {"unknown": None}]
)
def test_findings_of_wrong_types(change: dict[str, Any], tmp_path: Path) -> None:
    raw = json.loads(one()[0].to_line()) | change
    (tmp_path / "findings.jsonl").write_text(json.dumps(raw) + "\n")
    assert "line 1: not a finding" in refused(read_findings, tmp_path / "findings.jsonl")


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_findings_that_are_no_text_or_too_deep(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "findings.jsonl").write_bytes(data)
    refused(read_findings, tmp_path / "findings.jsonl")


def test_the_list_of_audits_is_made_over_findings_of_wrong_types(tmp_path: Path) -> None:
    write(tmp_path / "good", one())
    folder = write(tmp_path / "bad", one())
    line = json.loads((folder / "findings.jsonl").read_text().splitlines()[0])
    (folder / "findings.jsonl").write_text(json.dumps(line | {"protocol": 3}) + "\n")
    runs = Runs(tmp_path).all()
    assert {run.path: bool(run.wrong) for run in runs} == {"good": False, "bad": True}
    assert "bad" in list_page("x", runs)


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest["meta"])
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta["features"][0].update(low="x"),
        lambda meta: meta["features"][0].update(high=float("nan")),
        lambda meta: meta["features"][0].update(party=[]),
        lambda meta: meta["features"][0].update(place=[1, 2]),
        lambda meta: meta["messages"][0].update(sender=[]),
        lambda meta: meta["messages"][0].update(round="1"),
        lambda meta: meta.update(parties="bank"),
        lambda meta: meta.update(active=3),
    ],
)
def test_manifests_of_transcripts_with_wrong_types(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    world(table=made_table(rows=60, columns=4)).save(tmp_path / "run")
    refused(Transcript.load, changed(tmp_path / "run", change))


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.update(unknown_names=["a"] * 9),
        lambda meta: meta.update(curious=7),
        lambda meta: meta["messages"][0].update(name=None),
    ],
)
def test_manifests_of_views_with_wrong_types(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    cut(world(table=made_table(rows=60, columns=4)), THREATS["active"]).save(tmp_path / "view")
    refused(View.load, changed(tmp_path / "view", change))


def test_a_tree_that_asks_for_an_input_that_is_not_there(tmp_path: Path) -> None:
    raw = json.loads((FIXTURES / "xgboost-2.json").read_text())
    raw["learner"]["gradient_booster"]["model"]["trees"][0]["split_indices"][0] = 2_228_224
    (tmp_path / "m.json").write_text(json.dumps(raw))
    assert "its trees read input 2228224" in refused(read_model, tmp_path / "m.json")


def test_weights_whose_pickle_points_nowhere(tmp_path: Path) -> None:
    """A persistent id that is a number, where torch asserts a tuple."""
    from tests.fuzz.mutate import unzipped, zipped
    from tests.fuzz.others import _models

    members = unzipped(_models()["linear.pt"])
    pickle = next(name for name in members if name.endswith("data.pkl"))
    members[pickle] = b"\x80\x02K\x01Q."
    (tmp_path / "m.pt").write_bytes(zipped(members))
    assert "was not written by torch.save" in refused(read_model, tmp_path / "m.pt")


def test_positions_of_columns_in_a_view_are_checked(tmp_path: Path) -> None:
    view = cut(world(table=made_table(rows=60, columns=4)), THREATS["active"])
    object.__setattr__(view, "known", np.array([0.5]))
    view.save(tmp_path / "view")
    assert "positions of columns" in refused(View.load, tmp_path / "view")
