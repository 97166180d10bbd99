"""The rows of the nodes of trees, as a passive party of SecureBoost is told them (the instance space).

It is told the rows of a node that it is to sum, of two children the smaller one, and those of a node that it splits, whose sides
it answers itself. A node's other child is what is left of it. Which node a set lies in, is the smallest known set around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.threats import Threat, View

NO_NODES = "no message says which rows a node of a tree holds"


@dataclass(frozen=True)
class SeenTree:
    """One tree: `nodes` (nodes x rows) by size, largest first, and the smallest known set of every row, -1 for rows left out."""

    nodes: BoolArray
    leaves: IntArray


def seen_trees(view: View) -> list[SeenTree]:
    """All trees of the training, in order; none where no message says which rows a node holds."""
    count = len(view.own)
    found: dict[int, dict[bytes, BoolArray]] = {}
    asked = np.zeros(0, dtype=np.int64)
    party = next((m.receiver for m in view.messages if m.name == "rows of a node" and m.receiver in view.curious), "")
    for message in view.messages:
        rows = np.asarray(message.payload)
        if message.name == "rows of a node" and message.receiver == party:
            _add(found.setdefault(message.round, {}), _set_of(rows, count))
        elif message.name == "rows to split" and message.receiver in view.curious:
            asked = rows.astype(np.int64)
        elif message.name == "left" and message.sender in view.curious and len(asked):
            left = np.unpackbits(rows, count=len(asked)).astype(np.bool_)
            _add(found.setdefault(message.round, {}), _set_of(asked[left], count))
            _add(found[message.round], _set_of(asked[~left], count))
    return [_tree(list(sets.values())) for _, sets in sorted(found.items())]


def _set_of(rows: IntArray, count: int) -> BoolArray:
    here = np.zeros(count, dtype=np.bool_)
    here[rows.astype(np.int64)] = True
    return here


def _add(sets: dict[bytes, BoolArray], here: BoolArray) -> None:
    """A set and its sibling: what is left of the smallest known set around it."""
    around = [one for one in sets.values() if (one | ~here).all() and one.sum() > here.sum()]
    sets.setdefault(here.tobytes(), here)
    if around:
        rest = min(around, key=np.sum) & ~here
        sets.setdefault(rest.tobytes(), rest)


def _tree(sets: list[BoolArray]) -> SeenTree:
    nodes = np.array(sorted((one for one in sets if one.any()), key=lambda one: -int(one.sum())))
    leaves = np.full(nodes.shape[1], -1, dtype=np.int64)
    for place, node in enumerate(nodes):  # smaller ones later
        leaves[node] = place
    return SeenTree(nodes, leaves)


def memberships(trees: list[SeenTree]) -> FloatArray:
    """Rows x nodes of all trees, without those that hold all rows."""
    table = np.vstack([tree.nodes for tree in trees]).T.astype(np.float64)
    return np.asarray(table[:, table.mean(axis=0) < 1])


def holds_no_label(threat: Threat) -> str | None:
    """Why a threat is none of a passive party that is told nodes; None where it is."""
    if threat.active or threat.corrupted:
        return "needs a passive party alone: the active party has the label, and a coordinator is told no nodes"
    return None
