"""What a defence with differential privacy promises, by the questions of NIST SP 800-226."""

from __future__ import annotations

from dataclasses import dataclass

# Hazards that every guarantee here shares: how noise is drawn, and what happened to the data before.
SHARED_HAZARDS = (
    "The noise comes from a seeded generator that is not cryptographic, in floating-point numbers. A deployment needs a secret, "
    "secure source.",
    "Columns are scaled by their lowest and highest values in the data. These values are not counted in the budget.",
    "Every further training on the same people adds to the budget. An audit trains several times: release one model only.",
)


@dataclass(frozen=True)
class Guarantee:
    """The parameters of a promise, and what it does not cover; sentences for a reader, no values of any row."""

    unit: str  # of privacy: whose change the promise is about
    neighbours: str  # how two neighbouring data sets differ
    epsilon: float
    delta: str
    trust: str  # who has to be trusted, with what
    mechanism: str
    composition: str  # what the budget covers, by which accountant
    hazards: tuple[str, ...] = SHARED_HAZARDS
