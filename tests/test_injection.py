"""Names that want to be more than names: escapes of terminals, markup, formulas, other directions of writing, in every output."""

from __future__ import annotations

import csv
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plumbob.auditing.planning.plan_file import read_plan
from tests.test_markers import plumbob

EVIL = (
    *(
        "\x1b[31mred\x1b]0;title\x07",
        "\u202egnp.exe\u2066",
        "</script><img src=x onerror=alert(1)>",
        "=cmd|' /C calc'!A0",
    ),
    *(
        "+1+1",
        "-2+3",
        "@SUM(A1)",
        "line\nbreak",
        "{{ 7*7 }}",
        "]]><!--",
        "%s${HOME}`id`",
        '" onload="x',
        "\x9b31m",
        "\u2028",
    ),
    *("[bold red]x[/]", "a\tb", "&lt;b&gt;", "\u200bghost", "!!python/object:os.system", "*anchor", "yes", "null", "~"),
)
FLAGS = ("--id", "id", "--label", "label", "--protocol", "decision_tree", "--effort", "quick")
names = st.lists(
    st.one_of(
        st.sampled_from(EVIL), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
    ),
    min_size=2,
    max_size=3,
    unique_by=lambda name: " ".join(name.split()),
)


def write(folder: Path, columns: list[str]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, len(columns))).round(3)
    for name, header, cells in (
        ("bank", ["id", "own", "label"], [[i, row[0] * 2, "ab"[int(row[0] > 0)]] for i, row in enumerate(x)]),
        ("shop", ["id", *columns], [[i, *row] for i, row in enumerate(x)]),
    ):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([header, *cells])


def steers(text: str) -> set[str]:
    """Characters that steer a terminal or turn the direction of writing; line ends and joiners of letters may stay."""
    told = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
    return told - set("\n\u200c\u200d\u00ad")


def check_outputs(folder: Path, said: str) -> None:
    assert not steers(said)
    for name in ("plan.yaml", "out/plan.yaml", "out/findings.jsonl", "gate.xml"):
        if (folder / name).exists():
            assert not steers((folder / name).read_text(encoding="utf-8")), name
    if (folder / "gate.xml").exists():
        ElementTree.parse(folder / "gate.xml")
    if (folder / "out/report.html").exists():
        page = (folder / "out/report.html").read_text(encoding="utf-8")
        assert not steers(page) - {"\t"}
        assert not re.search(r"<img src=x|<!--|\bonload=\"x", page)
        assert page.count("<script") == page.count("</script")


@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # shrinking takes minutes, and the names are short
    suppress_health_check=list(HealthCheck),
)
@given(columns=names)
def test_evil_names_from_files_to_the_report(columns: list[str], tmp_path_factory, capsys) -> None:
    folder = tmp_path_factory.mktemp("evil")
    write(folder, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, said = plumbob(capsys, "init", "--party", "bank=bank.csv", "--party", "shop=shop.csv", *FLAGS)
        assert code in (0, 2), said  # a name may be refused, in one sentence
        assert code == 0 or said.count("\n") == 1
        check_outputs(folder, said)
        if code == 0:
            words = ("--out", "out", "--gate", "max_gain<0.1", "--junit", "gate.xml")
            code, said = plumbob(capsys, "audit", "plan.yaml", *words)
            assert code in (0, 1), said
            check_outputs(folder, said)
            assert read_plan(folder / "out/plan.yaml").digest == read_plan(folder / "plan.yaml").filled().digest


@pytest.mark.parametrize("columns", [list(EVIL[i : i + 3]) for i in (0, 9, 12)])
def test_known_evil_from_files_to_the_report(columns: list[str], tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, columns)
    assert plumbob(capsys, "init", "--party", "bank=bank.csv", "--party", "shop=shop.csv", *FLAGS)[0] == 0
    code, said = plumbob(capsys, "audit", "plan.yaml", "--out", "out", "--gate", "max_gain<0.1", "--junit", "gate.xml")
    assert code == 1, said
    check_outputs(tmp_path, said)


def test_a_refusal_repeats_evil_names_harmlessly(tmp_path: Path, capsys, monkeypatch) -> None:
    """As the id that is not there, whose sentence names the columns that are, and as the name of a party."""
    monkeypatch.chdir(tmp_path)
    files = ("--party", "bank=bank.csv", "--party", "shop=shop.csv")
    for name in EVIL:
        write(tmp_path, [name, "other"])
        for words in ((*files, "--id", name, "--label", "x"), ("--party", name), (*files, "--id", "idd", *FLAGS[2:])):
            code, said = plumbob(capsys, "init", *words)
            assert code == 2
            assert said.count("\n") == 1
            assert not steers(said)
