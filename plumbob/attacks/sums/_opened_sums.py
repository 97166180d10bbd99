"""What the active party of SecureBoost holds at the end: for sets of rows it knows, the opened sums in every bin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plumbob.crypto import plain
from plumbob.federation import IntArray
from plumbob.protocols.shared.gradient_plaintexts import Layout
from plumbob.threats import View


@dataclass(frozen=True)
class SummedColumn:
    """An unknown column's place among the sums of its party."""

    party: str
    start: int
    bins: int


@dataclass(frozen=True)
class NodeSums:
    """Of the rows of one node of one tree that no summed child holds: per party, channel and bin what stands below the
    gradients."""

    rows: NDArray[np.bool_]
    hidden: dict[str, list[list[int]]]


def columns_of(view: View) -> list[SummedColumn]:
    """The unknown columns in the order of the view."""
    found = []
    for message in view.messages:
        if message.name == "bin counts" and message.sender not in view.curious:
            ends = np.cumsum(message.payload)
            found += [
                SummedColumn(message.sender, int(end - bins), int(bins))
                for end, bins in zip(ends, message.payload, strict=True)
            ]
    return found


def trees_with(view: View, code: str) -> list[int]:
    """The trees whose gradients carried a code of that kind."""
    found = [name.split("/")[1] for name in view.notes if name.startswith("code/") and name.endswith(f"/{code}")]
    return sorted(int(tree) for tree in found)


def sums_of(view: View, tree: int, *, nodes: bool) -> Iterator[NodeSums]:
    """The sums of all rows at the root, or with `nodes` those of the smallest sets of rows that the tree's nodes tell apart."""
    layout = Layout.from_array(view.notes["layout"])
    leaves, order = view.notes[f"leaves/{tree}"], view.notes[f"nodes/{tree}"].tolist()
    opened = {
        name.split("/", 2)[2]: _by_node(view.notes[name], len(order), layout.channels)
        for name in view.notes
        if name.startswith(f"sums/{tree}/")
    }
    opened = {party: sums for party, sums in opened.items() if party not in view.curious}
    nodes = nodes and bool((leaves > 0).any())  # whose leaves are hidden, its nodes' rows are
    holds = {node: under(leaves, node) for node in order}
    for place, node in enumerate(order if nodes else order[:1]):
        children = [order.index(child) for child in (2 * node + 1, 2 * node + 2) if nodes and child in holds]
        rows = holds[node].copy()
        for child in children:
            rows &= ~holds[order[child]]
        if rows.any():
            rest = {
                p: s[place] - sum((s[child] for child in children), np.zeros_like(s[place])) for p, s in opened.items()
            }
            hidden = {p: [[layout.hidden(int(s)) for s in channel] for channel in sums] for p, sums in rest.items()}
            yield NodeSums(rows, hidden)


def slots_of(view: View, tree: int) -> dict[str, tuple[list[int], list[int]]]:
    """By party: the sums at a tree's root in the two slots of a plaintext, where the gradients' sums are if they were sent."""
    layout, nodes = Layout.from_array(view.notes["layout"]), len(view.notes[f"nodes/{tree}"])
    opened = {name.split("/", 2)[2]: view.notes[name] for name in view.notes if name.startswith(f"sums/{tree}/")}
    return {
        party: layout.sums(_by_node(note, nodes, layout.channels)[0].tolist())
        for party, note in opened.items()
        if party not in view.curious
    }


def _by_node(note: NDArray[np.uint8], nodes: int, channels: int) -> NDArray[np.object_]:
    return np.array(plain.integers(note), dtype=object).reshape(nodes, channels, -1)


def under(leaves: IntArray, node: int) -> NDArray[np.bool_]:
    """Rows whose leaf lies below a node."""
    places, found = np.array(leaves), np.zeros(len(leaves), dtype=bool)
    while (places >= node).any():
        found |= places == node
        places = np.where(places > node, (places - 1) // 2, -1)
    return found
