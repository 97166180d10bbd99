"""ID-LMID (takahashi2023): a passive party is shown only nodes whose rows say little of the label.

    max( KL(classes in the node | all classes), KL(classes outside it | all classes) ) <= bound (nats)
Splits of passive parties that would break it are not taken, and what the active party splits beyond it, it grows on alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumbob.defences.sums._histogram_settings import HistogramDefence
from plumbob.errors import positive
from plumbob.known_defences import KnownDefences, KnownIdLmid
from plumbob.setting_sources import ours


class IdLmid(HistogramDefence):
    """Nodes above the `bound` of information about the label are the active party's alone."""

    name = "id_lmid"
    identity = "IdLmid(bound)"
    summary = "SecureBoost shows passive parties only nodes whose classes are distributed nearly as all rows' are"
    paper = "takahashi2023"
    sources = {"bound": ours("the paper tries several")}
    sweep_settings = ({"bound": 0.3}, {"bound": 0.05})

    def __init__(self, *, bound: float = 0.05) -> None:
        self.bound = positive("id_lmid: bound", bound)

    def changed(self) -> Mapping[str, Any]:
        return {"information_bound": self.bound}

    def known(self) -> KnownDefences:
        return KnownDefences.of(KnownIdLmid(self.bound))
