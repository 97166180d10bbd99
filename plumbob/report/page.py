"""The report as one HTML page that needs no network: the answer first, then charts, method and how to repeat it.

The page holds names, verdicts and averages, never a raw value of a row, unless it is given contact sheets of pictures. Equal
findings give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from plumbob.auditing.concluding import judging as judge
from plumbob.auditing.concluding.ceilings import attacked
from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, Option, frontiers
from plumbob.auditing.concluding.model_quality import unlearnt
from plumbob.auditing.concluding.summarise import Summary
from plumbob.auditing.planning.gate import Outcome
from plumbob.auditing.planning.matrix import Block
from plumbob.auditing.running.finding import Finding
from plumbob.report import answer as words
from plumbob.report import charts, figures, protection, risk
from plumbob.report import matrix as matrix_words
from plumbob.report.answer import Answer, ColumnAnswer, number, percent, plain
from plumbob.report.before_after import READ as READ_BEFORE_AFTER
from plumbob.report.before_after import before_after
from plumbob.report.encryption import encryption
from plumbob.report.gallery import gallery
from plumbob.report.gating import gate_section
from plumbob.report.matrix import grids
from plumbob.scoring.leak_levels import Level

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
READ_COLUMNS = (
    "A bar is the part of the best baseline’s error that the strongest attack removes: 0 % is no better than guessing, "
    "100 % is exact. Whiskers are 95 % intervals; an arrow marks a bar that goes on beyond the chart."
)
READ_LINES = (
    "Solid lines with markers are attacks, dashed ones are guesses that need no message at all. Bands are 95 % "
    "intervals over trials. These are averages over columns; an average can hide a column that leaks."
)
READ_BARS = (
    "Coloured bars are attacks, grey ones are guesses that need no message at all. Whiskers are 95 % intervals over "
    "trials. These are averages over columns; an average can hide a column that leaks."
)
READ_CORRELATION = (
    "Each mark is a column. Marks that rise to the right say: the more a column goes along with what the curious side "
    "holds or receives, the more of it leaks. Gains below −25 % are drawn at the lower edge."
)
READ_PROTECTION = (
    "Each mark is a defence at one setting, under its strongest attack: to the right is more accurate. Whiskers are 95 % "
    "intervals over trials. Faded marks are dominated: another setting is at least as accurate and leaks no more. The dashed "
    "line is what guessing reaches without a message. Leak is the part of guessing’s error that the strongest attack removes, "
    "the mean over columns; points of accuracy, seconds and bytes are those added to no defence."
)


@dataclass(frozen=True)
class Cell:
    """One cell of a sortable table: what is shown and what it is sorted by."""

    shown: str | Markup
    key: str | float
    kind: str = "text"  # text, name or number


@dataclass(frozen=True)
class Table:
    header: tuple[tuple[str, str, str], ...]  # label, kind, first direction when sorted
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class About:
    """What a page says besides what was found.

    `meanings` explains names of attacks, protocols and defences. `sheets` are contact sheets by the keys of findings, where
    pictures of rows may be shown; `matrix` is who could be curious, `gate` what the plan's gate found, `assessment` a file
    beside the page to point to.
    """

    title: str
    question: str = ""
    plan: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    command: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    sheets: Mapping[str, bytes] = field(default_factory=dict)
    matrix: Sequence[Block] = ()
    gate: Outcome | None = None
    assessment: str = ""


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
        found=[_answer_card(answer, found) for answer in shown],
        folded=[_answer_card(answer, found) for answer in found if answer not in shown],
        advice=[protection.headline(choice) for choice in choices],
        cautions=unlearnt(findings),
        grids=grids(about.matrix, summaries),
        read_matrix=matrix_words.READ,
        ciphers=encryption(findings, found),
        gallery=gallery(findings, about.sheets),
        noun=words.nouns(found),
        protections=[
            (protection.figure(choice), before_after(choice, found), _protection_table(choice)) for choice in choices
        ],
        read_before_after=READ_BEFORE_AFTER,
        protection_levels=_levels(choices),
        read_protection=READ_PROTECTION,
        columns=_column_table(columns, found),
        column_caption=_column_caption(columns, words.nouns(found)),
        questions=_questions(shown, summaries),
        settings=_settings_table(summaries),
        shared=_shared_words(summaries),
        terms=_terms(summaries, about.meanings),
        judged=len(summaries),
        judge=judge,
        attacks=[words.label(name) for name in figures.attack_styles(summaries)],
        **_told(about),
    )


def _told(about: About) -> dict[str, Any]:
    """What the page was given to say."""
    return {
        "title": plain(about.title),
        "question": about.question,
        "gate": None if about.gate is None else gate_section(about.gate),
        "notes": [plain(note) for note in about.notes],
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
    found.filters |= {"percent": percent, "plain": plain, "count": words.count, "bind": _bind, "css": _css}
    found.globals |= {"level_words": words.LEVEL_WORDS, "level_icons": words.LEVEL_ICONS}
    return found


def _bind(text: str) -> str:
    """Keep numbers and what belongs to them on one line."""
    return text.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0").replace(" of ", "\u00a0of\u00a0")


def _css(level: str) -> str:
    """As style sheets call a level; nothing of no verdict."""
    return Level(level).css if level else ""


def _answer_card(answer: Answer, found: Sequence[Answer]) -> dict[str, Any]:
    return {
        "level": answer.level,
        "heading": answer.headline,
        "where": figures.where_words(answer, found),
        "counts": [(level, number) for level, number in answer.counts.items() if number],
        "total": len(answer.columns),
        "breakdown": answer.breakdown,
        "learner": answer.learner,
        "knowledge": answer.knowledge,
        "how": words.how(answer),
        "pictures": words.pictures(answer),
        "labels": words.labels(answer),
        "risk": risk.sentence(answer),
        "sure": words.sure(answer),
        "scope": words.scope(answer),
    }


def _questions(found: Sequence[Answer], summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    shown = [level for level in words.LEVEL_WORDS if any(answer.counts[level] for answer in found)]
    several = len({summary.setting.unknown for summary in summaries}) > 1
    return [
        {
            "id": "columns-chart",
            "heading": f"Which {words.nouns(found)}s leak?",
            "read": READ_COLUMNS,
            "levels": shown,
            "figures": figures.column_figures(found),
        },
        {
            "id": "error-chart",
            "heading": "How does the error grow when more columns are unknown?"
            if several
            else "How do the attacks compare with guessing?",
            "read": READ_LINES if several else READ_BARS,
            "levels": [],
            "figures": figures.error_figures(found, figures.attack_styles(summaries)),
        },
        {
            "id": "correlation-chart",
            "heading": "Do correlated columns leak more?",
            "read": READ_CORRELATION,
            "levels": shown,
            "figures": figures.correlation_figures(found),
        },
    ]


def _levels(choices: Sequence[Frontier]) -> list[str]:
    """Levels that a mark of any frontier has, worst first."""
    marks = [mark.level for choice in choices for option in choice.options for mark in option.marks]
    return [level for level in words.LEVEL_WORDS if level in marks]


def _protection_table(choice: Frontier) -> Table:
    """What every defence leaves to learn, and what it costs; the recommended one first."""
    trees = choice.options[0].marks[0].metric == "branches"
    hits, error = ("Correct branches", "Wrong branches") if trees else ("Attack accuracy", "Error")
    header = [("Defence", "name", "ascending"), ("Choice", "text", "descending")]
    header += [(name, "number", "descending") for name in ("Accuracy", "Points lost")]
    header += [(name, "number", "ascending") for name in ("Training, s", "Prediction, s", "Bytes")]
    leaking = "Tiles leaking" if protection.pictures(choice) else "Columns leaking"
    header += [(name, "number", "descending") for name in (leaking, "Leak", hits)]
    header += [(error, "number", "ascending"), ("Worst case", "text", "ascending")]
    rank = {choice.recommended: 0, choice.if_known: 1}
    ordered = sorted(choice.options, key=lambda o: rank.get(o.defence, 3 if o.dominated_by else 2))
    return Table(tuple(header), tuple(_protection_cells(choice, option) for option in ordered))


def _protection_cells(choice: Frontier, option: Option) -> tuple[Cell, ...]:
    worst, loss, extra = option.worst, choice.lost(option), protection.added(choice, option)
    name, said = words.short(option.defence), protection.status(choice, option)
    error = min((mark.error for mark in option.marks), key=lambda e: e.mean)
    hits = max((mark.hits for mark in option.marks), key=lambda h: h.mean)
    shows = (protection.seconds, protection.seconds, protection.size)
    costs = [_optional(value, show) for value, show in zip(extra or (None,) * 3, shows, strict=True)]
    case = f"{protection.box(worst)}, {words.label(worst.leak_attack)}"
    return (
        Cell(Markup("<bdi>{}</bdi>").format(name), name.casefold(), "name"),
        Cell(Markup("<b>✓ {}</b>").format(said) if option is choice.chosen else said, said),
        Cell(protection.share(option.accuracy, 1), option.accuracy.mean, "number"),
        _optional(None, str) if loss is None else Cell(protection.points(loss), loss.mean, "number"),
        *costs,
        Cell(protection.verdict(option), max(mark.leaking for mark in option.marks), "number"),
        Cell(protection.share(worst.leak), worst.leak.mean, "number"),
        _optional(None, str) if worst.pictures else Cell(protection.share(hits), hits.mean, "number"),
        Cell(number(error.mean), error.mean, "number"),
        Cell(case, case),
    )


def _column_table(columns: Sequence[ColumnAnswer], found: Sequence[Answer]) -> Table:
    sets = len({column.situation.data for column in columns}) > 1
    defences = len({column.situation.defence for column in columns}) > 1
    header = [
        (words.nouns(found).capitalize(), "name", "ascending"),
        ("Verdict", "text", "descending"),
        ("Gain", "gains", "descending"),
    ]
    header += [("Who learns it", "text", "ascending"), ("Worst attack", "text", "ascending")]
    if len(found) < 2:
        return Table(tuple(header), tuple(_column_cells(column, "") for column in columns))
    rows = []
    for column in columns:
        of = [words.short(column.situation.data)] * sets + [words.defence_words(column.situation.defence)] * defences
        where = words.label(column.situation.protocol)
        rows.append((*_column_cells(column, ", ".join(of)), Cell(where, where)))
    return Table((*header, ("Protocol", "text", "ascending")), tuple(rows))


def _column_caption(columns: Sequence[ColumnAnswer], noun: str) -> str:
    distinct = words.count(len({(column.situation.data, column.verdict.column) for column in columns}), noun)
    defences = len({column.situation.defence for column in columns})
    return f"{distinct}, worst first" if defences < 2 else f"{distinct}, once per defence, worst first"


def _column_cells(column: ColumnAnswer, of: str) -> tuple[Cell, ...]:
    verdict, name = column.verdict, plain(column.verdict.column)
    said = "; ".join(filter(None, (column.words, risk.of_column(verdict, column.rows) if column.level.leaks else "")))
    level, gain = column.level, percent(verdict.gain)
    badge = Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span> <span class="say">{}</span>')
    interval = f"gain {gain}, 95 % interval {percent(verdict.low)} to {percent(verdict.high)}"
    drawn = charts.gain_bar(verdict.gain, (verdict.low, verdict.high), level, interval)
    shown = Markup('{}<span class="num">{}</span>').format(drawn, gain)
    attack = words.label(column.attack)
    under = Markup(' <small class="say"><bdi>{}</bdi></small>').format(of) if of else ""
    return (
        Cell(Markup("<bdi>{}</bdi>").format(words.short(name)) + under, name.casefold(), "name"),
        Cell(
            badge.format(level.css, words.LEVEL_ICONS[level], column.badge, _bind(said)),
            level.rank * 1e6 + max(-1e5, verdict.gain),
        ),
        Cell(shown, verdict.gain, "gains"),
        Cell(column.learner, column.learner),
        Cell(attack, attack),
    )


def _settings_table(summaries: Sequence[Summary]) -> Table:
    fields = ("data", "protocol", "threat", "defence", "attack")
    varied = [f for f in fields if f == "attack" or len({getattr(s.setting, f) for s in summaries}) > 1]
    baselines = tuple(dict.fromkeys(name for s in summaries for name in s.baselines))
    header = [(field.capitalize(), "text", "ascending") for field in varied]
    header += [(label, "number", "ascending") for label in ("Unknown", "Trials", "Error")]
    header += [(words.baseline_words(name).capitalize(), "number", "ascending") for name in baselines]
    header += [(label, "number", "descending") for label in ("Gain", "R²", "Attack accuracy")]
    drawn = any(s.pictures for s in summaries)
    header += [
        (label, "number", "descending") for label in ("PSNR, dB", "SSIM", "Exact tiles", "Labels guessed") if drawn
    ]
    certified = any(s.certificate for s in summaries)
    header += [("Found without names", "text", "ascending")] if certified else []
    header += [(label, "number", "descending") for label in ("Bound (Eq 15)", "Model accuracy", "Seconds")]
    rows = []
    for s in summaries:
        cells = [Cell(words.label(getattr(s.setting, f)), getattr(s.setting, f)) for f in varied]
        cells += [_unknown_cell(s), Cell(f"{s.trials:,}", s.trials, "number"), _with_margin(s, s.error, s.error_margin)]
        cells += [_optional(s.baselines.get(name), number) for name in baselines]
        cells += [Cell(_gain(s), s.gain, "number"), _optional(None if s.metric in judge.SHARES else s.r2, number)]
        cells += [_optional(s.attack_accuracy, percent), *(_picture_cells(s) if drawn else ())]
        cells += [Cell(words.plain(s.certificate) if s.certificate else "–", s.certificate)] if certified else []
        cells += [_optional(None if s.metric in judge.SHARES else s.bound, number)]
        cells += [_optional(s.model_accuracy, percent), _optional(s.seconds, number)]
        rows.append(tuple(cells))
    return Table(tuple(header), tuple(rows))


def _picture_cells(s: Summary) -> list[Cell]:
    shown = s.pictures
    psnr, ssim, exact = (None,) * 3 if shown is None else (shown.psnr, shown.ssim, shown.exact)
    cells = [_optional(psnr, lambda value: f"{value:.1f}"), _optional(ssim, lambda value: f"{value:.3f}")]
    return [*cells, _optional(exact, percent), _optional(s.label_accuracy, percent)]


def _unknown_cell(s: Summary) -> Cell:
    of = s.known_columns + s.unknown_columns
    return Cell(f"{percent(s.setting.unknown)} ({s.unknown_columns} of {of})", s.setting.unknown, "number")


def _with_margin(s: Summary, value: float, margin: float) -> Cell:
    return Cell(words.with_margin(value, margin) if s.trials > 1 else number(value), value, "number")


def _gain(s: Summary) -> str:
    if s.gain < -1:
        return percent(s.gain)
    return f"{percent(s.gain)} ± {percent(s.gain_margin)}" if s.trials > 1 else percent(s.gain)


def _optional(value: float | None, show: Callable[[float], str]) -> Cell:
    return Cell("–", -1e300, "number") if value is None else Cell(show(value), value, "number")


def _shared_words(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """What all settings have in common, said once instead of in every row."""
    shared = []
    for part in ("data", "protocol", "threat", "defence"):
        values = {getattr(summary.setting, part) for summary in summaries}
        if len(values) == 1:
            name = values.pop()
            shared.append((part, "none" if part == "defence" and not words.defended(name) else words.label(name)))
    rows = {summary.rows for summary in summaries}
    if len(rows) == 1:
        shared.append(("rows", f"{rows.pop():,}"))
    return shared


def _terms(summaries: Sequence[Summary], meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    used = (name for s in summaries for name in (s.setting.protocol, s.setting.attack, s.setting.defence))
    return [(words.label(name), plain(meanings[name])) for name in dict.fromkeys(used) if name in meanings]
