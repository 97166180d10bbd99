"""The table of the page of `complete_rows`: the floor beside every specialised attack, from the committed result of P39."""

from __future__ import annotations

import json
from pathlib import Path

from plumbob.attacks import name_of
from plumbob.report.phrases import label

RESULT = Path(__file__).parents[1] / "results" / "plumbob-P39-paper-0.json"
HEADS = "protocol, threat", "attack", "gain of the attack", "gain of the floor", "lead of the floor", "stronger"
WORDS = (
    "Mean share of guessing's error removed, 0 where an attack adds to it, and the lead of this attack with one standard error "
    "over columns and trials. Where another attack is stronger by more than two of them, it is named. "
    "`plumbob reproduce plumbob/P39 --scale paper --out docs/results` makes the numbers "
    "([result](../results/plumbob-P39-paper-0.json)): credit, 30 % of the columns hidden, 100 rows of other people known, or 20 "
    "of these people to a passive party."
)


def floor_table() -> str:
    """The table with the command that prints it; nothing while there is no result."""
    if not RESULT.exists():
        return ""
    told = json.loads(RESULT.read_text(encoding="utf-8"))
    lines = []
    for key, found in told["measured"].items():
        protocol, threat, attack = key.split(" / ")
        error = "" if found["standard error"] is None else f" ± {found['standard error']:.2f}"
        stronger = label(found["stronger"]) if name_of(found["stronger"]) == name_of(attack) else found["stronger"]
        lines.append(
            f"| {label(protocol)}, `{threat}` | {label(attack)} | {found['attack']:.2f} | {found['floor']:.2f} | "
            f"{found['lead of the floor']:+.2f}{error} | {stronger} |"
        )
    heads = [f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}"]
    return "\n".join(["## Beside the specialised attacks", "", WORDS, "", *heads, *lines])
