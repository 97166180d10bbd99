"""The papers: the experiments and claims of each, as declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from plumbob.auditing.concluding.summarise import group
from plumbob.errors import BadInput, suggest
from plumbob.papers import fu2022, jiang2022, jin2021, li2022, luo2021, ours, takahashi2023, weng2022, ye2022
from plumbob.papers.claims import Claim, Outcome, Scale, outcome
from plumbob.registry import Registry

__all__ = ["CLAIMS", "Claim", "Outcome", "outcome", "outcomes", "print_outcomes", "select"]

_PARTS = (
    *luo2021.PARTS,
    *jiang2022.PARTS,
    *weng2022.PARTS,
    *jin2021.PARTS,
    *ye2022.PARTS,
    *li2022.PARTS,
    *fu2022.PARTS,
    *takahashi2023.PARTS,
    *ours.PARTS,
)
CLAIMS: Registry[Claim] = Registry(
    "claim",
    lambda: sorted((c for part in _PARTS for c in part.CLAIMS), key=lambda c: (c.paper, int(c.id[1:]))),
    lambda entry: isinstance(entry, Claim),
    in_order=True,
)
_COLOURS = {"reproduced": "green", "contradicted": "red", "open": "yellow"}


def select(what: str) -> list[Claim]:
    """The claims selected by `PAPER`, `PAPER/CLAIM` or nothing (all)."""
    chosen = [claim for claim in CLAIMS.values() if not what or what in (claim.paper, claim.name)]
    if not chosen:
        names = [*dict.fromkeys(claim.paper for claim in CLAIMS.values()), *CLAIMS]
        raise BadInput(f"no paper or claim '{what}'{suggest(what, names)}")
    return chosen


def outcomes(
    claims: Sequence[Claim], scale: Scale, seed: int, out: Path | None, workers: int = 1
) -> Iterator[list[Outcome]]:
    """Outcomes as they become available. Claims of one file share models and views, so they go to one worker."""
    places = {claim.name: place for place, part in enumerate(_PARTS) for claim in part.CLAIMS}
    shares = list(group(claims, lambda claim: places.get(claim.name, claim.paper)).values())
    if workers <= 1 or len(shares) == 1:
        for claim in claims:
            yield [outcome(claim, scale, seed, out)]
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch=workers)
    yield from pool(delayed(_outcomes)(share, scale, seed, out) for share in sorted(shares, key=len, reverse=True))


def _outcomes(claims: Sequence[Claim], scale: Scale, seed: int, out: Path | None) -> list[Outcome]:
    return [outcome(claim, scale, seed, out) for claim in claims]


def print_outcomes(outcomes: Sequence[Outcome], console: Console) -> None:
    """A table of outcomes, with the reasons below."""
    grid = Grid("claim", "outcome", "measured", "expected", "trials", "seconds", box=None, pad_edge=False)
    for one in outcomes:
        status = f"[{_COLOURS[one.status]}]{one.status}[/]"
        grid.add_row(
            one.claim, status, escape(_short(one.measured)), escape(one.expected), str(one.trials), f"{one.seconds:.1f}"
        )
    console.print(grid)
    for one in outcomes:
        if one.why:
            console.print(f"{one.claim}: {one.why}", markup=False, highlight=False)


def _short(measured: dict[str, Any]) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in measured.items())


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(_number(item) for item in value) + "]"
    return str(value)
