"""weng2022, Section 6: what its authors propose against their attacks, and what we put beside it (claim W11)."""

from __future__ import annotations

from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import every
from plumbob.papers.weng2022.multiplication import mitigations
from plumbob.papers.weng2022.sums import mitigations_sums


def defences(scale: Scale, seed: int) -> CheckResult:
    """Both halves: of products and of sums."""
    halves = {"products": mitigations(scale, seed), "sums": mitigations_sums(scale, seed)}
    return CheckResult(
        every(check.holds for check in halves.values()),
        {f"{half}: {name}": value for half, check in halves.items() for name, value in check.measured.items()},
        "; ".join(check.expected for check in halves.values()),
        min(check.trials for check in halves.values()),
        "; ".join(check.why for check in halves.values() if check.why),
        tuple(figure for check in halves.values() for figure in check.figures),
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "weng2022",
        "W11",
        "Sec 6",
        "large batches and small rates mitigate reverse multiplication; neither shared indicators nor noise stop reverse sum",
        defences,
    ),
)
