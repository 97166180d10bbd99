"""A finding: one score with its setting and seed, a line of `findings.jsonl`; what it cost, a line of `costs.jsonl`.

Found and cost lie apart because the first is the same for every run, byte for byte, and the second for none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from plumbob.auditing.running.data_flows import Flow, flows_from
from plumbob.errors import BadInput
from plumbob.files import parse_json, read_text
from plumbob.scoring.column_ceiling import ColumnCeiling
from plumbob.scoring.images import ImageScore
from plumbob.scoring.score import ColumnScore, Score

Parsed = TypeVar("Parsed")
Made = TypeVar("Made", "Finding", Score, ColumnScore, ImageScore, ColumnCeiling)
BROKEN = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)  # what a line that is none gives
KINDS: dict[str, Any] = {"str": str, "int": int, "float": int | float, "bool": bool}
KINDS |= {"int | None": int | None, "float | None": int | float | None}
COSTS = ("seconds", "peak_mb", "train_seconds", "predict_seconds")
WORDS = ("code", "view", "exchange", "not_isolated")
BESIDE = (*WORDS, *COSTS)  # what is not the same for every run


def address(key: str, code: str) -> str:
    """A key with the code that the finding is of, as one word."""
    return f"{key}-{code}" if code else key


def parted(word: str) -> tuple[str, str]:
    """The key and the code of an address."""
    key, _, code = word.partition("-")
    return key, code


@dataclass(frozen=True)
class Finding:
    """One trial of one attack. Its `key` is a hash of everything that determines the score."""

    key: str
    data: str
    protocol: str
    threat: str
    attack: str  # or `ceiling`, which is no attack: what could be learnt
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
    key_bits: int = 0  # 0 without encryption
    encryption: str = (
        ""  # what ciphertexts its protocol uses; empty in the prediction phase, if answers are not added up unseen
    )
    trained: bool = True  # whether the model learnt in this run; not where its parameters stayed as they were
    certificate: str = ""  # of an attack that finds columns or people without names: how many, how sure it is of them
    training_loss: tuple[tuple[int, float], ...] = ()  # round and loss, at most 60 of them, where a protocol tells it
    usual_class: float | None = None  # share of the most frequent class among the rows of the accuracy, where known
    auc: float | None = None  # how well the released scores rank rows, where the label is known
    calibration: float | None = None  # and how far their confidence is from the share that is right
    flows: tuple[Flow, ...] = ()  # who sent what to whom; of the first trial only, others are alike
    unaware: str = ""  # defences in place of which the attacker does not know, though the attack could account for them
    # These stand with the costs, for they change no number that is the same
    code: str = ""  # a hash of the code that made it
    view: str = ""  # a hash of the view that was attacked; what is encrypted is another in every run
    exchange: str = ""  # a hash of all that was told and is known: that of no defence where a defence changed nothing
    not_isolated: str = ""  # what the system lacked to keep the attack from the truth

    @property
    def address(self) -> str:
        """Where a store keeps it."""
        return address(self.key, self.code)

    def to_line(self) -> str:
        """Found and cost together, for programs."""
        return _line(self._plain())

    def found_line(self) -> str:
        """What was found: the same whenever, wherever and in whatever order it is computed."""
        return _line({name: value for name, value in self._plain().items() if name not in BESIDE})

    def cost_line(self) -> str:
        """What it cost this time."""
        return _line({"key": self.key} | {name: getattr(self, name) for name in BESIDE})

    def _plain(self) -> dict[str, Any]:
        plain = asdict(self) | {"flows": [astuple(flow) for flow in self.flows]}
        if not self.score.ceilings:  # attacks have none
            del plain["score"]["ceilings"]
        if not self.score.branching:  # only values guessed for trees have them
            del plain["score"]["branching"]
        if not self.unaware:
            del plain["unaware"]
        return plain

    @classmethod
    def from_line(cls, line: str, cost: dict[str, Any] | None = None) -> Finding:
        """A line with its cost in it or beside it; a cost that was lost is 0."""
        raw: dict[str, Any] = {"seconds": 0.0, "peak_mb": 0.0} | parse_json(line) | (cost or {})
        inner = raw.pop("score")
        columns = tuple(_typed(ColumnScore(**column)) for column in inner.pop("columns"))
        inner["row_error_quantiles"] = tuple(inner["row_error_quantiles"])
        inner["images"] = _images(inner.get("images"))
        inner["branching"] = _rates(inner.get("branching", {}))
        inner["ceilings"] = tuple(map(_ceiling, inner.get("ceilings", ())))
        raw["training_loss"] = _pairs(raw.get("training_loss", ()))
        raw["flows"] = flows_from(raw.get("flows", ()))
        return _typed(cls(**raw, score=_typed(Score(**inner, columns=columns))))


def _typed(made: Made) -> Made:
    """The same, if its words are words and its numbers numbers; TypeError if not."""
    for part in fields(made):
        if part.type in KINDS and not isinstance(getattr(made, part.name), KINDS[part.type]):
            raise TypeError(f"'{part.name}' is of the wrong type")
        if isinstance(getattr(made, part.name), float) and not math.isfinite(getattr(made, part.name)):
            raise TypeError(f"'{part.name}' is not finite")  # none is ever written
    return made


def _rates(raw: dict[str, float]) -> dict[str, float]:
    """Branching rates, all of them or none."""
    return {name: float(raw[name]) for name in ("right", "uniform", "usual", "nodes")} if raw else {}


def _line(raw: dict[str, Any]) -> str:
    return json.dumps(raw, separators=(",", ":"), allow_nan=False)


def _images(raw: dict[str, Any] | None) -> ImageScore | None:
    if raw is None:
        return None
    quantiles = {name: tuple(raw[name]) for name in ("psnr_quantiles", "ssim_quantiles")}
    return _typed(ImageScore(**(raw | quantiles | {"path": _pairs(raw["path"])})))


def _ceiling(raw: dict[str, Any]) -> ColumnCeiling:
    names = tuple(raw.get("uncovered", ()))
    if not all(isinstance(name, str) for name in names):
        raise TypeError("'uncovered' is of the wrong type")
    return _typed(ColumnCeiling(**(raw | {"uncovered": names})))


def _pairs(raw: Iterable[Iterable[Any]]) -> tuple[tuple[int, float], ...]:
    return tuple((int(step), float(value)) for step, value in raw)


def read_findings(path: Path) -> list[Finding]:
    """All whole lines of a findings file, with the costs that lie beside it; a last line that a crash cut short is left out."""
    if not path.exists():
        return []
    beside = path.with_name("costs.jsonl")
    costs = {cost["key"]: cost for _, cost in _parsed(beside, read_cost)} if beside.exists() else {}
    findings = [Finding.from_line(line, costs.get(bare.key)) for line, bare in _parsed(path, Finding.from_line)]
    return list({finding.key: finding for finding in findings}.values())


def lost_cost(key: str, code: str) -> str:
    """The line of a cost that is not known any more."""
    return _line({"key": key, "code": code} | dict.fromkeys(COSTS, 0.0))


def read_cost(line: str) -> dict[str, Any]:
    """A line of `costs.jsonl`."""
    raw: dict[str, Any] = parse_json(line)
    words = {"key": raw["key"]} | {name: raw.get(name, "") for name in WORDS}  # earlier versions did not keep these
    if not all(isinstance(word, str) for word in words.values()):
        raise TypeError("a key is a word")
    costs = {name: float(raw[name]) for name in COSTS}
    if not all(map(math.isfinite, costs.values())):
        raise TypeError("a cost is not finite")
    return words | costs


def reason(line: str) -> str:
    """Why a line was not read: it is of another version of Plumbob, or no finding at all. Fields that came later may be missing.

    >>> reason('{"key": "a", "colour": "red"}')
    "not a finding of this version: unknown field 'colour'"
    """
    try:
        raw = parse_json(line)
        told = {Finding: raw, Score: raw.get("score", {})}
        for kind, part in told.items():
            known = {one.name: one for one in fields(kind)}
            unknown = sorted(set(part) - set(known))
            lacking = [
                name
                for name, one in known.items()
                if name not in (*part, *BESIDE) and one.default is MISSING and one.default_factory is MISSING
            ]
            if unknown or (lacking and "key" in raw):
                what = f"unknown field '{unknown[0]}'" if unknown else f"missing field '{lacking[0]}'"
                return f"not a finding of this version: {what}"
    except BROKEN:
        pass
    return "not a finding"


def _parsed(path: Path, parse: Callable[[str], Parsed]) -> Iterator[tuple[str, Parsed]]:
    try:
        lines = read_text(path).split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else type(error).__name__
        raise BadInput(f"{path} cannot be read ({why}); move the file away and run again") from error
    for number, line in enumerate(lines, 1):
        try:
            yield line, parse(line)
        except BROKEN as error:
            raise BadInput(f"{path}, line {number}: {reason(line)}; move the file away and run again") from error
