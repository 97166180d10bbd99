"""Hidden columns below a linear cut: whole numbers as a lattice (P32), one and few columns (P33), independent ones (P34)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from plumbob.attacks.base import Guess
from plumbob.attacks.embeddings._fast_ica import stable_components
from plumbob.attacks.embeddings._whole_functionals import whole_columns
from plumbob.attacks.embeddings.cut_lattice import CutLattice
from plumbob.attacks.embeddings.unmixed_columns import UnmixedColumns
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import Column, Federation, FloatArray, Party, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.ye2022.federations import TABLE_1, THREAT, federation
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.threats import cut

EXACT = 1e-9  # of a range
EPOCHS = 5
OTHERS = ("student", "satellite")  # tables beside those of ye2022, half of the columns hidden
WIDTHS = (5, 10, 20, 30)  # columns of random tables
ENDS = (1, 1, 2, 3, 5, 8, 20, 50, 100, 300)  # steps in their ranges, in turn


@dataclass(frozen=True)
class _Size:
    """Rows of real tables and of made ones, and how many made ones."""

    rows: int
    made: int
    tables: int


SIZES: dict[Scale, _Size] = {"smoke": _Size(1_000, 500, 3), "paper": _Size(10_000, 2_000, 100)}


def _joint(values: FloatArray, columns: tuple[Column, ...]) -> Federation:
    """One party holds these columns, the active one a label that follows from them."""
    total = values.sum(axis=1)
    label = (total > np.median(total)).astype(np.int64)
    active = Party("active", (Column("own"),), np.zeros((len(values), 1)))
    return Federation((active, Party("passive", columns, values)), "active", label, ("0", "1"))


def _attacked(
    target: Federation, attack: CutLattice | UnmixedColumns, seed: int, **settings: Any
) -> tuple[Guess, FloatArray]:
    """What an attack says after a training, and the hidden columns."""
    made: dict[str, Any] = {"hidden": (60, 30), "epochs": EPOCHS, "archive_mb": 100} | settings
    protocol = SplitNetwork(**made)
    log = protocol.train(
        target, target.rows(np.arange(min(100, len(target)))), generator(seed, "training", attack.name)
    )
    true = np.hstack([target[name].values for name in target.passive])
    return attack.run(cut(log, THREAT), generator(seed, "attack", attack)), true


def _counted(guess: Guess, true: FloatArray) -> dict[str, int]:
    """Columns, those that are exactly a vector, and vectors that are no column."""
    assert guess.vectors is not None
    right = np.zeros(true.shape[1], dtype=bool)
    known = np.zeros(guess.vectors.shape[1], dtype=bool)
    for i, vector in enumerate(guess.vectors.T):
        same = np.abs(true - vector[:, None]).max(axis=0) < EXACT
        right |= same
        known[i] = bool(same.any())
    return {"columns": true.shape[1], "exact": int(right.sum()), "none of them": int((~known).sum())}


def _real(name: str, scale: Scale, seed: int) -> Part:
    """One table: the passive party of ye2022's Table I, or half of the columns."""
    if name in TABLE_1:
        target, _ = federation(name, SIZES[scale].rows, seed)
        hidden = TABLE_1[name].hidden
    else:
        rng = generator(seed, "P32", name)
        table = registry.load(name)
        whole = table.rows(np.sort(rng.permutation(len(table.values))[: SIZES[scale].rows]))
        target, hidden = split_at_random(whole, 0.5, rng), (60, 30, 10)
    epochs = max(EPOCHS, 20_000 // len(target))
    guess, true = _attacked(target, CutLattice(), seed, hidden=hidden, epochs=epochs)
    found = _counted(guess, true)
    measured = {"rows": len(target), "epochs": epochs} | found | {"certificate": guess.certificate}
    return Part({name: measured}, [found["exact"] == found["columns"] and not found["none of them"]])


def _made(width: int, scale: Scale, seed: int) -> Part:
    """A random table of whole numbers that hang together."""
    rng, rows = generator(seed, "P32", width), SIZES[scale].made
    ends = np.resize(ENDS, width)
    raw = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, width)) + rng.normal(size=(rows, width))
    values = np.floor(raw.argsort(axis=0).argsort(axis=0) / rows * (ends + 1)) / ends
    columns = tuple(Column(f"c{j}", high=float(end), step=1.0) for j, end in enumerate(ends))
    guess, true = _attacked(_joint(values, columns), CutLattice(), seed)
    found = _counted(guess, true)
    return Part({f"random, {width} columns": {"rows": rows} | found}, [found["exact"] == found["columns"]])


def _continuous(scale: Scale, seed: int) -> Part:
    """Tables without whole numbers: none may be found."""
    found, tables = 0, SIZES[scale].tables
    for i in range(tables):
        rng = generator(seed, "continuous", i)
        width = int(rng.integers(2, 13))
        values = rng.random((300, width)) if i % 2 else rng.normal(size=(300, width))
        z = (values @ rng.normal(size=(width, 60))).astype(np.float32).astype(np.float64)
        found += whole_columns(z, 0.0, rng).columns.shape[1]
    return Part({"continuous tables": {"tables": tables, "columns found": found}}, [found == 0])


