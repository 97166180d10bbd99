"""How a level is told: one clause for each, with its figures."""

from __future__ import annotations

import math

LEAST_EXACT = 5  # people; fewer could be pointed at
UNPROVEN = "fails the stricter test that covers all columns, trials and settings at once"


def label_words(right: float, usual: float, leaking: int, trials: int, unnamed: bool = False) -> str:
    """What is known of the label, in words.

    >>> label_words(0.91, 0.5, 3, 3)
    '91 % of the labels guessed, where the best guess without a message gets 50 %'
    """
    some = "" if leaking == trials else f" in {leaking} of {trials} trials"
    some += ", but not which class is which" if unnamed else ""
    said = "every label is known" if right == 1 else f"{min(99, round(100 * right))} % of the labels guessed"
    return f"{said}{some}, where the best guess without a message gets {100 * usual:.0f} %"


def none_words(unseen: float) -> str:
    """
    >>> none_words(0.0512), none_words(0.0)
    ('no leak above 6 %', 'no leak')
    """
    return f"no leak above {whole_percent(unseen)} %" if unseen > 0 else "no leak"


def undecided_words(unseen: float) -> str:
    """
    >>> undecided_words(0.165), undecided_words(1.0)
    ('undecided: a gain of up to 17 % is possible', 'undecided: any gain is possible')
    """
    room = "any gain is" if unseen >= 1 else f"a gain of up to {whole_percent(unseen)} % is"
    return f"undecided: {room} possible"


def not_tested_words(why: str) -> str:
    return f"not tested: {why}" if why else "not tested"


def whole_percent(share: float) -> int:
    """A share in percent, rounded up: a limit is never told smaller than it is."""
    return math.ceil(100 * share - 1e-9)


def exact_words(metric: str) -> str:
    known = {"branches": "its side of every threshold is known", "orders": "the bin of every row is known"}
    return known.get(metric, "recovered exactly")


def some_words(exact: float, chance: float, rows: int) -> str:
    """
    >>> some_words(20.0, 0.1, 1000)
    'recovered exactly for 20 of 1,000 people (chance gives fewer than 5)'
    """
    luck_words = f"fewer than {LEAST_EXACT}" if chance < LEAST_EXACT else f"{chance:,.0f}"
    return f"recovered exactly for {exact:,.0f} of {rows:,} people (chance gives {luck_words})"


def leak_words(gain: float, low: float, high: float) -> str:
    """
    >>> leak_words(0.38, 0.33, 0.43)
    '38 % better than guessing (33 to 43 %)'
    """
    if gain > 0.99:
        return "more than 99 % better than guessing"
    return f"{100 * gain:.0f} % better than guessing ({100 * low:.0f} to {100 * high:.0f} %)"


def order_words(
    gains: tuple[float, float, float], rank: float, two_values: bool, some: str, tie: float | None = None
) -> str:
    """Where own columns are controlled for, that correlation is the evidence, not the one of all rows.

    >>> order_words((-0.1, -0.2, -0.05), 0.7, False, "").partition(", ")[0]
    'the order of the rows is learnt (rank correlation 0.70)'
    >>> order_words((-0.1, -0.2, -0.05), 0.02, False, "", 0.31).partition(", ")[0]
    'the order of the rows is learnt (rank correlation beyond own columns 0.31)'
    >>> order_words((-0.1, -0.2, -0.05), 0.7, False, "").partition(", ")[2]
    'no gain in the values is shown beyond the best guess without a message'
    """
    gain, low, high = gains
    what = "high values are told from low ones" if two_values else "the order of the rows is learnt"
    rest = "no gain in the values is shown beyond the best guess without a message"
    if low > 0:
        rest = f"of the values there is a hint: a gain of {100 * gain:.0f} % ({100 * low:.0f} to {100 * high:.0f} %) {UNPROVEN}"
    return f"{what} ({order_evidence(rank, tie)}){some}, {rest}"


def order_evidence(rank: float, tie: float | None) -> str:
    """
    >>> order_evidence(0.7, None), order_evidence(0.02, -0.31)
    ('rank correlation 0.70', 'rank correlation beyond own columns −0.31')
    """
    if tie is None:
        return f"rank correlation {abs(rank):.2f}"
    return f"rank correlation beyond own columns {tie:.2f}".replace("-", "−")
