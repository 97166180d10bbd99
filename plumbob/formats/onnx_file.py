"""ONNX files: the graph is read as data and traced from its inputs to the scores.

Each tensor is classified node by node: the inputs, fully connected layers of them, sums of trees, or scores. Graphs
that converters write for linear models, trees, boosting and networks are recognised; an unsupported node is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.formats import protobuf as wire
from plumbob.formats.onnx_trees import Ensemble, ensemble
from plumbob.formats.own_model import OwnModel, rescaled
from plumbob.formats.sklearn_estimators import layered
from plumbob.protocols.scores.logistic_regression import LinearModel

SAME = ("Identity", "Dropout", "ZipMap", "Reshape", "Flatten", "Squeeze")
FLOATS = (1, 11)  # of single and double precision: a Cast to others rounds or cuts off
WIDEST = 5_000  # inputs, or outputs of a layer
TENSORS: dict[int, tuple[int, str]] = {1: (4, "<f4"), 7: (7, "<i8"), 11: (10, "<f8"), 6: (5, "<i4")}


@dataclass(frozen=True)
class Node:
    """One operation of a graph."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Layers:
    """Fully connected layers of the inputs with ReLU between them; the ReLU of the last may still follow."""

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    bent: bool = False  # a ReLU came last

    def __post_init__(self) -> None:
        if max(array.shape[-1] for array in self.weights) > WIDEST:
            raise BadInput(f"expected at most {WIDEST:,} columns or neurons in a layer, got more")

    def times(self, matrix: FloatArray) -> Layers:
        if self.bent:
            return Layers((*self.weights, matrix), (*self.biases, np.zeros(matrix.shape[1])))
        return Layers((*self.weights[:-1], self.weights[-1] @ matrix), (*self.biases[:-1], self.biases[-1] @ matrix))

    def plus(self, numbers: FloatArray) -> Layers:
        same = self.times(np.eye(self.weights[-1].shape[1])) if self.bent else self
        return Layers(same.weights, (*same.biases[:-1], same.biases[-1] + np.ravel(numbers)))

    def relu(self) -> Layers:
        return self if self.bent else Layers(self.weights, self.biases, True)


@dataclass(frozen=True)
class Scores:
    """The model's scores, or one of two: `turned` is 1 - score."""

    of: Layers | Ensemble
    squash: str  # softmax or sigmoid
    turned: bool = False
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Opaque:
    """The output of an unsupported node."""

    kind: str


Value = Layers | Ensemble | Scores | Opaque | FloatArray


@dataclass
class _Graph:
    nodes: list[Node]
    constants: dict[str, FloatArray]
    inputs: dict[str, int]  # names and widths
    outputs: list[str]
    values: dict[str, Value] = field(default_factory=dict)


def read_onnx(data: bytes) -> OwnModel:
    """The model in an ONNX file."""
    graph = _graph(wire.fields(data))
    size, names = sum(graph.inputs.values()), tuple(graph.inputs) if len(graph.inputs) > 1 else ()
    if names and any(width != 1 for width in graph.inputs.values()):
        raise BadInput("expected one input with all columns, or one input per column")
    if not 0 < size <= WIDEST or min(graph.inputs.values()) < 1:
        raise BadInput(f"expected 1 to {WIDEST:,} input columns, got {size:,}")
    start, every = 0, np.eye(size)
    for name, width in graph.inputs.items():
        graph.values[name] = Layers((every[:, start : start + width].copy(),), (np.zeros(width),))
        start += width
    graph.values |= graph.constants
    for node in graph.nodes:
        _follow(graph, node)
    return _own(_scores(graph), size, names)


def _scores(graph: _Graph) -> Scores:
    results = [graph.values[name] for name in graph.outputs if name in graph.values]
    for result in results:
        if isinstance(result, Scores):
            return result
    for result in results:
        if isinstance(result, Layers):  # logits, as networks are trained on
            return Scores(result, "sigmoid" if result.weights[-1].shape[1] == 1 else "softmax")
    opaque = [result.kind for result in results if isinstance(result, Opaque)]
    raise BadInput(
        f"its scores depend on the unsupported operator '{opaque[-1]}'" if opaque else "it has no output with scores"
    )


def _own(scores: Scores, size: int, names: tuple[str, ...]) -> OwnModel:
    model = scores.of
    if isinstance(model, Ensemble):
        made, kind = model.model(scores.squash)
        return OwnModel(kind, rescaled(made, model.factor, model.shift), size, names, scores.classes)
    if model.bent:
        raise BadInput("its scores are outputs of a ReLU; expected a softmax or sigmoid of a fully connected layer")
    if scores.squash == "sigmoid" and model.weights[-1].shape[1] > 1:
        raise BadInput("expected one class per row, got a sigmoid of several outputs")
    network = layered(list(model.weights), list(model.biases))
    if len(model.weights) == 1:
        linear = LinearModel(network.weights[0], network.biases[0])
        return OwnModel("logistic_regression", linear, size, names, scores.classes)
    return OwnModel("neural_network", network, size, names, scores.classes)


