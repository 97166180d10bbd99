"""Nothing private slips out: cells that cannot be mistaken are planted in the files, and every byte that leaves is searched.

Searched are the folder of the audit (with what is packed in it unpacked), the plan of `init`, and both streams of the terminal.
"""

from __future__ import annotations

import base64
import gzip
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbob import cli

WORDS = ("zyxmarkerone", "zyxmarkertwo", "zyxmarkerthree")  # categories, one of them rare
LABELS = ("zyxlabelgood", "zyxlabelbad", "zyxlabelrare")
NUMBERS = ("271828.1828", "-31415.92653", "16180.33988")  # the extremes of their columns among them
DATES = ("1931-07-23", "2043-11-29")
PIECES = ("zyxid", "27,182", "271828", "31415.9", "16180.3", "1931-07", "2043-11", "11.2043", "zyxbinary")
MARKERS = (*WORDS, *LABELS, *NUMBERS, *DATES, *PIECES)
ROWS = 240


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    """A bank (active) and a shop, in whose cells the markers stand."""
    rng = np.random.default_rng(0)
    ids = [f"zyxid{i:04d}" for i in range(ROWS)]
    bank = pd.DataFrame({"id": ids, "income": rng.normal(1000, 100, ROWS).round(2).astype(str)})
    bank["region"] = rng.choice([WORDS[0], "elsewhere"], ROWS)
    bank["label"] = rng.choice(LABELS, ROWS, p=[0.5, 0.4, 0.1])
    shop = pd.DataFrame({"id": ids, "wealth": rng.normal(100, 10, ROWS).round(4).astype(str)})
    shop["since"] = [
        str(day.date()) for day in pd.to_datetime("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, ROWS), "D")
    ]
    shop["illness"] = rng.choice(["zyxmarkertwo", "none", "flu", "cold"], ROWS)
    shop["insured"] = rng.choice(["zyxbinaryyes", "zyxbinaryno"], ROWS)
    shop.loc[3, "illness"] = WORDS[2]
    bank.loc[5, "income"] = NUMBERS[2]
    shop.loc[[7, 9], "wealth"] = NUMBERS[:2]
    shop.loc[[11, 13], "since"] = DATES
    bank.to_csv(tmp_path / "bank.csv", index=False)
    shop.sample(frac=1, random_state=1).to_csv(tmp_path / "shop.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plumbob(capsys, *words: str) -> tuple[int, str]:
    """The command in this process, through its entry point: exit code, and all that it said."""
    before, sys.argv = sys.argv, ["plumbob", *words]
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    said = capsys.readouterr()
    return code, said.out + said.err


def unpacked(data: bytes, depth: int = 3) -> list[str]:
    """A file's text, and that of everything packed in it: base64 (in data URLs, too), gzip and zlib."""
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            return unpacked(unpack(data), depth - 1) if depth else []
        except (OSError, EOFError, zlib.error):
            continue
    texts = [data.decode("utf-8", "ignore"), data.decode("utf-16-le", "ignore")]
    for found in re.findall(rb"[A-Za-z0-9+/]{24,}={0,2}", data) if depth else ():
        texts += unpacked(base64.b64decode(found + b"=" * (-len(found) % 4)), depth - 1)
    return texts


def search(texts: list[str], allowed: tuple[str, ...] = ()) -> list[str]:
    """The markers that stand in one of the texts."""
    lower = [text.lower() for text in texts]
    return [marker for marker in MARKERS if marker not in allowed and any(marker in text for text in lower)]


def everything(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("bank.csv", "shop.csv")]
    return [text for path in files for text in (*unpacked(path.read_bytes()), path.name)]


def plan(extra: str = "", rules: str = "{categories: onehot}") -> None:
    Path("plan.yaml").write_text(
        f"data: {{parties: {{bank: bank.csv, shop: shop.csv}}, id: id, label: label, rules: {rules}}}\ntrials: 1\n"
        + extra
    )


def test_the_search_finds_what_is_packed() -> None:
    """The test would be worthless if it could not see into what it searches."""
    inner = gzip.compress(b"... zyxid0001 ...")
    page = b"<img src='data:x;base64," + base64.b64encode(inner) + b"'>"
    assert search(unpacked(page)) == ["zyxid"]
    assert search(unpacked(base64.b64encode(b"the words zyxlabelgood and more"))) == ["zyxlabelgood"]


RUNS = {
    "scores": "protocols: [logistic_regression, decision_tree]\nattacks: [equation_solving, posterior_mean, path_restriction]",
    "forest": "protocols: [{name: random_forest, settings: {trees: 3}}]\nattacks: [forest_boxes]",
    "cut": "protocols: [{name: split_network, settings: {epochs: 1}}]\nthreats: [active-training]",
    "boost": "protocols: [{name: secure_boost, settings: {key_bits: 1024, trees: 1, depth: 1, loss: squared}}]\n"
    "threats: [active-training]",
}


@pytest.mark.parametrize("run", RUNS)
def test_no_marker_in_the_folder_or_on_the_terminal(run: str, files: Path, capsys) -> None:
    plan(RUNS[run])
    code, said = plumbob(capsys, "audit", "plan.yaml", "--gate", "max_gain<0.0001", "--junit", "gate.xml")
    assert code in (0, 1), said
    assert (files / "plumbob-audit" / "report.html").exists()
    assert search([said, *everything(files)]) == []


def test_no_marker_in_json(files: Path, capsys) -> None:
    plan(RUNS["scores"])
    code, said = plumbob(capsys, "audit", "plan.yaml", "--json", "--gate", "max_gain<0.5")
    assert code in (0, 1), said
    assert '"shop.illness=1"' in said
    assert search([said]) == []


def test_no_marker_in_a_sweep(files: Path, capsys) -> None:
    plan("protocols: [decision_tree]\nattacks: [path_restriction]")
    code, said = plumbob(capsys, "audit", "plan.yaml", "--sweep")
    assert code == 0, said
    assert search([said, *everything(files)]) == []


def test_no_marker_in_what_init_sees_and_writes(files: Path, capsys) -> None:
    words = ["--party", "bank=bank.csv", "--party", "shop=shop.csv", "--id", "id", "--label", "label"]
    code, said = plumbob(capsys, "init", *words)
    assert code == 0, said
    assert search([said, (files / "plan.yaml").read_text()]) == []


def spoil(name: str, folder: Path) -> str:
    """Files that cannot be used, of every kind; what is added to the plan."""
    bank, shop = (pd.read_csv(folder / f"{party}.csv", dtype=str) for party in ("bank", "shop"))
    rules = "{missing: refuse}"
    if name == "a word among numbers":
        shop.loc[2, "wealth"] = "zyxmarkerone"
    elif name == "infinite":
        shop.loc[2, "wealth"] = "inf"
    elif name == "commas for thousands":
        shop["wealth"] = ["4,711" if i % 2 else "27,182" for i in range(len(shop))]
    elif name == "no overlap":
        shop["id"] = "zyxid" + shop["id"]
    elif name == "repeated ids":
        shop, rules = pd.concat([shop, shop.head(3)]), "{duplicates: refuse}"
    elif name == "missing":
        shop.loc[2, "illness"] = ""
    elif name == "label missing":
        bank.loc[2, "label"] = ""
    elif name == "label of one class":
        bank["label"] = LABELS[0]
    elif name == "label of numbers":
        bank["label"] = bank["income"]
    elif name == "label of texts":
        bank["label"] = bank["id"]
    elif name == "no header":
        bank.to_csv(folder / "bank.csv", index=False, header=False)
        shop.to_csv(folder / "shop.csv", index=False, header=False)
        return rules
    bank.to_csv(folder / "bank.csv", index=False)
    shop.to_csv(folder / "shop.csv", index=False)
    if name == "ragged":
        with (folder / "shop.csv").open("a") as file:
            file.write("zyxid9999,271828.1828\n")
    if name == "not UTF-8":
        with (folder / "shop.csv").open("ab") as file:
            file.write("zyxid9999,1,1990-01-01,zyxmarkertwo\xe9,zyxbinaryno\n".encode("latin-1"))
    return rules


SPOILT = (
    *(
        "a word among numbers",
        "infinite",
        "commas for thousands",
        "no overlap",
        "repeated ids",
        "missing",
        "label missing",
    ),
    *("label of one class", "label of numbers", "label of texts", "ragged", "not UTF-8", "no header"),
)


@pytest.mark.parametrize("name", SPOILT)
def test_no_marker_in_a_refusal(name: str, files: Path, capsys) -> None:
    plan(rules=spoil(name, files))
    code, said = plumbob(capsys, "audit", "plan.yaml")
    assert code == 2, said
    assert said.count("\n") == 1
    assert search([said, *everything(files)]) == []
    words = [
        "--party",
        "bank=bank.csv",
        "--party",
        "shop=shop.csv",
        "--id",
        "id",
        "--label",
        "label",
        "--out",
        "new.yaml",
    ]
    _, said = plumbob(capsys, "init", *words)
    assert search([said]) == []


def test_no_marker_where_plumbob_itself_fails(files: Path, capsys, monkeypatch) -> None:
    """A mistake of ours whose message holds cells, as those of libraries do: only where it happened is told."""
    plan(RUNS["scores"])

    def fail(*given: object, **settings: object) -> None:
        raise ValueError("could not convert string to float: 'zyxmarkertwo' for zyxid0007")

    monkeypatch.setattr("plumbob.auditing.running.open_data.prepare", fail)
    code, said = plumbob(capsys, "audit", "plan.yaml")
    assert code == 70
    assert "ValueError" in said
    assert "PLUMBOB_TRACEBACK" in said
    assert search([said, *everything(files)]) == []
    monkeypatch.setenv("PLUMBOB_TRACEBACK", "1")
    with pytest.raises(ValueError, match="zyxmarkertwo"):
        plumbob(capsys, "audit", "plan.yaml")