def lattice(scale: Scale, seed: int) -> CheckResult:
    """P32: every column of whole numbers, exactly, and none where there are none."""
    parts = [part(name, partial(_real, name, scale, seed)) for name in (*TABLE_1, *OTHERS)]
    parts += [part(f"random-{width}", partial(_made, width, scale, seed)) for width in WIDTHS]
    parts.append(part("continuous", partial(_continuous, scale, seed)))
    measured = {key: value for one in parts for key, value in one.measured.items()}
    expected = (
        "every hidden column exactly, with its direction, and no vector that is none; no column in continuous tables"
    )
    why = (
        "32-bit embeddings. Where ranges are known, columns are determined: orthogonal bases of the lattice whose lengths are "
        "the steps of the ranges differ by the order of columns of the same range"
    )
    return CheckResult(every([answer for one in parts for answer in one.answers]), measured, expected, 1, why)


def _drawn(kind: str, rows: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Columns from 0 to 1."""
    raw = {
        "uniform": lambda: rng.random((rows, width)),
        "exponential": lambda: rng.exponential(size=(rows, width)),
        "correlated": lambda: rng.random((rows, width)) + rng.random((rows, 1)),
        "Gaussian": lambda: rng.normal(size=(rows, width)),
    }[kind]()
    return np.asarray((raw - raw.min(axis=0)) / np.ptp(raw, axis=0))


def _judged(vectors: FloatArray, true: FloatArray) -> dict[str, Any]:
    """Vectors, and their root mean square errors against the nearest column, either way round."""
    both = np.stack([vectors, 1 - vectors])
    errors = np.sqrt(((both[..., None] - true[None, :, None]) ** 2).mean(axis=1)).min(axis=(0, 2))
    return {
        "columns": true.shape[1],
        "found": vectors.shape[1],
        "largest error": round(float(errors.max(initial=0.0)), 5),
    }


def few(scale: Scale, seed: int) -> CheckResult:
    """P33: one hidden column of 3,000 rows, and a few."""
    measured, answers, rows = {}, [], 3_000 if scale == "paper" else 500
    for kind in ("uniform", "exponential", "correlated", "Gaussian"):
        for width in (1, 2, 3, 5):
            values = _drawn(kind, rows, width, generator(seed, "P33", kind, width))
            columns = tuple(Column(f"c{j}") for j in range(width))
            guess, true = _attacked(_joint(values, columns), UnmixedColumns(), seed)
            assert guess.vectors is not None
            found = _judged(guess.vectors, true)
            measured[f"{kind}, {width}"] = found
            answers.append(found["found"] == width and found["largest error"] < 0.02 if width <= 2 else None)
    decided = [answer for answer in answers if answer is not None]
    expected = (
        "one column exactly and two within 0.02 of the range, whatever their values; of more, those that are claimed"
    )
    return CheckResult(every(decided), {"rows": rows} | measured, expected, 1)


def independent(scale: Scale, seed: int) -> CheckResult:
    """P34: independent columns from embeddings alone, one party or the sum of two; none in Gaussian tables."""
    measured, answers, rows = {}, [], SIZES[scale].made
    for kind in ("uniform", "exponential"):
        for parties in (1, 2):
            rng = generator(seed, "P34", kind, parties)
            values = _drawn(kind, rows, 8, rng)
            z = sum(values[:, own] @ rng.normal(size=(len(own), 60)) for own in np.array_split(np.arange(8), parties))
            found = stable_components(np.asarray(z), rng)
            joint = np.abs(np.corrcoef(found.T, values.T))[: found.shape[1], found.shape[1] :]
            least = float(joint.max(axis=1).min(initial=1.0))
            measured[f"{kind}, {parties} summed"] = {
                "columns": 8,
                "found": found.shape[1],
                "least correlation": round(least, 4),
            }
            answers.append(found.shape[1] == 8 and least > 0.98)
    false = 0
    for i in range(SIZES[scale].tables):
        rng = generator(seed, "Gaussian", i)
        false += stable_components(rng.normal(size=(rows, 8)) @ rng.normal(size=(8, 8)), rng).shape[1]
    measured["Gaussian tables"] = {"tables": SIZES[scale].tables, "components claimed": false}
    expected = "all independent columns at a correlation above 0.98, and no component of a Gaussian table"
    return CheckResult(every([*answers, false == 0]), {"rows": rows} | measured, expected, 1)


CLAIMS = (
    Claim(
        "plumbob", "P32", "lattice at the cut", "columns of whole numbers below a linear cut are read exactly", lattice
    ),
    Claim("plumbob", "P33", "few columns", "one column below a linear cut is read exactly, a few by their ranges", few),
    Claim("plumbob", "P34", "independent columns", "independent columns below a linear cut are separated", independent),
)
