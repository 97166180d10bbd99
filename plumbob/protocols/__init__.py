"""Protocols, one file each, by what crosses between the parties:

    scores/       joint prediction                      embeddings/   split networks, cut at a layer
    gradients/    split training with a server          sums/         encrypted training, boosting

Shared: `networks` and `trees`. `plumbob/targets/` adds real frameworks. All speak through one transcript.
"""

from __future__ import annotations

from typing import Any

from plumbob.protocols.base import Model, PredictionProtocol, Protocol, TrainingProtocol, predict
from plumbob.registry import Registry, class_of, classes_in, exported, make

__all__ = ["PROTOCOLS", "Model", "PredictionProtocol", "Protocol", "TrainingProtocol", "predict", "protocol_named"]

PROTOCOLS: Registry[type[Protocol]] = Registry(
    "protocol",
    lambda: (kind for room in (__name__, "plumbob.targets") for kind in classes_in(room, Protocol)),
    class_of(Protocol),
)


def protocol_named(name: str, /, **settings: object) -> Protocol:
    """A protocol with the given settings, the rest at their defaults."""
    made: Protocol = make(PROTOCOLS, name, **settings)
    return made


def __getattr__(name: str) -> Any:
    """`plumbob.protocols.LogisticRegression`: every registered class by its own name."""
    return exported(PROTOCOLS, __name__, name)
