"""Reading files: what is kept as it is, and one sentence without values for what cannot be read."""

import gzip
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.data.files import read_frame, sniff
from plumbob.errors import BadInput


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_separator_is_sniffed(tmp_path: Path, separator: str) -> None:
    frame = read_frame(write(tmp_path, "a.csv", f"age{separator}job\n31{separator}cook\n"))
    assert frame.to_dict("list") == {"age": [31], "job": ["cook"]}


@given(st.sampled_from(",;\t|"), st.lists(st.from_regex(r"[a-z ,;|]{1,8}", fullmatch=True), min_size=2, max_size=6))
def test_a_separator_inside_quotes_does_not_mislead(separator: str, names: list[str]) -> None:
    header = separator.join(f'"{name}"' for name in names)
    assert sniff(header) == separator


def test_gzip_and_plain_read_the_same(tmp_path: Path) -> None:
    content = "a,b\n1,x\n2,y\n"
    plain = read_frame(write(tmp_path, "a.csv", content))
    packed = read_frame(write(tmp_path, "a.csv.gz", gzip.compress(content.encode())))
    pd.testing.assert_frame_equal(plain, packed)


def test_parquet_gives_back_the_frame_with_its_named_index_as_a_column(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="who")).to_parquet(tmp_path / "a.parquet")
    assert read_frame(tmp_path / "a.parquet").to_dict("list") == {"who": ["x", "y"], "a": [1, 2]}


def test_only_an_empty_cell_is_missing(tmp_path: Path) -> None:
    frame = read_frame(write(tmp_path, "a.csv", "root,n\n?,1\nNA,2\n,3\nnull,4\n"))
    assert frame["root"].isna().tolist() == [False, False, True, False]


def test_a_number_column_with_a_word_keeps_every_cell_as_text(tmp_path: Path) -> None:
    assert read_frame(write(tmp_path, "a.csv", "n,m\n1.50,1\nx,2\n"))["n"].tolist() == ["1.50", "x"]


def test_text_columns_keep_leading_zeros(tmp_path: Path) -> None:
    assert read_frame(write(tmp_path, "a.csv", "id,n\n007,1\n"), text=("id",))["id"].tolist() == ["007"]


def test_mark_spaces_and_line_ends_of_other_systems_do_not_matter(tmp_path: Path) -> None:
    frame = read_frame(write(tmp_path, "a.csv", b"\xef\xbb\xbfa, b\r\n1, x\r\n2, y\r\n\r\n"))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_a_blank_line_in_a_file_of_one_column_is_a_missing_value(tmp_path: Path) -> None:
    assert read_frame(write(tmp_path, "a.csv", "a\n1\n\n3\n"))["a"].isna().tolist() == [False, True, False]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    assert read_frame(write(tmp_path, "a.csv", "a\n0.30000000000000004\n"))["a"][0] == 0.1 + 0.2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "\n \n", "is empty"),
        ("a.csv", "a,b\n", "has no rows"),
        ("a.csv", "a,b,a\n1,2,3\n", "duplicate column 'a'"),
        ("a.csv", b"a,b\n1,\xe9\n", r"is not UTF-8 text \(line 2\)"),
        ("a.csv", b"a,b\n1,\0\n", "is not a text file"),
        ("a.csv", "a,b\n1,2\n3\n", "1 row differs in width from the header of 2 columns, the first is row 2 with 1"),
        ("a.csv", "a,b\n1,2\n3,4,5\n6,7,8\n", "2 rows differ in width .* the first is row 2 with 3"),
        ("a.csv", 'a,b\n"1,2",3\n"x\ny"\n', "the first is row 2 with 1"),
        ("a.csv.gz", b"not gzip", "is not a complete gzip file"),
        ("a.csv.gz", gzip.compress(b"a,b\n" * 500, mtime=0)[:-9], "is not a complete gzip file"),
        ("a.parquet", "a,b\n", "is not a readable Parquet file"),
        ("a.xlsx", "a,b\n", "has an unknown format"),
    ],
)
def test_what_cannot_be_read_gets_one_sentence(tmp_path: Path, name: str, content: str | bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_frame(write(tmp_path, name, content))


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path, "bank.csv", "a\n1\n")
    with pytest.raises(BadInput, match=r"no file .*; did you mean 'bank\.csv'"):
        read_frame(tmp_path / "bnak.csv")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        read_frame(tmp_path)


def test_an_error_never_shows_a_cell(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        read_frame(write(tmp_path, "a.csv", "a,b\nsecret,1\nsecret\n"))
    assert "secret" not in str(caught.value)
