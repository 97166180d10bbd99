"""A model per party (jiang2022, Section 4.1): the coordinator adds the parties' outputs and applies softmax.

    c = softmax(f(x_1; phi_1) + ... + f(x_P; phi_P))                                    (Eq 9)

With no hidden layer f is linear, without a bias, as in Eq 1; else a network with hidden layers of equal width and no
activation on its output. Two classes are two opposite outputs, so both scores are exact. Without a coordinator the passive
parties send their outputs straight to the active one, which then sees the linear sum and not only what softmax leaves of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from scipy.special import expit, softmax

from plumbob.bundle import Array
from plumbob.errors import BadInput, suggest
from plumbob.federation import FloatArray, IntArray, Party
from plumbob.lazy_imports import Tensor, functional, sklearn, torch
from plumbob.protocols.base import Model, PredictionProtocol, all_classes
from plumbob.protocols.shared.gathering import GATHERINGS, SUM_MESSAGES, Gathering, gathering_named
from plumbob.transcript import COORDINATOR

ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": lambda x: np.asarray(expit(x)),
    "tanh": lambda x: np.asarray(np.tanh(x)),
    "relu": lambda x: np.asarray(np.maximum(x, 0.0)),
}
SLOPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": lambda x: np.asarray(expit(x) * expit(-x)),
    "tanh": lambda x: np.asarray(1.0 - np.tanh(x) ** 2),
    "relu": lambda x: np.asarray((x > 0.0).astype(np.float64)),
}


@dataclass(frozen=True)
class LocalModel:
    """One party's model of its own columns."""

    columns: IntArray  # positions in the joint model, ascending
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str

    def arrays(self) -> dict[str, Array]:
        """Everything but the positions, as the party itself gets it."""
        layers = enumerate(zip(self.weights, self.biases, strict=True))
        named: dict[str, Array] = {f"{kind}{i}": a for i, pair in layers for kind, a in zip("wb", pair, strict=True)}
        return named | {"activation": np.array([list(ACTIVATIONS).index(self.activation)])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], columns: IntArray) -> Self:
        depth = sum(name.startswith("w") for name in arrays)
        weights, biases = (tuple(np.asarray(arrays[f"{kind}{i}"]) for i in range(depth)) for kind in "wb")
        return cls(columns, weights, biases, list(ACTIVATIONS)[int(arrays["activation"][0])])

    def outputs(self, own: FloatArray) -> FloatArray:
        """z = f(x; phi) from the party's own columns, one number per class."""
        hidden = own
        for i, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = hidden if i == 0 else ACTIVATIONS[self.activation](hidden)
            hidden = hidden @ weights + bias
        return hidden

    def slopes(self, own: FloatArray) -> FloatArray:
        """dz/dx of each row, rows x classes x columns."""
        hidden, found = own @ self.weights[0] + self.biases[0], self.weights[0][None]
        for weights, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            found = (found * SLOPES[self.activation](hidden)[:, None]) @ weights
            hidden = ACTIVATIONS[self.activation](hidden) @ weights + bias
        return np.broadcast_to(found.transpose(0, 2, 1), (len(own), found.shape[2], found.shape[1]))


