"""Target: tables as CSV, TSV (plain and gzipped) and Parquet, read, aligned by ids and prepared under any rules."""

from __future__ import annotations

import gzip
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from plumbob.data.align import align
from plumbob.data.files import read_frame
from plumbob.data.prepare import CHOICES, Rules, complete_rows, prepare
from tests.fuzz import mutate
from tests.fuzz.guard import Files

ROWS = 40
CELLS = (
    *(
        "",
        " ",
        "?",
        "NA",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "-0",
        "0x10",
        "1_000",
        "9" * 400,
        "²",
        "٣",
        "1e-400",
        "1,5",
        "true",
        "TRUE",
    ),
    *(
        "2020-13-45",
        "2020-02-30",
        "0001-01-01",
        "9999-12-31",
        "2020-01-01T00:00:00Z",
        "12:61",
        "1/2/3",
        "2262-04-12",
        "1e308",
        "-1e308",
    ),
    *(
        '"',
        '""',
        "'",
        "a\tb",
        '"a\nb"',
        '"a',
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u2028",
        "\ufeff",
        "\r",
        "x" * 3000,
        "=1+1",
        "9007199254740993",
    ),
    *(
        "18446744073709551616",
        "-9223372036854775809",
        "7.0",
        "007",
        "+7",
        "7e0",
        "id",
        "label",
        "1970-01-01 00:00:00.000000001",
    ),
)
ENDINGS = (".csv", ".csv", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


@cache
def _rows() -> list[list[str]]:
    rng = np.random.default_rng(0)
    rows = [["id", "age", "income", "city", "member", "since", "gap", "label"]]
    for i in range(ROWS):
        since = f"20{i % 20 + 10}-0{i % 9 + 1}-1{i % 10}"
        gap = "" if i % 7 == 0 else f"{rng.normal():.3f}"
        rows.append(
            [str(i), str(20 + i % 50), f"{rng.normal():.4f}", "abc"[i % 3], "01"[i % 2], since, gap, "ny"[i % 2]]
        )
    return rows


def _text(rng: random.Random, ending: str) -> bytes:
    """The example's rows with a few cells, lines or bytes that are not what they were."""
    rows = [list(row) for row in _rows()]
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        row, place, kind = rng.choice(rows), rng.randrange(8), rng.randrange(6)
        if kind <= 2 and place < len(row):
            row[place] = rng.choice(CELLS)
        elif kind == 3:
            for other in rows[rng.randrange(2) :]:
                other[place : place + 1] = [rng.choice(CELLS[: rng.choice((3, 12, len(CELLS)))])]
        elif kind == 4 and rng.random() < 0.3:
            row.append(rng.choice(CELLS))
        elif rng.random() < 0.3:
            rows = rows[: rng.randrange(len(rows) + 1)] or rows[:1]
    separator = rng.choice(("\t",) if "tsv" in ending else (",", ",", ";", "|"))
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r", "\n\n"))
    if rng.random() < 0.8:
        rows = [[_quoted(cell, separator) for cell in row] for row in rows]
    coding = "utf-8" if rng.random() < 0.95 else rng.choice(("utf-16", "utf-8-sig"))
    data = (end.join(separator.join(row) for row in rows) + end).encode(coding, "surrogatepass")
    return mutate.damaged(rng, data, data) if rng.random() < 0.3 else data


def _quoted(cell: str, separator: str) -> str:
    if not set(cell) & {separator, '"', "\n", "\r"}:
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _columns(rng: random.Random) -> dict[str, Any]:
    """Columns of types that only Parquet has."""
    of_type = {
        "int": pyarrow.array(range(ROWS)),
        "big": pyarrow.array([2**64 - 1 - i for i in range(ROWS)], pyarrow.uint64()),
        "decimal": pyarrow.array([i * 10**20 for i in range(ROWS)], pyarrow.decimal128(38, 2)),
        "date": pyarrow.array([i * 1000 for i in range(ROWS)], pyarrow.date32()),
        "far": pyarrow.array([i * 10**5 - 2**31 for i in range(ROWS)], pyarrow.date32()),
        "time": pyarrow.array([i * 10**12 for i in range(ROWS)], pyarrow.timestamp("ns", "UTC")),
        "late": pyarrow.array([i * 10**10 for i in range(ROWS)], pyarrow.timestamp("s")),
        "clock": pyarrow.array(list(range(ROWS)), pyarrow.time64("us")),
        "span": pyarrow.array(list(range(ROWS)), pyarrow.duration("ms")),
        "list": pyarrow.array([[i, None] for i in range(ROWS)]),
        "struct": pyarrow.array([{"a": i} for i in range(ROWS)]),
        "map": pyarrow.array([[("a", i)] for i in range(ROWS)], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "bytes": pyarrow.array([bytes([200, i]) for i in range(ROWS)]),
        "words": pyarrow.array(["abc"[i % 3] for i in range(ROWS)]).dictionary_encode(),
        "numbers": pyarrow.array([i % 4 for i in range(ROWS)]).dictionary_encode(),
        "null": pyarrow.nulls(ROWS),
        "bool": pyarrow.array([None if i % 9 == 0 else i % 2 == 0 for i in range(ROWS)]),
        "half": pyarrow.array(np.linspace(-1, 1, ROWS, dtype=np.float16)),
        "nan": pyarrow.array([float("nan") if i % 5 else float("inf") for i in range(ROWS)]),
        "text": pyarrow.array([rng.choice(CELLS) for _ in range(ROWS)]),
    }
    return {
        rng.choice(("", *of_type, "id", "label", *mutate.WORDS[:6])): of_type[name]
        for name in mutate.some(rng, list(of_type), 4)
    }


def _parquet(rng: random.Random) -> bytes:
    columns = {"id": pyarrow.array(range(ROWS)), "label": pyarrow.array(["ny"[i % 2] for i in range(ROWS)])}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns | _columns(rng)), file)
    data = file.getvalue()
    return mutate.damaged(rng, data, data) if rng.random() < 0.4 else data


