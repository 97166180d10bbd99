"""xgboost model files (JSON and UBJSON): trees as arrays, read without xgboost.

A row goes left where x < split_condition, in single precision; a leaf adds its split_condition to the margin of its class.
The side of missing values does not matter: prepared data have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.files import parse_json
from plumbob.formats import ubjson
from plumbob.formats.own_model import MOST_CLASSES, OwnModel, checked_depth, single
from plumbob.protocols.scores.boosted_trees import added_up
from plumbob.protocols.shared.trees import Plain

TWO, SEVERAL = ("binary:logistic",), ("multi:softprob", "multi:softmax")


def read_xgboost(data: bytes, suffix: str) -> OwnModel:
    """The model in an xgboost file."""
    raw = parse_json(data) if suffix == ".json" else ubjson.loads(data)
    if not isinstance(raw, dict) or "learner" not in raw:
        raise BadInput(
            "expected a model saved by xgboost (with 'learner'); other models are .onnx, .pt or .skops files"
        )
    learner = raw["learner"]
    objective, booster = str(learner["objective"]["name"]), learner["gradient_booster"]
    if objective not in TWO + SEVERAL:
        raise BadInput(f"expected a classifier ({', '.join(TWO + SEVERAL)}), got the objective '{objective}'")
    if booster.get("name") != "gbtree":
        raise BadInput(f"expected the booster 'gbtree', got '{booster.get('name')}'")
    parameters, trees = learner["learner_model_param"], booster["model"]["trees"]
    margins = 1 if objective in TWO else int(parameters["num_class"])
    if not 0 < margins <= MOST_CLASSES:
        raise BadInput(f"expected at most {MOST_CLASSES:,} classes, got num_class {margins}")
    trees, notes = _used(learner, trees, margins)
    if any(int(tree["tree_param"].get("size_leaf_vector", "1") or 1) > 1 for tree in trees):
        raise BadInput("its leaves are vectors (multi_strategy); train it with one tree per class")
    plains = [_tree(tree) for tree in trees]
    checked_depth(plains)
    leaves = [np.asarray(tree["split_conditions"], dtype=np.float64) for tree in trees]
    output = np.asarray(booster["model"]["tree_info"], dtype=np.int64)[: len(trees)]
    if len(output) < len(trees) or output.min() < 0 or output.max() >= margins:
        raise ValueError("trees have no class")
    model = added_up(plains, leaves, output, _base(parameters["base_score"], objective, margins))
    names = tuple(str(name) for name in learner.get("feature_names") or ())
    return OwnModel("boosted_trees", model, int(parameters["num_feature"]), names, notes=notes)


def _used(learner: Any, trees: list[Any], margins: int) -> tuple[list[Any], tuple[str, ...]]:
    """The trees used for prediction: after early stopping, XGBClassifier ignores those after the best round."""
    best = (learner.get("attributes") or {}).get("best_iteration")
    if best is None:
        return trees, ()
    together = int(learner["gradient_booster"]["model"]["gbtree_model_param"].get("num_parallel_tree") or 1)
    count = (int(best) + 1) * margins * max(1, together)
    if not 0 < count < len(trees):
        return trees, ()
    note = (
        f"training was stopped early: only the first {count:,} of its {len(trees):,} trees (to the best round) are used"
    )
    return trees[:count], (f"{note}, as in XGBClassifier",)


def _tree(tree: Any) -> Plain:
    if any(tree.get("split_type") or ()):
        raise BadInput(
            "it has categorical splits (enable_categorical); encode the categories as numbers or indicators and train again"
        )
    left, right, feature = (
        np.asarray(tree[name], dtype=np.int64) for name in ("left_children", "right_children", "split_indices")
    )
    return Plain(left, right, feature, single(np.asarray(tree["split_conditions"], dtype=np.float64), strict=True))


def _base(written: Any, objective: str, margins: int) -> FloatArray:
    """The initial margins: stored as one number or as a list in text; a probability if there are two classes."""
    numbers = [float(part) for part in str(written).strip("[] ").split(",")]
    base = np.array(numbers if len(numbers) == margins else numbers[:1] * margins, dtype=np.float64)
    return np.log(base / (1 - base)) if objective in TWO else base
