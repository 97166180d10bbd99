"""The pages in a real browser: list, filter, sort, compare, dark mode, a phone, and the keyboard alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from plumbob.view.server import Server
from tests.browser import chromium
from tests.view import audits

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SHOWN = "[...document.querySelectorAll('#runs tbody tr:not([hidden]) .open bdi')].map(e => e.textContent)"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(audits.tree(tmp_path_factory.mktemp("browsed")), 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Page]:
    """The list, in a tab that fails its test on any error and any request to elsewhere."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request", lambda request: troubles.append(request.url) if not request.url.startswith((url, "data:")) else None
    )
    page.goto(url)
    yield page
    context.close()
    assert troubles == []


def test_the_list_filters_by_words_and_by_choice(tab: Page) -> None:
    assert len(tab.evaluate(SHOWN)) == 7
    tab.fill("#filter", "ROUNDED")
    assert tab.evaluate(SHOWN) == ["team/rounded"]
    assert tab.text_content("#shown") == "1 of 7 shown"
    tab.fill("#filter", "")
    tab.select_option("#verdict", label="no leak")
    assert tab.evaluate(SHOWN) == ["team/rounded"]
    tab.select_option("#verdict", label="any")
    tab.select_option("#defence", label="rounding(digits=1)")
    assert tab.evaluate(SHOWN) == ["team/rounded"]
    tab.select_option("#defence", label="none")
    assert tab.evaluate(SHOWN) == ["bare", "half", "strange", "planless"]


def test_names_from_files_do_nothing(tab: Page) -> None:
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("#runs img").count() == 0
    assert "<script>window.hacked=1</script>" in tab.inner_text("#runs")


def test_it_sorts(tab: Page) -> None:
    assert tab.evaluate(SHOWN)[0] == "team/rounded"
    head = tab.locator("#runs th", has_text="Columns leaking").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    keys = tab.evaluate("[...document.querySelectorAll('#runs tbody td:nth-child(3)')].map(e => +e.dataset.k)")
    assert keys == sorted(keys, reverse=True)


def test_two_marked_audits_are_compared(tab: Page, url: str) -> None:
    assert tab.is_disabled("#go")
    tab.check("input[value='bare']")
    assert tab.text_content("#picked") == "Mark one more."
    tab.check("input[value='team/rounded']")
    tab.click("#go")
    assert tab.url == f"{url}compare?run=team%2Frounded&run=bare"  # in the order of the list
    assert "5 worse in the second" in tab.inner_text("h1").replace("\u00a0", " ")
    assert "seed" in tab.inner_text("#differ")
    row = tab.locator("#columns tr", has_text="income").inner_text()
    assert "worse: no leak became recovered" in row
    tab.click("text=Swap")
    assert "5 better" in tab.inner_text("h1")


def test_the_theme_follows_the_system_until_it_is_chosen_and_is_remembered(tab: Page) -> None:
    tab.emulate_media(color_scheme="light")
    light = tab.evaluate(BACKGROUND)
    tab.emulate_media(color_scheme="dark")
    dark = tab.evaluate(BACKGROUND)
    assert light != dark
    tab.click("#theme")
    assert (tab.evaluate(BACKGROUND), tab.text_content("#theme")) == (light, "Dark mode")
    tab.reload()
    assert tab.evaluate(BACKGROUND) == light
    tab.emulate_media(color_scheme="light")
    tab.click("#theme")
    assert tab.evaluate(BACKGROUND) == dark


def test_a_phone_does_not_scroll_sideways(tab: Page, url: str) -> None:
    tab.set_viewport_size({"width": 360, "height": 740})
    assert tab.evaluate(OVERFLOW) == 0
    assert tab.evaluate("document.querySelector('#runs').getBoundingClientRect().right") <= 360  # not even in its box
    tab.goto(f"{url}compare?run=bare&run=hostile/a%20b%20%C3%BC")
    assert tab.evaluate(OVERFLOW) == 0


def test_the_keyboard_is_enough(tab: Page) -> None:
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the audits"
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "filter"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.evaluate(outline) == "solid"
    tab.keyboard.type("a/b")  # a slash is typed, where one types
    assert tab.input_value("#filter") == "a/b"
    tab.keyboard.press("Escape")
    assert tab.input_value("#filter") == ""
    assert len(tab.evaluate(SHOWN)) == 7
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.textContent") == "team/rounded"
    assert tab.evaluate(outline) == "solid"
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.textContent") == "bare"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/run/bare/report.html")
    assert "5\u00a0of\u00a010 columns leak" in tab.inner_text("h1")
    tab.locator("#column-table thead button").first.press("Enter")  # its script runs in the sandbox
    assert tab.locator("#column-table thead th").first.get_attribute("aria-sort") == "ascending"


def test_everything_has_a_name_for_a_screen_reader(tab: Page) -> None:
    unnamed = tab.evaluate(
        """[...document.querySelectorAll('input, select, button, a, [role=region], table, form[role]')].filter(e =>
            !(e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-labelledby'))
        ).map(e => e.outerHTML)"""
    )
    assert unnamed == []
    assert tab.locator("tbody th[scope=row]").count() == 7
    assert "Something is wrong: no plan.yaml" in tab.inner_text("#runs")
