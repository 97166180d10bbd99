"""Files of other libraries give the scores that those libraries give, and broken ones give a sentence."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbob.errors import BadInput
from plumbob.formats import model_files as files
from plumbob.formats import read_model
from plumbob.formats.sklearn_estimators import own_of
from plumbob.trust import Trust
from tests.formats.fixtures.make import NAMES, labels, rows

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
KINDS = {
    "logistic": "logistic_regression",
    "tree": "decision_tree",
    "forest": "random_forest",
    "boosting": "boosted_trees",
    "scaled_boosting": "boosted_trees",
    "xgboost": "boosted_trees",
    "network": "neural_network",
    "torch": "neural_network",
}


@pytest.mark.parametrize("name", list(EXPECTED["scores"]))
def test_a_file_scores_as_the_library_that_wrote_it(name: str) -> None:
    own = read_model(FIXTURES / name)
    assert own.kind == KINDS[name.partition("-")[0]]
    assert own.size == 4
    assert own.model.scores(np.array(EXPECTED["rows"])) == pytest.approx(np.array(EXPECTED["scores"][name]), abs=1e-6)


def test_names_of_inputs_and_classes_are_read() -> None:
    assert read_model(FIXTURES / "xgboost-2.ubj").inputs == tuple(NAMES)
    assert read_model(FIXTURES / "forest-3.onnx").classes == ("0", "1", "2")


def test_json_and_its_binary_twin_are_one_model() -> None:
    one, two = (read_model(FIXTURES / f"xgboost-3.{suffix}").model.arrays() for suffix in ("json", "ubj"))
    assert all(one[name] == pytest.approx(two[name], rel=1e-6) for name in one)


def estimators() -> dict[str, Any]:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic": make_pipeline(MinMaxScaler(), LogisticRegression()),
        "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
        "forest": RandomForestClassifier(10, max_depth=5, random_state=0),
        "extra": ExtraTreesClassifier(5, max_depth=5, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=8, random_state=0),
        "scaled boosting": make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=5, random_state=0)),
        "histogram": HistGradientBoostingClassifier(max_iter=8, max_depth=4),
        "network": make_pipeline(StandardScaler(), MaxAbsScaler(), MLPClassifier((6,), max_iter=60, random_state=0)),
    }


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", list(estimators()))
def test_an_estimator_scores_as_scikit_learn_does(name: str, classes: int) -> None:
    x = rows(400, 0)
    estimator = estimators()[name].fit(x, labels(x, classes))
    own = own_of(estimator)
    assert own.model.scores(x) == pytest.approx(estimator.predict_proba(x), abs=1e-6)
    assert own.classes == tuple(str(i) for i in range(classes))


def test_a_pickled_model_of_xgboost_is_read_too() -> None:
    xgboost = pytest.importorskip("xgboost")
    x = rows(300, 0)
    booster = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(x, labels(x, 2))
    assert own_of(booster).model.scores(x) == pytest.approx(booster.predict_proba(x), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_that_stopped_early_predicts_with_its_best_rounds(classes: int, tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows(300, 0), np.random.default_rng(0).integers(0, classes, 300)
    booster = xgboost.XGBClassifier(
        n_estimators=30, max_depth=3, num_parallel_tree=2, learning_rate=1.0, early_stopping_rounds=4
    )
    booster.fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])], verbose=False)
    kept, made = (booster.best_iteration + 1) * 2 * (1 if classes == 2 else 3), len(booster.get_booster().get_dump())
    assert kept < made
    for suffix in ("json", "ubj"):
        booster.save_model(tmp_path / f"early.{suffix}")
    for own in (own_of(booster), read_model(tmp_path / "early.json"), read_model(tmp_path / "early.ubj")):
        assert own.model.scores(x) == pytest.approx(booster.predict_proba(x), abs=1e-6)
        assert f"the first {kept} of its {made} trees" in own.notes[0]


def test_the_best_round_is_read_from_the_file(tmp_path: Path) -> None:
    own = read_model(changed_json(tmp_path, _set("attributes", {"best_iteration": "1"})))
    whole = read_model(FIXTURES / "xgboost-2.json")
    assert len(own.model.arrays()["feature"]) == 2
    assert np.array_equal(own.model.arrays()["leaves"], whole.model.arrays()["leaves"][:2])
    assert (len(own.notes), whole.notes) == (1, ())


def pickled(folder: Path) -> Path:
    import joblib

    x = rows(100, 0)
    joblib.dump(estimators()["tree"].fit(x, labels(x, 2)), folder / "tree.joblib")
    return folder / "tree.joblib"


def test_a_pickle_is_read_only_where_code_is_trusted(tmp_path: Path) -> None:
    path = pickled(tmp_path)
    with pytest.raises(BadInput, match="a pickle runs code when loaded; pass --trust-code"):
        read_model(path)
    assert read_model(path, trust=Trust(code=True)).kind == "decision_tree"


class _Bomb:
    """A pickle that writes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("suffix", [".pkl", ".joblib", ".pt", ".pth", ".onnx", ".json", ".ubj", ".skops"])
