import re
from html.parser import HTMLParser
from typing import Any

import pytest

from plumbob.auditing.running.finding import Finding
from plumbob.report.page import POLICY, About, render
from tests.report import samples

VOID = {"meta", "img", "br", "hr", "link", "input"}


def page(findings: list[Finding], **changes: Any) -> str:
    settings: dict[str, Any] = {
        "title": "Bank and shop",
        "question": "What will they learn?",
        "plan": "threat: active\nattacks: [box_solving]\n",
        "environment": {"python": "3.11"},
        "notes": ["path_restriction does not apply"],
        "command": "plumbob audit plan.yaml --seed 7",
    }
    return render(findings, About(**(settings | changes)))


class Reader(HTMLParser):
    """Checks that tags close in order, and keeps tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def test_the_answer_is_the_first_heading() -> None:
    text = page(samples.values())
    heading = re.search(r"<h1>(.*?)</h1>", text, re.S)
    assert heading
    assert (
        "Yes: 6\u00a0of\u00a010 columns leak (1 in order only) to the active party; 4\u00a0of\u00a010 are undecided."
        in heading.group(1)
    )
    assert text.index("<h1>") < text.index('id="column-table"') < text.index('id="charts"') < text.index('id="method"')


def test_same_findings_same_bytes() -> None:
    assert page(samples.audit()) == page([Finding.from_line(f.to_line()) for f in samples.audit()])


def test_nothing_is_fetched() -> None:
    reader = Reader(page(samples.audit()))
    policies = [attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [POLICY]
    assert not {"link", "img", "iframe", "object", "image", "use"} & {tag for tag, _ in reader.tags}
    links = [attrs[key] or "" for _, attrs in reader.tags for key in ("href", "src") if key in attrs]
    assert links
    assert all(link.startswith("#") for link in links)


def test_every_column_has_a_row_with_verdict_and_attack() -> None:
    text = page(samples.values([f"c{i}" for i in range(200)], shares=(0.3,)))
    body = text.split('id="column-table"')[1].split("</table>")[0]
    assert body.count("<tr ") == 201
    assert len(text.encode()) < 1_000_000


def test_verdicts_are_in_words_and_not_only_in_colour() -> None:
    words = Reader(page(samples.capped(samples.values()))).words
    for said in ("recovered exactly", "better than guessing (", "the order of the rows is learnt", "no leak above 3"):
        assert said in words


def test_it_says_what_it_is_for_and_what_it_cannot_tell() -> None:
    words = Reader(page(samples.values())).words
    assert "a federation you take part in, on data you may use" in words
    assert "No leak found is not a proof" in words
    assert "the chance that any one of them is called leaking is about 3 %" in words


def test_how_to_repeat_it() -> None:
    words = Reader(page(samples.values())).words
    assert "plumbob audit plan.yaml --seed 7" in words
    assert "threat: active attacks: [box_solving]" in words
    assert "path_restriction does not apply" in words


def test_settings_show_margins_only_where_there_are_trials() -> None:
    def cells(findings: list[Finding]) -> str:
        return page(findings).split('id="settings-table"')[1].split("<tbody")[1].split("</table>")[0]

    assert "±" in cells(samples.values())
    assert "±" not in cells(samples.values(trials=1))


def test_three_questions_with_a_chart_each_per_scene() -> None:
    reader = Reader(page(samples.audit()))
    charts = [attrs for tag, attrs in reader.tags if tag == "svg" and attrs.get("class") == "chart"]
    assert len(charts) == 3 + 3 + 2 * 3 + 2 + 1  # and which protection, and before and after it
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in charts)
    assert reader.count("figure") == 9 + 2


def test_ids_are_unique() -> None:
    ids = [attrs["id"] for _, attrs in Reader(page(samples.audit())).tags if "id" in attrs]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_any_text_stays_text_wherever_it_stands(name: str) -> None:
    findings = samples.values([name, "other"], shares=(0.3,), attacks=("box_solving", name), data=name, protocol=name)
    text = page(
        [*findings, *samples.values([name], shares=(0.3,), threat=name, defence=name)],
        title=name,
        question=name,
        plan=name,
        environment={name: name},
        notes=[name],
        command=name,
        meanings={name: name},
    )
    reader = Reader(text)
    assert reader.count("script") == 1
    assert reader.count("img") == 0
    assert not any(key.startswith("on") for _, attrs in reader.tags for key in attrs)


def test_meanings_are_explained() -> None:
    text = page(samples.values(), meanings={"box_solving": "solves within the ranges", "unused": "nothing"})
    assert "solves within the ranges" in text
    assert "unused" not in text


def test_no_findings_still_make_a_page() -> None:
    words = Reader(page([])).words
    assert "Nothing was measured, so there is no answer." in words


def test_the_protection_is_recommended_at_the_top_and_costs_are_tabled() -> None:
    text = page(samples.capped(samples.sweep()))
    top = text.split('id="protection"')[0]
    assert (
        "For logistic regression on bank, take hide_model: no leak above 3\u00a0% against active-black-box-auxiliary"
        in top
    )
    table = Reader(
        "<table>" + text.split('id="protection-table-1"')[1].split(">", 1)[1].split("</table>")[0] + "</table>"
    )
    assert table.count("tr") == 7
    assert "✓ recommended" in table.words
    assert "dominated by label_only" in table.words
    assert "If the model is known: take label_only" in Reader(text).words


def test_one_defence_asks_for_no_protection_section() -> None:
    assert 'id="protection"' not in page(samples.values())


def test_of_many_situations_the_undefended_and_the_recommended_are_in_front() -> None:
    text = page(samples.capped(samples.sweep()))
    front, folded = text.split('<details class="more">')
    assert front.count('<tr class="situation"') == 3  # none in both boxes, hide_model
    assert folded.split("</details>")[0].count('<tr class="situation"') == 8
    assert "8 more situations, with other defences" in folded
