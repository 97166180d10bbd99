"""Protocols: how parties train and predict together. All speak through one transcript."""

from __future__ import annotations

from collections.abc import Callable

from plumbob.errors import made
from plumbob.protocols.base import Model, Protocol, predict
from plumbob.protocols.boosted_trees import Boosted, BoostedTrees
from plumbob.protocols.encrypted_regression import EncryptedRegression
from plumbob.protocols.logistic_regression import LinearModel, LogisticRegression
from plumbob.protocols.neural_network import Network, NeuralNetwork
from plumbob.protocols.secure_boost import SecureBoost
from plumbob.protocols.split_models import SplitModel, SplitModels
from plumbob.protocols.split_network import SplitNetwork
from plumbob.protocols.split_training import SplitTraining
from plumbob.protocols.training import TrainingProtocol
from plumbob.protocols.trees import DecisionTree, Forest, RandomForest
from plumbob.protocols.xgboost_columns import XgboostColumns

__all__ = [
    "PROTOCOLS",
    "TRAINING",
    "Boosted",
    "BoostedTrees",
    "DecisionTree",
    "EncryptedRegression",
    "Forest",
    "LinearModel",
    "LogisticRegression",
    "Model",
    "Network",
    "NeuralNetwork",
    "Protocol",
    "RandomForest",
    "SecureBoost",
    "SplitModel",
    "SplitModels",
    "SplitNetwork",
    "SplitTraining",
    "TrainingProtocol",
    "XgboostColumns",
    "any_protocol_named",
    "predict",
    "protocol_named",
]

PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (LogisticRegression, DecisionTree, RandomForest, Boosted, NeuralNetwork, SplitModels)
}
TRAINING: dict[str, type[TrainingProtocol]] = {
    kind.name: kind for kind in (EncryptedRegression, SecureBoost, SplitTraining, SplitNetwork, XgboostColumns)
}


def protocol_named(name: str, /, **settings: object) -> Protocol:
    """A protocol of the prediction phase with the given settings, the rest at their defaults."""
    return made("protocol", PROTOCOLS, name, settings)


def any_protocol_named(name: str, /, **settings: object) -> Protocol | TrainingProtocol:
    """A protocol of either phase."""
    kinds: dict[str, Callable[..., Protocol | TrainingProtocol]] = {**PROTOCOLS, **TRAINING}
    return made("protocol", kinds, name, settings)