def test_no_reader_runs_code_unasked(suffix: str, tmp_path: Path) -> None:
    import pickle

    import torch

    path, mark = tmp_path / f"bomb{suffix}", tmp_path / "mark"
    if suffix in (".pt", ".pth"):
        torch.save(_Bomb(mark), path)
    else:
        path.write_bytes(pickle.dumps(_Bomb(mark)))
    with pytest.raises(BadInput):
        read_model(path)
    assert not mark.exists()


def network() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(5, 3))


def test_weights_of_torch_are_read_without_code(tmp_path: Path) -> None:
    import torch

    made = network().eval()
    torch.save(made.state_dict(), tmp_path / "net.pt")
    x = np.random.default_rng(0).random((20, 4))
    scores = torch.softmax(made(torch.tensor(x, dtype=torch.float32)), dim=1).detach().numpy()
    assert read_model(tmp_path / "net.pt").model.scores(x) == pytest.approx(scores, abs=1e-6)


def test_a_whole_module_of_torch_needs_trust(tmp_path: Path) -> None:
    import torch

    torch.save(network(), tmp_path / "net.pth")
    with pytest.raises(BadInput, match=r"save model\.state_dict\(\), or pass --trust-code"):
        read_model(tmp_path / "net.pth")
    assert read_model(tmp_path / "net.pth", trust=Trust(code=True)).kind == "neural_network"
    torch.save(
        torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)), tmp_path / "tanh.pth"
    )
    with pytest.raises(
        BadInput, match="expected alternating Linear and ReLU layers ending with Linear, got Linear, Tanh, Linear"
    ):
        read_model(tmp_path / "tanh.pth", trust=Trust(code=True))


def test_one_output_of_torch_is_the_second_class(tmp_path: Path) -> None:
    import torch

    torch.save({"weight": torch.tensor([[1.0, -2.0]]), "bias": torch.tensor([0.5])}, tmp_path / "line.pt")
    own = read_model(tmp_path / "line.pt")
    assert own.kind == "logistic_regression"
    assert own.model.scores(np.array([[1.0, 0.25]]))[0, 1] == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_a_skops_file_is_read_where_skops_is_there(tmp_path: Path) -> None:
    try:
        import skops.io
    except ImportError:
        (tmp_path / "a.skops").write_bytes(b"PK")
        with pytest.raises(BadInput, match=re.escape("needs the package skops: pip install 'plumbob[skops]'")):
            read_model(tmp_path / "a.skops")
        return
    x = rows(200, 0)
    for name, estimator in estimators().items():
        estimator.fit(x, labels(x, 2))
        skops.io.dump(estimator, tmp_path / f"{name}.skops")
        own = read_model(tmp_path / f"{name}.skops")
        assert own.model.scores(x) == pytest.approx(estimator.predict_proba(x), abs=1e-6)