@dataclass(frozen=True)
class SplitModel(Model):
    """The parties' models, side by side."""

    locals: tuple[LocalModel, ...]

    def arrays(self) -> dict[str, Array]:
        return {
            f"{p}/{name}": array
            for p, local in enumerate(self.locals)
            for name, array in ({"columns": local.columns} | local.arrays()).items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        count = sum(name.endswith("/columns") for name in arrays)
        parts = [
            {name.removeprefix(f"{p}/"): a for name, a in arrays.items() if name.startswith(f"{p}/")}
            for p in range(count)
        ]
        return cls(tuple(LocalModel.from_arrays(part, np.asarray(part.pop("columns"))) for part in parts))

    def scores(self, values: FloatArray) -> FloatArray:
        return np.asarray(softmax(sum(local.outputs(values[:, local.columns]) for local in self.locals), axis=1))

    def reordered(self, order: IntArray) -> Self:
        place = np.argsort(order)
        moved = []
        for local in self.locals:
            columns = place[local.columns]
            rank = np.argsort(columns)
            weights = (local.weights[0][rank], *local.weights[1:])
            moved.append(LocalModel(columns[rank], weights, local.biases, local.activation))
        return type(self)(tuple(moved))

    def part(self, columns: IntArray) -> dict[str, Array]:
        for local in self.locals:
            if np.array_equal(local.columns, np.sort(columns)):
                return local.arrays()
        blocks = "; ".join(" ".join(map(str, local.columns)) for local in self.locals)
        raise BadInput(
            f"split models: no party's model has columns {' '.join(map(str, columns))}; the parties' columns are {blocks}"
        )


class SplitModels(PredictionProtocol):
    """jiang2022's joint model. `layers` hidden layers of `width` units at every party; 0 is logistic regression."""

    name = "split_models"
    identity = "SplitModels(layers, width, activation, epochs, batch, rate, coordinator)"
    summary = "a linear model or small network per party; the coordinator adds their outputs"
    by_party = True
    cost_terms = ("1", "e N / batch", "e N w")  # each epoch each row meets each weight
    presets = {"small": {"epochs": 10}}
    glossary = MappingProxyType({**PredictionProtocol.glossary, **SUM_MESSAGES})
    unseeded = ("sums",)  # whoever adds up, the model and the attacks draw the same numbers
    key_messages = ("public key",)
    masked_messages = ("masked answer",)

    def __init__(
        self,
        *,
        layers: int = 1,
        width: int = 8,
        activation: str = "sigmoid",
        epochs: int = 60,
        batch: int = 128,
        rate: float = 0.01,
        coordinator: bool = True,
        sums: str = "clear",
        dropout: float = 0.0,
    ) -> None:
        if not 0 <= layers <= 3:
            raise BadInput(f"split models: expected 0 to 3 hidden layers, got {layers}")
        if activation not in ACTIVATIONS:
            raise BadInput(f"split models: no activation '{activation}'{suggest(activation, list(ACTIVATIONS))}")
        self.layers = layers
        self.width = width
        self.activation = activation
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.coordinator = coordinator
        self.sums = gathering_named("split models", sums)
        if not 0 <= dropout < 1:
            raise BadInput(f"split models: expected a dropout of 0 or more and below 1, got {dropout}")
        self.dropout = dropout  # share of hidden units silenced at each step of training
        if sums != "clear" and not coordinator:
            raise BadInput(
                f"split models: 'sums: {sums}' needs the coordinator, which opens them; drop 'coordinator: false'"
            )

    def fit(
        self,
        values: FloatArray,
        label: IntArray,
        classes: int,
        rng: np.random.Generator,
        blocks: Sequence[IntArray] = (),
    ) -> SplitModel:
        """Train all parties' models together; without blocks one party holds every column."""
        all_classes("split models", label, classes)
        places = [np.sort(block) for block in blocks] or [np.arange(values.shape[1])]
        if self.layers == 0:
            weights = linear_weights(values, label, classes)
            none = np.zeros(classes)
            return SplitModel(tuple(LocalModel(p, (weights[p],), (none,), self.activation) for p in places))
        outputs = 1 if classes == 2 else classes
        sizes = (*[self.width] * self.layers, outputs)
        seed = int(rng.integers(2**62))
        steps = self.epochs, self.batch, self.rate, self.dropout
        layers = _trained(values, label, places, sizes, self.activation, *steps, seed)
        locals = []
        for p, place in enumerate(places):
            weights_p = [w[p].astype(np.float64) for w, _ in layers]
            biases_p = [b[p, 0].astype(np.float64) for _, b in layers]
            weights_p[0] = weights_p[0][: len(place)]
            locals.append(local_model(place, weights_p, biases_p, self.activation))
        return SplitModel(tuple(locals))

    def told(self, role: str) -> tuple[str, ...]:
        """Without a coordinator the answers go to the active party."""
        if self.coordinator:
            return super().told(role)
        return ("answer",) if role == "active" else ()

    def collector(self, active: str) -> str:
        return COORDINATOR if self.coordinator else active

    def gathering(self) -> Gathering:
        return GATHERINGS[self.sums]()

    def answer(self, party: Party, part: Mapping[str, Array], rows: IntArray) -> Array:
        return LocalModel.from_arrays(part, np.arange(party.values.shape[1])).outputs(party.values[rows])

    def combine(self, model: Model, answers: Mapping[str, Array], columns: Mapping[str, IntArray]) -> FloatArray:
        return np.asarray(softmax(sum(answers.values()), axis=1))


def local_model(
    place: IntArray, weights: Sequence[FloatArray], biases: Sequence[FloatArray], activation: str
) -> LocalModel:
    """One party's model; an output z alone, of two classes, becomes (-z/2, z/2)."""
    *before, last = weights
    *earlier, bias = biases
    if last.shape[1] == 1:
        last, bias = np.hstack([-last, last]) / 2, np.concatenate([-bias, bias]) / 2
    return LocalModel(place, (*before, last), (*earlier, bias), activation)


def first_scale(activation: str, hidden: bool) -> float:
    """Glorot's initialisation asks for so many times as much; the sigmoid's slope of 1/4 for four (Glorot and Bengio, 2010)."""
    return {"sigmoid": 4.0, "tanh": 5 / 3, "relu": 2.0**0.5}[activation] if hidden else 1.0


def linear_weights(values: FloatArray, label: IntArray, classes: int) -> FloatArray:
    """Logistic regression without a bias, columns x classes."""
    import warnings

    small = values.shape[1] * classes <= 400
    trainer = sklearn.linear_model.LogisticRegression(
        C=10.0, fit_intercept=False, max_iter=500, solver="newton-cholesky" if small else "lbfgs", tol=1e-6
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", sklearn.exceptions.ConvergenceWarning
        )  # an early stop is still a model; its scores are exact
        trainer.fit(values, label)
    if classes == 2 and len(trainer.classes_) == 2:
        return np.hstack([-trainer.coef_.T, trainer.coef_.T]) / 2
    weights = np.zeros((values.shape[1], classes))
    weights[:, trainer.classes_] = trainer.coef_.T
    return weights


def _trained(
    values: FloatArray,
    label: IntArray,
    places: Sequence[IntArray],
    sizes: tuple[int, ...],
    activation: str,
    epochs: int,
    batch: int,
    rate: float,
    dropout: float,
    seed: int,
) -> list[tuple[Array, Array]]:
    """Weights (parties x in x out) and biases (parties x 1 x out) of every layer, all parties in one batched product.

    Narrower parties are padded with columns of zeros, whose weights stay out of every output.
    """

    generator = torch.Generator().manual_seed(seed)
    widest = max(len(place) for place in places)
    inputs = torch.zeros((len(places), len(values), widest))
    for p, place in enumerate(places):
        inputs[p, :, : len(place)] = torch.tensor(values[:, place])
    targets = torch.tensor(label)
    layers: list[tuple[Tensor, Tensor]] = []
    fans = [np.array([len(place) for place in places]), *[np.full(len(places), size) for size in sizes[:-1]]]
    for i, (fan, size) in enumerate(zip(fans, sizes, strict=True)):
        scale = torch.tensor(np.sqrt(6.0 / (fan + size)), dtype=torch.float32)[:, None, None]
        scale = scale * first_scale(activation, hidden=i < len(sizes) - 1)
        shape = (len(places), widest if i == 0 else sizes[i - 1], size)
        weights = (torch.rand(shape, generator=generator) * 2 - 1) * scale
        layers.append((weights.requires_grad_(), torch.zeros((len(places), 1, size)).requires_grad_()))
    squash = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu}[activation]
    optimiser = torch.optim.Adam([tensor for pair in layers for tensor in pair], lr=rate)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(targets), generator=generator), batch):
            hidden = inputs[:, rows]
            for i, (weights, bias) in enumerate(layers):
                hidden = squash(hidden) if i else hidden
                if i and dropout:
                    hidden = hidden * (torch.rand(hidden.shape, generator=generator) >= dropout) / (1.0 - dropout)
                hidden = torch.baddbmm(bias, hidden, weights)
            output = hidden.sum(dim=0)
            if sizes[-1] == 1:
                loss = functional.binary_cross_entropy_with_logits(output[:, 0], targets[rows].float())
            else:
                loss = functional.cross_entropy(output, targets[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves this method untyped
            optimiser.step()
        decay.step()
    return [(weights.detach().numpy(), bias.detach().numpy()) for weights, bias in layers]
