"""An earlier cut (liu2026): passive parties keep fewer layers, and the active party has those above.

    z = W x in place of z = W_2 relu(W_1 x),   top(z) with a layer more
Labels and columns want opposite cuts. The more layers lie between the label and the cut, the less a bottom model has learnt of
the label; a deeper cut hides the columns instead. Gradients of rows tell the label at every cut.
"""

from __future__ import annotations

import copy

from plumbob.defences.labels._label_guards import LabelDefence
from plumbob.errors import whole
from plumbob.protocols.base import Protocol
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.shared.guards import EmbeddingOutline, LabelGuard
from plumbob.setting_sources import ours


class EarlierCut(LabelDefence):
    """So many `layers` are left below the cut."""

    name = "earlier_cut"
    identity = "EarlierCut(layers)"
    summary = "passive parties keep fewer layers of the network, so that more of them lie between the label and the cut"
    paper = "liu2026"
    sources = {
        "layers": ours("the earliest cut there is"),
    }

    def __init__(self, *, layers: int = 1) -> None:
        self.layers = whole("earlier_cut: layers", layers, 1, 3)

    def protect(self, protocol: Protocol) -> Protocol:
        # A bottom model of one's own has the layers it has, and a cut that is as early already stays.
        if not isinstance(protocol, SplitNetwork) or protocol.networks or protocol.cut <= self.layers:
            return protocol
        earlier = copy.copy(protocol.guarded(self))
        earlier.hidden = (protocol.width,) * (protocol.cut - self.layers) + protocol.hidden
        earlier.cut = self.layers
        return earlier

    def begin(self, outline: EmbeddingOutline) -> LabelGuard[EarlierCut]:
        return LabelGuard(self)  # the protocol itself was changed: no message is
