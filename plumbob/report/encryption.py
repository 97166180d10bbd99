"""Is encryption on, with what key, and does it help? One answer for every protocol of an audit that encrypts or could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.running.finding import Finding
from plumbob.crypto.paillier import RECOMMENDED_KEY
from plumbob.protocols import PROTOCOLS
from plumbob.protocols.base import IN_THE_CLEAR, MASKED, SAID_MASKED
from plumbob.report.answer import Answer
from plumbob.report.phrases import count, label, sentence_list
from plumbob.report.protection import size
from plumbob.threats import THREATS

UNENCRYPTED = ("none", IN_THE_CLEAR, MASKED, SAID_MASKED)


@dataclass(frozen=True)
class Encryption:
    """What was found about the ciphertexts of one protocol."""

    protocol: str
    cipher: str  # as the protocol says it; `none` without any
    helps: str
    weak: bool
    bytes_by_party: dict[str, int]  # mean over trials
    seconds: float
    phase: str = "training"

    @property
    def headline(self) -> str:
        on = f"encryption is on ({self.cipher})"
        if self.cipher in UNENCRYPTED:
            on = "encryption is off" if self.cipher == "none" else f"messages cross {self.cipher}"
        short = f" A key below {RECOMMENDED_KEY:,} bits is too short today." if self.weak else ""
        return f"{label(self.protocol)[:1].upper()}{label(self.protocol)[1:]}: {on}. {self.helps}{short}"

    @property
    def sent(self) -> str:
        """Who sent how much, in words."""
        parts = [f"{party} {size(total)}" for party, total in self.bytes_by_party.items()]
        time = f", in {self.seconds:.1f} s" if self.seconds else ""  # of a recorded run it is not known
        return f"Sent in {self.phase}: {sentence_list(parts)}{time}."


def encryption(findings: Sequence[Finding], found: Sequence[Answer]) -> list[Encryption]:
    """One answer per protocol, in the order of the findings."""
    answers = []
    for protocol, parts in group([f for f in attacked(findings) if f.encryption], lambda f: f.protocol).items():
        cipher = parts[0].encryption
        scenes = [answer for answer in found if answer.situation.protocol == protocol]
        weak = 0 < parts[0].key_bits < RECOMMENDED_KEY
        names = list(dict.fromkeys(name for finding in parts for name in finding.bytes_by_party))
        sent = {name: round(float(np.mean([f.bytes_by_party.get(name, 0) for f in parts]))) for name in names}
        kind = PROTOCOLS.get(protocol.partition(" ")[0])
        phase = "training" if kind is None else kind.phase
        spent = [f.train_seconds if phase == "training" else f.predict_seconds for f in parts]
        answers.append(Encryption(protocol, cipher, _helps(cipher, scenes), weak, sent, float(np.mean(spent)), phase))
    return answers


def _power(answer: Answer) -> int:
    """How much a threat has: of those that learn as much, the one with the least is named."""
    threat = THREATS.get(answer.situation.threat)
    return (
        0 if threat is None else 10 * threat.corrupted + 5 * (threat.colluding_all_but is not None) + len(threat.grants)
    )


def _helps(cipher: str, scenes: Sequence[Answer]) -> str:
    """Whether what was learnt was learnt in spite of it."""
    worst = max(scenes, key=lambda answer: (answer.level.rank, answer.leaking, -_power(answer)), default=None)
    if worst is None or not worst.leaking:
        return f"{worst.headline}." if worst is not None else "Nothing was tested."
    learnt = f"of {count(len(worst.columns), worst.noun)}, {worst.breakdown}"
    who = worst.learner
    return f"It does not help against {who}: {learnt}" if cipher not in UNENCRYPTED else f"What {who} learns: {learnt}"
