"""Does an active party of SecureBoost hide something in its gradients? What an auditor can prove.

An auditor who is shown the label and the opened sums knows every gradient: it follows from the label and the trees so far.
So each sum has one right value, to the last bit, and a code shows as a difference. Nobody else can do that: a passive party
sees ciphertexts only, which hide a code as well as they hide the label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumbob.crypto import plain
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.known_defences import KnownDefences
from plumbob.protocols.shared import histogram_boosting as boosting
from plumbob.protocols.shared.gradient_plaintexts import Layout
from plumbob.protocols.shared.histogram_boosting import BoostingLoss
from plumbob.transcript import COORDINATOR, Transcript


@dataclass(frozen=True)
class TreeAudit:
    """One tree: opened sums that honest gradients do not explain, of how many, and the bits in which they differ."""

    tree: int
    unexplained: int
    sums: int
    bits: int

    @property
    def honest(self) -> bool:
        return self.unexplained == 0


def audit_gradients(transcript: Transcript, loss: BoostingLoss = "logistic") -> list[TreeAudit]:
    """Every tree's sums at the root against those of the gradients that label and model give.

    For boosted trees on all rows, without blinding or noise: those change the sums on purpose.
    """
    own, model = transcript.sealed(transcript.active), transcript.sealed(COORDINATOR)
    if KnownDefences.within(model):
        raise BadInput("gradients cannot be audited where a defence has changed the sums; audit a run without it")
    layout = Layout.from_array(own["notes/layout"])
    label, start = own["label"].astype(np.float64), float(model["model/start"][0])
    scores, found = np.full(len(label), start), []
    for tree, weight in enumerate(model["model/weight"]):
        leaves = own[f"notes/leaves/{tree}"]
        if (leaves < 0).any():
            raise BadInput(
                "gradients of trees grown on samples of rows cannot be audited: the other rows' leaves are unknown"
            )
        g, h = (boosting.whole_numbers(part, layout.precision) for part in boosting.gradients(loss, label, scores))
        differences = [
            opened - honest
            for party, counts in _bin_counts(transcript).items()
            for opened, honest in zip(
                plain.integers(own[f"notes/sums/{tree}/{party}"]),
                _honest_sums(layout.plaintexts(g, h, []), transcript.sealed(party)["bins"], counts),
                strict=False,  # the root's sums come first, those of other nodes after them
            )
        ]
        wrong = [abs(difference).bit_length() for difference in differences if difference]
        found.append(TreeAudit(tree, len(wrong), len(differences), max(wrong, default=0)))
        scores = scores + weight[leaves]
    return found


def _bin_counts(transcript: Transcript) -> dict[str, list[int]]:
    return {m.sender: m.payload.tolist() for m in transcript.messages if m.name == "bin counts"}


def _honest_sums(channels: list[list[int]], bins: IntArray, counts: list[int]) -> list[int]:
    return [
        number
        for channel in channels
        for j, count in enumerate(counts)
        for number in plain.Plaintexts(channel).bin_sums(bins[:, j], count).values
    ]