# following the graph


def _follow(graph: _Graph, node: Node) -> None:
    given = [graph.values.get(name, Opaque(node.kind)) for name in node.inputs if name]
    out = _result(node, given)
    results = out if isinstance(out, list) else [out]
    for name, value in zip(node.outputs, results, strict=False):
        graph.values[name] = value


def _result(node: Node, given: list[Value]) -> Value | list[Value]:
    known = {
        "LinearClassifier": _linear,
        "TreeEnsembleClassifier": _trees,
        "TreeEnsembleRegressor": _trees,
        "Cast": _cast,
        "Scaler": _scaler,
        "Concat": _concat,
        "Gemm": _gemm,
        "MatMul": _matmul,
    }
    first = given[0] if given else Opaque(node.kind)
    if node.kind in SAME or (node.kind == "Normalizer" and isinstance(first, Scores)):
        return first
    if node.kind in known:
        found: Value | list[Value] | None = known[node.kind](node, given)
        stuck = first if isinstance(first, Opaque) else Opaque(node.kind)
        return stuck if found is None else found
    if node.kind in ("Add", "Sub", "Mul", "Div") and len(given) == 2:
        return _arithmetic(node.kind, *given) or Opaque(node.kind)
    if node.kind == "Relu" and isinstance(first, Layers):
        return first.relu()
    if node.kind in ("Softmax", "Sigmoid") and isinstance(first, Layers | Ensemble):
        return Scores(first, node.kind.lower())
    if node.kind == "Constant" and "value" in node.attributes:
        return np.asarray(node.attributes["value"])
    return Opaque(node.kind if not isinstance(first, Opaque) else first.kind)


def _cast(node: Node, given: list[Value]) -> Value | None:
    """Numbers may be cast to floats; integers and labels to any type, since nothing is lost."""
    first = given[0]
    whole = isinstance(first, np.ndarray) and bool(np.all(first == np.rint(first)))
    return first if whole or isinstance(first, Opaque) or node.attributes.get("to") in FLOATS else None


def _arithmetic(kind: str, one: Value, two: Value) -> Value | None:
    if isinstance(one, np.ndarray) and isinstance(two, Scores) and kind == "Sub" and np.all(one == 1):
        return Scores(two.of, two.squash, not two.turned, two.classes)
    if isinstance(one, np.ndarray) and isinstance(two, Layers) and kind in ("Add", "Mul"):
        one, two = two, one
    if not isinstance(one, Layers) or not isinstance(two, np.ndarray):
        return None
    if kind in ("Add", "Sub"):
        return one.plus(two if kind == "Add" else -two)
    times = np.broadcast_to(np.ravel(two), (one.weights[-1].shape[1],))
    return one.times(np.diag(times if kind == "Mul" else 1.0 / times))


def _matmul(node: Node, given: list[Value]) -> Value | None:
    one, two = given
    return one.times(two) if isinstance(one, Layers) and isinstance(two, np.ndarray) and two.ndim == 2 else None


def _gemm(node: Node, given: list[Value]) -> Value | None:
    one, two, *three = given
    a = node.attributes
    if not (isinstance(one, Layers) and isinstance(two, np.ndarray)) or a.get("transA", 0):
        return None
    made = one.times((two.T if a.get("transB", 0) else two) * a.get("alpha", 1.0))
    if three:
        return made.plus(three[0] * a.get("beta", 1.0)) if isinstance(three[0], np.ndarray) else None
    return made


def _scaler(node: Node, given: list[Value]) -> Value | None:
    if not isinstance(given[0], Layers):
        return None
    width = given[0].weights[-1].shape[1]
    offset, times = (
        np.broadcast_to(node.attributes.get(name, np.array([usual])), (width,))
        for name, usual in (("offset", 0.0), ("scale", 1.0))
    )
    return given[0].plus(-offset).times(np.diag(times))


def _concat(node: Node, given: list[Value]) -> Value | None:
    if len(given) == 1:
        return given[0]
    if all(isinstance(part, Scores) for part in given) and len(given) == 2:
        one, two = given
        assert isinstance(one, Scores) and isinstance(two, Scores)  # noqa: PT018
        return two if one.turned and not two.turned and one.of is two.of else None
    parts = [part for part in given if isinstance(part, Layers) and len(part.weights) == 1 and not part.bent]
    if len(parts) != len(given):
        return None
    weights, biases = [part.weights[0] for part in parts], [part.biases[0] for part in parts]
    return Layers((np.hstack(weights),), (np.concatenate(biases),))


def _classes(attributes: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        attributes.get("classlabels_strings") or [str(i) for i in attributes.get("classlabels_ints", ())]
    ) or tuple(str(i) for i in attributes.get("classlabels_int64s", ()))


