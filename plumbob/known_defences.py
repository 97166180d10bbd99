"""What a curious party knows of the defences in place: a defence is judged with its settings known.

    view.defence.get(KnownRounding)    ->    KnownRounding(digits=2), or None without rounding
On disk each setting is an array `defence/NAME/SETTING`. All of them are kept as they were read, so a defence of another
package, which no attack here knows, passes through unchanged. A class below reads the settings of one defence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.transcript import COORDINATOR, Transcript

PREFIX = "defence/"
ON = "on"  # the setting that says no more than that a defence is in place


@dataclass(frozen=True)
class KnownDefence:
    """One defence as the attacker knows it. A field may be None where a record need not hold it."""

    name: ClassVar[str]
    marked: ClassVar[bool] = True  # whether `NAME/on` is written beside the settings

    def arrays(self) -> dict[str, Array]:
        """The settings, as `NAME/SETTING`."""
        # What only a run makes comes after the mark. Earlier records have this order, and their bytes stay the same.
        first = {f.name: getattr(self, f.name) for f in fields(self) if f.default is not None}
        later = {f.name: getattr(self, f.name) for f in fields(self) if f.default is None}
        settings = first | ({ON: True} if self.marked else {}) | later
        return {f"{self.name}/{key}": np.asarray(value) for key, value in settings.items() if value is not None}

    @classmethod
    def read(cls, settings: Mapping[str, Array]) -> Self:
        """From the settings by name. Others than the fields are ignored: later versions may know more of a defence."""
        for part in fields(cls):
            if part.default is MISSING and part.name not in settings:
                raise BadInput(f"defence '{cls.name}': expected its setting '{part.name}' in the record, got none")
        return cls(**{f.name: _value(cls.name, f, settings[f.name]) for f in fields(cls) if f.name in settings})


def _value(defence: str, part: Field[Any], array: Array) -> Any:
    """A setting as its field declares it: one number, or an array."""
    number = {"int": int, "float": float, "bool": bool}.get(str(part.type).removesuffix(" | None"))
    if number is None:
        return array
    if array.size != 1:
        raise BadInput(f"defence '{defence}': expected one number for '{part.name}', got an array of {array.shape}")
    return number(array.item())


Known = TypeVar("Known", bound=KnownDefence)


@dataclass(frozen=True)
class KnownDefences:
    """All that is known of the defences in place: empty without one.

    >>> known = KnownDefences.of(KnownRounding(digits=2))
    >>> known[KnownRounding].digits, KnownLabelOnly in known, known.names
    (2, False, ('rounding',))
    """

    arrays: Mapping[str, Array] = field(default_factory=dict)  # by `NAME/SETTING`

    def __post_init__(self) -> None:
        for key in self.arrays:
            if not all(key.partition("/")):
                raise BadInput(f"what is known of a defence: expected NAME/SETTING, got '{key}'")

    @classmethod
    def of(cls, *defences: KnownDefence) -> Self:
        """Defences that have a class of their own."""
        return cls({key: array for defence in defences for key, array in defence.arrays().items()})

    @classmethod
    def named(cls, name: str, settings: Mapping[str, Array]) -> Self:
        """A defence by its name and settings, whether or not there is a class for it."""
        return cls({f"{name}/{key}": array for key, array in settings.items()} | {f"{name}/{ON}": np.array(True)})

    @classmethod
    def within(cls, arrays: Mapping[str, Array]) -> Self:
        """Those among other arrays, which are named `defence/NAME/SETTING` there."""
        return cls({key.removeprefix(PREFIX): array for key, array in arrays.items() if key.startswith(PREFIX)})

    @classmethod
    def sealed_in(cls, log: Transcript) -> Self:
        """What a transcript says of the defences of its run."""
        return cls.within(log.sealed(COORDINATOR))

    def prefixed(self) -> dict[str, Array]:
        """As they are named among other arrays."""
        return {f"{PREFIX}{key}": array for key, array in self.arrays.items()}

    def seal(self, log: Transcript) -> None:
        """Keep them in a transcript."""
        for key, array in self.prefixed().items():
            log.seal(COORDINATOR, key, array)

    @property
    def names(self) -> tuple[str, ...]:
        """The defences in place, in the order given."""
        return tuple(dict.fromkeys(key.partition("/")[0] for key in self.arrays))

    def get(self, kind: type[Known]) -> Known | None:
        """What is known of one defence; None if it is not in place."""
        start = f"{kind.name}/"
        settings = {key.removeprefix(start): array for key, array in self.arrays.items() if key.startswith(start)}
        return kind.read(settings) if settings else None

    def __getitem__(self, kind: type[Known]) -> Known:
        found = self.get(kind)
        if found is None:
            raise BadInput(f"expected the defence '{kind.name}', got {', '.join(self.names) or 'no defence'}")
        return found

    def __contains__(self, kind: type[KnownDefence]) -> bool:
        return kind.name in self.names

    def __or__(self, other: KnownDefences) -> KnownDefences:
        return KnownDefences({**self.arrays, **other.arrays})

    def __bool__(self) -> bool:
        return bool(self.arrays)


# Scores


@dataclass(frozen=True)
class KnownRounding(KnownDefence):
    name = "rounding"
    digits: int
    nearest: bool | None = None  # else down


@dataclass(frozen=True)
class KnownNoise(KnownDefence):
    """Its seed is the defender's secret. Records of earlier versions lack `repeats`."""

    name = "noise"
    sigma: float
    clip: bool
    repeats: int = 1


