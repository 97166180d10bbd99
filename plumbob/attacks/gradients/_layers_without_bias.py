"""The gradients at the outputs of a fully connected layer without a bias (ours).

A bias has them as its own gradients, v. Without one they come down from the next layer: v = s (v' W'), with s the slope of
what stands between. Of ReLU that is 1, or 0 where a unit is dead: then its weights' gradients v h' are 0 as well. Any other
slope hangs on the output, which is not known yet, so nothing is claimed then.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plumbob.attacks.gradients._network_blocks import chain_of
from plumbob.attacks.gradients._row_gradients import Separation
from plumbob.attacks.gradients._worker_uploads import UPLOAD_RANK_SHARE, Uploads, Worker
from plumbob.federation import BoolArray, FloatArray
from plumbob.lazy_imports import nn
from plumbob.protocols.gradients.split_training import TOP

NOISE = 64  # times the rounding of what was sent, up to which a gradient may be of a dead unit


@dataclass(frozen=True)
class UpwardLayer:
    """A fully connected layer on the way up from the first."""

    party: str
    key: str  # its name, with a dot at the end; empty for a top network that adds up
    weight: FloatArray  # of the inputs that the layer below gives
    bias: bool
    active: bool = False  # whether ReLU follows


def way_up(uploads: Uploads, worker: Worker, module: nn.Module, first: nn.Module) -> list[UpwardLayer] | str:
    """The layers from the first to the next one with a bias; or why that does not tell."""
    found = _layers(uploads, worker, module, first)
    for layer in found if isinstance(found, list) else []:
        if layer.bias or f"kept/{layer.party}/{layer.key}weight" not in uploads.view.notes:
            continue
        sent = uploads.gradients(layer.party, f"{layer.key}weight")
        if len(sent.cells) < layer.weight.size or not Separation.of(uploads, sent.rounds).determined.any():
            return (
                f"a layer of '{worker.name}' has no bias, and of its gradients a part was kept only; raise archive_mb"
            )
    return found


def _layers(uploads: Uploads, worker: Worker, module: nn.Module, first: nn.Module) -> list[UpwardLayer] | str:
    """The same by the network alone."""
    chain = chain_of(module)
    if chain is None:
        return f"the network of '{worker.name}' is no chain, and its first fully connected layer has no bias"
    start = next(i for i, (_, part) in enumerate(chain) if part is first)
    layers: list[UpwardLayer] = []
    for name, part in chain[start:]:
        if isinstance(part, nn.Linear):
            weight = part.weight.detach().double().numpy()
            layers.append(UpwardLayer(worker.name, f"{name}.", weight, part.bias is not None))
            if part.bias is not None:
                return layers
        elif isinstance(part, nn.ReLU):
            layers[-1] = UpwardLayer(worker.name, layers[-1].key, layers[-1].weight, False, active=True)
        elif not isinstance(part, nn.Identity | nn.Flatten):
            return f"a fully connected layer of '{worker.name}' has no bias, and {type(part).__name__} follows it"
    top = _top(uploads, worker)
    return (
        [*layers, top] if top is not None else f"no layer above the first of '{worker.name}' has a bias to start from"
    )


def _top(uploads: Uploads, worker: Worker) -> UpwardLayer | None:
    """The top network's first layer, as far as it gets this worker's outputs; of a sum it is one for each."""
    outputs = worker.plan.outputs
    if uploads.top is None:
        return None
    if uploads.top.network == "sum":
        return UpwardLayer(TOP, "", np.eye(outputs), bias=True)
    chain = [(name, part) for name, part in chain_of(uploads.module(TOP)) or [] if not isinstance(part, nn.Flatten)]
    if not chain or not isinstance(chain[0][1], nn.Linear) or chain[0][1].bias is None:
        return None
    place = [one.name for one in uploads.workers].index(worker.name)
    weight = chain[0][1].weight.detach().double().numpy()
    return UpwardLayer(TOP, f"{chain[0][0]}.", weight[:, place * outputs : (place + 1) * outputs], bias=True)


def gradients_above(uploads: Uploads, layers: list[UpwardLayer]) -> tuple[FloatArray, Separation]:
    """V at the first of the layers, and what tells the rows apart there."""
    bias = uploads.gradients(layers[-1].party, f"{layers[-1].key}bias")
    above = Separation.of(uploads, bias.rounds).rows(bias)
    for upper, lower in pairwise(reversed(layers)):
        above = above @ upper.weight
        if lower.active:
            above = np.where(_alive(uploads, lower), above, 0.0)
    own = uploads.gradients(layers[0].party, f"{layers[0].key}weight")
    return above, Separation.of(uploads, own.rounds)


def _alive(uploads: Uploads, layer: UpwardLayer) -> BoolArray:
    """Rows x units: whether the unit's weights have a gradient that is more than rounding."""
    sent = uploads.gradients(layer.party, f"{layer.key}weight")
    separation = Separation.of(uploads, sent.rounds)
    own = np.abs(separation.rows(sent).reshape(len(separation.determined), len(layer.weight), -1)).max(axis=2)
    rounding = np.finfo(sent.values.dtype).eps * np.abs(sent.values).max(initial=0.0)
    noise = NOISE * rounding * np.linalg.norm(separation.inverse, axis=1)
    return np.asarray(own > np.maximum(noise, UPLOAD_RANK_SHARE * own.max(initial=0.0))[:, None])
