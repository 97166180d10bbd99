"""What a curious party knows of defences of labels in split networks: classes of `plumbob/known_defences.py`."""

from __future__ import annotations

from dataclasses import dataclass

from plumbob.known_defences import KnownDefence


@dataclass(frozen=True)
class KnownConfusionalAutoencoder(KnownDefence):
    """Its soft labels are the active party's secret."""

    name = "confusional_autoencoder"
    confusion: float
    bins: int


@dataclass(frozen=True)
class KnownDiscreteOutputGradients(KnownDefence):
    name = "discrete_output_gradients"
    bins: int


@dataclass(frozen=True)
class KnownEarlierCut(KnownDefence):
    name = "earlier_cut"
    layers: int


@dataclass(frozen=True)
class KnownLabelDistanceCorrelation(KnownDefence):
    name = "label_distance_correlation"
    strength: float


@dataclass(frozen=True)
class KnownLabelRandomisedResponse(KnownDefence):
    name = "label_randomised_response"
    epsilon: float


@dataclass(frozen=True)
class KnownLpMst(KnownDefence):
    name = "lp_mst"
    epsilon: float
    stages: int


@dataclass(frozen=True)
class KnownMarvell(KnownDefence):
    name = "marvell"
    scale: float


@dataclass(frozen=True)
class KnownMaxNormAlignment(KnownDefence):
    name = "max_norm_alignment"


@dataclass(frozen=True)
class KnownMid(KnownDefence):
    name = "mid"
    strength: float


@dataclass(frozen=True)
class KnownOutputGradientNoise(KnownDefence):
    """`scale` is in units of the longest gradient of a batch."""

    name = "output_gradient_noise"
    scale: float
    laplace: bool


@dataclass(frozen=True)
class KnownPrivateResiduals(KnownDefence):
    """`noise` is the multiplier of sqrt(2) that the epochs of the training need."""

    name = "private_residuals"
    epsilon: float
    delta: float
    noise: float | None = None


@dataclass(frozen=True)
class KnownSparseOutputGradients(KnownDefence):
    name = "sparse_output_gradients"
    share: float
