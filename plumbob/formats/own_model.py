"""The user's own model: plain arrays over raw inputs, and the same model over an audit's columns.

A column is prepared as v in 0..1 with x = low + (high - low) v. Substituted into the model, this scales weights and shifts
thresholds, so that scores of prepared rows equal the model's scores of raw rows: nothing is fitted or approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumbob.errors import BadInput, suggest
from plumbob.federation import Column, FloatArray, IntArray
from plumbob.protocols import Model
from plumbob.protocols.scores.boosted_trees import BoostedModel
from plumbob.protocols.scores.logistic_regression import LinearModel
from plumbob.protocols.scores.neural_network import Network
from plumbob.protocols.shared.trees import DEEPEST, Forest, Plain, Trees

MOST_NODES = 2**24  # of all trees together, each as a full binary tree
MOST_INPUTS, MOST_CLASSES = 1_000_000, 10_000
NEARLY_ZERO = 1e-30  # a threshold closer to zero stands beside it: its sign says on which side


@dataclass(frozen=True)
class OwnModel:
    """A model as stored in its file: `model` takes raw inputs in the file's order."""

    kind: str  # the protocol that predicts with it
    model: Model
    size: int  # how many inputs it takes
    inputs: tuple[str, ...] = ()  # their names, where the file has them
    classes: tuple[str, ...] = ()  # the classes' names in its order, where the file has them
    notes: tuple[str, ...] = ()  # what its reader took for granted, for the report

    def __post_init__(self) -> None:
        if self.size > MOST_INPUTS:
            raise BadInput(f"expected a model of at most {MOST_INPUTS:,} inputs, got {self.size:,}")
        if isinstance(self.model, Trees) and self.model.feature.max(initial=-1) >= self.size:
            raise BadInput(
                f"its trees read input {self.model.feature.max()}, counted from 0, but it has {self.size} inputs"
            )
        for name, array in self.model.arrays().items():
            if not np.isfinite(array).all():
                raise BadInput(f"expected numbers, got NaN or infinity among its {name}")
        if self.inputs and len(self.inputs) != self.size:
            raise BadInput(f"it has {self.size} inputs but names {len(self.inputs)}")

    @property
    def outputs(self) -> int:
        return len(self.model.scores(np.zeros((1, self.size)))[0])

    def used(self) -> IntArray:
        """The inputs that scores depend on."""
        if isinstance(self.model, Trees):
            return np.unique(self.model.feature[self.model.feature >= 0])
        first = self.model.weights if isinstance(self.model, LinearModel) else _network(self.model).weights[0]
        return np.flatnonzero(np.abs(first).max(axis=1) > 0)


def _network(model: Model) -> Network:
    assert isinstance(model, Network)
    return model


def rescaled(model: Model, factor: FloatArray, shift: FloatArray) -> Model:
    """The model of v where the given one is of factor v + shift; factors of trees are not below zero."""
    if isinstance(model, LinearModel):
        return replace(model, weights=factor[:, None] * model.weights, bias=model.bias + shift @ model.weights)
    if isinstance(model, Trees):
        return _rescaled_trees(model, factor, shift)
    network = _network(model)
    first, bias = network.weights[0], network.biases[0]
    return Network((factor[:, None] * first, *network.weights[1:]), (bias + shift @ first, *network.biases[1:]))


def _rescaled_trees(model: Trees, factor: FloatArray, shift: FloatArray) -> Trees:
    at = np.maximum(model.feature, 0)
    times, plus = factor[at], shift[at]
    raw = model.threshold
    scaled = (raw - plus) / np.where(times > 0, times, 1.0)
    beside = (raw != 0) & (np.abs(raw) < NEARLY_ZERO)
    scaled = np.where(beside, np.nextafter(scaled, np.copysign(np.inf, raw)), scaled)
    constant = np.where(plus > raw, -1.0, 1.0)  # a column of one value takes one side
    threshold = np.where(model.feature >= 0, np.where(times > 0, scaled, constant), raw)
    return replace(model, threshold=threshold)