@dataclass(frozen=True)
class KnownLabelOnly(KnownDefence):
    name = "label_only"


@dataclass(frozen=True)
class KnownDpScores(KnownDefence):
    """Its seed is the defender's secret."""

    name = "dp_scores"
    epsilon: float
    repeats: int = 1


@dataclass(frozen=True)
class KnownRandomisedResponse(KnownDefence):
    """Its seed is the defender's secret."""

    name = "randomised_response"
    epsilon: float
    repeats: int = 1


@dataclass(frozen=True)
class KnownCodebook(KnownDefence):
    name = "codebook"
    levels: int = 1
    words: Array | None = None  # words x classes


@dataclass(frozen=True)
class KnownPurifier(KnownDefence):
    """An autoencoder with one hidden layer."""

    name = "purifier"
    encode: Array | None = None  # classes x hidden
    encode_bias: Array | None = None
    decode: Array | None = None  # hidden x classes
    decode_bias: Array | None = None

    @property
    def layers(self) -> tuple[Array, Array, Array, Array] | None:
        """All four parameters, or None before the autoencoder was trained."""
        if self.encode is None or self.encode_bias is None or self.decode is None or self.decode_bias is None:
            return None
        return self.encode, self.encode_bias, self.decode, self.decode_bias


@dataclass(frozen=True)
class KnownVerification(KnownDefence):
    name = "verification"
    limit: float


# Training and knowledge


@dataclass(frozen=True)
class KnownDpSgd(KnownDefence):
    name = "dp_sgd"
    epsilon: float
    clip: float
    epochs: int
    delta: float | None = None  # None: one over the number of training rows


@dataclass(frozen=True)
class KnownDropout(KnownDefence):
    name = "dropout"
    rate: float


@dataclass(frozen=True)
class KnownHideModel(KnownDefence):
    name = "hide_model"


# Gradients


@dataclass(frozen=True)
class KnownDpGradients(KnownDefence):
    """`noise` is the multiplier of `clip` that the rounds of the training need."""

    name = "dp_gradients"
    epsilon: float
    delta: float
    clip: float
    amplified: bool
    noise: float | None = None


@dataclass(frozen=True)
class KnownFakeGradients(KnownDefence):
    name = "fake_gradients"
    sigma: float
    count: int
    tau: float
    literal: bool


@dataclass(frozen=True)
class KnownHiddenIndices(KnownDefence):
    name = "hidden_indices"


@dataclass(frozen=True)
class KnownQuantisedGradients(KnownDefence):
    name = "quantised_gradients"
    bits: int
    stochastic: bool


@dataclass(frozen=True)
class KnownSecureAggregation(KnownDefence):
    name = "secure_aggregation"
    bits: int


@dataclass(frozen=True)
class KnownSparseGradients(KnownDefence):
    name = "sparse_gradients"
    share: float


# Embeddings


@dataclass(frozen=True)
class KnownDeeperCut(KnownDefence):
    name = "deeper_cut"
    layers: int


@dataclass(frozen=True)
class KnownGaussianMasking(KnownDefence):
    name = "gaussian_masking"
    sigma: float


@dataclass(frozen=True)
class KnownLeftOut(KnownDefence):
    name = "left_out"


@dataclass(frozen=True)
class KnownMasquerade(KnownDefence):
    name = "masquerade"
    columns: int


@dataclass(frozen=True)
class KnownQuantisedEmbeddings(KnownDefence):
    name = "quantised_embeddings"
    bits: int
    dither: bool
    reach: float


@dataclass(frozen=True)
class KnownRankReduction(KnownDefence):
    name = "rank_reduction"
    rank: int


@dataclass(frozen=True)
class KnownRotation(KnownDefence):
    name = "rotation"


@dataclass(frozen=True)
class KnownDistanceCorrelation(KnownDefence):
    name = "distance_correlation"
    strength: float


@dataclass(frozen=True)
class KnownFedPass(KnownDefence):
    """Its passports are the parties' secrets."""

    name = "fedpass"
    passports: int
    reach: float
    top: bool


@dataclass(frozen=True)
class KnownMixup(KnownDefence):
    name = "mixup"
    rows: int


# Sums


@dataclass(frozen=True)
class KnownBlinding(KnownDefence):
    name = "blinding"


@dataclass(frozen=True)
class KnownDpHistograms(KnownDefence):
    """`total`: whether that is the budget of the whole training; records of earlier versions have that of one histogram."""

    name = "dp_histograms"
    marked = False
    epsilon: float
    total: bool | None = None


@dataclass(frozen=True)
class KnownSharedIndicators(KnownDefence):
    name = "shared_indicators"


@dataclass(frozen=True)
class KnownGraftingLdp(KnownDefence):
    name = "grafting_ldp"
    epsilon: float


@dataclass(frozen=True)
class KnownIdLmid(KnownDefence):
    name = "id_lmid"
    bound: float


@dataclass(frozen=True)
class KnownOpBoost(KnownDefence):
    name = "op_boost"
    epsilon: float
