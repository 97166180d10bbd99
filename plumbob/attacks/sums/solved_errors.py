"""Solved errors (ours): the active party solves its own gradient for the error of each row, and so for what others add to it.

The coordinator opens g = X_A' d for the active party, d = (z_A + z_B) / 4 - y / 2 by row. A batch of no more rows than own
columns and bias leaves d one answer, and since z_A and y are its own,
    z_B = 4 d + 2 y - z_A = x_B w_B    for every row in every epoch: the hidden columns, projected on one direction an epoch.
Of one hidden column that is its order within every batch, and over all rows once the weights have settled.
Larger batches tell A' X_B w_B only: how hidden columns go with own ones over the batch, and nothing of a single row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.attacks._common.shares import first_direction, guess_of
from plumbob.attacks.base import Attack, Guess, nothing
from plumbob.attacks.sums._product_equations import _gradients, _models, _settings, _weights
from plumbob.federation import FloatArray, IntArray
from plumbob.protocols.shared.taylor_regression import targets
from plumbob.threats import Threat, View
from plumbob.transcript import COORDINATOR

RANK = 1e-9  # singular values below this share of the largest are 0
LAST = 3  # epochs whose shares are read: weights hardly move any more


class SolvedErrors(Attack):
    """The hidden columns' share of each row, from batches that own columns determine."""

    name = "solved_errors"
    summary = "ours: the active party solves its decrypted gradients of small batches for the other parties' share of each row"
    paper = "plumbob"
    protocols = ("encrypted_logistic_regression",)
    cost_terms = ("1", "n d", "n u")
    workload = "matrices"

    def why_not(self, protocol: str, threat: Threat, sent: str | None = None) -> str | None:
        """With the coordinator every residual is open, and other attacks read them."""
        if protocol in self.protocols and threat.corrupted:
            return "needs the active party without the coordinator; with it others learn more"
        return super().why_not(protocol, threat, sent)

    def run(self, view: View, rng: np.random.Generator) -> Guess:
        rounds, largest = solved_rounds(view)
        if not any(one is not None for one in rounds):
            known = f"own columns and the bias ({len(view.known) + 1})"
            return nothing(
                view, f"batches of {largest} rows are more than {known}, so gradients are sums over rows only"
            )
        shares = last_shares([one for one in rounds if one is not None], len(view.own))
        told = np.flatnonzero(np.isfinite(shares).all(axis=1))
        return guess_of(view, first_direction(shares[told]), told, f"{len(told):,} rows solved")


@dataclass(frozen=True)
class Round:
    """One round whose rows were solved: the hidden shares, rows x models."""

    rows: IntArray
    shares: FloatArray


def solved_rounds(view: View) -> tuple[list[Round | None], int]:
    """All rounds, None where a batch is not determined; and the largest batch."""
    owners = [m.receiver for m in view.messages if m.sender == COORDINATOR and m.name == "settings"]
    owners = [name for name in dict.fromkeys(owners) if name in view.curious]
    rule, turns, _ = _settings(view)
    models, largest = _models(view), max((len(rows) for rows in turns), default=0)
    gradients = _gradients(view, owners, models)
    if not gradients or "label" not in view.notes:
        return [], largest
    weights, bias = _weights(view, rule, owners, models, turns)
    signs, active = targets(view.notes["label"], len(view.classes)), _bias_place(view, owners)
    found: list[Round | None] = []
    for turn, gradient in enumerate(gradients):
        rows = turns[turn % len(turns)]
        design = np.hstack([view.own[rows], np.ones((len(rows), 1))])
        values = np.linalg.svd(design, compute_uv=False)
        if design.shape[1] < len(rows) or values[-1] <= RANK * values[0]:
            found.append(None)
            continue
        ordered = np.hstack([np.delete(gradient, active, axis=1), gradient[:, active : active + 1]])
        errors = np.linalg.lstsq(design.T, rule.decode(ordered, 3).T / 4, rcond=None)[0]
        own = view.own[rows] @ rule.decode(weights[turn]).T + rule.decode(bias[turn])
        found.append(Round(rows, 4 * errors + 2 * signs[:, rows].T - own))
    return found, largest


def last_shares(rounds: Sequence[Round], count: int) -> FloatArray:
    """The shares of every row in its last rounds, NaN for rows that were in fewer than others."""
    seen: list[list[FloatArray]] = [[] for _ in range(count)]
    for one in rounds:
        for row, share in zip(one.rows.tolist(), one.shares, strict=True):
            seen[row].append(share)
    width = min(LAST, max(len(one) for one in seen)) * rounds[0].shares.shape[1]
    found = np.full((count, width), np.nan)
    for row, shares in enumerate(seen):
        flat = np.concatenate(shares[-LAST:]) if shares else np.zeros(0)
        if len(flat) == width:
            found[row] = flat
    return found


def _bias_place(view: View, owners: list[str]) -> int:
    """Where the bias stands among the gradients of the curious: after the active party's own columns."""
    place = 0
    for name in owners:
        sent = next(m for m in view.messages if m.receiver == name and m.name == "gradients")
        place += len(sent.payload) // _models(view)
        if name == view.active:
            break
    return place - 1