def pulled_back(model: Trees, scale: Callable[[FloatArray, IntArray], FloatArray]) -> Trees:
    """The trees of x where the given ones are of scale(x, column), which never falls as x rises, to the last digit.

    A threshold becomes the largest double x with scale(x) <= threshold, found by halving all doubles in their order.
    """
    inner = model.feature >= 0
    column, limit = model.feature[inner], model.threshold[inner]
    largest = int(np.array(np.finfo(np.float64).max).view(np.int64))
    left, right = np.full(len(limit), -largest), np.full(len(limit), largest + 1)  # places: left fits, right does not
    with np.errstate(over="ignore"):
        for _ in range(65):
            middle = (left >> 1) + (right >> 1) + (left & right & 1)
            fits = scale(_double(middle), column) <= limit
            left, right = np.where(fits, middle, left), np.where(fits, right, middle)
    threshold = model.threshold.copy()
    threshold[inner] = _double(left)
    return replace(model, threshold=threshold)


def _double(place: IntArray) -> FloatArray:
    """The double at a place in the order of all doubles; 0 is at 0."""
    return np.copysign(np.abs(place).view(np.float64), place)


def fitted(
    own: OwnModel,
    columns: Sequence[Column],
    classes: Sequence[str],
    named: Sequence[str] | None = None,
    words: Mapping[str, str] | None = None,
) -> tuple[Model, tuple[str, ...]]:
    """The model over prepared columns, and notes of assumptions. `named` lists the inputs in order, if the file does not.

    `words` maps the name of an indicator in a model (`city=Oslo`) to its name here (`city=1`).
    """
    places = _places(own, columns, named, words or {})
    low, high = (np.array([getattr(columns[i], end) for i in places], dtype=np.float64) for end in ("low", "high"))
    model = rescaled(own.model, high - low, low)
    model, noted = _with_classes(_spread(model, places, len(columns)), own, classes)
    read = set(places[own.used()].tolist())
    unread = [f"'{column.name}'" for i, column in enumerate(columns) if i not in read]
    coded = [f"'{columns[i].name}'" for i in sorted(read) if columns[i].kind == "category"]
    notes = [f"columns that the model does not use, so they cannot leak through it: {', '.join(unread)}"]
    notes = notes if unread else []
    if coded:
        notes.append(f"categories are assumed to have the model's codes 0, 1, ... in sorted order: {', '.join(coded)}")
    return model, (*own.notes, *notes, *noted)


def _places(
    own: OwnModel, columns: Sequence[Column], named: Sequence[str] | None, words: Mapping[str, str]
) -> IntArray:
    """The position of each input of the model among the columns."""
    names = list(named or own.inputs)
    if not names:
        raise BadInput(f"the file does not name its {own.size} inputs; list the columns in its order ('columns')")
    if len(names) != own.size:
        raise BadInput(f"the model has {own.size} inputs, 'columns' lists {len(names)}")
    place = {column.name: i for i, column in enumerate(columns)}
    found = []
    for name in names:
        at = place.get(words.get(name, name))
        if at is None:
            made = [column.name for column in columns if column.source == name]
            how = f"the rule 'categories' turned it into {', '.join(made[:3])}, ..." if made else ""
            hint = f"; {how}" if made else suggest(name, list(place))
            raise BadInput(f"the model uses '{name}', but no party has such a column after preparation{hint}")
        if columns[at].kind == "date":
            raise BadInput(
                f"the model uses '{name}', which is a date; supply it as the number the model was trained on"
            )
        found.append(at)
    twice = [name for name in names if names.count(name) > 1]
    if twice or len(set(found)) < len(found):
        raise BadInput(
            f"two inputs of the model are the same column '{(twice or names)[0]}'; every input needs its own column"
        )
    return np.array(found, dtype=np.int64)


def _spread(model: Model, places: IntArray, columns: int) -> Model:
    """The model over all columns; scores do not depend on columns that are not inputs."""

    def rows(weights: FloatArray) -> FloatArray:
        wide = np.zeros((columns, weights.shape[1]))
        wide[places] = weights
        return wide

    if isinstance(model, LinearModel):
        return replace(model, weights=rows(model.weights))
    if isinstance(model, Trees):
        feature = np.where(model.feature >= 0, places[np.maximum(model.feature, 0)], model.feature)
        return replace(model, feature=feature)
    network = _network(model)
    return Network((rows(network.weights[0]), *network.weights[1:]), network.biases)


