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
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.auditing.running.finding import Finding
from plumbob.report import answer as words
from plumbob.report import phrases, protection
from plumbob.report.answer import Answer, ColumnAnswer
from plumbob.report.encryption import encryption
from plumbob.report.facts import Asked, facts
from plumbob.report.next_steps import Step, next_steps
from plumbob.report.not_audited import headline
from plumbob.scoring.leak_levels import Level
from plumbob.scoring.score import LABELS

SHOWN_COLUMNS = 12
STYLES = {Level.EXACT: "bold red", Level.EXACT_FOR_SOME: "red", Level.LEAK: "yellow", Level.ORDER: "magenta"}
STYLES |= {Level.UNDECIDED: "cyan", Level.NOT_TESTED: "cyan", Level.NONE: "green", Level.HELD: "dim"}


def print_summary(
    findings: Sequence[Finding], console: Console, conclusion: Conclusion | None = None, asked: Asked | None = None
) -> None:
    """Print the answer, every situation, the worst columns, every setting against its baselines, and what to do next."""
    conclusion = conclude(findings) if conclusion is None else conclusion
    asked = Asked() if asked is None else asked
    found = words.answers(conclusion)
    choices = frontiers(findings, conclusion)
    shown = protection.shown(found, choices)
    level = conclusion.level
    say(console, f"{words.LEVEL_ICONS[level]} {words.overall(found)}.", f"bold {STYLES[level]}")
    if asked.dropped:
        say(console, f"{headline(asked.dropped)}.")
    for fact in facts(found, asked, conclusion.failures):
        say(console, f"  {fact.name}: {fact.said}")
    caution = unlearnt(findings)
    if caution:
        say(console, f"Warning: {phrases.plain(caution)}.", "bold yellow")
    for ciphers in encryption(findings, found):
        say(console, ciphers.headline, "bold")
        say(console, f"  {ciphers.sent}")
    for choice in choices:
        say(console, protection.advice(choice), "bold")
        console.print(_protection_table(choice, console))
    for sentence in protection.idle_words(conclusion):
        say(console, sentence, "bold")
    _print_situations(found, console)
    _print_columns(words.worst_columns(shown), found, console)
    _print_attacks(shown, console)
    if len(shown) < len(found):
        say(
            console,
            f"and the attacks in {len(found) - len(shown):,} situations with other defences in the report",
            "dim",
        )
    for told in asked.inapplicable:
        say(console, f"{phrases.plain(told.replace('_', ' '))}.")
    _print_steps(next_steps(conclusion, choices, asked), console)
    if found:
        say(
            console,
            "What was found is certain; what was not found is about the attacks and learners tried here.",
            "dim",
        )


def _print_situations(found: Sequence[Answer], console: Console) -> None:
    """Every situation that was asked for in one line, tested or not."""
    if len(found) < 2:
        return
    say(console, f"{phrases.count(len(found), 'situation')}:", "bold")
    for answer in found:
        icon, threat = words.LEVEL_ICONS[answer.level], phrases.plain(answer.situation.threat)
        needless = not answer.judged.counts
        line = f"  {'–' if needless else icon} {threat}, {answer.where}: {answer.tally}."
        say(console, line, "dim" if needless else STYLES[answer.level])


def _print_columns(columns: Sequence[ColumnAnswer], found: Sequence[Answer], console: Console) -> None:
    if columns:
        console.print(_column_table(columns[:SHOWN_COLUMNS], found, console))
    if len(columns) > SHOWN_COLUMNS:
        say(console, f"and {len(columns) - SHOWN_COLUMNS:,} more in the report", "dim")


def _print_attacks(shown: Sequence[Answer], console: Console) -> None:
    """Every attack below its baselines, and what else it learnt."""
    for answer in (answer for answer in shown if answer.summaries):
        say(console, f"{answer.where}, {answer.learner}:", "bold")
        for guessing, alike in group(answer.summaries, guessing_line).items():
            say(console, f"  {guessing}")
            for summary in alike:
                say(console, f"    {attack_line(summary)}")


