"""A deeper cut (ye2022, Section VII): passive parties keep more than one layer, with ReLU between them.

    z = W_2 relu(W_1 x) in place of z = W x
The outputs are no longer linear in the columns.
"""

from __future__ import annotations

import copy

from plumbob.defences.embeddings._embedding_guards import EmbeddingDefence
from plumbob.errors import whole
from plumbob.protocols.base import Protocol
from plumbob.protocols.embeddings.split_network import AUTO, SplitNetwork
from plumbob.protocols.shared.guards import EmbeddingGuard, EmbeddingOutline
from plumbob.setting_sources import ours


class DeeperCut(EmbeddingDefence):
    """So many `layers` below the cut."""

    name = "deeper_cut"
    identity = "DeeperCut(layers)"
    summary = "passive parties keep more layers of the network, so that embeddings are not linear in their columns"
    paper = "ye2022"
    sources = {
        "layers": ours("the least that is deeper; Section VII names no number"),
    }

    def __init__(self, *, layers: int = 2) -> None:
        self.layers = whole("deeper_cut: layers", layers, 2, 4)

    def protect(self, protocol: Protocol) -> Protocol:
        # A bottom model of one's own has the layers it has, and a cut that is as deep already stays.
        if not isinstance(protocol, SplitNetwork) or protocol.bottom != AUTO or protocol.cut >= self.layers:
            return protocol
        deeper = copy.copy(protocol.guarded(self))
        deeper.cut = self.layers
        return deeper

    def begin(self, outline: EmbeddingOutline) -> EmbeddingGuard[DeeperCut]:
        return EmbeddingGuard(self)  # the protocol itself was changed: no message is