def _with_classes(model: Model, own: OwnModel, classes: Sequence[str]) -> tuple[Model, tuple[str, ...]]:
    """The model with its classes in the label's order."""
    if own.outputs != len(classes):
        raise BadInput(f"the model has {own.outputs} classes, the label has {len(classes)}")
    names = [_plain_name(name) for name in own.classes]
    label = [_plain_name(name) for name in classes]
    if sorted(names) == sorted(label) and len(set(names)) == len(names):
        return _reordered_classes(model, np.array([names.index(name) for name in label])), ()
    numbers = [str(i) for i in range(len(classes))]
    if names and names != numbers:
        raise BadInput(
            f"the model's {len(names)} classes are named differently from the label's; rename those of the label"
        )
    return model, ("the model's classes 0, 1, ... are assumed to be the label's in sorted order",)


def _plain_name(name: str) -> str:
    """`1.0`, `1` and `True` name the same class in different libraries."""
    name = {"True": "1", "False": "0"}.get(name, name)
    try:
        return str(int(float(name))) if float(name) == int(float(name)) else name
    except (ValueError, OverflowError):
        return name


def _reordered_classes(model: Model, order: IntArray) -> Model:
    if np.array_equal(order, np.arange(len(order))):
        return model
    if isinstance(model, LinearModel):
        return LinearModel(model.weights[:, order], model.bias[order])
    if isinstance(model, Forest):
        leaves = None if model.leaves is None else model.leaves[:, :, order]
        return replace(model, label=np.argsort(order)[model.label], leaves=leaves)
    if isinstance(model, BoostedModel):
        if len(model.base) == 1:
            return replace(model, leaves=-model.leaves, base=-model.base)
        return replace(model, output=np.argsort(order)[model.output], base=model.base[order])
    network = _network(model)
    last = (network.weights[-1][:, order],), (network.biases[-1][order],)
    return Network(network.weights[:-1] + last[0], network.biases[:-1] + last[1])


def averaged(trees: Sequence[Plain], scores: Sequence[FloatArray], classes: int) -> Forest:
    """A forest of trees of any shape; `scores` are those of each tree's nodes, nodes x classes."""
    depth = checked_depth(trees)
    wholes = [tree.full(depth) for tree in trees]
    if len(trees) * 2 ** (depth + 1) * classes > 4 * MOST_NODES:
        raise BadInput(
            f"expected fewer trees or fewer classes, got {len(trees):,} trees of depth {depth} for {classes:,} classes"
        )
    leaves = np.zeros((len(trees), 2 ** (depth + 1) - 1, classes))
    for row, tree, (_, _, places), value in zip(leaves, trees, wholes, scores, strict=True):
        ends = (places >= 0) & (tree.left < 0)
        row[places[ends]] = value[ends]
    feature, threshold = (np.stack(arrays) for arrays in list(zip(*wholes, strict=True))[:2])
    return Forest(feature, threshold, np.argmax(leaves, axis=2), classes, leaves)


def checked_depth(trees: Sequence[Plain]) -> int:
    """The depth of the deepest tree; too deep is refused, since a full binary tree doubles with every level."""
    if not trees:
        raise BadInput("it has no trees")
    depth = max(1, max(tree.depth() for tree in trees))
    if depth > DEEPEST or len(trees) * 2 ** (depth + 1) > MOST_NODES:
        raise BadInput(
            f"expected trees of depth {DEEPEST} at most, and fewer the deeper they are, got {len(trees):,} of depth {depth}; "
            "train it with a smaller max_depth"
        )
    return depth


def single(threshold: FloatArray, *, strict: bool) -> FloatArray:
    """Thresholds for double-precision x that split it like a library which rounds x to single precision first.

    Left is x <= threshold, or x < threshold if `strict`: up to halfway between the last single number on the left and the
    next. Halfway itself rounds to the even one of the two.
    """
    if strict:
        first = np.asarray(threshold, dtype=np.float32)
        last = np.nextafter(first, np.float32(-np.inf))
    else:
        last = np.asarray(threshold, dtype=np.float32)
        last = np.where(last > threshold, np.nextafter(last, np.float32(-np.inf)), last)
        first = np.nextafter(last, np.float32(np.inf))
    limit = np.finfo(np.float32).max
    middle = (np.clip(last, -limit, limit).astype(np.float64) + np.clip(first, -limit, limit).astype(np.float64)) / 2
    odd = (last.view(np.int32) & 1 == 1) & np.isfinite(last) & np.isfinite(first)  # then halfway rounds to `first`
    return np.where(odd, np.nextafter(middle, -np.inf), middle)
