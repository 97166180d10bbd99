"""The defence sweep: every defence of the prediction phase at its usual settings, against every usual attacker.

A defence is judged by the attacker who does best, so the sweep always asks the one with the model, the one with complete rows of
other people besides, the one with such rows alone, and in training a passive party that is after the label.

For `split_training` it is every defence at the point `gradients`, for `split_network` every one at `embeddings` and
`labels`, and for `secure_boost` every one at `histograms`.
`defences: sweep` in a plan or `plumbob audit --sweep` stands for this list; docs/frontier.md shows it.
"""

from __future__ import annotations

from typing import Any

from plumbob.defences import DEFENCES, Combined, Defence
from plumbob.protocols.base import Protocol, predicting
from plumbob.transcript import COORDINATOR

NAME = "sweep"  # what a plan calls it
ORDER = (  # in which a plan lists them, and so the findings; defences that are not named here come last, by name
    "none",
    "rounding",
    "label_only",
    "noise",
    "purifier",
    "codebook",
    "verification",
    "dropout",
    "dp_sgd",
    "hide_model",
    "dp_scores",
    "randomised_response",
    "fake_gradients",
    "dp_gradients",
    "sparse_gradients",
    "quantised_gradients",
    "hidden_indices",
    "secure_aggregation",
    "gaussian_masking",
    "masquerade",
    "rank_reduction",
    "quantised_embeddings",
    "deeper_cut",
    "rotation",
    "left_out",
    "shared_indicators",
    "dp_histograms",
    "blinding",
    "distance_correlation",
    "fedpass",
    "mixup",
    "max_norm_alignment",
    "output_gradient_noise",
    "marvell",
    "discrete_output_gradients",
    "sparse_output_gradients",
    "label_randomised_response",
    "lp_mst",
    "private_residuals",
    "mid",
    "label_distance_correlation",
    "confusional_autoencoder",
    "earlier_cut",
    "grafting_ldp",
    "id_lmid",
    "op_boost",
)
IN_TRAINING = {"gradients", "embeddings", "labels", "histograms"}  # points that are messages of training
THREATS = {  # that a sweep always asks, by the phase of the protocols
    "prediction": ("active", "active-auxiliary", "active-black-box-auxiliary"),
    "training": ("active-training", "passive-training"),
}
UNKNOWN = (0.3,)  # one share where the plan is silent: points of a chart should differ by their defence only


def every() -> list[tuple[str, dict[str, Any]]]:
    """Every defence at each of the settings that its class declares for the sweep."""
    places = {name: place for place, name in enumerate(ORDER)}
    names = sorted(DEFENCES, key=lambda name: (places.get(name, len(places)), name))
    return [(name, dict(settings)) for name in names for settings in DEFENCES[name].sweep_settings]


def points(defence: Defence) -> set[str]:
    """Where a defence, or each part of a combined one, changes a protocol."""
    return {part.point for part in defence.parts} if isinstance(defence, Combined) else {defence.point}


def in_training(defence: Defence) -> bool:
    """Whether it, or a part of it, changes messages of training, which protocols of prediction do not send."""
    return not points(defence).isdisjoint(IN_TRAINING)


def fits(defence: Defence, protocol: Protocol) -> bool:
    """Whether a defence does anything to a protocol: not dropout without hidden units, not scores nobody can change.

    Gradients are sent up in `split_training` alone, embeddings and their gradients in `split_network`, sums of bins in
    `secure_boost`. What else protects a training protocol is a setting of its own: list it a second time with that setting.
    """
    where = points(defence)
    if protocol.phase == "training":
        if where == {"none"}:
            return True
        return where <= set(protocol.parts) and repr(defence.protect(protocol)) != repr(protocol)
    if in_training(defence):
        return False
    if defence.point == "training":
        return repr(defence.protect(protocol)) != repr(protocol)
    return defence.point != "scores" or predicting(protocol).collector("active") == COORDINATOR
