"""Preparing tables: what each column becomes, and one sentence without values for what cannot become one."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.data.prepare import CHOICES, Rules, complete_rows, prepare
from plumbob.errors import BadInput
from plumbob.federation import Column, Table


def made(columns: dict[str, object], rules: Rules | None = None, **options: object) -> Table:
    return prepare(pd.DataFrame(columns), name="toy", rules=rules, where="party 'bank'", **options)  # type: ignore[arg-type]  # options vary by test


def refused(columns: dict[str, object], rules: Rules | None = None, **options: object) -> str:
    with pytest.raises(BadInput) as caught:
        made(columns, rules, **options)
    return str(caught.value)


def column(cells: object, rules: Rules | None = None) -> tuple[Column, list[float]]:
    table = made({"a": cells}, rules)
    return table.columns[0], table.values[:, 0].tolist()


# rules


@pytest.mark.parametrize("rule", CHOICES)
def test_a_wrong_word_for_a_rule_is_refused_with_the_known_ones(rule: str) -> None:
    with pytest.raises(BadInput, match=f"rule '{rule}': expected .*{CHOICES[rule][-1]}, got 'nonsense'"):
        Rules(**{rule: "nonsense"})


def test_a_close_word_is_suggested() -> None:
    with pytest.raises(BadInput, match="did you mean 'onehot'"):
        Rules(categories="one-hot")


# numbers


def test_numbers_are_scaled_to_the_unit_range_and_the_raw_range_is_kept() -> None:
    assert column([10, 20, 40]) == (Column("a", "number", "", 10.0, 40.0, 1.0), [0.0, 1 / 3, 1.0])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=20))
def test_scaled_numbers_stay_in_the_unit_range_in_their_order(cells: list[float]) -> None:
    values = made({"a": cells}, Rules(constant="keep")).values[:, 0]
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(values[np.argsort(cells)]) >= 0)


def test_a_range_too_wide_for_a_float_is_scaled_all_the_same() -> None:
    assert column([-1.7e308, 0.0, 1.7e308])[1] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    "cells", [["1", " 2.5 ", "4e0"], [decimal.Decimal("1"), decimal.Decimal("2.5"), 4], [1, 2.5, 4]]
)
def test_numbers_in_other_clothes_are_numbers(cells: list[object]) -> None:
    assert column(cells) == (Column("a", "number", "", 1.0, 4.0, 0.1), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("cells", [[True, False, True], [5, 3, 5], ["yes", "no", "yes"], ["5", "3", "5"]])
def test_two_values_are_binary(cells: list[object]) -> None:
    found, values = column(cells)
    assert (found.kind, values) == ("binary", [1.0, 0.0, 1.0])


def test_words_among_numbers_are_refused_by_count_and_row() -> None:
    cells = [*map(str, range(10)), "secret", "secret2"]
    sentence = refused({"age": cells})
    assert "party 'bank': column 'age'" in sentence
    assert "2 cells cannot be read as a number, the first in row 11" in sentence
    assert "secret" not in sentence


def test_a_category_may_hold_some_numbers() -> None:
    assert column(["1", "2", "3", "more"])[0].kind == "category"


@pytest.mark.parametrize("mark", ["NA", "n/a", "-", "?", "."])
def test_na_in_a_column_of_numbers_is_missing(mark: str) -> None:
    assert "has 1 missing value;" in refused({"age": ["1", "2", "3", "4", mark]})
    assert "has 1 missing value;" in refused({"age": ["1,5", "2,5", "3", "4", mark]})


def test_decimal_commas_are_read_and_noted() -> None:
    assert column(["1,0", " -2,5", "4", "1e0"])[1] == [3.5 / 6.5, 0.0, 1.0, 3.5 / 6.5]
    table = prepare(pd.DataFrame({"age": ["1,5", "2,5", "3"]}), name="t", where="party 'bank'")
    assert table.notes == ("party 'bank': read as numbers with decimal commas: 'age'",)


def test_points_part_thousands_where_commas_part_decimals() -> None:
    assert column(["8.435,5", "1.970", "0"])[1] == pytest.approx([1.0, 1970 / 8435.5, 0.0])


def test_a_leading_zero_makes_a_decimal_comma() -> None:
    assert column(["0,388", "1,500", "0,500"])[1] == pytest.approx([0.0, 1.0, 0.112 / 1.112])


@pytest.mark.parametrize("mark", ["NA", "?", "-"])
def test_marks_in_a_column_of_dates_are_missing(mark: str) -> None:
    cells = [*(f"{day:02d}.03.2020" for day in range(1, 29)), mark]
    assert "has 1 missing value;" in refused({"since": cells})
    table = prepare(pd.DataFrame({"since": cells}), name="t", where="t", rules=Rules(missing="median"))
    assert table.columns[0].kind == "date"
    assert table.values[[0, 27, 28], 0] == pytest.approx([0.0, 1.0, 0.5])


def test_commas_that_may_be_thousands_are_refused() -> None:
    sentence = refused({"age": ["1,500", "2,500", "3"]})
    assert "may be decimals or thousands" in sentence
    assert "500" not in sentence


def test_words_with_commas_stay_words() -> None:
    assert column(["1,2", "3,4", "a,b"])[0].kind == "category"


INFINITE = [[1.0, 2.0, np.inf], ["1", "2", "-inf"], ["1", "2", "1e400"], [1.0, 2.0, float("-inf")]]


@pytest.mark.parametrize("cells", INFINITE)
def test_infinity_is_refused(cells: list[object]) -> None:
    assert "column 'a' has 1 infinite value (such as inf or 1e400), the first in row 3" in refused({"a": cells})


@pytest.mark.parametrize("cells", INFINITE)
def test_a_rule_for_missing_cells_is_one_for_infinite_cells_too_and_a_note_says_so(cells: list[object]) -> None:
    frame = pd.DataFrame({"a": [*cells, cells[0]], "b": [1, 2, 3, 4]})
    table = prepare(frame, name="t", where="t", rules=Rules(missing="median"))
    assert table.values[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert any(
        "1 cell is infinite or too large for a number and counted as missing: 'a'" in note for note in table.notes
    )


def test_a_note_counts_the_cells_that_are_missing_in_words() -> None:
    frame = pd.DataFrame({"a": ["1", "nan", "NA", "?", "", "6"], "c": ["x", "y", "NaN", "x", "z", "x"]})
    table = prepare(frame, name="t", where="t", rules=Rules(missing="median"))
    told = [note for note in table.notes if "counted as missing" in note]
    assert told == [
        "t: read as numbers stored as text; 3 cells are marked (such as nan, NA or ?) and counted as missing: 'a'",
        "t: 1 cell is marked (such as nan, NA or ?) and counted as missing: 'c'",
    ]


def test_an_infinite_label_is_refused_whatever_the_rule() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "y": ["0", "1", "inf", "1"]})
    with pytest.raises(BadInput, match="'y' has 1 infinite value"):
        prepare(frame, name="t", label="y", where="t", rules=Rules(missing="median"))


def test_a_label_that_is_ignored_is_refused() -> None:
    with pytest.raises(BadInput, match="'ignore' names the label 'y'"):
        prepare(pd.DataFrame({"a": [1, 2], "y": [0, 1]}), name="t", label="y", ignore=["y"], where="t")


def test_lists_in_cells_are_refused() -> None:
    assert "not numbers, text or dates" in refused({"a": [[1], [2]]})


# categories


def test_categories_are_coded_in_sorted_order() -> None:
    assert column(["c", "a", "b", " a"]) == (Column("a", "category", "", 0.0, 2.0, 1.0), [1.0, 0.0, 0.5, 0.0])


def test_onehot_makes_one_indicator_a_value() -> None:
    table = made({"job": ["cook", "smith", "baker", "cook"]}, Rules(categories="onehot"))
    assert table.columns == tuple(Column(f"job={i}", "indicator", "job", step=1.0) for i in (1, 2, 3))
    assert table.values.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_an_indicator_must_not_take_another_columns_name() -> None:
    columns = {"a": ["x", "y", "z"], "a=1": [1, 2, 3]}
    assert "name of another column" in refused(columns, Rules(categories="onehot"))


def test_categories_can_be_dropped() -> None:
    table = made({"job": ["x", "y", "z"], "age": [1, 2, 3]}, Rules(categories="drop"))
    assert table.names == ("age",)


def test_pandas_categories_are_read_by_their_values() -> None:
    assert column(pd.Categorical([3, 1, 2], categories=[3, 2, 1]))[1] == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("rows", "distinct", "kind"),
    [(60, 50, "category"), (60, 51, "dropped"), (2_000, 100, "category"), (2_000, 101, "dropped"), (25, 24, "dropped")],
)
def test_text_is_a_category_only_with_few_distinct_values(rows: int, distinct: int, kind: str) -> None:
    table = made({"text": [f"word {i % distinct}" for i in range(rows)], "n": range(rows)})
    assert (table.columns[0].kind if len(table.columns) == 2 else "dropped") == kind


@pytest.mark.parametrize("name", ["id", "ID", "Url", "uuid", ""])
def test_identifiers_never_become_features(name: str) -> None:
    table = made({name: [1, 2, 3], "n": [1, 2, 3]})
    assert table.names == ("n",)
    assert table.notes == (f"party 'bank': dropped as identifiers: '{name}'",)


# dates


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01-01", "2020-01-03", "2020-01-05"],
        ["2020-01-01T00:00:00Z", "2020-01-03 00:00:00+00:00", "2020-01-05"],
        ["01.01.2020", "03.01.2020", "05.01.2020"],
        ["1 Jan 2020", "3 Jan 2020", "5 Jan 2020"],
        pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-05"]),
        [datetime.date(2020, 1, day) for day in (1, 3, 5)],
    ],
)
def test_dates_become_days_since_the_earliest(cells: object) -> None:
    assert column(cells) == (Column("a", "date", "", 0.0, 4.0, 1.0), [0.0, 0.5, 1.0])


def test_a_day_above_twelve_tells_the_order_of_day_and_month() -> None:
    assert column(["01/13/2020", "01/15/2020", "01/17/2020"])[0].high == 4.0


def test_dates_can_be_dropped() -> None:
    table = made({"day": ["2020-01-01", "2020-01-02", "2020-01-03"], "n": [1, 2, 3]}, Rules(dates="drop"))
    assert table.names == ("n",)


# missing cells


def test_missing_values_are_refused_by_count() -> None:
    assert refused({"age": [1, None, 3, None, None]}) == (
        "party 'bank': column 'age' has 3 missing values; "
        "fill them or set 'missing' to median, drop_rows or drop_column"
    )


@pytest.mark.parametrize("gap", ["", "  ", "NaN", None])
def test_blank_cells_in_text_are_missing(gap: str | None) -> None:
    assert "has 1 missing value;" in refused({"job": ["x", "y", "z", gap]})


@pytest.mark.parametrize(
    ("cells", "filled"),
    [
        ([0.0, 1.0, 4.0, np.nan], 0.25),
        (["a", "b", "c", "c", None], 1.0),
        ([0, 1, 1, 0, 0, 1, 1, np.nan], 1.0),
        (["2020-01-01", "2020-01-02", "2020-01-05", ""], 0.25),
    ],
)
def test_median_fills_with_the_median_or_the_most_frequent(cells: list[object], filled: float) -> None:
    assert column(cells, Rules(missing="median"))[1][-1] == filled


def test_filled_cells_are_marked_in_every_column_that_they_became() -> None:
    columns = {
        "age": [30, None, 50, 40],
        "job": ["x", "y", None, "y"],
        "visits": [1, 2, 3, 4],
        "since": ["2020-01-01", "", "2020-01-05", "2020-01-09"],
    }
    table = made(columns, Rules(missing="median", categories="onehot"))
    assert table.names == ("age", "job", "visits", "since")  # two words are one binary column
    assert table.filled is not None
    assert np.argwhere(table.filled).tolist() == [[1, 0], [1, 3], [2, 1]]
    three = made(columns | {"job": ["x", "y", None, "z"]}, Rules(missing="median", categories="onehot"))
    assert three.filled is not None
    assert three.filled[2].tolist() == [False, True, True, True, False, False]
    part = table.only([3, 0]).rows(np.array([1, 0]))
    assert part.filled is not None
    assert part.filled.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("missing", ["refuse", "median", "drop_rows", "drop_column"])
def test_where_nothing_is_filled_nothing_is_marked(missing: str) -> None:
    gap = None if missing.startswith("drop") else 3
    assert made({"a": [1, 2, gap, 5], "b": [1, 2, 3, 5]}, Rules(missing=missing)).filled is None


def test_drop_rows_drops_the_labels_of_those_rows_too() -> None:
    table = made({"a": [1, None, 3, 4], "y": ["u", "v", "u", "w"]}, Rules(missing="drop_rows"), label="y")
    assert table.label is not None
    assert (table.label.tolist(), table.classes, len(table.values)) == ([0, 0, 1], ("u", "w"), 3)


def test_categories_of_dropped_rows_leave_no_code_behind() -> None:
    table = made({"a": ["p", "q", "r", "s"], "b": [1, None, 3, 4]}, Rules(missing="drop_rows"))
    assert table.columns[0].high == 2.0


def test_complete_rows_are_those_that_drop_rows_keeps() -> None:
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", "y", ""], "empty": [None, None, None]})
    assert complete_rows(frame, where="party 'bank'").tolist() == [True, False, False]


def test_dropping_every_row_is_refused() -> None:
    assert "every row has a missing value" in refused({"a": [1, None], "b": [None, 1]}, Rules(missing="drop_rows"))


def test_drop_column_drops_it_with_a_note() -> None:
    table = made({"a": [1, None, 3], "b": [1, 2, 3]}, Rules(missing="drop_column"))
    assert (table.names, table.notes) == (("b",), ("party 'bank': column 'a' dropped for 1 missing value",))


# constants and emptiness


def test_a_constant_column_is_dropped_with_a_note() -> None:
    table = made({"a": [7, 7, 7], "b": [1, 2, 3]})
    assert (table.names, table.notes) == (("b",), ("party 'bank': dropped as constant: 'a'",))


def test_a_constant_column_can_be_kept() -> None:
    assert column([7, 7], Rules(constant="keep")) == (Column("a", "number", "", 7.0, 7.0), [0.0, 0.0])


def test_no_column_left_is_refused() -> None:
    assert refused({"a": [7, 7], "id": [1, 2]}).startswith("party 'bank' has no columns")


def test_no_rows_are_refused() -> None:
    assert refused({"a": []}) == "party 'bank' has no rows"


def test_a_column_name_used_twice_is_refused() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(BadInput, match="duplicate column 'a'"):
        prepare(frame, name="toy", where="party 'bank'")


def test_ignored_columns_are_left_out() -> None:
    assert made({"a": [1, 2], "b": [3, 4]}, ignore=("a",)).names == ("b",)


def test_an_unknown_ignored_column_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'salary'" in refused({"salary": [1, 2]}, ignore=("salery",))


# the label


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["no", "yes", "no"], ("no", "yes")),
        ([1, 7, 1], ("1", "7")),
        ([10, 9, 10], ("9", "10")),
        ([0.5, 1.0, 0.5], ("0.5", "1")),
        ([True, False, True], ("False", "True")),
    ],
)
def test_classes_are_named_after_their_values(cells: list[object], classes: tuple[str, ...]) -> None:
    assert made({"a": [1, 2, 3], "y": cells}, label="y").classes == classes


def test_label_indices_point_to_classes() -> None:
    table = made({"a": [1, 2, 3], "y": ["b", "a", "b"]}, label="y")
    assert table.label is not None
    assert table.label.tolist() == [1, 0, 1]
    assert table.names == ("a",)


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["x", None] * 30, "label 'y' has 30 missing values"),
        (["x"] * 60, "has only one value"),
        (list(range(60)), "has 60 distinct numbers, too many for classes; bin it"),
        ([f"name {i}" for i in range(60)], "has 60 distinct texts"),
    ],
)
def test_a_label_that_cannot_be_classes_is_refused(cells: list[object], sentence: str) -> None:
    assert sentence in refused({"a": range(60), "y": cells}, label="y")


def test_an_unknown_label_is_refused_with_a_suggestion() -> None:
    assert "no label column 'traget'; did you mean 'target'" in refused({"target": [1, 2]}, label="traget")


def test_quantile_bins_are_of_equal_size_and_in_order() -> None:
    table = made({"a": range(100), "y": range(100)}, label="y", label_bins=5)
    assert table.label is not None
    assert table.classes == ("q1", "q2", "q3", "q4", "q5")
    assert np.bincount(table.label).tolist() == [20] * 5
    assert np.all(np.diff(table.label) >= 0)


def test_a_value_on_the_edge_belongs_to_the_lower_bin() -> None:
    table = made({"a": range(5), "y": [1, 2, 3, 4, 5]}, label="y", label_bins=2)
    assert table.label is not None
    assert table.label.tolist() == [0, 0, 0, 1, 1]


def test_too_few_values_for_the_bins_are_refused() -> None:
    assert "too few distinct values for 5 bins" in refused({"a": range(9), "y": [1, 2, 3] * 3}, label="y", label_bins=5)


# privacy of the notes


def test_no_note_holds_a_value() -> None:
    cells = {
        "job": ["secret1", "secret2", "secret3"] * 20,
        "sex": ["secret4", "secret5"] * 30,
        "who": [f"secret {i}" for i in range(60)],
        "one": ["secret6"] * 60,
        "gap": ["secret7", None, "secret8"] * 20,
    }
    notes = made(cells, Rules(missing="median")).notes
    assert notes
    assert not any("secret" in note for note in notes)