# what is refused


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("name", ["xgboost-2.json", "xgboost-2.ubj", "forest-2.onnx", "network-3.onnx"])
def test_a_file_cut_short_is_one_sentence(name: str, share: float, tmp_path: Path) -> None:
    data = (FIXTURES / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(share * len(data))])
    with pytest.raises(BadInput, match=f"^model '{re.escape(name)}': ") as refused:
        read_model(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_any_bytes_are_a_model_or_one_sentence(tmp_path: Path) -> None:
    """Every byte in turn is changed; the reader answers with a model or a sentence, never with another error."""
    rng = np.random.default_rng(0)
    for name in ("logistic-2.onnx", "tree-2.onnx", "xgboost-2.ubj"):
        data = bytearray((FIXTURES / name).read_bytes())
        for at in rng.choice(len(data), 150, replace=False):
            changed = bytearray(data)
            changed[at] ^= int(rng.integers(1, 256))
            (tmp_path / name).write_bytes(changed)
            with contextlib.suppress(BadInput):
                read_model(tmp_path / name)


def changed_json(folder: Path, change: Any) -> Path:
    raw = json.loads((FIXTURES / "xgboost-2.json").read_text(encoding="utf-8"))
    change(raw["learner"])
    (folder / "mine.json").write_text(json.dumps(raw), encoding="utf-8")
    return folder / "mine.json"


def _set(*place: Any) -> Any:
    *path, last, value = place

    def change(learner: Any) -> None:
        for step in path:
            learner = learner[step]
        learner[last] = value

    return change


def _first_leaf_nan(learner: Any) -> None:
    tree = learner["gradient_booster"]["model"]["trees"][0]
    tree["split_conditions"][tree["left_children"].index(-1)] = float("nan")


TREE = ("gradient_booster", "model", "trees", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("objective", "name", "reg:squarederror"), "got the objective 'reg:squarederror'"),
        (_set("gradient_booster", "name", "gblinear"), "expected the booster 'gbtree', got 'gblinear'"),
        (_set(*TREE, "split_type", [1]), "it has categorical splits"),
        (_first_leaf_nan, "got NaN or infinity among its leaves"),
        (_set(*TREE, "left_children", [0] * 99), "cannot be read as a complete '.json' model"),
        (_set("learner_model_param", "base_score", "x"), "cannot be read as a complete '.json' model"),
    ],
)
def test_models_of_xgboost_that_do_not_fit_are_refused(change: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        read_model(changed_json(tmp_path, change))


def test_a_wrong_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"weights": [1]}')
    with pytest.raises(BadInput, match="expected a model saved by xgboost"):
        read_model(tmp_path / "a.json")
    (tmp_path / "a.h5").write_text("x")
    with pytest.raises(BadInput, match=re.escape("expected a file that ends in .json, .ubj, .onnx")):
        read_model(tmp_path / "a.h5")
    with pytest.raises(BadInput, match="no model file at"):
        read_model(tmp_path / "none.onnx")


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 2**20)
    with (tmp_path / "big.onnx").open("wb") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(BadInput, match="larger than 1 MB"):
        read_model(tmp_path / "big.onnx")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: s.ensemble.RandomForestClassifier(2, min_samples_leaf=1), "of depth"),
        (
            lambda s: s.neural_network.MLPClassifier((3,), activation="tanh"),
            "expected hidden layers with 'relu', got 'tanh'",
        ),
        (lambda s: s.svm.SVC(), "expected one of LogisticRegression"),
        (lambda s: s.ensemble.GradientBoostingClassifier(loss="exponential"), "expected the loss 'log_loss'"),
        (lambda s: s.pipeline.make_pipeline(s.decomposition.PCA(), s.linear_model.LogisticRegression()), "got PCA"),
        (lambda s: s.linear_model.LinearRegression(), "expected a fitted classifier"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_estimators_that_do_not_fit_are_refused(make: Any, words: str) -> None:
    import sklearn.decomposition
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.neural_network
    import sklearn.pipeline
    import sklearn.svm

    rng = np.random.default_rng(0)
    x, y = rng.random((3000, 2)), rng.integers(0, 2, 3000)
    rows = 3000 if words == "of depth" else 200
    with pytest.raises(BadInput, match=re.escape(words)):
        own_of(make(sklearn).fit(x[:rows], y[:rows]))
