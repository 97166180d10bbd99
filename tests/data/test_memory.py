"""Tables larger than memory: refused with the size needed, or a sample of the same people is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbob import memory
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.open_data import open_source
from plumbob.data.files import memory_need, read_frame
from plumbob.data.sampling import read_sample
from plumbob.errors import BadInput
from tests.commands import plumbob

ROWS = 30_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two parties that share two thirds of their people, in different order, as plain text and as gzip."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(3)
    ids = np.array([f"{i:06d}" for i in range(ROWS + ROWS // 2)])
    bank = pd.DataFrame({"id": rng.permutation(ids[:ROWS]), "income": rng.normal(size=ROWS)})
    bank["label"] = np.where(rng.random(ROWS) < 0.5, "a", "b")
    shop = pd.DataFrame({"id": rng.permutation(ids[ROWS // 3 :])})
    for i in range(20):
        shop[f"basket {i}"] = [f"{int(one)}.{i:03d}" for one in shop["id"]]  # tells whose row it is
    bank.to_csv(folder / "bank.csv", index=False)
    shop.to_csv(folder / "shop.csv.gz", index=False, sep=";")
    return {"bank": folder / "bank.csv", "shop": folder / "shop.csv.gz"}


def test_a_table_that_does_not_fit_is_refused_with_what_it_needs(files: dict[str, Path], monkeypatch) -> None:
    assert len(read_frame(files["shop"])) > ROWS
    monkeypatch.setenv(memory.VARIABLE, "20")
    with pytest.raises(BadInput, match=r"needs about \d+ MB of memory and 21 MB are free; .*sample") as refused:
        read_frame(files["shop"])
    assert str(refused.value).count(". ") == 0
    assert len(read_frame(files["bank"])) == ROWS


def test_the_need_is_estimated_from_what_is_in_a_gzip_file(files: dict[str, Path], tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    read_frame(files["shop"], text=["id"]).to_csv(plain, index=False)
    assert memory_need(files["shop"]) == pytest.approx(memory_need(plain), rel=0.2)


@pytest.mark.parametrize("said", ["0", "much", "-3", "1.5"])
def test_a_limit_that_is_no_number_is_one_sentence(said: str, monkeypatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, said)
    with pytest.raises(BadInput, match="expected the memory to use in MB"):
        memory.available()


def test_every_party_keeps_the_same_people(files: dict[str, Path], monkeypatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "20")
    frames, notes = read_sample(files, rows=500, seed=1, id_column="id")
    people = [set(frame["id"]) for frame in frames.values()]
    assert people[0] == people[1]
    assert len(people[0]) == 500
    assert notes == ("500 of 20,000 shared rows taken at random ('sample')",)
    shop = frames["shop"]
    assert all(int(one) == int(basket) for one, basket in zip(shop["id"], shop["basket 7"], strict=True))


def test_the_sample_is_of_the_seed_and_not_of_the_memory(files: dict[str, Path], monkeypatch) -> None:
    ample = read_sample(files, rows=500, seed=1, id_column="id")[0]["bank"]
    other = read_sample(files, rows=500, seed=2, id_column="id")[0]["bank"]
    monkeypatch.setenv(memory.VARIABLE, "20")
    scarce = read_sample(files, rows=500, seed=1, id_column="id")[0]["bank"]
    pd.testing.assert_frame_equal(ample, scarce)
    assert 0 < len(set(ample["id"]) & set(other["id"])) < 100
    assert abs(ample["income"].mean()) < 0.2  # no tilted choice: 4.5 standard errors


def test_parquet_and_text_give_the_same_sample(files: dict[str, Path], tmp_path: Path) -> None:
    stored = tmp_path / "bank.parquet"
    read_frame(files["bank"], text=["id"]).to_parquet(stored, index=False)
    text = read_sample(files, rows=500, seed=1, id_column="id")[0]["bank"]
    columns = read_sample(files | {"bank": stored}, rows=500, seed=1, id_column="id")[0]["bank"]
    assert list(text["id"]) == list(columns["id"])
    np.testing.assert_allclose(text["income"], columns["income"])


def test_a_sample_larger_than_what_is_shared_is_everybody(files: dict[str, Path]) -> None:
    frames, notes = read_sample(files, rows=10**6, seed=0, id_column="id")
    assert len(frames["bank"]) == ROWS
    assert notes == ()


def test_a_plan_with_a_sample_is_opened_where_the_table_does_not_fit(files: dict[str, Path], monkeypatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "20")
    data = {"parties": {n: str(f) for n, f in files.items()}, "id": "id", "label": "label", "sample": 400}
    source = open_source(make_plan({"data": data | {"align": "ids"}}).data)
    assert len(source.label) == 400
    single = {"file": str(files["bank"]), "label": "label", "sample": 400, "active": "x"}
    single |= {"parties": {"x": {"columns": ["id"]}, "y": {"columns": ["income"]}}}
    assert any("400 of 30,000" in note for note in open_source(make_plan({"data": single}).data).notes)


def test_init_takes_a_sample(files: dict[str, Path], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "20")
    words = ["init", "--party", f"bank={files['bank']}", "--party", f"shop={files['shop']}"]
    words += ["--id", "id", "--label", "label", "--out", str(tmp_path / "plan.yaml")]
    refused = plumbob(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--sample" in refused.stderr
    done = plumbob(*words, "--sample", "300", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sample: 300" in (tmp_path / "plan.yaml").read_text()


def test_ragged_rows_are_told_in_a_sample_too(files: dict[str, Path], tmp_path: Path) -> None:
    ragged = tmp_path / "bank.csv"
    ragged.write_bytes(files["bank"].read_bytes() + b"1,2,3,4\n")
    with pytest.raises(BadInput, match=r"row 30,001 has 4 columns, the header has 3"):
        read_sample(files | {"bank": ragged}, rows=100, seed=0, id_column="id")
