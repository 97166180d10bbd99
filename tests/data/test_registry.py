"""The registry: every entry is what it says, and files are found, checked and refused as they should be."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from plumbob.data import registry
from plumbob.data.catalogue import DATA_SETS
from plumbob.data.prepare import Rules
from plumbob.data.registry import content_digest, data_folder, images, load, verify
from plumbob.errors import BadInput
from plumbob.federation import shape_of

pytestmark = pytest.mark.nodata

TABLES = [name for name, entry in DATA_SETS.items() if entry.kind == "table"]
PICTURES = [name for name, entry in DATA_SETS.items() if entry.kind == "image"]
BUILT_IN = [name for name, entry in DATA_SETS.items() if entry.kind == "built-in"]
CONSTANT = {"mushroom": 1, "digits": 3}  # columns that preparation drops


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("PLUMBOB_DATA", str(tmp_path))
    return tmp_path


def check_table(name: str) -> None:
    entry, table = DATA_SETS[name], load(name)
    assert table.values.shape == (entry.rows, entry.features - CONSTANT.get(name, 0))
    assert len(table.classes) == entry.classes
    assert table.label is not None
    assert set(np.unique(table.label)) == set(range(entry.classes))
    assert table.public


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_set_is_as_declared(name: str) -> None:
    check_table(name)


@pytest.mark.needs_data(parameter="name")
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_declared(name: str) -> None:
    check_table(name)


@pytest.mark.needs_data(parameter="name")
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_as_declared(name: str) -> None:
    entry, (pictures, labels) = DATA_SETS[name], images(name)
    assert (len(pictures), pictures[0].size, len(np.unique(labels))) == (entry.rows, entry.features, entry.classes)
    assert (pictures.dtype.name, labels.dtype.name) == ("uint8", "int64")


@pytest.mark.needs_data(parameter="name")
@pytest.mark.parametrize("name", [name for name in (*TABLES, *PICTURES) if not DATA_SETS[name].variant_of])
def test_the_content_hash_is_that_of_the_file(name: str) -> None:
    entry, root = DATA_SETS[name], data_folder()
    assert root is not None
    assert entry.file is not None
    assert content_digest(root / entry.file) == entry.content_sha256


def test_a_synthetic_set_is_the_same_every_time() -> None:
    first, second = load("synthetic-1"), load("synthetic-1")
    assert np.array_equal(first.values, second.values)


def test_breast_has_its_real_column_names() -> None:
    assert load("breast").names[:2] == ("mean radius", "mean texture")


@pytest.mark.needs_data(parameter="name")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("bank", {"no": 36_548, "yes": 4_640}),
        ("bank-full", {"no": 39_922, "yes": 5_289}),
        ("news-2", {"below 1400": 18_490, "from 1400 on": 21_154}),
        ("nursery", {"not_recom": 4_320, "recommend": 2, "very_recom": 328, "priority": 4_266, "spec_prior": 4_044}),
        ("student", {"fail": 130, "pass": 265}),
    ],
)
def test_classes_have_the_published_sizes(name: str, counts: dict[str, int]) -> None:
    table = load(name)
    assert table.label is not None
    assert dict(zip(table.classes, np.bincount(table.label).tolist(), strict=True)) == counts


@pytest.mark.needs_data("nursery")
def test_rules_override_those_of_the_entry() -> None:
    assert "indicator" in {column.kind for column in load("nursery", rules=Rules(categories="onehot")).columns}


@pytest.mark.needs_data("credit")
def test_no_feature_is_an_identifier() -> None:
    assert "ID" not in load("credit").names


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(BadInput, match="no data set 'covertyp'; did you mean 'covertype'"):
        load("covertyp")


@pytest.mark.needs_data("cifar10")
def test_pictures_are_a_table_of_pixels_in_their_places() -> None:
    table = load("cifar10")
    pictures, labels = images("cifar10")
    assert shape_of(table.columns) == (3, 32, 32)
    assert (table.values.reshape(-1, 3, 32, 32)[7, :, 4, 9] * 255 == pictures[7, 4, 9]).all()
    assert (table.label == labels).all()
    assert table.public


def test_a_table_is_no_pictures() -> None:
    with pytest.raises(BadInput, match="'bank' is a table"):
        images("bank")


def test_a_missing_file_names_both_ways_to_get_it(folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load("bank")
    assert "set PLUMBOB_DATA to the folder that holds 'bank/bank.csv.gz'" in str(caught.value)
    assert "run `plumbob data fetch bank`" in str(caught.value)


def test_a_missing_file_that_cannot_be_fetched_says_why(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot be fetched: .* Excel 97 workbook"):
        load("credit")


def test_a_changed_file_is_refused(folder: Path) -> None:
    (folder / "nursery").mkdir()
    (folder / "nursery" / "nursery.csv.gz").write_bytes(gzip.compress(b"a,class\n1,x\n"))
    assert verify("nursery") == "changed"
    with pytest.raises(BadInput, match="its checksum differs; replace it with `plumbob data fetch nursery`"):
        load("nursery")


def test_a_damaged_file_counts_as_changed(folder: Path) -> None:
    (folder / "mnist").mkdir()
    (folder / "mnist" / "mnist.npz").write_bytes(b"not pictures")
    assert verify("mnist") == "changed"


@pytest.mark.needs_data("nursery")
def test_a_file_mended_within_the_process_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Path(os.environ["PLUMBOB_DATA"], "nursery", "nursery.csv.gz").read_bytes()
    monkeypatch.setenv("PLUMBOB_DATA", str(tmp_path))
    path = tmp_path / "nursery" / "nursery.csv.gz"
    path.parent.mkdir()
    states = []
    for content in (right[:-1], right):
        path.write_bytes(content)
        states.append(verify("nursery"))
    assert states == ["changed", "ok"]


@pytest.mark.needs_data("nursery")
def test_the_same_cells_in_another_packing_are_the_same_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = data_folder()
    assert root is not None
    cells = gzip.decompress((root / "nursery" / "nursery.csv.gz").read_bytes()).decode()
    lines = [";".join(f'"{cell}"' for cell in line.split(",")) for line in cells.splitlines()]
    monkeypatch.setenv("PLUMBOB_DATA", str(tmp_path))
    (tmp_path / "nursery").mkdir()
    (tmp_path / "nursery" / "nursery.csv.gz").write_bytes(gzip.compress("\r\n".join(lines).encode(), 1))
    assert verify("nursery") == "ok"


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets_need_no_file(folder: Path, name: str) -> None:
    assert verify(name) == "ok"


def test_the_cache_is_used_once_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLUMBOB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() is None
    registry.cache_folder().mkdir(parents=True)
    assert data_folder() == tmp_path / "plumbob" / "data"


@pytest.mark.parametrize("name", [*TABLES, *PICTURES])
def test_every_file_has_an_official_source_or_a_reason(name: str) -> None:
    assert DATA_SETS[name].urls or DATA_SETS[name].unfetchable
