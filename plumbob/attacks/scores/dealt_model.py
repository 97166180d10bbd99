"""Dealt model (ours): the coordinator deals the model's parts and collects the answers, and solves each answer for its row.

Of a linear part W_p, which logistic regression and the first layer of networks are, a party's answer is
    z_p = x_p W_p,            as many equations as W_p has independent columns, where scores hold one sum of all parties
so that 600 hidden units give away 600 columns. An answer of trees is a side for each of the party's own nodes: the interval
between the nearest thresholds. No model need be granted: the coordinator sent every part itself. Where the active party is not
among the curious, the class of the scores that it computes stands for the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.attacks.scores._box_equations import nearest_in_box, reduce
from plumbob.attacks.scores._column_prior import Places
from plumbob.attacks.scores._party_answers import answers_received
from plumbob.attacks.scores._solutions_in_box import descended
from plumbob.attacks.scores.posterior_mean import solve
from plumbob.bundle import Array
from plumbob.federation import FloatArray, IntArray
from plumbob.kinds import COLUMNS, Kind
from plumbob.protocols.base import Protocol
from plumbob.protocols.scores.split_models import LocalModel
from plumbob.threats import Schema, Threat, View
from plumbob.transcript import COORDINATOR

UNSEEN = "the parties' answers do not reach the coordinator one by one"
FEWEST_OWN = 1  # own columns below which there is nothing to take a prior from


@dataclass(frozen=True, eq=False)
class Part:
    """What a hidden party got of the model, where its columns stand among the unknown ones, and what it answered."""

    model: dict[str, Array]
    places: IntArray
    answers: FloatArray


class DealtModel(Attack):
    """Values whose answers are those that were sent, under the parts of the model that were dealt."""

    name = "dealt_model"
    summary = "ours: the coordinator, which deals the model and collects the answers, solves each answer for its row"
    paper = "plumbob"
    protocols = (
        "boosted_trees",
        "decision_tree",
        "logistic_regression",
        "neural_network",
        "random_forest",
        "split_models",
    )
    requires = (Schema,)
    corrupted = True
    needs_active = False
    addresses = (*COLUMNS, Kind.LABEL)
    cost_terms = ("1", "n u", "n w")
    workload = "matrices"

    def why_not_here(self, protocol: Protocol, threat: Threat) -> str | None:
        if getattr(protocol, "sums", "clear") != "clear":
            return "the parties' answers are added up unseen"
        return None if threat.active or protocol.told(COORDINATOR) else UNSEEN

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        parts = dealt(view)
        if not parts:
            return nothing(view, UNSEEN)
        values = np.full((len(view.own), len(view.unknown)), 0.5)
        linear = [part for part in parts if not trees(part) and len(layers(part).weights) == 1]
        told = np.flatnonzero(np.isfinite(np.hstack([part.answers for part in parts])).all(axis=1))
        if linear:
            values[told] = solved(view, linear, told, values[told], rng)
        for part in parts:
            if trees(part):
                values[:, part.places] = between_thresholds(part)
            elif len(layers(part).weights) > 1:
                values[np.ix_(told, part.places)] = descended_from_middle(part, told)
        return Guess(view.unknown_names, values, labels=classes(view))


def dealt(view: View) -> list[Part]:
    """The hidden parties' parts. With the schema, the names of columns begin with their party's."""
    answers, found = answers_received(view), []
    packed = _bits(view)
    for party, model in sent(view).items():
        places = np.flatnonzero([name.startswith(f"{party}.") for name in view.unknown_names])
        answer = packed.get(party) if "thresholds" in model else answers.get(party)
        if party in view.curious or answer is None or not len(places):
            continue
        found.append(Part(model, places, answer))
    return found


def sent(view: View) -> dict[str, dict[str, Array]]:
    """The part of the model that each party was dealt, as far as the curious sent or got it."""
    found: dict[str, dict[str, Array]] = {}
    for message in view.messages:
        if message.sender == COORDINATOR and message.phase == "setup":
            found.setdefault(message.receiver, {})[message.name] = message.payload
    return found


def _bits(view: View) -> dict[str, FloatArray]:
    """Sides by sender: packed as they are sent, so rows of different batches stand one below the other."""
    found: dict[str, list[Array]] = {}
    for message in view.messages:
        if message.name == "answer" and message.phase == "predict" and message.receiver in view.curious:
            found.setdefault(message.sender, []).append(message.payload)
    joined = {sender: np.concatenate(parts) for sender, parts in found.items()}
    bits = {sender: np.unpackbits(part, axis=1) for sender, part in joined.items() if part.dtype == np.uint8}
    return {sender: part.astype(np.float64) for sender, part in bits.items() if len(part) == len(view.own)}


def trees(part: Part) -> bool:
    return "thresholds" in part.model


def layers(part: Part) -> LocalModel:
    """A part as layers; a bare matrix of weights is one of them, without a bias."""
    if "weights" in part.model:
        weights = np.asarray(part.model["weights"], dtype=np.float64)
        return LocalModel(part.places, (weights,), (np.zeros(weights.shape[1]),), "relu")
    return LocalModel.from_arrays(part.model, part.places)


def solved(view: View, parts: list[Part], told: IntArray, guess: FloatArray, rng: np.random.Generator) -> FloatArray:
    """All linear equations in one system: what it leaves open comes from own columns, else from the middle of the box."""
    systems = [layers(part) for part in parts]
    left = np.zeros((sum(one.weights[0].shape[1] for one in systems), len(view.unknown)))
    begin = 0
    for part, one in zip(parts, systems, strict=True):
        left[begin : begin + one.weights[0].shape[1], part.places] = one.weights[0].T
        begin += one.weights[0].shape[1]
    right = np.hstack([part.answers - one.biases[0] for part, one in zip(parts, systems, strict=True)])[told]
    if view.own.shape[1] < FEWEST_OWN:
        return nearest_in_box(*reduce(left, right), guess)
    low, high = np.zeros(len(view.unknown)), np.ones(len(view.unknown))
    return solve(left, right, view.own[told], low, high, Places(view.known, view.unknown), rng)


def descended_from_middle(part: Part, told: IntArray) -> FloatArray:
    """A point of the box that a small network answers so, looked for from its middle."""
    model, answers = layers(part), part.answers[told]
    spread = np.maximum(answers.std(axis=0), 1e-12)
    start = np.full((len(told), len(part.places)), 0.5)
    return descended(model.outputs, model.slopes, answers, start, spread)[0]


def between_thresholds(part: Part) -> FloatArray:
    """The middle of the interval that a row's sides leave of each column."""
    rows, width = len(part.answers), len(part.places)
    low, high = np.zeros((rows, width)), np.ones((rows, width))
    for node, (column, threshold) in enumerate(zip(part.model["columns"], part.model["thresholds"], strict=True)):
        right = part.answers[:, node] > 0
        low[right, column] = np.maximum(low[right, column], threshold)
        high[~right, column] = np.minimum(high[~right, column], threshold)
    return np.clip((low + high) / 2, 0.0, 1.0)


def classes(view: View) -> IntArray | None:
    """The class of the largest score of every row; None where the active party, which has the label, is curious."""
    if view.active in view.curious:
        return None
    scores = np.concatenate([message.payload for message in view.messages if message.name == "scores"])
    told = np.isfinite(scores).all(axis=1)
    return np.where(told, np.nan_to_num(scores).argmax(axis=1), -1)
