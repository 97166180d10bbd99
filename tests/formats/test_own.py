"""A model of raw columns and the same model over prepared ones give the same scores; what does not fit is a sentence."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbob.app import run_audit
from plumbob.auditing.planning.plan_file import make_plan, read_plan
from plumbob.auditing.running.open_data import open_source, with_models
from plumbob.data.prepare import Rules, prepare
from plumbob.errors import BadInput
from plumbob.formats import OwnModel, fitted, read_model
from plumbob.formats.own_model import single
from plumbob.formats.sklearn_estimators import own_of
from plumbob.protocols.scores.boosted_trees import BoostedModel
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.protocols.shared.trees import Forest
from tests.commands import plumbob
from tests.formats.fixtures.make import NAMES, labels, rows
from tests.formats.test_files import FIXTURES, estimators

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def table(x: np.ndarray, classes: int) -> Any:
    frame = pd.DataFrame(x, columns=NAMES).assign(y=labels(x, classes))
    return prepare(frame, name="t", label="y", where="t")


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", list(estimators()))
def test_prepared_columns_get_the_scores_of_raw_ones(name: str, classes: int) -> None:
    x = rows(400, 0)
    estimator = estimators()[name].fit(x, labels(x, classes))
    made = table(x, classes)
    order = [2, 0, 3, 1]  # the table has the columns in another order than the model
    columns, values = [made.columns[i] for i in order], made.values[:, order]
    model, _ = fitted(own_of(estimator), columns, made.classes, NAMES)
    assert model.scores(values) == pytest.approx(estimator.predict_proba(x), abs=1e-6)


@pytest.mark.parametrize(
    "name", ["xgboost-2.json", "xgboost-3.ubj", "forest-3.onnx", "boosting-2.onnx", "network-2.onnx"]
)
def test_files_too(name: str) -> None:
    expected = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
    x, own = np.array(expected["rows"]), read_model(FIXTURES / name)
    made = table(x, own.outputs)
    model, _ = fitted(own, made.columns, made.classes, NAMES)
    assert model.scores(made.values) == pytest.approx(np.array(expected["scores"][name]), abs=1e-6)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("threshold", [0.0, 3.0, -2.5, 0.1, 1e6])
def test_a_value_on_a_threshold_keeps_its_side(threshold: float, strict: bool) -> None:
    """Values at, just below and just above, in single precision, in a column that reaches below zero."""
    at = np.float32(threshold)
    near = np.array(
        [-7, np.nextafter(at, np.float32(-np.inf)), at, np.nextafter(at, np.float32(np.inf)), 2e6], np.float32
    )
    x = near.astype(np.float64)
    tree = Forest(
        np.array([[0, -1, -1]]), single(np.array([[threshold, 0, 0]]), strict=strict), np.array([[0, 0, 1]]), 2
    )
    made = prepare(pd.DataFrame({"a": x, "y": [0, 0, 0, 1, 1]}), name="t", label="y", where="t")
    model, _ = fitted(OwnModel("decision_tree", tree, 1, ("a",), ("0", "1")), made.columns, made.classes)
    limit = np.float32(threshold)
    left = near < limit if strict else near.astype(np.float64) <= threshold
    far = np.abs(x - threshold) > 1e-9  # denormal neighbours of zero are one number in a column of this range
    assert np.array_equal((model.scores(made.values)[:, 0] == 1)[far | (near == at)], left[far | (near == at)])


@pytest.mark.parametrize("strict", [True, False])
def test_halfway_between_two_single_numbers_goes_where_it_rounds_to(strict: bool) -> None:
    """Doubles at, just below and just above the middle of two neighbours; the lower one is odd or even."""
    low = np.array([0.1, 3.0, -2.5, 1e6, -0.3], np.float32)
    low = np.concatenate([low, np.nextafter(low, np.float32(np.inf))])
    high = np.nextafter(low, np.float32(np.inf))
    middle = (low.astype(np.float64) + high) / 2
    threshold = (high if strict else low).astype(np.float64)
    for x in (middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)):
        rounded = x.astype(np.float32)
        left = rounded < high if strict else rounded <= low
        assert np.array_equal(x <= single(threshold, strict=strict), left)


@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler", "MaxAbsScaler"])
def test_values_on_a_threshold_behind_a_scaler_keep_their_side(name: str) -> None:
    """Few values, so that thresholds of scaled values are pulled back onto the doubles beside the raw ones."""
    from sklearn import preprocessing
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, 300, 3000) / 7, rng.normal(size=3000) * 1e3], axis=1)
    y = (rng.random(3000) < (np.sin(x[:, 0]) + 1) / 2).astype(int)
    fitted_one = make_pipeline(getattr(preprocessing, name)(), HistGradientBoostingClassifier(max_iter=5, max_depth=6))
    model = own_of(fitted_one.fit(x, y)).model
    assert isinstance(model, BoostedModel)
    near = [model.threshold[model.feature == 0]]
    for way in (-np.inf, np.inf):
        for _ in range(3):
            near.append(np.nextafter(near[-1] if len(near) % 3 != 1 else near[0], way))
    asked = np.stack([np.concatenate(near), np.zeros(sum(map(len, near)))], axis=1)
    assert model.scores(asked) == pytest.approx(fitted_one.predict_proba(asked), abs=1e-9)


def line(**names: Any) -> OwnModel:
    return OwnModel("logistic_regression", LinearModel(np.array([[-1.0, 1.0], [0.0, 0.0]]), np.zeros(2)), 2, **names)


def small(**rules: str) -> Any:
    frame = pd.DataFrame({"a": [1.0, 2.0, 5.0] * 9, "b": [3.0, 3.0, 4.0] * 9, "city": ["Oslo", "Bergen", "Rome"] * 9})
    return prepare(frame.assign(y=[0, 1, 1] * 9), name="t", label="y", where="t", rules=Rules(**rules))


def test_columns_that_are_never_read_are_told() -> None:
    made = small()
    model, notes = fitted(line(inputs=("a", "b"), classes=("0", "1")), made.columns, made.classes)
    assert notes == ("columns that the model does not use, so they cannot leak through it: 'b', 'city'",)
    assert isinstance(model, LinearModel)
    assert model.weights == pytest.approx(np.array([[-4.0, 4.0], [0, 0], [0, 0]]))


def test_indicators_are_found_by_their_words() -> None:
    made = small(categories="onehot")
    own = line(inputs=("city=Oslo", "city_Rome"), classes=("0", "1"))
    model, _ = fitted(own, made.columns, made.classes, None, made.words)
    assert isinstance(model, LinearModel)
    assert np.flatnonzero(model.weights[:, 1]).tolist() == [made.names.index("city=2")]
    assert "Oslo" not in " ".join([*made.names, *made.notes])


def test_classes_are_matched_by_name_or_by_order() -> None:
    made = small()
    x = made.values
    plain, _ = fitted(line(inputs=("a", "b"), classes=("0", "1")), made.columns, ("0", "1"))
    turned, _ = fitted(line(inputs=("a", "b"), classes=("yes", "no")), made.columns, ("no", "yes"))
    assert turned.scores(x) == pytest.approx(plain.scores(x)[:, ::-1])
    _, notes = fitted(line(inputs=("a", "b")), made.columns, ("no", "yes"))
    assert "assumed to be the label's in sorted order" in notes[-1]
    for model in ("forest-3.onnx", "boosting-3.onnx", "network-3.onnx", "xgboost-3.json"):
        own = replace(read_model(FIXTURES / model), classes=("b", "c", "a"), inputs=tuple(NAMES))
        made = table(rows(60, 0), 3)
        ours = fitted(own, made.columns, ("a", "b", "c"))[0].scores(made.values)
        theirs = fitted(replace(own, classes=("a", "b", "c")), made.columns, ("a", "b", "c"))[0].scores(made.values)
        assert ours == pytest.approx(theirs[:, [2, 0, 1]])


@pytest.mark.parametrize(
    ("own", "columns", "classes", "words"),
    [
        (line(), None, 2, "the file does not name its 2 inputs; list the columns in its order ('columns')"),
        (line(), ("a",), 2, "the model has 2 inputs, 'columns' lists 1"),
        (
            line(),
            ("a", "bb"),
            2,
            "the model uses 'bb', but no party has such a column after preparation; did you mean 'b'?",
        ),
        (line(), ("a", "a"), 2, "two inputs of the model are the same column 'a'"),
        (line(inputs=("a", "b")), None, 3, "the model has 2 classes, the label has 3"),
        (line(inputs=("a", "b"), classes=("x", "z")), None, 2, "classes are named differently from the label's"),
    ],
)
def test_what_does_not_fit_is_one_sentence(own: OwnModel, columns: Any, classes: int, words: str) -> None:
    made = small()
    with pytest.raises(BadInput, match=re.escape(words)):
        fitted(own, made.columns, tuple("xyz")[:classes] if classes == 3 else ("no", "yes"), columns)


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(BadInput, match="expected numbers, got NaN or infinity among its weights"):
        OwnModel("logistic_regression", LinearModel(np.full((2, 2), np.nan), np.zeros(2)), 2)


def test_what_a_reader_took_for_granted_is_told() -> None:
    made = small()
    _, notes = fitted(line(inputs=("a", "b"), classes=("0", "1"), notes=("so",)), made.columns, made.classes)
    assert notes[0] == "so"


# in a plan


def desk(folder: Path) -> Path:
    for name in ("bank.csv", "shop.csv", "scorer.json", "scorer.onnx", "own_model.yaml"):
        shutil.copy(EXAMPLES / name, folder / name)
    return folder


def written(folder: Path, *protocols: Any, **more: Any) -> dict[str, Any]:
    parties = {name: str(folder / f"{name}.csv") for name in ("bank", "shop")}
    data = {"parties": parties, "id": "id", "label": "default", "align": "ids"}
    return {"data": data, "protocols": list(protocols), "trials": 1, "rows": 50, "attacks": ["forest_boxes"]} | more


def test_an_audit_predicts_with_the_file_and_keeps_its_digest(tmp_path: Path) -> None:
    folder = desk(tmp_path)
    plan = written(folder, {"model": str(folder / "scorer.json")})
    result = run_audit(plan, tmp_path / "out")
    assert {finding.protocol for finding in result.findings} == {"boosted_trees (model=scorer.json)"}
    assert any("does not use" in note and "'city', 'member'" in note for note in result.notes)
    kept = read_plan(tmp_path / "out" / "plan.yaml")
    assert kept.protocols[0].sha256 is not None
    assert run_audit(kept, tmp_path / "out").findings == result.findings
    (folder / "scorer.json").write_text((folder / "scorer.json").read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(BadInput, match="is not the file the plan was made for"):
        run_audit(tmp_path / "out" / "plan.yaml", tmp_path / "out")
    with pytest.raises(BadInput, match="holds the audit of another plan"):
        run_audit(plan, tmp_path / "out")


def test_a_plan_that_says_all_of_a_model_is_read_without_it(tmp_path: Path) -> None:
    folder = desk(tmp_path)
    whole = make_plan(written(folder, {"model": str(folder / "scorer.json")}))
    kept = {"model": str(folder / "scorer.json"), "name": "boosted_trees", "sha256": whole.protocols[0].sha256}
    (folder / "scorer.json").unlink()
    assert make_plan(written(folder, kept)).digest == whole.digest
    with pytest.raises(BadInput, match="no model file at"):
        run_audit(written(folder, kept), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_model_of_an_audit_is_that_of_the_file(tmp_path: Path) -> None:
    folder = desk(tmp_path)
    plan = make_plan(written(folder, {"model": str(folder / "scorer.json")}))
    source = with_models(open_source(plan.data), plan.protocols)
    model = source.models[plan.protocols[0].title]
    assert isinstance(model, BoostedModel)
    names = [column.name for column in source.columns]
    raw = np.stack([c.low + (c.high - c.low) * v for c, v in zip(source.columns, source.values.T, strict=True)], axis=1)
    theirs = read_model(folder / "scorer.json")
    raw = np.rint(raw * 100) / 100  # two decimals, as the files have them
    expected = theirs.model.scores(raw[:, [names.index(name) for name in theirs.inputs]])
    assert model.scores(source.values) == pytest.approx(expected, abs=1e-9)


def test_no_training_defence_is_tried_on_a_trained_model(tmp_path: Path) -> None:
    folder = desk(tmp_path)
    protocol = {"model": str(folder / "scorer.onnx"), "columns": ["age", "income", "basket", "visits", "returns"]}
    plan = written(folder, protocol, defences=["none", "dp_sgd"], attacks=["equation_solving"])
    result = run_audit(plan, tmp_path / "out")
    assert {finding.defence for finding in result.findings} == {"none"}
    assert any("dp_sgd" in note and "the model is trained already" in note for note in result.notes)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ({"model": "none.onnx"}, "no model file at"),
        ({"model": "scorer.onnx"}, "the file does not name its 5 inputs"),
        ({"model": "scorer.json", "name": "random_forest"}, "is a boosted_trees, the plan says random_forest"),
        ({"model": "scorer.json", "settings": {"trees": 5}}, "'settings' are for training"),
        ({"model": "scorer.json", "name": "secure_boost"}, "'secure_boost' takes no 'model'"),
        ({"model": "scorer.json", "trust_code": True}, "'trust_code' is not a key"),
        ({"name": "random_forest", "columns": ["age"]}, "need a 'model'"),
        ({"model": "scorer.pkl"}, "a pickle runs code when loaded; pass --trust-code"),
    ],
)
def test_bad_models_end_with_one_sentence_and_no_folder(protocol: dict[str, Any], words: str, tmp_path: Path) -> None:
    folder = desk(tmp_path)
    (folder / "scorer.pkl").write_bytes(b"\x80\x04N.")
    if "model" in protocol:
        protocol = protocol | {"model": str(folder / protocol["model"])}
    with pytest.raises(BadInput, match=re.escape(words)):
        run_audit(written(folder, protocol), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_line_says_so_with_exit_code_2(tmp_path: Path) -> None:
    folder = desk(tmp_path)
    (folder / "scorer.json").write_bytes((EXAMPLES / "scorer.json").read_bytes()[:500])
    done = plumbob("audit", "own_model.yaml", "--out", "out", cwd=folder)
    assert done.returncode == 2
    assert "model 'scorer.json': it cannot be read as a complete '.json' model" in done.stderr
    assert not (folder / "out").exists()
