"""jiang2022: the trained federations its claims share, the attacks as it runs them, and how a guess is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from plumbob.attacks.base import Attack
from plumbob.attacks.scores.gradient_inversion import GradientInversion, InversionLoss
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Federation, FloatArray, Table, halves, split_at_random
from plumbob.papers.claims import Curve, Scale
from plumbob.papers.evidence import YesNoOpen
from plumbob.protocols import Model, PredictionProtocol, predict
from plumbob.protocols.base import column_positions
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.protocols.scores.split_models import SplitModels
from plumbob.scoring.intervals import mean_and_margin
from plumbob.scoring.metrics import attack_accuracy
from plumbob.threats import LUO2021, Threat, View, cut

JIANG_DATA = ("bank", "robot", "satellite", "drive")
RECORDS = 100
JIANG_TRIALS = {"smoke": 3, "paper": 10}
JIANG_ROWS = {
    "smoke": 1_500,
    "paper": 12_000,
}  # rows taken of a data set, most of which train; J1 takes all at paper scale
RATIOS = {"smoke": (0.1, 0.5, 0.9), "paper": (0.1, 0.3, 0.5, 0.7, 0.9)}
GIA_ROUNDS = {"smoke": (300, 0.01), "paper": (3_000, 0.001)}  # T and lambda of Algorithm 1
JIANG_HIDDEN_LAYERS = (8, 8)  # "NN" is two hidden layers of eight where a claim does not say otherwise
SIMILAR_SHARE = 0.2  # "similar", "almost the same": within this share


@dataclass(frozen=True)
class JiangCase:
    """One trained federation and the records that are attacked."""

    protocol: PredictionProtocol
    model: Model
    target: Federation
    trainer: Federation

    def view(self, threat: Threat = LUO2021, others: Federation | None = None) -> View:
        return cut(predict(self.protocol, self.model, self.target, others or self.trainer), threat)

    @property
    def truth(self) -> FloatArray:
        return self.target["passive"].values


@dataclass(frozen=True)
class JiangResult:
    """An attack on one case: error, R^2 against the best constant, and the error of uniform guessing."""

    error: float
    r2: float
    uniform: float
    accuracy: float = float("nan")


@lru_cache(maxsize=8)
def table(data: str, rows: int | None, seed: int) -> Table:
    whole = registry.load(data)
    if rows is None or rows >= len(whole.values):
        return whole
    assert whole.label is not None
    return whole.rows(np.sort(halves(whole.label, generator(seed, "sample"), rows / len(whole.values))[0]))


@lru_cache(maxsize=64)
def case(
    data: str, kind: str, unknown: float | int, scale: Scale, seed: int, trial: int, records: int = RECORDS
) -> JiangCase:
    """`kind`: lr (with a bias), linear (per party, without), or layers and activation such as '2 sigmoid'."""
    whole = table(data, JIANG_ROWS[scale], seed)
    federation = split_at_random(whole, unknown, generator(seed, "columns", unknown, trial))
    order, target = halves(federation.label, generator(seed, "rows", trial), 1 - records / len(federation))
    trainer = federation.rows(order)
    protocol = protocol_of(kind)
    blocks = list(column_positions(federation).values())
    model = protocol.fit(
        trainer.values, trainer.label, len(federation.classes), generator(seed, "model", data, kind, trial), blocks
    )
    return JiangCase(protocol, model, federation.rows(target[:records]), trainer)


def protocol_of(kind: str, epochs: int = 40) -> PredictionProtocol:
    if kind == "lr":
        return LogisticRegression()
    if kind == "linear":
        return SplitModels(layers=0)
    layers, activation = kind.split()
    return SplitModels(layers=int(layers), activation=activation, epochs=epochs)


def gia(scale: Scale, loss: InversionLoss = "mse") -> GradientInversion:
    steps, rate = GIA_ROUNDS[scale]
    return GradientInversion.preset("fast", loss=loss, steps=steps, rate=rate, finish=0)


def to_the_end(scale: Scale) -> GradientInversion:
    """The same, and then on until D is 0: the paper stops when D "approaches 0", which Adam alone does not reach here."""
    steps, rate = GIA_ROUNDS[scale]
    return GradientInversion.preset("fast", steps=steps, rate=rate, finish=40)


def result(attack: Attack, one: JiangCase, view: View, accuracy: bool = False, seed: int = 0) -> JiangResult:
    guess = attack.run(view, generator(seed, "attack", attack.identified())).values
    assert guess is not None
    return judged(guess, one, accuracy, seed)


def judged(guess: FloatArray, one: JiangCase, accuracy: bool = False, seed: int = 0) -> JiangResult:
    truth = one.truth
    error, variance = float(np.mean((guess - truth) ** 2)), float(truth.var(axis=0).mean())
    same = float("nan")
    if accuracy:
        held_out, labels = one.trainer["passive"].values[:2_000], one.trainer.label[:2_000]
        same = attack_accuracy(guess, truth, held_out, labels, generator(seed, "judge"))
    return JiangResult(error, 1 - error / max(variance, 1e-15), float(np.mean((truth - 0.5) ** 2)) + 1 / 12, same)


def errors(results: Iterable[JiangResult]) -> list[float]:
    return [one.error for one in results]


def shown(results: Sequence[JiangResult]) -> str:
    """Mean error, its interval, and R^2 beside it."""
    mean, margin = mean_and_margin(errors(results))
    return f"{mean:.4g} ± {margin:.2g}, R2 {np.mean([one.r2 for one in results]):.2f}"


def curve(name: str, x: Sequence[float], results: Sequence[Sequence[JiangResult]]) -> Curve:
    points = [mean_and_margin(errors(one)) for one in results]
    return Curve(name, list(x), [p[0] for p in points], [p[1] for p in points])


def guess_curves(x: Sequence[float], results: Sequence[Sequence[JiangResult]]) -> list[Curve]:
    """Uniform guessing and the best constant beside an attack's curve."""
    uniform = [float(np.mean([r.uniform for r in one])) for one in results]
    constant = [float(np.mean([r.error / max(1 - r.r2, 1e-15) for r in one])) for one in results]
    return [Curve("uniform", list(x), uniform), Curve("best constant", list(x), constant)]


def mostly(answers: Sequence[YesNoOpen]) -> YesNoOpen:
    """True or False if more than half of the settings say so."""
    for verdict in (True, False):
        if sum(answer is verdict for answer in answers) * 2 > len(answers):
            return verdict
    return None


def word(answer: YesNoOpen) -> str:
    return {True: "yes", False: "no", None: "undecided"}[answer]
