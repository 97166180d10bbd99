"""An estimate for people: how long, how much memory and disk, what costs most, and the same on a cluster."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.auditing.costing.estimate import Estimate, Forecast
from plumbob.auditing.costing.power import Power
from plumbob.report.phrases import label, plain
from plumbob.report.terminal import say

SHOWN = 20  # rows of the table
WORTH_A_WORD = 60.0  # seconds from which an audit says beforehand how long it takes


def notice(made: Estimate) -> str:
    """One line at the start of a long audit, empty for a short one."""
    if made.wall_seconds < WORTH_A_WORD:
        return ""
    return f"about {duration(made.wall_seconds)}; --estimate says more"


def print_estimate(made: Estimate, console: Console) -> None:
    """The total first, then what costs most, then the forecasts."""
    workers = "one worker" if made.workers == 1 else f"{made.workers} workers"
    say(
        console,
        f"About {duration(made.wall_seconds)} with {workers} ({duration(made.seconds)} of processor time).",
        "bold",
    )
    each = "" if made.workers == 1 else f", {size(made.worker_bytes)} for each worker"
    say(console, f"Peak memory {size(made.peak_bytes)}{each}; disk {size(made.disk_bytes)}.", "bold")
    say(console, "From measured cost models, meant to be right within a factor of 2; nothing was trained.", "dim")
    if made.power is not None:
        say(console, power_words(made.power))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("protocol", "defence", "what"):
        table.add_column(heading, overflow="fold")
    for heading in ("times", "time", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    whole = max(1e-9, sum(row.seconds for row in made.rows))
    for row in made.rows[:SHOWN]:
        names = (plain(row.protocol), plain(row.defence), label(row.attack))
        table.add_row(*names, f"{row.times:,}", duration(row.seconds), f"{100 * row.seconds / whole:.0f} %")
    console.print(table)
    if len(made.rows) > SHOWN:
        say(console, f"and {len(made.rows) - SHOWN:,} more, each shorter", "dim")
    started = made.seconds - sum(row.seconds for row in made.rows)
    say(console, f"The rest, {duration(started)} of processor time, is loading libraries and matching rows.", "dim")
    for note in made.notes:
        say(console, f"Note: {plain(note)}.")
    for ahead in made.forecasts:
        _print_forecast(ahead, console)
    if made.forecasts:
        say(
            console,
            "Forecasts are carried far beyond the sizes that were measured; take them as an order of magnitude.",
            "dim",
        )


def power_words(power: Power) -> str:
    """How small a leak can be ruled out, and the rows that a smaller limit takes.

    >>> power_words(Power(285, 21, 6, 0.048, ((0.05, 277), (0.10, 145))))
    'Detection limit: about 5 % with 285 attacked rows. A limit of 5 % takes 277, one of 10 % takes 145.'
    """
    wanted = [f"{100 * limit:.0f} % takes {rows:,}" for limit, rows in power.needed]
    needed = f"A limit of {', one of '.join(wanted)}"
    return f"Detection limit: about {whole_percent(power.limit)} % with {power.rows:,} attacked rows. {needed}."


def _print_forecast(ahead: Forecast, console: Console) -> None:
    times = ", ".join(f"{duration(3600 * crew.hours)} with {crew.workers}" for crew in ahead.crews)
    say(console, f"{ahead.rows / 1e6:,.0f} million rows on a cluster, workers: {times}.", "bold")
    needs = f"memory {size(ahead.worker_bytes)} a worker; disk {size(ahead.disk_bytes)}"
    say(console, f"  The longest piece takes {duration(3600 * ahead.share_hours)}; {needs}.")
    say(console, f"  First limit: {ahead.limit}.")


def duration(seconds: float) -> str:
    """Time to two digits that matter.

    >>> [duration(s) for s in (0.2, 7, 90, 250, 7_200, 400_000)]
    ['0.2 s', '7 s', '90 s', '4 minutes', '2 hours', '4.6 days']
    """
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            value = seconds / length
            return f"{value:,.0f} {unit}" if value >= 10 or abs(value - round(value)) < 0.2 else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1g} s"


def size(count: float) -> str:
    """Bytes to two digits that matter.

    >>> size(54_000), size(480e6), size(2.44e12)
    ('54 kB', '480 MB', '2.4 TB')
    """
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            value = count / length
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{count:.0f} B"
