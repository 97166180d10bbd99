"""Sums over workers opened from the top (ours): what secure aggregation of the workers' gradients leaves.

The top network's gradients are not summed over workers. Its rows' own gradients e_n j_n' and e_n give the workers' outputs j_n
and the gradients v_nm at them, worker by worker. Below, the sum over workers of v_nm a_nm' is known for every fully connected
layer: least squares in a_nm, unique where the v_nm of a row are independent. The a_nm say which units are alive, hence the
v_nm one layer down, and so on to the first layer. Where the v_nm are all alike (a top that adds up) all workers get the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumbob.attacks.gradients._defended_gradients import changed
from plumbob.attacks.gradients._network_blocks import chain_of
from plumbob.attacks.gradients._row_gradients import DEAD, MOST_NUMBERS_OF_A_LAYER, Separation, row_inputs
from plumbob.attacks.gradients._worker_uploads import STILL, Gradients, Uploads
from plumbob.federation import BoolArray, FloatArray
from plumbob.known_defences import KnownSecureAggregation
from plumbob.lazy_imports import nn, torch
from plumbob.protocols.shared.networks import first_linear

Slope = Callable[[FloatArray, FloatArray], FloatArray]
UNOPENED = (
    "sums over workers are opened only where all gradients were kept and a linear top stands on chains of fully connected "
    "layers with ReLU, tanh or sigmoid"
)
ROUGH_SHARE_OF_SUMS = 0.01  # share of the rows' own sums that the rounding of fixed point may be
# Times its rounding that an input must be above zero to count as that of a unit that is alive
SURE_A_UNIT_IS_ALIVE = 4.0


@dataclass(frozen=True)
class OpenedLayers:
    """Per worker: what rows put into its first fully connected layer, and the gradients at that layer's outputs."""

    inputs: dict[str, FloatArray]
    above: dict[str, FloatArray]
    determined: BoolArray
    rounding: float  # of fixed point, as a share of the rows' own sums: how far off they may be


def opened(uploads: Uploads) -> OpenedLayers | None:
    """All workers' first layers; nothing where they are no chains, or too large to be kept."""

    top, names = uploads.top, [worker.name for worker in uploads.workers]
    if top is None or top.network not in ("linear", "sum"):
        return None
    modules = {name: uploads.module(name) for name in names}
    dtype = next(p.dtype for module in modules.values() for p in module.parameters())
    chains = [_chain(modules[w.name], torch.zeros(1, *w.plan.shape, dtype=dtype)) for w in uploads.workers]
    if any(chain is None for chain in chains) or any(
        p.size * len(uploads.view.own) > MOST_NUMBERS_OF_A_LAYER for p in _weights(uploads)
    ):
        return None
    chain = chains[0] or []
    if top.network == "sum" and (len(chain) > 1 or chain[-1][1] is not None):
        return None  # what each worker puts out is not known, so neither are its units' slopes
    key = next(k for k, p in uploads.parameters(top.party, 0).items() if p.ndim == 1)
    bias = uploads.gradients(top.party, key)
    separation = Separation.of(uploads, bias.rounds)
    errors = separation.rows(bias)  # e_n: softmax - label
    shape = (len(errors), len(names), uploads.workers[0].plan.outputs)
    module = uploads.module(top.party)
    # The top is linear, so its gradients are the same wherever they are taken.
    pulled = torch.func.vjp(module, torch.zeros(shape, dtype=dtype))[1](torch.from_numpy(errors).to(dtype))
    above = pulled[0].numpy().astype(np.float64)
    alive = None
    if top.network == "linear":
        weights = separation.rows(uploads.gradients(top.party, key.replace("bias", "weight")))
        alive = row_inputs(weights, errors, separation.determined).values.reshape(shape)
    inputs, off, rounding = above, np.zeros(shape[:2]), 0.0
    step = np.sqrt(len(names) / 12) * 2.0 ** -uploads.view.defence[KnownSecureAggregation].bits
    noise = step * np.linalg.norm(separation.inverse, axis=1)  # of a row's own sums
    for key, slope in reversed(chain):
        if slope is not None and alive is not None:
            floor = np.maximum(DEAD * np.abs(alive).max(initial=0.0), SURE_A_UNIT_IS_ALIVE * off[:, :, None])
            above = above * slope(alive, floor)
        arrived = _summed(uploads, names, f"{key}.weight")
        if len(arrived.rounds) < len(separation.rounds):
            return None
        sums = separation.rows(arrived)
        inverse = np.linalg.pinv(above.transpose(0, 2, 1), rcond=1e-6)
        inputs = inverse @ sums.reshape(len(sums), above.shape[2], -1)
        off = noise[:, None] * np.linalg.norm(inverse, axis=2)
        rounding = max(rounding, float(noise.mean() / (np.sqrt(np.mean(sums**2)) or 1.0)))
        last, alive = above, inputs
        own = np.stack([uploads.parameters(name, 0)[f"{key}.weight"] for name in names]).astype(np.float64)
        above = np.einsum("nmk,mkd->nmd", above, own)
    places = dict(enumerate(names))
    return OpenedLayers(
        {name: inputs[:, i] for i, name in places.items()},
        {name: last[:, i] for i, name in places.items()},
        separation.determined,
        rounding,
    )


def limit(uploads: Uploads, sums: OpenedLayers) -> str:
    """What is not handled of sums that were opened; empty where they mean what they are taken for."""
    if changed(uploads.view.defence):
        return "sums over workers are opened as they are, not as what a second defence has changed"
    if uploads.moved > STILL:
        return "sums over workers are not followed while parameters move"
    if sums.rounding > ROUGH_SHARE_OF_SUMS:
        return "fixed point rounds the sums over workers by more than is weighed"
    return ""


def _weights(uploads: Uploads) -> list[FloatArray]:
    return [p for p in uploads.parameters(uploads.workers[0].name, 0).values() if p.ndim == 2]


def _slopes() -> dict[type, Slope]:
    """Activations whose slope their own value tells; `floor` is what a value must exceed not to be zero."""

    return {
        nn.ReLU: lambda value, floor: (value > floor).astype(np.float64),
        nn.Tanh: lambda value, floor: 1 - np.clip(value, -1.0, 1.0) ** 2,
        nn.Sigmoid: lambda value, floor: np.clip(value, 0.0, 1.0) * (1 - np.clip(value, 0.0, 1.0)),
    }


def _chain(module: torch.nn.Module, zeros: torch.Tensor) -> list[tuple[str, Slope | None]] | None:
    """Fully connected layers from the first on, each with the slope of what follows; nothing if another thing does."""

    first, _ = first_linear(module, zeros)
    parts = chain_of(module)
    if parts is None:
        return None
    start = next(i for i, (name, _) in enumerate(parts) if name == first)
    chain: list[tuple[str, Slope | None]] = []
    slopes = _slopes()
    for name, part in parts[start:]:
        if isinstance(part, nn.Linear) and part.bias is not None:
            chain.append((name, None))
        elif type(part) in slopes and chain[-1][1] is None:
            chain[-1] = (chain[-1][0], slopes[type(part)])
        else:
            return None
    return chain


def _summed(uploads: Uploads, names: list[str], key: str) -> Gradients:
    """The sum of the workers' gradients of one parameter, with the masks gone."""
    parts = [uploads.gradients(name, key) for name in names]
    bits = uploads.view.defence[KnownSecureAggregation].bits
    total = np.sum([part.values.astype(np.int64) for part in parts], axis=0)
    return Gradients(parts[0].rounds, np.ldexp(total.astype(np.float64), -bits), parts[0].cells)