def make(rng: random.Random) -> Files:
    """Two parties' files and what a plan might say of them."""
    ending = rng.choice((*ENDINGS, ".parquet"))
    data = _parquet(rng) if ending == ".parquet" else _text(rng, ending)
    if ending.endswith(".gz"):
        data = gzip.compress(data, 1, mtime=0)
        data = mutate.damaged(rng, data, data) if rng.random() < 0.2 else data
    options = {
        "file": f"bank{ending}",
        "rules": {name: rng.choice(known) for name, known in CHOICES.items()},
        "label": rng.choice(("label",) * 12 + ("city", "income", "since", "no", "id", None)),
        "bins": rng.choice((None,) * 8 + (2, 50)),
        "ignore": mutate.some(rng, _rows()[0], 2) if rng.random() < 0.2 else [],
        "id": rng.choice(("id",) * 15 + ("age", "since", "no")),
    }
    return {f"bank{ending}": data, "shop.csv": _shop(), "options.json": json.dumps(options).encode()}


@cache
def _shop() -> bytes:
    return pd.DataFrame({"id": range(ROWS), "visits": np.arange(ROWS) % 9}).to_csv(index=False).encode()


def read(folder: Path) -> None:
    """As an audit does: read, align, complete, prepare."""
    options = json.loads((folder / "options.json").read_bytes())
    rules, label, ids = Rules(**options["rules"]), options["label"], options["id"]
    bank = read_frame(folder / options["file"], text=(ids,))
    shop = read_frame(folder / "shop.csv", text=("id",))
    columns = {"bank": ids, "shop": "id"}
    frames = align({"bank": bank, "shop": shop}, id_column=columns, active="bank", how="ids", rules=rules).frames
    if rules.missing == "drop_rows":
        complete_rows(frames["bank"], label=label, ignore=options["ignore"], rules=rules, where="party 'bank'")
    prepare(
        frames["bank"],
        name="bank",
        label=label,
        ignore=options["ignore"],
        rules=rules,
        where="party 'bank'",
        label_bins=options["bins"],
    )
