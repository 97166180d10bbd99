"""Claims of papers, and how their outcomes are stored."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from plumbob import __version__
from plumbob.errors import BadInput
from plumbob.files import parse_json, read_text, write_whole

Scale = Literal["smoke", "paper"]
Status = Literal["reproduced", "contradicted", "open"]


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    name: str
    x: list[float]
    y: list[float]
    margin: list[float] | None = None  # half-widths of 95 % intervals; None for a guess that needs no message


@dataclass(frozen=True)
class ClaimFigure:
    """The figure of a claim's check, to compare with the paper's figure of the same number."""

    title: str
    x: str
    y: str
    curves: list[Curve]


@dataclass(frozen=True)
class CheckResult:
    """The result of a check: whether the claim holds, the figures, and why not (or other remarks)."""

    holds: bool | None  # None: inconclusive
    measured: dict[str, Any]
    expected: str
    trials: int
    why: str = ""
    figures: tuple[ClaimFigure, ...] = ()
    sheets: tuple[tuple[str, bytes], ...] = ()  # pictures by name, as PNG; kept as files beside the outcome


@dataclass(frozen=True)
class Part:
    """One part of a long check, stored on disk when done, so that an interrupted check can continue."""

    measured: dict[str, Any]
    answers: list[bool | None]
    curves: list[Curve] = field(default_factory=list)
    sheets: dict[str, bytes] = field(default_factory=dict)


_KEPT: ContextVar[Path | None] = ContextVar("kept", default=None)  # where the outcome of the running check will lie


def part(name: str, work: Callable[[], Part]) -> Part:
    """The share of that name, done now or by an earlier run of the same command."""
    kept = _KEPT.get()
    if kept is None:
        return work()
    path = kept.with_name(f".{kept.stem}-{name}.part")
    if path.exists():
        raw = parse_json(read_text(path))
        if raw.pop("version") == __version__:
            shown = {key: base64.b64decode(text) for key, text in raw.pop("sheets").items()}
            return Part(**raw | {"curves": [Curve(**curve) for curve in raw["curves"]]}, sheets=shown)
    done = work()
    sheets = {key: base64.b64encode(data).decode() for key, data in done.sheets.items()}
    text = json.dumps({"version": __version__} | asdict(done) | {"sheets": sheets})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return done


@dataclass(frozen=True)
class Claim:
    """One claim of one paper. `check` gets the scale and the seed."""

    paper: str
    id: str
    where: str
    summary: str
    check: Callable[[Scale, int], CheckResult]

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
    version: str = ""  # of Plumbob; an outcome of another version is computed anew
    figures: tuple[ClaimFigure, ...] = ()

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, path: Path) -> Outcome:
        raw = parse_json(read_text(path))
        drawn = tuple(
            ClaimFigure(**figure | {"curves": [Curve(**curve) for curve in figure["curves"]]})
            for figure in raw.pop("figures")
        )
        return cls(**raw, figures=drawn)


def outcome(claim: Claim, scale: Scale, seed: int, out: Path | None = None) -> Outcome:
    """Check a claim, or reuse the outcome stored in `out` by an earlier run of the same command."""
    kept = out / f"{claim.paper}-{claim.id}-{scale}-{seed}.json" if out is not None else None
    if kept is not None and kept.exists():
        try:
            found = Outcome.read(kept)
            if found.version == __version__:
                return found
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f"{kept} is not a claim's outcome; move or delete it and run again") from error
    started = time.perf_counter()
    token = _KEPT.set(kept)
    try:
        check = claim.check(scale, seed)
    finally:
        _KEPT.reset(token)
    status: Status = "open" if check.holds is None else "reproduced" if check.holds else "contradicted"
    seconds = round(time.perf_counter() - started, 2)
    made = Outcome(
        claim=claim.name,
        status=status,
        measured=check.measured,
        expected=check.expected,
        trials=check.trials,
        scale=scale,
        why=check.why,
        seed=seed,
        seconds=seconds,
        version=__version__,
        figures=check.figures,
    )
    if kept is not None:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps(asdict(made), indent=1) + "\n")
            for done in kept.parent.glob(f".{kept.stem}-*.part"):
                done.unlink()
            for name, sheet in check.sheets:
                kept.with_name(f"{kept.stem}-{name}.png").write_bytes(sheet)
        except OSError as error:
            raise BadInput(f"cannot write to {out}: {error.strerror}") from error
    return made
