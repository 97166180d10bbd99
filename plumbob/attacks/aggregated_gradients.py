"""Sums over workers opened from the top (ours): what secure aggregation of the workers' gradients leaves.

The top network's gradients are not summed over workers. Its rows' own gradients e_n j_n' and e_n give the workers' outputs j_n
and the gradients v_nm at them, worker by worker. Below, the sum over workers of v_nm a_nm' is known for every fully connected
layer: least squares in a_nm, unique where the v_nm of a row are independent. The a_nm say which units are alive, hence the
v_nm one layer down, and so on to the first layer. Where the v_nm are all alike (a top that adds up) all workers get the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumbob.attacks.blocks import chain_of
from plumbob.attacks.per_row import DEAD, ROOM, Bools, Separation, row_inputs
from plumbob.attacks.uploads import Gradients, Uploads
from plumbob.federation import FloatArray
from plumbob.protocols.networks import first_linear

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Opened:
    """Per worker: what rows put into its first fully connected layer, and the gradients at that layer's outputs."""

    inputs: dict[str, FloatArray]
    above: dict[str, FloatArray]
    determined: Bools


def opened(uploads: Uploads) -> Opened | None:
    """All workers' first layers; nothing where they are no chains with ReLU, or too large to be kept."""
    import torch

    top, names = uploads.top, [worker.name for worker in uploads.workers]
    if top is None or top.network not in ("linear", "sum"):
        return None
    modules = {name: uploads.module(name) for name in names}
    dtype = next(p.dtype for module in modules.values() for p in module.parameters())
    chains = [_chain(modules[w.name], torch.zeros(1, *w.plan.shape, dtype=dtype)) for w in uploads.workers]
    if any(chain is None for chain in chains) or any(p.size * len(uploads.view.own) > ROOM for p in _weights(uploads)):
        return None
    chain = chains[0] or []
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
    inputs = above
    for key, active in reversed(chain):
        if active and alive is not None:
            above = np.where(alive > DEAD * np.abs(alive).max(initial=0.0), above, 0.0)
        arrived = _summed(uploads, names, f"{key}.weight")
        if len(arrived.rounds) < len(separation.rounds):
            return None
        sums = separation.rows(arrived)
        inputs = np.linalg.pinv(above.transpose(0, 2, 1), rcond=1e-6) @ sums.reshape(len(sums), above.shape[2], -1)
        last, alive = above, inputs
        own = np.stack([uploads.parameters(name, 0)[f"{key}.weight"] for name in names]).astype(np.float64)
        above = np.einsum("nmk,mkd->nmd", above, own)
    places = dict(enumerate(names))
    return Opened(
        {name: inputs[:, i] for i, name in places.items()},
        {name: last[:, i] for i, name in places.items()},
        separation.determined,
    )


def _weights(uploads: Uploads) -> list[FloatArray]:
    return [p for p in uploads.parameters(uploads.workers[0].name, 0).values() if p.ndim == 2]


def _chain(module: torch.nn.Module, zeros: torch.Tensor) -> list[tuple[str, bool]] | None:
    """Fully connected layers from the first on, each with whether ReLU follows; nothing if anything else does."""
    from torch import nn

    first, _ = first_linear(module, zeros)
    parts = chain_of(module)
    if parts is None:
        return None
    start = next(i for i, (name, _) in enumerate(parts) if name == first)
    chain: list[tuple[str, bool]] = []
    for name, part in parts[start:]:
        if isinstance(part, nn.Linear) and part.bias is not None:
            chain.append((name, False))
        elif isinstance(part, nn.ReLU) and not chain[-1][1]:
            chain[-1] = (chain[-1][0], True)
        else:
            return None
    return chain


def _summed(uploads: Uploads, names: list[str], key: str) -> Gradients:
    """The sum of the workers' gradients of one parameter, with the masks gone."""
    parts = [uploads.gradients(name, key) for name in names]
    bits = int(uploads.view.defence["secure_aggregation/bits"])
    total = np.sum([part.values.astype(np.int64) for part in parts], axis=0)
    return Gradients(parts[0].rounds, np.ldexp(total.astype(np.float64), -bits), parts[0].cells)
