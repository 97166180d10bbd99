import itertools
import re
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.report import canvas, charts, figures
from plumbob.report.answer import answers
from plumbob.report.canvas import Axis
from plumbob.report.charts import Bar, Dot, Point, Series
from plumbob.scoring.leak_levels import Level
from tests.report import samples


def parsed(drawing: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(drawing))


def titles(root: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in root.iter("title")]


@pytest.mark.parametrize(("low", "high"), [(0, 0.17), (-0.25, 1), (3, 4700), (1e-9, 3e-9), (0.2, 0.6)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = canvas.nice_ticks(low, high)
    assert 3 <= len(ticks) <= 8
    assert low <= ticks[0] + 1e-9
    assert ticks[-1] <= high * (1 + 1e-9)


def test_axes_place_values_and_clamp() -> None:
    assert Axis("x", 0, 2).place(1, 10, 30) == 20
    assert Axis("x", 0, 2).place(99, 10, 30) == 30
    assert Axis("x", 0.01, 1, log=True).place(0.1, 0, 10) == pytest.approx(5)
    assert Axis("x", 0.01, 1, log=True).place(0, 0, 10) == 0
    assert Axis("x", 0.001, 10, log=True).ticks() == pytest.approx([0.001, 0.01, 0.1, 1, 10])


def test_labels_move_apart_in_order() -> None:
    moved = canvas.spread([50.0, 51.0, 10.0, 52.0], 15, 0, 100)
    assert moved[2] < moved[0] < moved[1] < moved[3]
    ordered = sorted(moved)
    assert all(b - a >= 15 for a, b in itertools.pairwise(ordered))
    assert max(canvas.spread([98.0, 99.0, 100.0], 15, 0, 100)) <= 100


def test_text_is_cut_to_its_room() -> None:
    assert canvas.fit("short", 200) == "short"
    cut = canvas.fit("列" * 50, 120)
    assert cut.endswith("…")
    assert canvas.text_width(cut) <= 132


def test_a_line_chart_has_its_marks_band_and_names() -> None:
    points = tuple(Point(x, x / 2, x / 2 - 0.05, x / 2 + 0.05, f"at {x}") for x in (0.2, 0.4))
    series = [Series("esa", points, 0), Series("guess", points, 1, dashed=True)]
    root = parsed(charts.line_chart(series, Axis("x", 0.2, 0.4), Axis("y", 0, 1), "a label"))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "a label"
    assert sum("mark s0" in (e.get("class") or "") for e in root.iter("path")) == 2
    assert [e.get("stroke-dasharray") for e in root.iter("path") if e.get("stroke-dasharray")] == ["7 4"]
    assert sum("band" in (e.get("class") or "") for e in root.iter("path")) == 1
    assert {"esa", "guess"} <= {text.text for text in root.iter("text")}


def test_a_bar_beyond_the_chart_has_an_arrow() -> None:
    bars = [Bar("a", -9, -10, -8, "-900 %", "t", "none"), Bar("b", 0.5, 0.4, 0.6, "50 %", "t", "leak")]
    root = parsed(charts.bar_chart(bars, Axis("gain", -0.25, 1), "label"))
    assert sum(e.get("class") == "beyond" for e in root.iter("path")) == 1
    assert len(list(root.iter("rect"))) == 2


def test_levels_differ_in_shape() -> None:
    assert set(canvas.LEVEL_SHAPES) == set(Level)
    dots = [Dot(0.5, 0.5, level, level) for level in canvas.LEVEL_SHAPES]
    root = parsed(charts.scatter(dots, Axis("x", 0, 1), Axis("y", 0, 1), "label"))
    marks = [e for e in root.iter("path") if "mark" in (e.get("class") or "")]
    assert len({(e.get("d"), "hollow" in (e.get("class") or "")) for e in marks}) == len(canvas.LEVEL_SHAPES)


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_any_name_stays_text(name: str) -> None:
    clean = name.replace("\x1b", "")
    bar = Bar(clean, 0.5, 0.4, 0.6, clean, clean, "leak")
    root = parsed(charts.bar_chart([bar], Axis("gain", 0, 1), clean))
    assert {e.tag for e in root.iter()} <= {"svg", "path", "text", "rect", "title"}
    assert root.get("aria-label", "").split() == clean.split()


def test_error_chart_is_lines_for_several_shares_and_bars_for_one() -> None:
    for shares, tag in (((0.2, 0.4), "band"), ((0.3,), "rect")):
        found = conclude(samples.values(shares=shares))
        (figure,) = figures.error_figures(answers(found), figures.attack_styles(found.summaries))
        assert tag in str(figure.drawings[0])
        assert len(figure.rows) == len(shares) * 8


def test_branches_show_the_correct_rate() -> None:
    found = conclude(samples.branches())
    (figure,) = figures.error_figures(answers(found), figures.attack_styles(found.summaries))
    shown = float(figure.rows[0][2])
    assert shown == pytest.approx(1 - found.summaries[0].error, abs=1e-3)
    assert "random path" in {row[0] for row in figure.rows}


def test_an_error_far_above_guessing_asks_for_a_logarithmic_scale() -> None:
    series = [Series("bad", (Point(0, 50, 40, 60, ""),), 0), Series("guess", (Point(0, 0.1, 0.1, 0.1, ""),), 0, True)]
    axis = figures._error_axis("values", series)
    assert axis.log
    assert axis.low <= 0.1
    assert axis.high >= 60


def test_many_columns_are_drawn_in_part_and_it_says_so() -> None:
    found = answers(conclude(samples.values([f"c{i}" for i in range(200)], shares=(0.3,))))
    (figure,) = figures.column_figures(found)
    assert len(re.findall("<rect", str(figure.drawings[0]))) == 30
    assert "worst 30 of 200 columns" in figure.caption


def test_correlations_are_drawn_for_own_columns_and_scores() -> None:
    (figure,) = figures.correlation_figures(answers(conclude(samples.values(shares=(0.3,)))))
    assert [len(titles(parsed(drawing))) for drawing in figure.drawings] == [10, 10]
    assert "Eq 16" in str(figure.drawings[0])
    assert "Eq 17" in str(figure.drawings[1])


def test_what_was_not_tested_is_never_drawn_as_nothing() -> None:
    gap = Gap("logistic_regression", "coordinator", "none", "Plumbob has no attack for this party here")
    seen = samples.capped(samples.values(shares=(0.3,), threat="coordinator"), high=0.9)
    findings = [*samples.values(shares=(0.3,)), *(f for f in seen if f.score.metric == "ceiling")]
    found = answers(conclude(findings, [gap]))
    assert len(found) == 2
    for drawn in (figures.column_figures(found), figures.correlation_figures(found)):
        assert ["coordinator" in figure.heading for figure in drawn] == [False]
    (missing,) = figures.undrawn(found)
    assert missing.endswith("seen by coordinator")


def test_a_column_in_which_nothing_was_found_has_no_bar_but_its_limit() -> None:
    (found,) = answers(conclude(samples.capped(samples.values(shares=(0.3,)))))
    (figure,) = figures.column_figures([found])
    none = [column.verdict.column for column in found.columns if column.level is Level.NONE]
    assert f"no leak above 3 % was found in the other {len(none)}." in figure.caption
    texts = [text.text for text in parsed(figure.drawings[0]).iter("text")]
    assert texts.count("below 3 %") == len(none)