def _linear(node: Node, given: list[Value]) -> list[Value] | None:
    if not isinstance(given[0], Layers):
        return None
    a, classes = node.attributes, _classes(node.attributes)
    weights, bias = np.reshape(a["coefficients"], (len(a["intercepts"]), -1)).T, np.asarray(a["intercepts"])
    squash = {"LOGISTIC": "sigmoid", "SOFTMAX": "softmax"}.get(a.get("post_transform", "NONE"))
    if squash is None:
        raise BadInput("expected a linear classifier with scores (LOGISTIC or SOFTMAX), got one without")
    if squash == "sigmoid" and len(bias) == 2 and np.allclose(weights[:, 0], -weights[:, 1]):
        weights, bias = weights[:, 1:], bias[1:]
    return [Opaque("label"), Scores(given[0].times(weights).plus(bias), squash, False, classes)]


def _trees(node: Node, given: list[Value]) -> list[Value] | Value | None:
    inputs = given[0]
    if not isinstance(inputs, Layers) or len(inputs.weights) > 1 or inputs.bent:
        return None
    matrix, shift = inputs.weights[0], inputs.biases[0]
    factor = np.diag(matrix)
    if matrix.shape[0] != matrix.shape[1] or np.any(matrix != np.diag(factor)) or np.any(factor <= 0):
        raise BadInput(
            "expected trees over single columns, unchanged or scaled, got trees over combinations of columns"
        )
    how = node.attributes.get("aggregate_function", "SUM")
    if how != "SUM":
        raise BadInput(f"expected trees that are summed (aggregate_function SUM), got {how}")
    classes = _classes(node.attributes)
    found = ensemble(node.attributes, len(classes), factor, shift)
    if node.kind == "TreeEnsembleRegressor":
        return found
    squash = {"LOGISTIC": "sigmoid", "SOFTMAX": "softmax", "NONE": "mean"}.get(
        node.attributes.get("post_transform", "NONE")
    )
    if squash is None:
        raise BadInput(f"unsupported post_transform '{node.attributes['post_transform']}'")
    return [Opaque("label"), Scores(found, squash, False, classes)]


# reading the file


def _graph(model: wire.Fields) -> _Graph:
    found = wire.messages(model, 7)
    if len(found) != 1:
        raise ValueError("a model must have one graph")
    graph = wire.fields(found[0])
    constants = dict(map(_tensor, wire.messages(graph, 5)))
    inputs = {name: width for name, width in map(_input, wire.messages(graph, 11)) if name not in constants}
    outputs = [wire.text(wire.fields(one), 1) for one in wire.messages(graph, 12)]
    return _Graph([_node(one) for one in wire.messages(graph, 1)], constants, inputs, outputs)


def _input(data: bytes) -> tuple[str, int]:
    value = wire.fields(data)
    name, shape = wire.text(value, 1), value
    for number in (2, 1, 2):  # type, tensor type, shape
        shape = wire.fields((wire.messages(shape, number) or [b""])[-1])
    sizes = [wire.integers(wire.fields(one), 1) for one in wire.messages(shape, 1)]
    if len(sizes) != 2 or not len(sizes[1]):
        raise BadInput(
            f"input '{name}': expected shape rows x columns with a fixed number of columns, got another shape"
        )
    return name, int(sizes[1][0])


def _tensor(data: bytes) -> tuple[str, FloatArray]:
    found = wire.fields(data)
    dims, kind = wire.integers(found, 1), int(wire.integers(found, 2)[-1])
    name = wire.text(found, 8)
    if wire.messages(found, 13) or kind not in TENSORS:  # kept in another file, or text
        return name, np.zeros(0)
    number, form = TENSORS[kind]
    raw = b"".join(wire.messages(found, 9))
    if raw:
        values = np.frombuffer(raw, dtype=form).astype(np.float64)
    elif form.startswith("<f"):
        values = wire.floats(found, number, form)
    else:
        values = wire.integers(found, number).astype(np.float64)
    return name, values.reshape(dims)


def _node(data: bytes) -> Node:
    found = wire.fields(data)
    attributes = dict(_attribute(wire.fields(one)) for one in wire.messages(found, 5))
    return Node(wire.text(found, 4), tuple(wire.texts(found, 1)), tuple(wire.texts(found, 2)), attributes)


def _attribute(found: wire.Fields) -> tuple[str, Any]:
    readers: dict[int, Callable[[], Any]] = {
        1: lambda: float(wire.floats(found, 2)[-1]),
        2: lambda: int(wire.integers(found, 3)[-1]) if 3 in found else 0,
        3: lambda: wire.text(found, 4),
        4: lambda: _tensor(wire.messages(found, 5)[-1])[1],
        6: lambda: wire.floats(found, 7),
        7: lambda: wire.integers(found, 8),
        8: lambda: wire.texts(found, 9),
    }
    kind = int(wire.integers(found, 20)[-1]) if 20 in found else 0
    return wire.text(found, 1), readers.get(kind, lambda: None)()