def _print_steps(steps: Sequence[Step], console: Console) -> None:
    if not steps:
        return
    say(console, "What to do next:", "bold")
    for i, step in enumerate(steps, 1):
        say(console, f"  {i}. {step.said}")
        if step.command:
            say(console, f"     {step.command}", whole=True)


def guessing_line(summary: Summary) -> str:
    """What guessing costs, the best baseline first."""
    ordered = sorted(summary.baselines.items(), key=lambda item: item[1])
    baselines = ", ".join(f"{phrases.baseline_words(name)} {phrases.number(value)}" for name, value in ordered)
    return f"{phrases.percent(summary.setting.unknown)} unknown, {_what(summary)} of guessing: {baselines}"


def attack_line(summary: Summary) -> str:
    """What an attack costs, and what else it learnt."""
    if summary.silent:  # an error of 0 would read as success
        return f"{phrases.label(summary.setting.attack)}: found nothing to read"
    error = phrases.number(summary.error)
    if summary.trials > 1:
        error = phrases.with_margin(summary.error, summary.error_margin)
    line = f"{phrases.label(summary.setting.attack)}: {_what(summary)} {error}"
    if summary.metric == "orders":
        cells = summary.trials * summary.rows * summary.unknown_columns
        line += f"; names the bin of {phrases.percent(summary.claims / cells)} of the values"
    if summary.pictures is not None:
        line += f"; pictures recovered: {summary.pictures.words}"
    if summary.label_accuracy is not None:
        line += f"; labels guessed: {phrases.percent(summary.label_accuracy)}"
    if summary.branching:
        right, usual = (phrases.percent(summary.branching[name]) for name in ("right", "usual"))
        line += f"; branches right: {right} (the more frequent side {usual})"
    if summary.certificate:
        line += f"; certificate: {phrases.plain(summary.certificate)}"
    return line


def _what(summary: Summary) -> str:
    return {"branches": "wrong branches", "orders": "wrong bins", LABELS: "wrong labels"}.get(summary.metric, "error")


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
            phrases.short(column.verdict.column),
            f"{words.LEVEL_ICONS[column.level]} {column.words}",
            _gain(column),
            phrases.label(column.attack) if column.attack else "none was run",
        ]
        cells += [column.learner] * several["who learns it"] + [column.where] * several["where"]
        styles = ["", STYLES[column.level], *[""] * (len(cells) - 2)]
        table.add_row(*(Text(_fit(cell, console), style) for cell, style in zip(cells, styles, strict=True)))
    return table


def _gain(column: ColumnAnswer) -> str:
    """Of a leak the gain; else what may have gone unseen."""
    verdict = column.verdict
    if column.level.leaks:
        return phrases.percent(verdict.gain)
    if column.exposed > 0 and column.ceiling is not None:
        return f"ceiling {phrases.percent(column.ceiling.full)}"
    if verdict.unseen is None:
        return "not known"
    return f"{'below' if column.level is Level.NONE else 'up to'} {whole_percent(verdict.unseen)} %"


def _protection_table(choice: Frontier, console: Console) -> Table:
    """One line per defence: what it leaves to learn and what it costs; dominated ones dim."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("defence", "accuracy", "lost", "leaking", "leak", "box", "seconds", ""):
        right = name in ("accuracy", "lost", "leaking", "leak", "seconds")
        table.add_column(
            name, justify="right" if right else "left", no_wrap=name not in ("defence", "leaking"), overflow="fold"
        )
    for option in choice.options:
        style = "bold green" if option is choice.chosen else "dim" if option.dominated_by else ""
        table.add_row(*(Text(_fit(cell, console), style) for cell in _protection_cells(choice, option)))
    table.caption = "accuracy lost in points, seconds added; dim: another setting is as accurate and leaks no more"
    return table


def _protection_cells(choice: Frontier, option: Option) -> tuple[str, ...]:
    loss, extra = choice.lost(option), protection.added(choice, option)
    return (
        phrases.short(option.defence),
        f"{100 * option.accuracy.mean:.1f} %",
        "–" if loss is None else protection.points(estimate({0: loss.mean})),
        protection.verdict(option),
        phrases.percent(option.worst.leak.mean),
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
