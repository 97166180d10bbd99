"""The report as one HTML page that needs no network: the answer first, then charts, method and how to repeat it.

The page holds names, verdicts and averages, never a raw value of a row, unless it is given contact sheets of pictures. Equal
findings give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from plumbob.attacks import name_of
from plumbob.auditing.concluding import judging as judge
from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, frontiers
from plumbob.auditing.concluding.model_quality import unlearnt
from plumbob.auditing.concluding.summarise import Summary, attacked
from plumbob.auditing.planning.gate import Outcome
from plumbob.auditing.running.finding import Finding
from plumbob.report import answer as words
from plumbob.report import bars, figures, not_audited, phrases, protection
from plumbob.report import matrix as matrix_words
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.before_after import READ as READ_BEFORE_AFTER
from plumbob.report.before_after import before_after
from plumbob.report.encryption import encryption
from plumbob.report.facts import Asked, facts
from plumbob.report.gallery import gallery
from plumbob.report.gating import gate_section
from plumbob.report.matrix import grids
from plumbob.report.next_steps import next_steps
from plumbob.report.phrases import percent, plain
from plumbob.report.tables import bound, column_caption, column_table, protection_table, settings_table
from plumbob.report.threat_table import Tier, not_known, tiers
from plumbob.scoring.leak_levels import Level

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
READ_COLUMNS = (
    "A bar is the part of the best baseline’s error that the strongest attack removes: 0 % is no better than guessing, "
    "100 % is exact. Whiskers are 95 % intervals; an arrow marks a bar that goes on beyond the chart. Where nothing was found, "
    "the whisker ends at what may have gone unseen."
)
READ_LINES = (
    "Solid lines with markers are attacks, dashed ones are guesses that need no message at all. Bands are 95 % "
    "intervals over trials. These are averages over columns: an attack that is worse than guessing in the mean can still give "
    "one column away. Only the chart above says which columns leak."
)
READ_BARS = (
    "Coloured bars are attacks, grey ones are guesses that need no message at all. Whiskers are 95 % intervals over "
    "trials. These are averages over columns: an attack that is worse than guessing in the mean can still give one column "
    "away. Only the chart above says which columns leak."
)
READ_CORRELATION = (
    "Each mark is a column. Marks that rise to the right say: the more a column goes along with what the curious side "
    "holds or receives, the more of it leaks. Gains below −25 % are drawn at the lower edge."
)
READ_PROTECTION = (
    "Each mark is a defence at one setting, under its strongest attack: to the right is more accurate. Whiskers are 95 % "
    "intervals. Faded marks are dominated: another setting is at least as accurate and leaks no more. The dashed line is what "
    "guessing reaches without a message. The worst column is the one that leaks most; leak is the part of guessing’s error that "
    "the strongest attack removes, the mean over columns, which can hide a column. Threats that were not tested are not drawn. "
    "Points of accuracy, seconds and bytes are those added to no defence."
)


@dataclass(frozen=True)
class About:
    """What a page says besides what was found.

    `meanings` explains names of attacks, protocols and defences. `sheets` are contact sheets by the keys of findings, where
    pictures of rows may be shown; `gate` is what the plan's gate found, `assessment` a file beside the page to point to,
    `asked` what the plan asked for.
    """

    title: str
    question: str = ""
    plan: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    command: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    sheets: Mapping[str, bytes] = field(default_factory=dict)
    gate: Outcome | None = None
    assessment: str = ""
    asked: Asked = field(default_factory=Asked)


def render(findings: Sequence[Finding], about: About, conclusion: Conclusion | None = None) -> str:
    """The whole page. `conclusion` is that of the findings, where it is there already."""
    conclusion = conclude(findings) if conclusion is None else conclusion
    findings, summaries = attacked(findings), conclusion.summaries
    found = words.answers(conclusion)
    choices = frontiers(findings, conclusion)
    shown = protection.shown(found, choices)
    columns = words.worst_columns(shown)
    page = templates().get_template("page.html.j2")
    return page.render(
        policy=POLICY,
        overall=words.overall(found),
        level=conclusion.level,
        limit=conclusion.limit,
        found=found,
        facts=facts(found, about.asked, conclusion.failures),
        strip=_strip(words.worst_columns(found)),
        advice=[*(protection.headline(choice) for choice in choices), *protection.idle_words(conclusion)],
        caution=unlearnt(findings),
        steps=next_steps(conclusion, choices, about.asked),
        tiers=_tiers(shown, about.asked),
        unknown=not_known(found),
        folded=_tiers([answer for answer in found if answer not in shown], about.asked),
        legend=bars.legend(),
        read_bars=bars.CAPTION,
        grids=grids(about.asked.matrix, conclusion),
        read_matrix=matrix_words.READ,
        ciphers=encryption(findings, found),
        gallery=gallery(findings, about.sheets),
        noun=words.nouns(found),
        protections=[
            (protection.figure(choice), before_after(choice, found), protection_table(choice)) for choice in choices
        ],
        read_before_after=READ_BEFORE_AFTER,
        protection_levels=_levels(choices),
        read_protection=READ_PROTECTION,
        recommends=any(choice.chosen is not None and choice.recommended != "none" for choice in choices),
        columns=column_table(columns, found),
        column_caption=column_caption(columns, words.nouns(found)),
        questions=_questions(shown, summaries),
        settings=settings_table(summaries),
        shared=_shared_words(summaries),
        terms=_terms(summaries, about.meanings),
        judged=len(summaries),
        judge=judge,
        attacks=[phrases.label(name) for name in figures.attack_styles(summaries)],
        **_told(about),
    )


def _told(about: About) -> dict[str, Any]:
    """What the page was given to say."""
    return {
        "title": plain(about.title),
        "question": about.question,
        "gate": None if about.gate is None else gate_section(about.gate),
        "notes": [plain(note) for note in about.notes],
        "not_audited": not_audited.listed(about.asked.dropped),
        "command": about.command,
        "plan": about.plan,
        "environment": about.environment,
        "assessment": about.assessment,
    }


def templates() -> Environment:
    """The house's templates: autoescaped, with the filters and words of reports."""
    found = Environment(
        loader=PackageLoader("plumbob.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters |= {"percent": percent, "plain": plain, "count": phrases.count, "bind": bound, "css": _css}
    found.globals |= {"level_words": words.LEVEL_WORDS, "level_icons": words.LEVEL_ICONS}
    return found


def _css(level: str) -> str:
    """As style sheets call a level; nothing of no verdict."""
    return Level(level).css if level else ""


def _tiers(found: Sequence[Answer], asked: Asked) -> list[Tier]:
    """Situations by plausibility; threats of the plan as it describes them, others as they are known."""
    named = {answer.situation.threat for answer in found}
    return tiers(found, [threat for name in named if (threat := asked.threat(name)) is not None])


def _strip(columns: Sequence[ColumnAnswer]) -> list[tuple[Level, int]]:
    """How many columns ended at each level at worst, the worst level first."""
    worst = {(c.situation.data, c.verdict.column): c.level for c in reversed(columns) if not c.is_label}
    return [(level, n) for level in reversed(Level) if (n := list(worst.values()).count(level))]


def _questions(found: Sequence[Answer], summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    shown = [level for level in words.LEVEL_WORDS if any(answer.counts[level] for answer in found)]
    several = len({summary.setting.unknown for summary in summaries}) > 1
    return [
        {
            "id": "columns-chart",
            "heading": f"Which {words.nouns(found)}s leak where?",
            "read": READ_COLUMNS,
            "levels": shown,
            "figures": figures.column_figures(found) if len(found) > 1 else [],  # of one, the table has them
            "undrawn": figures.undrawn(found),
        },
        {
            "id": "error-chart",
            "heading": "How does the error grow when more columns are unknown?"
            if several
            else "How do the attacks compare with guessing?",
            "read": READ_LINES if several else READ_BARS,
            "levels": [],
            "figures": figures.error_figures(found, figures.attack_styles(summaries)),
            "undrawn": [],
        },
        {
            "id": "correlation-chart",
            "heading": "Do correlated columns leak more?",
            "read": READ_CORRELATION,
            "levels": shown,
            "figures": figures.correlation_figures(found),
            "undrawn": figures.undrawn(found),
        },
    ]


def _levels(choices: Sequence[Frontier]) -> list[str]:
    """Levels that a mark of any frontier has, worst first."""
    marks = [mark.level for choice in choices for option in choice.options for mark in option.marks]
    return [level for level in words.LEVEL_WORDS if level in marks]


def _shared_words(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """What all settings have in common, said once instead of in every row."""
    shared = []
    for part in ("data", "protocol", "threat", "defence"):
        values = {getattr(summary.setting, part) for summary in summaries}
        if len(values) == 1:
            name = values.pop()
            shared.append((part, "none" if part == "defence" and not phrases.defended(name) else phrases.label(name)))
    rows = {summary.rows for summary in summaries}
    if len(rows) == 1:
        shared.append(("rows", f"{rows.pop():,}"))
    return shared


def _terms(summaries: Sequence[Summary], meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    used = {
        name: shown(name)
        for s in summaries
        for name, shown in (
            (s.setting.protocol, phrases.label),
            (name_of(s.setting.attack), phrases.label),
            (s.setting.defence, phrases.short),
        )
    }
    return [(said, plain(meanings[name])) for name, said in used.items() if name in meanings]
