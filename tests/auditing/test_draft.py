"""First plans: what is seen, what is refused, and plans that are what was meant whatever the names are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.auditing.drafting.draft_plan import _scalar, draft
from plumbob.auditing.drafting.init_choices import (
    Wishes,
    fitting_defences,
    fitting_protocols,
    fitting_threats,
    named_files,
)
from plumbob.auditing.planning.plan import Plan
from plumbob.auditing.planning.plan_file import plan_from_text, read_plan
from plumbob.auditing.planning.plan_fits_data import check_fit
from plumbob.auditing.running.open_data import open_source
from plumbob.errors import BadInput
from plumbob.protocols import PROTOCOLS
from tests.report.samples import HOSTILE


def wishes(folder: Path, rows: int = 200, **columns: str) -> Wishes:
    """A bank and a shop of the same people; columns can be renamed."""
    rng = np.random.default_rng(0)
    ids = [f"c{i:04d}" for i in range(rows)]
    bank = pd.DataFrame({"id": ids, "age": rng.integers(18, 80, rows), "default": rng.choice(["yes", "no"], rows)})
    shop = pd.DataFrame(
        {"id": ids, "basket": rng.normal(size=rows), "city": rng.choice(["rome", "oslo", "bern"], rows)}
    )
    bank.rename(columns=columns).to_csv(folder / "bank.csv", index=False)
    shop.rename(columns=columns).to_csv(folder / "shop.csv", index=False)
    return Wishes(parties={"bank": folder / "bank.csv", "shop": folder / "shop.csv"}, id="id", label="default")


def change(path: Path, column: str, values: object) -> None:
    frame = pd.read_csv(path)
    frame[column] = values
    frame.to_csv(path, index=False)


def refusal(wanted: Wishes, folder: Path) -> str:
    with pytest.raises(BadInput) as error:
        draft(wanted, folder)
    return str(error.value)


def test_a_draft_is_the_plan_it_says_and_tells_counts(tmp_path: Path) -> None:
    made = draft(wishes(tmp_path), tmp_path)
    (tmp_path / "plan.yaml").write_text(made.text)
    assert read_plan(tmp_path / "plan.yaml").digest == made.plan.digest
    assert made.seen == (
        "bank: 200 rows, 200 distinct ids; columns: 1 number",
        "shop: 200 rows, 200 distinct ids; columns: 1 number, 1 category",
        "shared by all parties: 200 rows; 'bank' is active, its label has 2 classes",
    )
    assert str(tmp_path) not in made.text
    assert not any(value in made.text + "".join(made.seen) for value in ("rome", "c0001"))


def test_a_plan_in_another_folder_finds_the_files(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    made = draft(wishes(tmp_path), tmp_path / "plans")
    assert "bank: ../bank.csv" in made.text
    assert made.plan.data.parties["bank"].file == (tmp_path / "bank.csv").resolve()


def test_every_key_of_a_plan_is_explained(tmp_path: Path) -> None:
    text = draft(wishes(tmp_path), tmp_path).text + draft(Wishes(data="breast"), tmp_path).text
    assert [key for key in Plan.model_fields if f"{key}:" not in text] == []


def test_every_choice_is_kept(tmp_path: Path) -> None:
    wanted = replace(
        wishes(tmp_path),
        protocols=("logistic_regression",),
        threats=("active-auxiliary",),
        defences=("rounding+hide_model", "none"),
        ignore=("city",),
        effort="thorough",
    )
    plan = draft(wanted, tmp_path).plan
    assert [d.name for d in plan.defences] == ["rounding+hide_model", "none"]
    assert (plan.threats[0].name, plan.data.ignore, plan.effort) == ("active-auxiliary", ("city",), "thorough")
    assert len(draft(replace(wanted, defences=("sweep",)), tmp_path).plan.defences) > 5


@pytest.mark.parametrize("name", [*HOSTILE[:-1], "yes", "1", "null", "a: b # c", "- x", "*a", "{}", "\\", '"'])
def test_hostile_names_are_written_as_they_are(tmp_path: Path, name: str) -> None:
    wanted = wishes(tmp_path, id=name)
    for file in ("bank.csv", "shop.csv"):  # names are read without the blanks around them
        assert name.strip() in pd.read_csv(tmp_path / file).columns
    made = draft(
        replace(wanted, id=name, parties={name: tmp_path / "bank.csv", "shop": tmp_path / "shop.csv"}), tmp_path
    )
    (tmp_path / "plan.yaml").write_text(made.text, encoding="utf-8")
    plan = read_plan(tmp_path / "plan.yaml")
    assert plan.data.id == name
    assert list(plan.data.parties) == [name, "shop"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_any_text_is_a_scalar_on_one_line(name: str) -> None:
    line = _scalar(name)
    assert "\n" not in line
    plan = plan_from_text(f"data: {{name: breast, ignore: [{line}]}}", "text", Path())
    assert plan.data.ignore == (name,)


def test_missing_values_get_a_rule(tmp_path: Path) -> None:
    wanted = wishes(tmp_path)
    change(tmp_path / "shop.csv", "basket", [np.nan, *np.linspace(0, 1, 199)])
    made = draft(wanted, tmp_path)
    assert made.plan.data.rules.missing == "median"
    assert any("1 missing value" in line for line in made.seen)


def test_ids_that_repeat_are_told(tmp_path: Path) -> None:
    wanted = wishes(tmp_path)
    change(tmp_path / "shop.csv", "id", [f"c{max(i, 10):04d}" for i in range(200)])
    seen = draft(wanted, tmp_path).seen
    assert "shop: 200 rows, 190 distinct ids" in seen[1]
    assert any("10 rows with duplicate ids" in line for line in seen)


def test_what_cannot_work_is_refused_with_one_sentence(tmp_path: Path) -> None:
    wanted = wishes(tmp_path)
    assert "did you mean 'default'?" in refusal(replace(wanted, label="defalt"), tmp_path)
    assert "no id column 'customer'" in refusal(replace(wanted, id="customer"), tmp_path)
    assert "--label-bins" in refusal(replace(wanted, label="basket"), tmp_path)
    assert "did you mean 'city'?" in refusal(replace(wanted, ignore=("citi",)), tmp_path)
    alone = replace(wanted, threats=("coordinator",), protocols=("split_network",))  # in which there is no coordinator
    assert "--protocol boosted_trees or " in refusal(alone, tmp_path)
    assert "no defence 'rouding'" in refusal(replace(wanted, defences=("rouding",)), tmp_path)
    change(tmp_path / "bank.csv", "city", "rome")
    assert "--active" in refusal(replace(wanted, label="city"), tmp_path)
    change(tmp_path / "shop.csv", "id", [f"d{i}" for i in range(200)])
    assert "do not overlap" in refusal(wanted, tmp_path)


def test_too_few_rows_are_refused_with_how_many_would_do(tmp_path: Path) -> None:
    assert refusal(wishes(tmp_path, rows=69), tmp_path) == (
        "69 shared rows, half used for training, leave 35 to predict; 50 are needed. "
        "Supply 100 shared rows, or 70 with `train_share: 0.29`"
    )


@pytest.mark.parametrize(("rows", "share"), [(70, 0.29), (71, 0.3), (89, 0.4), (99, 0.45), (100, 0.5)])
def test_a_small_table_gets_a_share_that_leaves_enough_rows(rows: int, share: float, tmp_path: Path) -> None:
    made = draft(wishes(tmp_path, rows=rows), tmp_path)
    plan = plan_from_text(made.text, "plan", tmp_path).filled()
    source = open_source(plan.data.model_copy(update={"align": "ids"}))
    check_fit(plan, source)
    assert plan.train_share == share
    assert (f"0.5 of {rows:,} rows would leave fewer than the 50" in made.text) == (share < 0.5)


@pytest.mark.parametrize("rows", [70, 77, 89, 99])
def test_the_share_that_a_refusal_names_works_and_so_do_the_rows(rows: int, tmp_path: Path) -> None:
    plan = draft(wishes(tmp_path, rows=rows), tmp_path).plan.filled()
    small = open_source(plan.data.model_copy(update={"align": "ids"}))
    wanted = plan.model_copy(update={"train_share": 0.5})
    with pytest.raises(
        BadInput, match=rf"^{rows} shared rows, half used .* leave \d+ to predict; 50 are needed\. Set"
    ) as told:
        check_fit(wanted, small)
    share, more = re.findall(r"train_share: ([\d.]+)` or supply (\d+)", str(told.value))[0]
    check_fit(plan.model_copy(update={"train_share": float(share)}), small)
    enough = draft(wishes(tmp_path, rows=int(more)), tmp_path).plan.filled()
    assert enough.train_share == 0.5


@pytest.mark.parametrize("pairs", [["bank"], ["=bank.csv"], ["bank="], ["a=x.csv", "a=y.csv"]])
def test_parties_are_written_as_name_and_file(pairs: list[str]) -> None:
    with pytest.raises(BadInput, match="--party"):
        named_files(pairs)


def test_only_what_fits_is_offered() -> None:
    assert "collusion" not in fitting_threats(["logistic_regression"], "bank", ["bank", "shop"])
    assert "collusion" in fitting_threats(["logistic_regression"], "bank", ["bank", "shop", "post"])
    assert set(PROTOCOLS) - set(fitting_protocols(["coordinator"])) == {"secure_boost", "split_network"}
    assert "fake_gradients" not in fitting_defences(replace(Wishes(), protocols=("logistic_regression",)))


def test_where_training_is_the_exchange_both_sides_are_asked_about(tmp_path: Path) -> None:
    made = draft(replace(wishes(tmp_path), protocols=("split_network",)), tmp_path)
    assert [part.name for part in made.plan.threats] == ["active-training", "passive-training"]
    assert [part.name for part in draft(wishes(tmp_path), tmp_path).plan.threats] == ["active"]
