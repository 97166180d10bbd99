"""Defences: changes at a named point of a protocol."""

from __future__ import annotations

from plumbob.defences.base import Combined, Defence, NoDefence
from plumbob.defences.codebook import Codebook
from plumbob.defences.deeper_cut import DeeperCut
from plumbob.defences.dp_gradients import DpGradients
from plumbob.defences.dp_sgd import DpSgd
from plumbob.defences.dropout import Dropout
from plumbob.defences.fake_gradients import FakeGradients
from plumbob.defences.gaussian_masking import GaussianMasking
from plumbob.defences.hidden_indices import HiddenIndices
from plumbob.defences.hide_model import HideModel
from plumbob.defences.label_only import LabelOnly
from plumbob.defences.left_out import LeftOut
from plumbob.defences.masquerade import Masquerade
from plumbob.defences.noise import Noise
from plumbob.defences.purifier import Purifier
from plumbob.defences.quantised_embeddings import QuantisedEmbeddings
from plumbob.defences.quantised_gradients import QuantisedGradients
from plumbob.defences.rank_reduction import RankReduction
from plumbob.defences.rotation import Rotation
from plumbob.defences.rounding import Rounding
from plumbob.defences.secure_aggregation import SecureAggregation
from plumbob.defences.sparse_gradients import SparseGradients
from plumbob.defences.verification import Verification
from plumbob.errors import BadInput, made, suggest

__all__ = [
    "DEFENCES",
    "Codebook",
    "Combined",
    "DeeperCut",
    "Defence",
    "DpGradients",
    "DpSgd",
    "Dropout",
    "FakeGradients",
    "GaussianMasking",
    "HiddenIndices",
    "HideModel",
    "LabelOnly",
    "LeftOut",
    "Masquerade",
    "NoDefence",
    "Noise",
    "Purifier",
    "QuantisedEmbeddings",
    "QuantisedGradients",
    "RankReduction",
    "Rotation",
    "Rounding",
    "SecureAggregation",
    "SparseGradients",
    "Verification",
    "defence_named",
]

DEFENCES: dict[str, type[Defence]] = {
    kind.name: kind
    for kind in (
        NoDefence,
        Verification,
        Rounding,
        LabelOnly,
        Noise,
        Purifier,
        Codebook,
        Dropout,
        DpSgd,
        HideModel,
        FakeGradients,
        DpGradients,
        SparseGradients,
        QuantisedGradients,
        HiddenIndices,
        SecureAggregation,
        GaussianMasking,
        Masquerade,
        LeftOut,
        RankReduction,
        QuantisedEmbeddings,
        DeeperCut,
        Rotation,
    )
}


def defence_named(name: str, /, **settings: object) -> Defence:
    """A defence with the given settings, the rest at their defaults; `a+b` is both, with settings by name.

    >>> defence_named("rounding+hide_model", rounding={"digits": 2})
    Rounding(digits=2)+HideModel()
    """
    if "+" not in name:
        return made("defence", DEFENCES, name, settings)
    names = [part.strip() for part in name.split("+")]
    if len(set(names)) < len(names):
        raise BadInput(f"defence '{name}': expected different defences, got one of them twice")
    for key, value in settings.items():
        if key not in names:
            raise BadInput(f"defence '{name}' has no part '{key}'{suggest(key, names)}")
        if not isinstance(value, dict):
            raise BadInput(f"defence '{name}': expected the settings of '{key}' as keys and values, got {value!r}")
    given = {key: value for key, value in settings.items() if isinstance(value, dict)}
    return Combined([made("defence", DEFENCES, part, given.get(part, {})) for part in names])
