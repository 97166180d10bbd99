"""Columns that took no part are told with the reason, in the first lines of every output."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from plumbob import audit
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.open_data import open_source
from plumbob.errors import BadInput
from plumbob.federation import Dropped
from plumbob.recorded.open_recording import open_recorded
from plumbob.recorded.seals import DROPPED, dropped_of, seal_dropped
from plumbob.recorded.tables import federation_of
from plumbob.report import not_audited
from plumbob.report.facts import Asked
from plumbob.report.terminal import print_summary
from tests.recorded.test_folder import written
from tests.report import samples
from tests.worlds import resealed, world

ROWS = 130
RNG = np.random.default_rng(0)
BANK = pd.DataFrame(
    {
        "id": range(ROWS),
        "age": RNG.integers(18, 80, ROWS),
        "url": [f"x/{i}" for i in range(ROWS)],
        "branch": ["Oslo"] * ROWS,
        "default": RNG.choice(["no", "yes"], ROWS),
    }
)
SHOP = pd.DataFrame(
    {
        "id": range(ROWS),
        "note": [f"came on day {i}" for i in range(ROWS)],
        "visits": RNG.poisson(5, ROWS),
        "street": [f"street {i % 100}" for i in range(ROWS)],
        "gone": [None] * ROWS,
        "spend": RNG.normal(size=ROWS).round(1),
        "secret": RNG.integers(0, 9, ROWS),
    }
)
EXPECTED = (
    Dropped("bank", "url", "an identifier"),
    Dropped("bank", "branch", "constant"),
    Dropped("shop", "note", "free text or a key"),
    Dropped("shop", "street", "too many categories (100)"),
    Dropped("shop", "gone", "empty"),
    Dropped("shop", "secret", "ignored by the plan"),
)


def dropped(folder: Path, **data: Any) -> tuple[Dropped, ...]:
    BANK.to_csv(folder / "bank.csv", index=False)
    SHOP.to_csv(folder / "shop.csv", index=False)
    both = BANK.merge(SHOP, on="id")
    both.to_csv(folder / "both.csv", index=False)
    for part in data.get("parties", {}).values():
        if "file" in part:
            part["file"] = str(folder / part["file"])
    if "file" in data:
        data["file"] = str(folder / data["file"])
    plan = make_plan({"data": {"label": "default", "rules": {"missing": "median"}, **data}}).filled()
    return open_source(plan.data, plan.seed).dropped


def test_every_column_of_the_files_that_takes_no_part_is_listed(tmp_path: Path) -> None:
    """The id, the label and what became a feature are not."""
    parties = {"bank": {"file": "bank.csv"}, "shop": {"file": "shop.csv"}}
    assert dropped(tmp_path, parties=parties, id="id", ignore=["secret"]) == EXPECTED


def test_columns_that_the_plan_does_not_list_take_no_part(tmp_path: Path) -> None:
    parties = {"bank": {"file": "bank.csv"}, "shop": {"file": "shop.csv", "columns": ["visits", "note"]}}
    found = dropped(tmp_path, parties=parties, id="id")
    assert [one.column for one in found if one.why == "ignored by the plan"] == ["street", "gone", "spend", "secret"]
    assert Dropped("shop", "note", "free text or a key") in found


def test_columns_of_one_file_belong_to_whom_the_plan_says(tmp_path: Path) -> None:
    parties = {"bank": {"columns": ["age", "branch"]}, "shop": {"columns": ["visits", "note"]}}
    found = dropped(tmp_path, file="both.csv", parties=parties, active="bank")
    assert Dropped("bank", "branch", "constant") in found
    assert Dropped("shop", "note", "free text or a key") in found
    assert Dropped("", "secret", "ignored by the plan") in found
    assert not {"age", "visits", "default"} & {one.column for one in found}


def test_a_known_data_set_has_only_what_the_plan_ignores() -> None:
    plan = make_plan({"data": {"name": "breast", "ignore": ["mean area"]}}).filled()
    assert open_source(plan.data).dropped == (Dropped("", "mean area", "ignored by the plan"),)


@pytest.mark.parametrize("rule", ["categories", "dates", "missing"])
def test_columns_dropped_by_a_rule_name_it(rule: str, tmp_path: Path) -> None:
    shop = {
        "categories": RNG.choice(list("abc"), ROWS),
        "dates": pd.date_range("2020-01-01", periods=ROWS).strftime("%Y-%m-%d"),
        "missing": np.where(np.arange(ROWS) == 3, np.nan, np.arange(ROWS) % 7),
    }
    table = SHOP[["id", "visits"]].assign(column=shop[rule])
    rules = {rule: "drop_column" if rule == "missing" else "drop"}
    table.to_csv(tmp_path / "shop.csv", index=False)
    BANK[["id", "age", "default"]].to_csv(tmp_path / "bank.csv", index=False)
    files = {name: {"file": str(tmp_path / f"{name}.csv")} for name in ("bank", "shop")}
    plan = make_plan({"data": {"parties": files, "id": "id", "label": "default", "rules": rules}}).filled()
    (found,) = open_source(plan.data).dropped
    assert (found.party, found.column) == ("shop", "column")
    assert found.why.endswith(f"by the rule '{rule}'")


def test_a_recording_keeps_what_takes_no_part(tmp_path: Path) -> None:
    made = federation_of("bank", {"bank": BANK[["age"]], "shop": SHOP[["note", "visits"]]}, BANK["default"])
    log = world("secure_boost")
    seal_dropped(log, made.dropped)
    assert dropped_of(log) == (Dropped("shop", "note", "free text or a key"),)
    log.save(tmp_path / "run.zip")
    plan = make_plan({"data": {"recorded": str(tmp_path / "run.zip")}}).filled()
    assert open_source(plan.data).dropped == made.dropped
    assert dropped_of(open_recorded(written(tmp_path / "files"))) == ()


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '[["shop", "note"]]', '[["shop", "note", 3]]', "[7]", "null", "[" * 9_000]
)
def test_a_list_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    log = world("secure_boost")
    seal_dropped(log, [])
    state = {DROPPED: np.frombuffer(text.encode(), dtype=np.uint8)}
    resealed(log, "coordinator", state).save(tmp_path / "run.zip")
    with pytest.raises(BadInput, match="columns that take no part"):
        open_recorded(tmp_path / "run.zip")


def test_terminal_report_and_assessment_say_what_was_not_audited(tmp_path: Path) -> None:
    result = audit(
        bank=BANK,
        shop=SHOP,
        id="id",
        label="default",
        out=tmp_path / "out",
        protocols="logistic_regression",
        attacks=["equation_solving"],
        trials=1,
        missing="median",
    )
    assert result.not_audited == EXPECTED[:5]
    lines = str(result).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("Not audited: 5 columns (bank: 'url'"))
    assert place <= 2
    assert "shop: 'note', free text or a key; 'street'" in " ".join(str(result).split())
    for name in ("report.html", "assessment.html"):
        page = (tmp_path / "out" / name).read_text()
        listed = page.partition('id="not-audited"')[2].partition("</ul>")[0]
        assert listed.count("<li>") == 5
        assert "shop: &#39;street&#39;, too many categories (100)" in listed


def test_where_every_column_takes_part_nothing_is_said() -> None:
    shown = io.StringIO()
    print_summary(samples.audit(), Console(file=shown, width=200))
    assert "Not audited" not in shown.getvalue()
    assert not_audited.headline([]) == ""


def test_a_long_list_is_cut_and_names_are_no_markup() -> None:
    many = [Dropped("shop", f"c{i}", "constant") for i in range(20)]
    assert not_audited.headline(many).endswith("'c5', constant; and 14 more in the report)")
    assert len(not_audited.listed(many)) == 20
    shown = io.StringIO()
    hostile = replace(many[0], column="[red]\x1b[0m")
    print_summary(samples.audit(), Console(file=shown, width=200), None, Asked(dropped=(hostile,)))
    assert "\x1b" not in shown.getvalue()
    assert "[red]" in shown.getvalue()
