"""What a training of `split_network` leaves besides its messages: the active party's own part, and other people's embeddings."""

from __future__ import annotations

from collections.abc import Mapping

from plumbob.bundle import Array
from plumbob.federation import Federation
from plumbob.lazy_imports import torch
from plumbob.protocols.base import ASKED, note
from plumbob.transcript import COORDINATOR, Transcript

LABEL, TOP, OWN_BOTTOM = "label", "top/", "own bottom/"  # notes of the active party


def seal_predicted(log: Transcript, tested: Federation, sent: Mapping[str, Array]) -> None:
    """Of the first of these rows, what whoever knows them in full got when they were predicted; of a sum the sender is ''."""
    log.seal(COORDINATOR, "predicted rows", tested.values[:ASKED])
    log.seal(COORDINATOR, "predicted labels", tested.label[:ASKED])
    for name, part in sent.items():
        log.seal(COORDINATOR, f"predicted answers/{name}", part[:ASKED])


def note_own_part(
    log: Transcript, federation: Federation, top: torch.nn.Module, bottoms: Mapping[str, torch.nn.Module]
) -> None:
    """What the active party has by itself: its label, the top model, and the bottom model of its columns."""
    active = federation.active
    note(log, active, LABEL, federation.label)
    own = bottoms.get(active)
    for part, module in ((TOP, top), *(((OWN_BOTTOM, own),) if own is not None else ())):
        for key, parameter in module.named_parameters():
            note(log, active, f"{part}{key}", parameter.detach().numpy())
