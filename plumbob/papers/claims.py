"""What a claim of a paper is, and how its outcome is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from plumbob.errors import BadInput

Scale = Literal["smoke", "paper"]
Status = Literal["reproduced", "contradicted", "open"]


@dataclass(frozen=True)
class Check:
    """What a check returns: whether the claim holds, the figures, and why not (or what else is worth knowing)."""

    holds: bool | None  # None: inconclusive
    measured: dict[str, Any]
    expected: str
    trials: int
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """One claim of one paper. `check` gets the scale and the seed."""

    paper: str
    id: str
    where: str
    summary: str
    check: Callable[[Scale, int], Check]

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.id}"


@dataclass(frozen=True)
class Outcome:
    """One line of `reproduce --json`."""

    claim: str
    status: Status
    measured: dict[str, Any]
    expected: str
    trials: int
    scale: str
    why: str
    seed: int
    seconds: float

    def to_line(self) -> str:
        return json.dumps(asdict(self))


def outcome(claim: Claim, scale: Scale, seed: int, out: Path | None = None) -> Outcome:
    """Check a claim, or take the outcome kept in `out` by an earlier run of the same command."""
    kept = out / f"{claim.paper}-{claim.id}-{scale}-{seed}.json" if out is not None else None
    if kept is not None and kept.exists():
        try:
            return Outcome(**json.loads(kept.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise BadInput(f"{kept} is not the outcome of a claim; move it away and run again") from error
    started = time.perf_counter()
    check = claim.check(scale, seed)
    status: Status = "open" if check.holds is None else "reproduced" if check.holds else "contradicted"
    seconds = round(time.perf_counter() - started, 2)
    made = Outcome(claim.name, status, check.measured, check.expected, check.trials, scale, check.why, seed, seconds)
    if kept is not None:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(".part")
            part.write_text(json.dumps(asdict(made), indent=1) + "\n", encoding="utf-8")
            part.replace(kept)
        except OSError as error:
            raise BadInput(f"cannot write to {out}: {error.strerror}") from error
    return made
