"""Protocols: how parties train and predict together. All speak through one transcript."""

from __future__ import annotations

from plumbob.errors import BadInput, suggest
from plumbob.protocols.base import Model, Protocol, predict
from plumbob.protocols.logistic_regression import LinearModel, LogisticRegression
from plumbob.protocols.neural_network import Network, NeuralNetwork
from plumbob.protocols.trees import DecisionTree, Forest, RandomForest

__all__ = [
    "PROTOCOLS",
    "DecisionTree",
    "Forest",
    "LinearModel",
    "LogisticRegression",
    "Model",
    "Network",
    "NeuralNetwork",
    "Protocol",
    "RandomForest",
    "predict",
    "protocol_named",
]

PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (LogisticRegression, DecisionTree, RandomForest, NeuralNetwork)
}


def protocol_named(name: str, **settings: object) -> Protocol:
    """A protocol with the given settings, the rest at their defaults."""
    if name not in PROTOCOLS:
        raise BadInput(f"no protocol '{name}'{suggest(name, list(PROTOCOLS))}")
    try:
        return PROTOCOLS[name](**settings)
    except TypeError as error:
        known = list(vars(PROTOCOLS[name]()))
        wrong = next((key for key in settings if key not in known), None)
        hint = suggest(wrong, known) if wrong else f": {error}"
        raise BadInput(f"protocol '{name}' has no setting '{wrong}'{hint}") from error
