"""Fitted scikit-learn estimators, alone or after affine scalers in a pipeline, as plain arrays.

A pickle (.pkl, .joblib) runs arbitrary code when loaded, so it is loaded only if that was allowed; a .skops
file lists its types, and only those that skops trusts are created.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray, IntArray
from plumbob.formats.own_model import OwnModel, averaged, checked_depth, pulled_back, rescaled, single
from plumbob.protocols.scores.boosted_trees import BoostedModel, added_up, boosted
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.protocols.scores.neural_network import Network
from plumbob.protocols.shared.trees import Plain, Trees, plain
from plumbob.trust import Trust

MOST_UNPACKED = 400 * 2**20  # bytes of the members of a .skops file
KNOWN = (
    "LogisticRegression, DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, "
    "GradientBoostingClassifier, HistGradientBoostingClassifier, MLPClassifier, XGBClassifier"
)

HARMLESS = (  # classes of scikit-learn that hold arrays, which skops does not trust by itself
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
)


def read_pickle(data: bytes, *, trust: Trust) -> OwnModel:
    """The estimator in a pickle."""
    if not trust.code:
        raise BadInput(
            "a pickle runs code when loaded; pass --trust-code if you trust it, or save the model as .onnx or .skops"
        )
    import joblib

    try:
        estimator = joblib.load(io.BytesIO(data))
    except Exception as error:  # whatever a foreign program raises
        raise BadInput(f"it cannot be unpickled ({type(error).__name__}); is its library installed?") from error
    return own_of(estimator)


def read_skops(data: bytes) -> OwnModel:
    """The estimator in a skops file."""
    try:
        import skops.io
    except ImportError as error:
        raise BadInput("reading .skops files needs the package skops: pip install 'plumbob[skops]'") from error
    check_unpacked(data)
    named = skops.io.get_untrusted_types(data=data)
    strange = [name for name in named if name not in HARMLESS]
    if strange:
        raise BadInput(f"it contains untrusted types, such as {strange[0]}; save it as .onnx")
    return own_of(skops.io.loads(data, trusted=named))


def check_unpacked(data: bytes) -> None:
    """Count what the members of a zip file unpack to: no reader takes more of a member than its entry says."""
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        size = sum(member.file_size for member in members.infolist())
    if size > MOST_UNPACKED:
        raise BadInput(f"its members unpack to {size:,} bytes, at most {MOST_UNPACKED:,} are read")


def own_of(estimator: Any) -> OwnModel:
    """The plain arrays of a fitted estimator or pipeline."""
    steps = [step for _, step in estimator.steps] if type(estimator).__name__ == "Pipeline" else [estimator]
    *before, last = [step for step in steps if step is not None and step != "passthrough"]
    if not hasattr(last, "classes_") and not hasattr(last, "get_booster"):
        raise BadInput(f"expected a fitted classifier ({KNOWN}), got {type(last).__name__}")
    own = _arrays(last)
    model = own.model
    if before and isinstance(model, Trees):
        model = pulled_back(model, lambda x, column: _scaled(before, x, column))
    elif before:
        model = rescaled(model, *_affine(before, own.size))
    first = (before or [last])[0]
    names = tuple(str(name) for name in getattr(first, "feature_names_in_", ()))
    classes = tuple(str(name) for name in getattr(last, "classes_", ()))
    return OwnModel(own.kind, model, own.size, names, classes, own.notes)


def _scaled(scalers: list[Any], x: FloatArray, column: IntArray) -> FloatArray:
    """Values of these columns after all scalers, with the same operations in the same order."""
    for scaler in scalers:
        kind = _scaler_kind(scaler)
        if kind == "MinMaxScaler":
            x = x * scaler.scale_[column] + scaler.min_[column]
            continue
        if kind == "StandardScaler" and scaler.with_mean:
            x = x - scaler.mean_[column]
        if scaler.scale_ is not None:
            x = x / scaler.scale_[column]
    return x


def _affine(scalers: list[Any], size: int) -> tuple[FloatArray, FloatArray]:
    """factor x + shift of all scalers combined."""
    factor, shift = np.ones(size), np.zeros(size)
    for scaler in scalers:
        kind = _scaler_kind(scaler)
        if kind == "MinMaxScaler":
            times, plus = scaler.scale_, scaler.min_
        else:
            times = np.ones(size) if scaler.scale_ is None else 1.0 / scaler.scale_
            centred = kind == "StandardScaler" and scaler.with_mean
            plus = -scaler.mean_ * times if centred else np.zeros(size)
        factor, shift = factor * times, shift * times + plus
    return factor, shift


def _scaler_kind(scaler: Any) -> str:
    kind = type(scaler).__name__
    if kind not in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler") or getattr(scaler, "clip", False):
        raise BadInput(
            f"expected StandardScaler, MinMaxScaler (without clip) or MaxAbsScaler before the classifier, got {kind}"
        )
    return kind


def _arrays(estimator: Any) -> OwnModel:
    kind = type(estimator).__name__
    size = int(getattr(estimator, "n_features_in_", 0))
    if kind in ("LogisticRegression", "LogisticRegressionCV"):
        return OwnModel("logistic_regression", _linear(estimator), size)
    if kind in ("DecisionTreeClassifier", "ExtraTreeClassifier"):
        return OwnModel("decision_tree", _forest([estimator], len(estimator.classes_)), size)
    if kind in ("RandomForestClassifier", "ExtraTreesClassifier"):
        return OwnModel("random_forest", _forest(list(estimator.estimators_), len(estimator.classes_)), size)
    if kind == "GradientBoostingClassifier":
        return OwnModel("boosted_trees", _gradient_boosting(estimator), size)
    if kind == "HistGradientBoostingClassifier":
        return OwnModel("boosted_trees", _histogram_boosting(estimator), size)
    if kind == "MLPClassifier":
        return OwnModel("neural_network", _network(estimator), size)
    if kind == "XGBClassifier":
        from plumbob.formats.xgboost_file import read_xgboost

        return read_xgboost(bytes(estimator.get_booster().save_raw("json")), ".json")
    raise BadInput(f"expected one of {KNOWN}, got {kind}")


def _linear(estimator: Any) -> LinearModel:
    weights, bias = np.asarray(estimator.coef_, dtype=np.float64).T, np.asarray(estimator.intercept_, dtype=np.float64)
    if len(bias) == 1:
        return LinearModel(np.hstack([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2)
    if getattr(estimator, "multi_class", "auto") == "ovr" or getattr(estimator, "solver", "") == "liblinear":
        raise BadInput("expected a multinomial logistic regression, got one-vs-rest")
    return LinearModel(np.ascontiguousarray(weights), bias)


def _single(tree: Any) -> Plain:
    found = plain(tree)
    return Plain(found.left, found.right, found.feature, single(found.threshold, strict=False))


def _forest(trees: list[Any], classes: int) -> Any:
    values = [one.tree_.value[:, 0] for one in trees]
    shares = [value / value.sum(axis=1, keepdims=True) for value in values]
    return averaged([_single(one.tree_) for one in trees], shares, classes)


def _gradient_boosting(estimator: Any) -> BoostedModel:
    if estimator.loss != "log_loss":
        raise BadInput(f"expected the loss 'log_loss', got '{estimator.loss}'")
    if estimator.init is not None:
        raise BadInput("expected the default initial estimator (class priors), got another one ('init')")
    checked_depth([plain(one.tree_) for stage in estimator.estimators_ for one in stage])
    model = boosted(estimator)
    inner = model.feature >= 0
    threshold = np.where(inner, single(model.threshold, strict=False), 0.0)
    return BoostedModel(model.feature, threshold, model.leaves, model.output, model.base)


def _histogram_boosting(estimator: Any) -> BoostedModel:
    trees, leaves, output = [], [], []
    for stage in estimator._predictors:
        for margin, tree in enumerate(stage):
            nodes = tree.nodes
            if nodes["is_categorical"].any():
                raise BadInput(
                    "it has categorical splits; encode the categories as numbers or indicators and train again"
                )
            end = nodes["is_leaf"].astype(bool)
            left, right = (np.where(end, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            limit = np.finfo(np.float64).max
            threshold = np.clip(nodes["num_threshold"].astype(np.float64), -limit, limit)
            trees.append(Plain(left, right, nodes["feature_idx"].astype(np.int64), np.where(end, 0.0, threshold)))
            leaves.append(nodes["value"].astype(np.float64))
            output.append(margin)
    checked_depth(trees)
    return added_up(trees, leaves, np.array(output), np.ravel(estimator._baseline_prediction))


def _network(estimator: Any) -> Network:
    if estimator.activation != "relu" and len(estimator.coefs_) > 1:
        raise BadInput(
            f"expected hidden layers with 'relu', got '{estimator.activation}'; train it with that activation"
        )
    if estimator.out_activation_ not in ("logistic", "softmax") or (
        estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1
    ):
        raise BadInput("expected one class per row, got a multi-label network")
    return layered(
        [np.asarray(array, dtype=np.float64) for array in estimator.coefs_],
        [np.asarray(array, dtype=np.float64) for array in estimator.intercepts_],
    )


def layered(weights: list[FloatArray], biases: list[FloatArray]) -> Network:
    """A network; a single output is the margin of the second of two classes."""
    if weights[-1].shape[1] == 1:
        weights = [*weights[:-1], np.hstack([-weights[-1], weights[-1]]) / 2]
        biases = [*biases[:-1], np.concatenate([-biases[-1], biases[-1]]) / 2]
    return Network(tuple(weights), tuple(biases))
