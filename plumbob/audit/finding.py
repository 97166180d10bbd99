"""A finding: one score with its setting, seed, time and memory; one line of `findings.jsonl`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from plumbob.audit.flows import Flow, flows_from
from plumbob.errors import BadInput
from plumbob.scoring.images import ImageScore
from plumbob.scoring.score import ColumnScore, Score


@dataclass(frozen=True)
class Finding:
    """One trial of one attack. Its `key` is a hash of everything that determines the score."""

    key: str
    data: str
    protocol: str
    threat: str
    attack: str
    defence: str
    unknown: float  # share of the columns that the curious parties do not hold
    known_columns: int
    unknown_columns: int
    classes: int
    trial: int
    seed: int
    model_accuracy: float | None  # share of rows that got the right class; None where a recorded run does not say
    withheld: float  # share of rows that got no answer
    score: Score
    seconds: float
    peak_mb: float
    white_box: bool = True  # whether the curious parties knew the model
    train_seconds: float = 0.0
    predict_seconds: float = 0.0  # with what the defence does before scores are released
    bytes_sent: int = 0  # payloads of all messages
    bytes_by_party: dict[str, int] = field(default_factory=dict)  # by who sent them
    key_bits: int = 0  # of a training protocol; 0 without encryption
    encryption: str = ""  # of a training protocol: what ciphertexts it uses; empty in the prediction phase
    trained: bool = True  # whether the model learnt in this run; not where its parameters stayed as they were
    certificate: str = ""  # of an attack that finds columns: how sure it is of them, and of having found all
    training_loss: tuple[tuple[int, float], ...] = ()  # round and loss, at most 60 of them, where a protocol tells it
    flows: tuple[Flow, ...] = ()  # who sent what to whom; of the first trial only, others are alike

    def to_line(self) -> str:
        raw = asdict(self) | {"flows": [astuple(flow) for flow in self.flows]}
        return json.dumps(raw, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> Finding:
        raw: dict[str, Any] = json.loads(line)
        inner = raw.pop("score")
        columns = tuple(ColumnScore(**column) for column in inner.pop("columns"))
        inner["row_error_quantiles"] = tuple(inner["row_error_quantiles"])
        inner["images"] = _images(inner.get("images"))
        raw["training_loss"] = _pairs(raw.get("training_loss", ()))
        raw["flows"] = flows_from(raw.get("flows", ()))
        return cls(**raw, score=Score(**inner, columns=columns))


def _images(raw: dict[str, Any] | None) -> ImageScore | None:
    if raw is None:
        return None
    quantiles = {name: tuple(raw[name]) for name in ("psnr_quantiles", "ssim_quantiles")}
    return ImageScore(**(raw | quantiles | {"path": _pairs(raw["path"])}))


def _pairs(raw: Iterable[Iterable[Any]]) -> tuple[tuple[int, float], ...]:
    return tuple((int(step), float(value)) for step, value in raw)


def read_findings(path: Path) -> list[Finding]:
    """All whole lines of a findings file; a last line that a crash cut short is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    findings = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            findings.append(Finding.from_line(line))
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f"{path}, line {number}: not a finding; move the file away and run again") from error
    return list({finding.key: finding for finding in findings}.values())


def append_findings(path: Path, findings: Iterable[Finding]) -> None:
    """Add lines at the end; when this returns they are on the disk."""
    with path.open("a", encoding="utf-8") as file:
        for finding in findings:
            file.write(finding.to_line() + "\n")
        file.flush()
        os.fsync(file.fileno())


def drop_torn_line(path: Path) -> None:
    """Cut off a last line without its newline, left by a crash."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)
