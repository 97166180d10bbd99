"""Does an active party of SecureBoost hide something in its gradients? What an auditor can prove, and what a party can test.

An auditor who is shown the label and the opened sums knows every gradient: it follows from the label and the trees so far.
So each sum has one right value, to the last bit, and a code shows as a difference. Nobody else can do that: a passive party
sees ciphertexts only, which hide a code as well as they hide the label. One thing it can test alone. Before the first tree
all scores are equal, so all second gradients are too: [[h_i - h_0]] are encryptions of 0, any weighted sum of them is, and
the key holder can open that sum in a way that can be checked, without telling anything about a label.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from plumbob.crypto import paillier, plain
from plumbob.errors import BadInput
from plumbob.federation import IntArray
from plumbob.protocols.sums import _histogram_boosting as boosting
from plumbob.protocols.sums._gradient_plaintexts import Layout
from plumbob.protocols.sums._histogram_boosting import BoostingLoss
from plumbob.transcript import COORDINATOR, Transcript

_WEIGHT_BITS = 64


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
    if any(name.startswith("defence/") for name in model):
        raise BadInput("gradients cannot be audited by sums that a defence has changed; audit a run without it")
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


def equal_second_gradients(gradients: plain.Batch, key: plain.KeyPair) -> bool:
    """What a passive party may ask before the first tree, when [[h]] came in ciphertexts of their own: is every h the same?

    It sends one ciphertext, the sum of [[h_i - h_0]] with random weights; the key holder answers with the number inside and
    the mask. An honest answer is 0, which tells nothing; a code in any h escapes with a chance of 2^-64.
    """
    if not isinstance(gradients, paillier.Ciphertexts) or not isinstance(key, paillier.PrivateKey):
        return len(set(gradients.values)) == 1  # without encryption all is in the open
    weights = [secrets.randbits(_WEIGHT_BITS) for _ in range(len(gradients))]
    challenge = ((gradients * weights).sum() - gradients[0] * sum(weights)).rerandomised()
    answer = key.decrypt(challenge)
    return answer == [0] and key.public.opens(challenge, answer, key.masks(challenge))


def _bin_counts(transcript: Transcript) -> dict[str, list[int]]:
    return {m.sender: m.payload.tolist() for m in transcript.messages if m.name == "bin counts"}


def _honest_sums(channels: list[list[int]], bins: IntArray, counts: list[int]) -> list[int]:
    return [
        number
        for channel in channels
        for j, count in enumerate(counts)
        for number in plain.Plaintexts(channel).bin_sums(bins[:, j], count).values
    ]
