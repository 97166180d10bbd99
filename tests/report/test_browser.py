"""The page in a real browser: it draws, sorts, fits a phone, follows dark mode, prints, and fetches nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from plumbob.auditing.concluding.conclusion import NO_ATTACK, conclude
from plumbob.auditing.concluding.untried import Gap
from plumbob.auditing.planning.gate import Gate
from plumbob.auditing.planning.matrix import matrix
from plumbob.auditing.running.finding import Finding
from plumbob.report.answer import answers, overall
from plumbob.report.assessment import Member
from plumbob.report.assessment import render as render_assessment
from plumbob.report.facts import Asked
from plumbob.report.page import About, render
from plumbob.report.pictures import png
from plumbob.scoring.leak_levels import Level
from plumbob.threats import THREATS
from tests.browser import chromium
from tests.report import samples

GATE = Gate.parse("max_gain<0.5 and exact_columns==0")
SHEET = png(np.full((160, 700, 3), 90, dtype=np.uint8))
GAPS = (
    Gap("nowhere", "active", "none", NO_ATTACK),
    Gap("nowhere", "passive-training", "none", "it gets no message", meaningful=False),
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
NAMES = "[...document.querySelectorAll('#column-table tbody th > bdi')].map(e => e.textContent)"


MANY = [f"column {i}" for i in range(200)]
KINDS: dict[str, Callable[[], list[Finding]]] = {
    "levels": samples.every_level,
    "audit": lambda: samples.capped(samples.audit()),
    "hostile": lambda: samples.values(
        samples.HOSTILE, shares=(0.3,), data=samples.HOSTILE[0], defence=samples.HOSTILE[5]
    ),
    "many": lambda: samples.values(MANY, shares=(0.3,), trials=2),
    "sweep": lambda: samples.capped(samples.sweep()),
    "pictures": lambda: samples.pictures() + samples.pictures("noise (sigma=0.1)", 0.3),
    "hostile pictures": lambda: samples.pictures(
        samples.HOSTILE[5], data=samples.HOSTILE[7], attack=samples.HOSTILE[1]
    ),
    "hostile sweep": lambda: samples.capped(samples.sweep(data=samples.HOSTILE[7], protocol=samples.HOSTILE[1])),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for kind, make in KINDS.items():
        findings = make()
        conclusion = conclude(findings, GAPS)
        about = About(
            title=samples.HOSTILE[0] if kind == "hostile" else "Bank and shop",
            question="What will they learn?",
            plan="attacks: [" + "box_solving, " * 40 + "]",
            environment={"python": "3.11", "flags": "x" * 300},
            notes=["one note"],
            command="plumbob audit " + "--seed 7 " * 30,
            sheets={f.key: SHEET for f in findings if f.score.images is not None},
            asked=Asked(matrix=tuple(matrix({"logistic_regression": "logistic_regression"}))),
            gate=GATE.outcome(findings, conclusion),
        )
        text = render(findings, about, conclusion)
        (folder / f"{kind}.html").write_text(text, encoding="utf-8")
    return {kind: folder / f"{kind}.html" for kind in KINDS}


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A page that fails its test on any script error or any request but the file itself."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url) if not _own(request.url) else None)
    page.route("**/*", lambda route: route.continue_() if _own(route.request.url) else route.abort())
    yield page
    page.close()
    assert troubles == []


def _own(url: str) -> bool:
    return url.startswith("file://") and url.endswith(".html")


def test_every_chart_is_drawn(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["audit"].as_uri())
    charts = tab.locator("svg.chart")
    assert charts.count() == 12 + 2 + 1  # three questions, which protection, and before and after it
    for chart in charts.all():
        box = chart.bounding_box()
        assert box
        assert box["width"] > 200
        assert box["height"] > 100
        assert chart.locator(".mark").count() > 0


def test_chart_text_stays_inside_its_chart(tab: Page, files: dict[str, Path]) -> None:
    for kind in ("audit", "hostile", "sweep", "hostile sweep", "pictures", "hostile pictures"):
        tab.goto(files[kind].as_uri())
        outside = tab.evaluate(
            """[...document.querySelectorAll('svg.chart')].flatMap(svg => {
                const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll('text')].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.right > frame.right + 6 || box.left < frame.left - 6;
                }).map(text => text.textContent);
            })"""
        )
        assert outside == []


def test_the_table_sorts_by_mouse_and_by_keyboard(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["audit"].as_uri())
    before = tab.evaluate(NAMES)
    head = tab.locator("#column-table thead th").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert tab.evaluate(NAMES) == sorted(before)
    head.locator("button").focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert tab.evaluate(NAMES) == sorted(before, reverse=True)
    gain = tab.locator("#column-table thead th", has_text="Gain")
    gain.locator("button").press("Space")
    assert gain.get_attribute("aria-sort") == "descending"
    assert head.get_attribute("aria-sort") is None
    keys = tab.evaluate("[...document.querySelectorAll('#column-table td.gains')].map(e => +e.dataset.k)")
    assert keys == sorted(keys, reverse=True)
    assert tab.locator("#sorted").text_content() == "Sorted by Gain, descending"


def shown(tab: Page, selector: str) -> list[dict[str, float]]:
    return tab.evaluate(f"[...document.querySelectorAll('{selector}')].map(e => e.getBoundingClientRect().toJSON())")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["levels", "audit", "sweep"])
def test_the_answer_and_every_gain_fit_phone_and_screen(
    tab: Page, files: dict[str, Path], kind: str, width: int, scheme: str
) -> None:
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    tab.goto(files[kind].as_uri())
    assert tab.evaluate(OVERFLOW) == 0
    rows = tab.locator("#column-table tbody tr").count()
    for part, least in ((".gain", 180), (".num", 20)):
        boxes = shown(tab, f"#column-table td.gains {part}")
        assert len(boxes) == rows > 6
        assert all(0 <= box["left"] and box["right"] <= width and box["width"] >= least for box in boxes)
    table = tab.evaluate(
        "[...document.querySelectorAll('.scroll:has(#column-table)')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert table == [0]  # nothing of it is out of sight
    assert min(tab.evaluate(CONTRASTS)) >= 4.5


@pytest.mark.parametrize("kind", ["levels", "audit", "sweep", "hostile", "pictures"])
def test_headline_and_threats_are_those_of_the_conclusion(tab: Page, files: dict[str, Path], kind: str) -> None:
    conclusion = conclude(KINDS[kind](), GAPS)
    tab.goto(files[kind].as_uri())
    assert overall(answers(conclusion)) in tab.inner_text("h1").replace("\u00a0", " ")
    assert tab.locator(f".hero.{conclusion.level.css}").count() == 1
    rows = tab.locator("#threats tr.situation")
    assert rows.count() == len(conclusion.situations)
    tab.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    told = rows.all_inner_texts()
    assert sum("not tested" in text and NO_ATTACK in text for text in told) == 1
    assert sum("not applicable" in text and "it gets no message" in text for text in told) == 1


def test_every_level_has_a_colour_of_its_own_that_is_not_the_safe_one(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["levels"].as_uri())
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tones = tab.evaluate(
            "[...document.querySelectorAll('#column-table .badge')].map(e => [e.className, getComputedStyle(e).color])"
        )
        assert len({css for css, _ in tones}) == len(Level)
        assert len({colour for _, colour in tones}) == len(Level)


def test_the_bar_is_drawn_for_every_column_and_explained_once(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["levels"].as_uri())
    assert tab.locator(".legend.bars").count() == 1
    assert tab.locator(".legend.bars .sample").count() == 5
    assert tab.locator("#column-table .own").count() == 7  # of the one that is held already nothing is to be learnt
    lengths = shown(tab, "#column-table .floor")
    assert [round(box["width"]) for box in lengths] == sorted((round(box["width"]) for box in lengths), reverse=True)
    assert tab.locator("#column-table .unseen").count() == 2  # undecided and safe; nobody looked at the one not tested


def test_what_to_do_next_has_commands_that_fit(tab: Page, files: dict[str, Path]) -> None:
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(files["levels"].as_uri())
    assert tab.locator("#next pre").first.inner_text() == "plumbob audit plan.yaml --sweep --out swept"
    assert all(box["right"] <= 390 for box in shown(tab, "#next pre"))


@pytest.mark.parametrize("kind", ["audit", "hostile", "many", "sweep", "hostile sweep", "hostile pictures"])
def test_a_phone_does_not_scroll_sideways(tab: Page, files: dict[str, Path], kind: str) -> None:
    tab.set_viewport_size({"width": 360, "height": 740})
    tab.goto(files[kind].as_uri())
    assert tab.evaluate(OVERFLOW) == 0
    tab.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert tab.evaluate(OVERFLOW) == 0


def test_the_protection_chart_marks_the_choice_and_fades_the_dominated(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["sweep"].as_uri())
    drawn = tab.locator("#protection .protection-chart > figure svg.chart")
    assert drawn.count() == 2
    for chart in drawn.all():
        assert chart.locator(".ring").count() == 1
        assert chart.locator("text.chosen").text_content() == "✓ hide_model"
        assert chart.locator("g.faded .mark").count() > 0
        assert chart.locator(".line.base").count() > 0
    overlaps = tab.evaluate(
        """[...document.querySelectorAll('#protection .protection-chart > figure svg.chart')].map(svg => {
            const boxes = [...svg.querySelectorAll('text.name:not(.base)')].map(e => e.getBoundingClientRect());
            return boxes.some((a, i) => boxes.some((b, j) => i < j && a.top < b.bottom - 4 && b.top < a.bottom - 4));
        })"""
    )
    assert overlaps == [False, False]


def test_the_protection_table_sorts_by_cost(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["sweep"].as_uri())
    tab.locator("#protection-table-1 thead button", has_text="Points lost").click()
    rows = tab.evaluate("[...document.querySelectorAll('#protection-table-1 tbody th > bdi')].map(e => e.textContent)")
    assert rows[:2] == ["verification", "noise (sigma=1.0)"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_table_of_defences_is_seen_whole_with_what_leaks_first(
    tab: Page, files: dict[str, Path], width: int, scheme: str
) -> None:
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    tab.goto(files["sweep"].as_uri())
    hidden = (
        "[...document.querySelectorAll('.scroll:has([id^=protection-table])')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert tab.evaluate(hidden) == [0]
    first = tab.locator("#protection-table-1 tbody tr").first
    assert [cell.get_attribute("data-label") for cell in first.locator("td").all()][:3] == [
        "Columns leaking",
        "Worst column",
        "Leak",
    ]
    boxes = shown(tab, "#protection-table-1 tbody tr td")
    assert all(0 <= box["left"] and box["right"] <= width for box in boxes)


def test_what_is_not_known_is_a_list_that_the_answer_leads_to(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["levels"].as_uri())
    tab.click("#answer a[href='#not-known']")
    assert tab.evaluate("location.hash") == "#not-known"
    told = tab.locator("#not-known li").all_inner_texts()
    assert sum(NO_ATTACK in text for text in told) == 1
    assert sum("not applicable: it gets no message" in text for text in told) == 1
    assert any("undecided" in text for text in told)


def test_the_gate_the_matrix_and_before_and_after_are_seen(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["sweep"].as_uri())
    tab.click("text=The gate is broken")
    assert tab.locator("#gate").evaluate("e => Math.abs(e.getBoundingClientRect().top) < innerHeight")
    assert tab.locator("#gate-table .badge", has_text="failed").count() > 0
    assert tab.locator("#gate-table .badge", has_text="passed").count() > 0
    assert tab.locator(".matrix tbody tr").count() == sum(not threat.deviations for threat in THREATS.values())
    assert "not applicable" in tab.inner_text("#matrix").lower()  # to who is sent nothing
    marks = tab.locator(".before-after svg.chart path.mark")
    assert marks.count() == 2 * len(samples.NAMES)
    places = tab.evaluate(
        "[...document.querySelectorAll('.before-after svg.chart path.mark')].map(e => e.getBoundingClientRect().left)"
    )
    assert all(before > after for before, after in zip(places[::2], places[1::2], strict=True))


def test_contact_sheets_and_their_charts_are_drawn(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["pictures"].as_uri())
    sheets = tab.locator("#pictures img")
    assert sheets.count() == 2
    assert all(sheet.evaluate("e => e.complete && e.naturalWidth") == 700 for sheet in sheets.all())
    drawn = tab.locator("#pictures svg.chart")
    assert drawn.count() == 3  # quantiles, the attack's path, the loss of training
    assert all(chart.locator(".mark").count() > 0 for chart in drawn.all())


def test_dark_mode_has_its_own_colours_and_contrast(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["sweep"].as_uri())
    seen = []
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        seen.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert min(tab.evaluate(CONTRASTS)) >= 4.5
    assert seen[0] != seen[1]


def test_it_prints_in_light_colours_on_whole_pages(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["audit"].as_uri())
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.set_viewport_size({"width": 700, "height": 1000})
    assert tab.evaluate("document.querySelector('#column-table').getBoundingClientRect().right") <= 700
    tab.set_viewport_size({"width": 1030, "height": 700})
    assert tab.evaluate("document.querySelector('#settings-table').getBoundingClientRect().right") <= 1030
    paper = tab.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") > 1


def test_hostile_names_do_nothing(tab: Page, files: dict[str, Path]) -> None:
    tab.goto(files["hostile"].as_uri())
    assert tab.evaluate("window.hacked") is None
    assert samples.HOSTILE[0] in tab.evaluate(NAMES)
    assert tab.title() == samples.HOSTILE[0]


def test_the_assessment_fits_phone_paper_and_dark_mode(tab: Page, tmp_path: Path) -> None:
    from tests.report.test_assessment import about, with_flows

    names = (*samples.NAMES, *samples.HOSTILE)
    subject = about(members=(Member(samples.HOSTILE[5], True, names, 9),), data=samples.HOSTILE[7])
    text = render_assessment(subject, with_flows(samples.sweep() + samples.values(names)), made={})
    (tmp_path / "assessment.html").write_text(text, encoding="utf-8")
    tab.goto((tmp_path / "assessment.html").as_uri())
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        assert min(tab.evaluate(CONTRASTS)) >= 4.5
    tab.set_viewport_size({"width": 360, "height": 740})
    assert tab.evaluate(OVERFLOW) == 0
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.set_viewport_size({"width": 700, "height": 1000})
    rights = "[...document.querySelectorAll('table')].map(e => e.getBoundingClientRect().right)"
    assert max(tab.evaluate(rights)) <= 700
    assert tab.pdf(format="A4").startswith(b"%PDF")
    assert tab.evaluate("window.hacked") is None


CONTRASTS = """(() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => {
        const [r, g, b] = channels(colour).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if ((channels(colour)[3] ?? 1) > 0) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const kinds = "p, h1, h2, h3, h4, dt, dd, td, th, a, li, .badge, .say, summary, caption";
    const elements = [...document.querySelectorAll(kinds)];
    const texts = [...document.querySelectorAll("svg.chart text")];
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return [
        ...elements.map((e) => ratio(light(getComputedStyle(e).color), light(behind(e)))),
        ...texts.map((e) => ratio(light(getComputedStyle(e).fill), light(behind(e.closest("figure"))))),
    ];
})()"""
