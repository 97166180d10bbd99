"""Membership by scores (P47): what answers tell of who was trained on, where that was not told by matching rows.

In a federation every party knows the rows of training: they were matched. Whoever buys answers of a model that others trained
does not. This party asks about people, holds its own columns and their labels, and complete rows of other people. As in
likelihood-ratio attacks (LiRA), it trains stand-ins on its rows and compares

    log N(phi; m_in(x_own, y), s_in) - log N(phi; m_out(x_own, y), s_out),     phi = logit of the score of the true class

where m_in and m_out are fitted to the stand-ins' answers on rows they were trained on and on others. The fit averages over the
columns that this party does not hold. Beside it: phi itself, against a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plumbob.data import registry
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.lazy_imports import sklearn
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.protocols import protocol_named
from plumbob.protocols.base import predicting

MODELS = ("logistic_regression", "decision_tree", "random_forest", "boosted_trees", "neural_network")
DATA = {"smoke": ("breast",), "paper": ("bank", "credit", "satellite")}
MEMBERS = {"smoke": 100, "paper": 1_000}
STAND_INS = {"smoke": 4, "paper": 16}
TRIALS = {"smoke": 1, "paper": 3}
SMALLEST = 1e-6  # a score below it counts as this
FEW_FALSE = 0.01  # share of false alarms at which hits are counted
OVERFITTED, FITTED = 0.05, 0.01  # accuracy on rows of training less that on others: from here, and up to here
HARDLY = 0.55  # area under the curve up to which little is told


@dataclass(frozen=True)
class Asked:
    """People about whom the model was asked, half of whom it was trained on."""

    own: FloatArray
    label: IntArray
    phi: FloatArray
    member: BoolArray


def confidence(scores: FloatArray, label: IntArray) -> FloatArray:
    """The logit of the score of the true class.

    >>> confidence(np.array([[0.5, 0.5]]), np.array([1])).tolist()
    [0.0]
    """
    told = np.clip(scores[np.arange(len(label)), label], SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(told / (1 - told)))


def likelihood_ratios(asked: Asked, told: Asked) -> FloatArray:
    """How much more likely each answer is of a row of training; `told` are answers of stand-ins, whose training is known."""
    made = np.zeros(len(asked.phi))
    for inside in (True, False):
        of = told.member == inside
        fit = sklearn.ensemble.HistGradientBoostingRegressor(max_iter=80, max_depth=3, random_state=0)
        fit.fit(_features(told)[of], told.phi[of])
        left = told.phi[of] - fit.predict(_features(told)[of])
        spread = max(1e-6, float(left.std()))
        distance = (asked.phi - fit.predict(_features(asked))) / spread
        made += (1 if inside else -1) * (-0.5 * distance**2 - np.log(spread))
    return made


def _features(people: Asked) -> FloatArray:
    return np.column_stack([people.own, people.label])


def area(told: FloatArray, member: BoolArray) -> float:
    """Of a member and somebody else, how often the member is told to be one; ties count half.

    >>> area(np.array([0.2, 0.1, 0.1]), np.array([True, False, True]))
    0.75
    """
    return float(sklearn.metrics.roc_auc_score(member, told))


def hits(told: FloatArray, member: BoolArray) -> float:
    """Share of the members who are named where one in a hundred others is named too."""
    limit = np.quantile(told[~member], 1 - FEW_FALSE)
    return float((told[member] > limit).mean())


def who_was_trained_on(scale: Scale, seed: int) -> CheckResult:
    """Area under the curve for every model and table; the interval over trials and people."""
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for data in DATA[scale]:
        for model in MODELS:
            done = part(f"{data}-{model}", lambda data=data, model=model: _of_model(data, model, scale, seed))  # type: ignore[misc]  # bound now
            measured[f"{data}, {model.replace('_', ' ')}"] = done.measured
            answers += done.answers
    expected = (
        "where the model is right on rows of training 5 points more often than on others, answers tell more than chance of who "
        "they are; where 1 point at most, the area under the curve is below 0.55; likelihood ratios are no worse than a threshold"
    )
    why = (
        "answers tell of membership what the model learnt by heart; the parties of a federation know its rows anyway, since they "
        "matched them"
    )
    return CheckResult(every(answers), measured, expected, TRIALS[scale], why)


def _of_model(data: str, model: str, scale: Scale, seed: int) -> Part:
    found: list[Mapping[str, float]] = [_trial(data, model, scale, seed + 1000 * k) for k in range(TRIALS[scale])]
    mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    # Mann-Whitney: the variance of an area of 0.5 with n members and n others is (2n + 1) / (12 n^2), the largest there is here
    n = MEMBERS[scale]
    half = 1.96 * np.sqrt((2 * n + 1) / (12 * n * n) / TRIALS[scale])
    area_of = mean["likelihood ratio"]
    told = [_beyond(area_of + half, mean["threshold"] - half, 0.0)]
    if mean["gap"] >= OVERFITTED:
        told.append(_beyond(area_of, 0.5, half))
    if mean["gap"] <= FITTED:
        told.append(_beyond(HARDLY, area_of, half))
    shown: dict[str, object] = {
        "accuracy on rows of training less that on others": round(mean["gap"], 4),
        "area, likelihood ratio": f"{mean['likelihood ratio']:.3f} +- {half:.3f}",
        "area, threshold": f"{mean['threshold']:.3f} +- {half:.3f}",
        "members named at 1 % false alarms": f"{mean['hits']:.3f} (by chance {FEW_FALSE})",
        "people": 2 * n,
    }
    return Part(shown, told)


def _beyond(high: float, low: float, half: float) -> bool | None:
    """Whether one is above the other; undecided where the interval holds both."""
    return True if high - half > low else False if high + half < low else None


def _trial(data: str, model: str, scale: Scale, seed: int) -> Mapping[str, float]:
    rng = np.random.default_rng(seed)
    table = registry.load(data)
    count, label = MEMBERS[scale], table.label
    assert label is not None
    drawn = rng.permutation(len(label))[: 4 * count]
    members, others, mine = drawn[:count], drawn[count : 2 * count], drawn[2 * count :]
    own = rng.permutation(table.values.shape[1])[: table.values.shape[1] // 2]
    protocol, classes = predicting(protocol_named(model)), len(table.classes)
    victim = protocol.fit(table.values[members], label[members], classes, rng)
    scores = victim.scores(table.values)
    right = scores.argmax(axis=1) == label
    people = np.concatenate([members, others])
    asked = Asked(
        table.values[people][:, own],
        label[people],
        confidence(scores[people], label[people]),
        np.arange(2 * count) < count,
    )
    told = []
    for _ in range(STAND_INS[scale]):
        inside = rng.permutation(len(mine)) < count
        stand_in = protocol.fit(table.values[mine[inside]], label[mine[inside]], classes, rng)
        phi = confidence(stand_in.scores(table.values[mine]), label[mine])
        told.append(Asked(table.values[mine][:, own], label[mine], phi, inside))
    learnt = Asked(
        *(np.concatenate([getattr(one, name) for one in told]) for name in ("own", "label", "phi", "member"))
    )
    ratios = likelihood_ratios(asked, learnt)
    return {
        "gap": float(right[members].mean() - right[others].mean()),
        "likelihood ratio": area(ratios, asked.member),
        "threshold": area(asked.phi, asked.member),
        "hits": hits(ratios, asked.member),
    }


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P47",
        "membership",
        "answers tell who was trained on as far as the model overfits",
        who_was_trained_on,
    ),
)
