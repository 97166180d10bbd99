"""The same answer for the terminal: sentences first, then the worst columns and one line per attack below its baselines.

Names come from data files, so they are never read as markup and lose the characters that steer a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumbob.auditing.concluding.conclusion import Conclusion, conclude
from plumbob.auditing.concluding.defence_frontier import Frontier, Option, estimate, frontiers
from plumbob.auditing.concluding.model_quality import unlearnt
from plumbob.auditing.concluding.summarise import Summary, group
from plumbob.auditing.running.finding import Finding
from plumbob.report import answer as words
from plumbob.report import protection, risk
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.encryption import encryption
from plumbob.scoring.leak_levels import Level

SHOWN_COLUMNS = 12
STYLES = {Level.EXACT: "bold red", Level.EXACT_FOR_SOME: "red", Level.LEAK: "yellow", Level.ORDER: "magenta"}
STYLES |= {Level.UNDECIDED: "cyan", Level.NOT_TESTED: "cyan", Level.NONE: "green"}


def print_summary(findings: Sequence[Finding], console: Console, conclusion: Conclusion | None = None) -> None:
    """Print verdicts, the worst columns, and every setting against its baselines."""
    conclusion = conclude(findings) if conclusion is None else conclusion
    found = words.answers(conclusion)
    choices = frontiers(findings, conclusion)
    shown = protection.shown(found, choices)
    level = conclusion.level
    say(console, f"{words.LEVEL_ICONS[level]} {words.overall(found)}.", f"bold {STYLES[level]}")
    for caution in unlearnt(findings):
        say(console, f"Warning: {words.plain(caution)}.", "bold yellow")
    for ciphers in encryption(findings, found):
        say(console, ciphers.headline, "bold")
        say(console, f"  {ciphers.sent}")
    for choice in choices:
        say(console, protection.advice(choice), "bold")
        console.print(_protection_table(choice, console))
    several = len({answer.situation.threat for answer in found}) > 1
    for answer in shown:
        _print_answer(console, answer, alone=len(found) == 1, threat=several)
    columns = words.worst_columns(shown)
    if columns:
        console.print(_column_table(columns[:SHOWN_COLUMNS], found, console))
    if len(columns) > SHOWN_COLUMNS:
        say(console, f"and {len(columns) - SHOWN_COLUMNS:,} more in the report", "dim")
    for answer in (answer for answer in shown if answer.summaries):
        say(console, f"{answer.where}, {answer.learner}:", "bold")
        for guessing, alike in group(answer.summaries, guessing_line).items():
            say(console, f"  {guessing}")
            for summary in alike:
                say(console, f"    {attack_line(summary)}")
    if len(shown) < len(found):
        say(console, f"and {len(found) - len(shown):,} situations with other defences in the report", "dim")
    if found:
        say(
            console,
            "What was found is certain; what was not found is about the attacks and learners tried here.",
            "dim",
        )


def guessing_line(summary: Summary) -> str:
    """What guessing costs, the best baseline first."""
    ordered = sorted(summary.baselines.items(), key=lambda item: item[1])
    baselines = ", ".join(f"{words.baseline_words(name)} {words.number(value)}" for name, value in ordered)
    return f"{words.percent(summary.setting.unknown)} unknown, {_what(summary)} of guessing: {baselines}"


def attack_line(summary: Summary) -> str:
    """What an attack costs, and what else it learnt."""
    error = words.number(summary.error)
    if summary.trials > 1:
        error = words.with_margin(summary.error, summary.error_margin)
    line = f"{words.label(summary.setting.attack)}: {_what(summary)} {error}"
    if summary.pictures is not None:
        line += f"; pictures recovered: {summary.pictures.words}"
    if summary.label_accuracy is not None:
        line += f"; labels guessed: {words.percent(summary.label_accuracy)}"
    if summary.certificate:
        line += f"; found without names: {words.plain(summary.certificate)}"
    return line


def _what(summary: Summary) -> str:
    return {"branches": "wrong branches", "orders": "wrong bins"}.get(summary.metric, "error")


def _print_answer(console: Console, answer: Answer, *, alone: bool, threat: bool) -> None:
    if not alone:
        icon, known = words.LEVEL_ICONS[answer.level], f" ({words.plain(answer.situation.threat)})" if threat else ""
        say(console, f"{icon} {answer.where}{known}: {answer.headline}.", STYLES[answer.level])
    said = (words.how(answer), risk.short_sentence(answer), words.pictures(answer), words.labels(answer))
    for sentence in filter(None, (*said, words.sure(answer), words.scope(answer)) if alone else said):
        say(console, f"  {sentence}")


def _column_table(columns: Sequence[ColumnAnswer], found: Sequence[Answer], console: Console) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    several = {"who learns it": len({a.situation.threat for a in found}) > 1, "where": len(found) > 1}
    for name in (
        words.nouns(found),
        "verdict",
        "gain",
        "worst attack",
        *(name for name, shown in several.items() if shown),
    ):
        table.add_column(name, justify="right" if name == "gain" else "left", overflow="fold")
    for column in columns:
        cells = [
            words.short(column.verdict.column),
            f"{words.LEVEL_ICONS[column.level]} {column.words}",
            words.percent(column.verdict.gain),
            words.label(column.attack),
        ]
        cells += [column.learner] * several["who learns it"] + [column.where] * several["where"]
        styles = ["", STYLES[column.level], *[""] * (len(cells) - 2)]
        table.add_row(*(Text(_fit(cell, console), style) for cell, style in zip(cells, styles, strict=True)))
    return table


def _protection_table(choice: Frontier, console: Console) -> Table:
    """One line per defence: what it leaves to learn and what it costs; dominated ones dim."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("defence", "accuracy", "lost", "leaking", "leak", "box", "seconds", ""):
        right = name in ("accuracy", "lost", "leaking", "leak", "seconds")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "defence", overflow="fold")
    for option in choice.options:
        style = "bold green" if option is choice.chosen else "dim" if option.dominated_by else ""
        table.add_row(*(Text(_fit(cell, console), style) for cell in _protection_cells(choice, option)))
    table.caption = "accuracy lost in points, seconds added; dim: another setting is as accurate and leaks no more"
    return table


def _protection_cells(choice: Frontier, option: Option) -> tuple[str, ...]:
    loss, extra = choice.lost(option), protection.added(choice, option)
    return (
        words.short(option.defence),
        f"{100 * option.accuracy.mean:.1f} %",
        "–" if loss is None else protection.points(estimate({0: loss.mean})),
        protection.verdict(option),
        words.percent(option.worst.leak.mean),
        "white" if option.worst.white_box else "black",
        "–" if extra is None else protection.seconds(extra[0] + extra[1]),
        "✓" if option is choice.chosen else "(✓)" if option.defence == choice.if_known else "",
    )


def say(console: Console, sentence: str, style: str = "", *, whole: bool = False) -> None:
    """One sentence, never read as markup; `whole` on one line, for logs that are searched."""
    console.print(Text(_fit(sentence, console), style=style), soft_wrap=whole)


def _fit(text: str, console: Console) -> str:
    """What the terminal's encoding cannot show becomes a question mark, a minus sign a hyphen."""
    encoding = console.encoding
    if not encoding.lower().startswith("utf"):
        text = text.replace("−", "-")
    return text.encode(encoding, errors="replace").decode(encoding)
