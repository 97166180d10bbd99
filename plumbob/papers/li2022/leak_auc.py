"""The leak AUC of both attacks on unprotected gradients: both recover labels accurately (abstract, Section 3).

Criteo, Avazu and ISIC, which the paper uses, are not among the data here; bank and credit are tables of the same kind: two
classes, of which one is rare. The protection of the paper (Marvell, max norm) is a matter of defences.
"""

from __future__ import annotations

import numpy as np

from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.papers.ours.labels_at_the_cut import KNOWN, auc, network, sample, scored
from plumbob.threats import cut

TABLES = {"smoke": ("breast",), "paper": ("bank", "credit")}
ROWS, TRIALS = {"smoke": 400, "paper": 20_000}, {"smoke": 1, "paper": 3}
ACCURATE = 0.9


def leak(name: str, scale: Scale, seed: int) -> CheckResult:
    """The AUC of one attack's scores on each table."""
    measured: dict[str, list[float]] = {}
    for table in TABLES[scale]:
        for trial in range(TRIALS[scale]):
            rng = np.random.default_rng([seed, trial])
            log = network(sample(table, ROWS[scale], rng), 1, rng)
            view = cut(log, KNOWN)
            order = scored(name, view)
            if order is not None:
                measured.setdefault(f"{table}, AUC", []).append(round(auc(order, log.sealed("active")["label"]), 4))
    expected = f"labels are recovered accurately: an AUC of at least {ACCURATE}, where the rarer class is 11 to 22 % of the rows"
    why = "Criteo, Avazu and ISIC are not among the data here"
    return CheckResult(
        every(float(np.mean(a)) >= ACCURATE for a in measured.values()), measured, expected, TRIALS[scale], why
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "li2022",
        "A1",
        "3",
        "gradient norms tell the rarer class",
        lambda scale, seed: leak("norm_scoring", scale, seed),
    ),
    Claim(
        "li2022",
        "A2",
        "3",
        "gradient directions tell the classes",
        lambda scale, seed: leak("direction_scoring", scale, seed),
    ),
)
