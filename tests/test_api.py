"""What `import plumbob` gives: an audit in one call, results that show themselves, attacks that can be used alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plumbob
from plumbob.app import run_audit
from plumbob.errors import BadInput

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
QUICK = {
    "id": "id",
    "label": "default",
    "protocols": "logistic_regression",
    "attacks": ["lattice_decoding"],
    "trials": 1,
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> plumbob.Result:
    out = tmp_path_factory.mktemp("api") / "out"
    return plumbob.audit(bank=EXAMPLES / "bank.csv", shop=EXAMPLES / "shop.csv", out=out, **QUICK)


def test_every_public_name_is_there() -> None:
    assert [name for name in plumbob.__all__ if not hasattr(plumbob, name)] == []


def test_importing_the_package_loads_no_large_library() -> None:
    script = (
        "import sys, plumbob; print([m for m in ('numpy', 'torch', 'pandas', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=EXAMPLES.parents[1]
    )
    assert done.stdout.strip() == "[]"


def test_two_files_are_audited_in_one_call(result: plumbob.Result) -> None:
    assert result.report.exists()
    assert {finding.attack for finding in result.findings} == {"lattice_decoding", "ceiling"}


def test_frames_give_the_same_scores_as_the_files_they_were_read_from(result: plumbob.Result, tmp_path: Path) -> None:
    frames = {name: pd.read_csv(EXAMPLES / f"{name}.csv") for name in ("bank", "shop")}
    again = plumbob.audit(**frames, out=tmp_path / "out", **QUICK)
    assert [finding.score for finding in again.findings] == [finding.score for finding in result.findings]


def test_the_same_frames_resume_in_the_same_folder(tmp_path: Path) -> None:
    frames = {name: pd.read_csv(EXAMPLES / f"{name}.csv") for name in ("bank", "shop")}
    first = plumbob.audit(**frames, out=tmp_path / "out", **QUICK)
    assert plumbob.audit(**frames, out=tmp_path / "out", **QUICK).reused == len(first.findings)


def test_a_plan_of_frames_says_that_they_are_kept_nowhere(tmp_path: Path) -> None:
    frames = {name: pd.read_csv(EXAMPLES / f"{name}.csv") for name in ("bank", "shop")}
    made = plumbob.audit(**frames, out=tmp_path / "out", **QUICK)
    assert "plumbob.audit(bank=bank, shop=shop, ...)" in made.report.read_text(encoding="utf-8")
    with pytest.raises(
        BadInput, match=r"bank.frame' stands for a DataFrame, which is kept nowhere; call plumbob.audit"
    ):
        run_audit(tmp_path / "out" / "plan.yaml", tmp_path / "again")


def test_no_cell_of_a_frame_is_written(tmp_path: Path) -> None:
    frames = {name: pd.read_csv(EXAMPLES / f"{name}.csv") for name in ("bank", "shop")}
    frames["bank"]["income"] = np.arange(len(frames["bank"])) + 0.123456789
    plumbob.audit(**frames, out=tmp_path / "out", **QUICK)
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file() and b".123456789" in path.read_bytes()]


def test_a_result_names_itself_in_a_line(result: plumbob.Result) -> None:
    assert repr(result) == f"Result(folder={str(result.folder)!r}, 2 findings)"


def test_a_result_prints_the_answer_and_where_the_report_is(result: plumbob.Result) -> None:
    told = str(result)
    assert "4 of 4 columns leak" in told
    assert str(result.report) in told


def test_a_result_shows_itself_in_a_notebook_with_names_escaped(result: plumbob.Result) -> None:
    from dataclasses import replace

    shown = result._repr_html_()
    assert "<table>" in shown
    assert "shop.member" in shown
    summary = result.summaries[0]
    verdict = replace(summary.verdicts[0], column="<script>alert(1)</script>")
    judged = result.conclusion.situations[0]
    standing = replace(judged.standings[0], verdict=verdict)
    risky = replace(result, conclusion=replace(result.conclusion, situations=(replace(judged, standings=(standing,)),)))
    assert "<script>" not in risky._repr_html_()


def test_a_result_turns_into_a_frame_with_a_row_per_column(result: plumbob.Result) -> None:
    frame = result.to_frame()
    assert sorted(frame["column"]) == ["shop.basket", "shop.member", "shop.returns", "shop.visits"]
    assert set(frame["level"]) == {"exact"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bank": "bank.csv", "shop": "shop.csv", "label": "default"}, "'id'"),
        ({"id": "id"}, "go with parties"),
        (
            {"efort": "quick", "bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "default"},
            "did you mean 'effort'",
        ),
        ({"bank": 5, "shop": "shop.csv", "id": "id", "label": "default"}, "party 'bank': expected a path"),
        ({"bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "default", "trials": 0}, "trials"),
        (
            {"bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "default", "workers": 0},
            "workers: expected a whole",
        ),
        ({"bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "default", "out": 5}, "out: expected a path"),
        ({"bank": "bank.csv", "shop": "no.csv", "id": "id", "label": "default"}, "no.csv"),
        ({"bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "defalt"}, "default"),
        ({"bank": "bank.csv", "shop": "shop.csv", "id": "id", "label": "default", "attacks": "ESA2"}, "no attack"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    with pytest.raises(plumbob.BadInput, match=words):
        plumbob.audit(**given)


def test_a_frame_with_a_duplicate_column_is_refused() -> None:
    bank = pd.read_csv(EXAMPLES / "bank.csv")
    doubled = (
        pd.concat([bank, bank[["income"]]], axis=1)
        if "income" in bank
        else pd.concat([bank, bank.iloc[:, -1:]], axis=1)
    )
    with pytest.raises(plumbob.BadInput, match="duplicate column"):
        plumbob.audit(bank=doubled, shop=pd.read_csv(EXAMPLES / "shop.csv"), **QUICK)


@pytest.mark.parametrize(
    ("short", "name"),
    [("ESA", "equation_solving"), ("PRA", "path_restriction"), ("GRNA", "generative_regression")]
    + [("GIA", "gradient_inversion"), ("CAFE", "cafe")],
)
def test_the_papers_names_are_aliases(short: str, name: str) -> None:
    assert getattr(plumbob.attacks, short).name == name


def test_every_registered_class_is_an_attribute_of_its_room() -> None:
    for room, registry in (("attacks", "ATTACKS"), ("defences", "DEFENCES"), ("protocols", "PROTOCOLS")):
        for kind in getattr(getattr(plumbob, room), registry).values():
            assert getattr(getattr(plumbob, room), kind.__name__) is kind


def test_an_unknown_attack_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        plumbob.attacks.Nonsense  # noqa: B018  # the access is what is tested


def test_an_attack_runs_on_a_view_from_arrays() -> None:
    rng = np.random.default_rng(0)
    weights, rows = rng.normal(size=(5, 3)), rng.random((4, 5))
    odds = np.exp(rows @ weights)
    scores = odds / odds.sum(axis=1, keepdims=True)
    view = plumbob.View.from_arrays(own=rows[:, :3], scores=scores, model={"weights": weights, "bias": np.zeros(3)})
    guess = plumbob.attacks.ESA().run(view, rng)
    np.testing.assert_allclose(guess.values, rows[:, 3:], atol=1e-9)


LINEAR = {"weights": np.ones((4, 2)), "bias": np.zeros(2)}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"own": np.zeros((3, 2))}, "same rows"),
        ({"own": np.zeros(3)}, "own: expected rows and columns"),
        ({"own": np.full((4, 2), np.nan)}, "own: expected rows and columns of numbers from 0 to 1"),
        ({"own": [["a", "b"]] * 4}, "own: expected a table of numbers"),
        ({"scores": np.full((4, 2), 3.5)}, "scores: expected rows and columns of numbers from 0 to 1"),
        ({"unknown": "age"}, "number or a list of the unknown columns, got 'age'"),
        ({"unknown": 2.0}, "number or a list"),
        ({"unknown": 7}, "expected weights of 9 columns x 2 classes"),
        ({"scores": np.full((4, 3), 0.3)}, "expected weights of 4 columns x 3 classes"),
        ({"model": {"weights": np.ones((4, 2))}}, "and a bias of 2, got"),
        ({"model": None}, "how many columns"),
        ({"auxiliary": np.zeros((9, 99))}, "auxiliary rows have all 4 columns"),
    ],
)
def test_a_view_of_arrays_that_do_not_fit_is_refused(changed: dict[str, Any], words: str) -> None:
    given = {"own": np.zeros((4, 2)), "scores": np.full((4, 2), 0.5), "model": LINEAR}
    with pytest.raises(plumbob.BadInput, match=words):
        plumbob.View.from_arrays(**(given | changed))


def test_the_notebook_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code cell in order, in the folder of the notebook; what a cell ends in is shown as a notebook would."""
    monkeypatch.chdir(EXAMPLES)
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        *before, last = "".join(cell["source"]).rstrip().split("\n")
        exec("\n".join(before), names)
        try:
            value = eval(last, names)
        except SyntaxError:
            exec(last, names)
            continue
        shown += hasattr(value, "_repr_html_") and "<" in value._repr_html_()
    assert shown >= 2
