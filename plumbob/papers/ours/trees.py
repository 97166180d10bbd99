"""What scores of trees say of branches: more than luo2021 has it of forests (P11), and what verification leaves of it (P13).

P13 is run on at most 10,000 rows of each split; the paper reports no figure for verification.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumbob.attacks import name_of
from plumbob.attacks.base import Branches
from plumbob.attacks.scores.path_restriction import PathRestriction, agreed, leaves_of, path_claims, reachable
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.chosen import quick
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences.scores.verification import SIDES, Verification, known_branch
from plumbob.federation import BoolArray, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import YesNoOpen, below, every
from plumbob.protocols.base import predict
from plumbob.protocols.scores.decision_tree import DecisionTree
from plumbob.protocols.shared.trees import LEAF, Forest
from plumbob.threats import LUO2021, View, cut

FOREST_DATA = {"smoke": ("satellite",), "paper": ("satellite", "bank", "credit", "drive")}
FOREST_UNKNOWN = {"smoke": (0.4,), "paper": (0.3, 0.6)}
FOREST_TRIALS = {"smoke": 2, "paper": 4}
BOXES, NETWORK = "forest_boxes", "generative_regression"


def forest_branches(scale: Scale, seed: int) -> CheckResult:
    """CBR of values guessed for forests over all nodes on unknown columns, against GRNA and against the frequent sides."""
    measured: dict[str, object] = {}
    better: dict[str, YesNoOpen] = {}
    informed: dict[str, YesNoOpen] = {}
    for data in FOREST_DATA[scale]:
        plan = make_plan(
            {
                "data": {"name": data, "sample": 800 if scale == "smoke" else 6_000},
                "protocols": [{"name": "random_forest", "settings": {"trees": 30 if scale == "smoke" else 100}}],
                "attacks": [quick(name).model_dump() for name in (BOXES, NETWORK)],
                "unknown": list(FOREST_UNKNOWN[scale]),
                "trials": FOREST_TRIALS[scale],
                "rows": 200 if scale == "smoke" else 400,
                "seed": seed,
                "ceiling": False,
            }
        ).filled()
        findings = run(plan, open_source(plan.data, seed))
        for share, found in group(findings, lambda f: round(f.unknown, 2)).items():
            told = {a: [f.score.branching for f in fs] for a, fs in group(found, lambda f: name_of(f.attack)).items()}
            place = f"{data} {share:.0%}"
            boxes, network = ([one["right"] for one in told[name]] for name in (BOXES, NETWORK))
            usual = [one["usual"] for one in told[BOXES]]
            better[place], informed[place] = below(network, boxes), below(usual, boxes)
            levels = {"boxes": boxes, "GRNA": network, "usual": usual, "uniform": [o["uniform"] for o in told[BOXES]]}
            measured[place] = {name: round(sum(rates) / len(rates), 4) for name, rates in levels.items()}
    weak = [place for place, answer in informed.items() if answer is not True]
    why = f"not above the more frequent side of each node: {', '.join(weak)}" if weak else ""
    expected = "right branches: forest boxes above GRNA; 'usual' needs no scores and knows the rows"
    return CheckResult(every(better.values()), measured, expected, FOREST_TRIALS[scale], why)


VERIFIED_UNKNOWN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
VERIFIED_ROWS = {"smoke": 1_000, "paper": 10_000}


def verified_trees(scale: Scale, seed: int) -> CheckResult:
    """Drive, six splits: rows with a certain branch before, share withheld under both rules, and what is left."""
    splits = {share: _verified(share, scale, seed) for share in VERIFIED_UNKNOWN}
    measured: dict[str, object] = {f"{share:.0%}": found for share, found in splits.items()}
    names = {"certain": "side certain", "path": "path known"}
    none_left = all(found[names[sides]]["left"] == 0 for found in splits.values() for sides in SIDES)
    curves = [
        Curve(f"withheld, {words}", list(splits), [found[words]["withheld"] for found in splits.values()])
        for words in names.values()
    ]
    measured["rows that withholding itself gives away, worst split"] = max(
        found[words]["given away by withholding"] for found in splits.values() for words in names.values()
    )
    figure = ClaimFigure("drive", "share of unknown columns", "share of rows", curves)
    why = "what is withheld says something, too: whoever knows the rule asks which classes would have been withheld"
    expected = "no released row has a branch that PRA is certain of"
    return CheckResult(none_left, measured, expected, len(splits), why, (figure,))


def _verified(share: float, scale: Scale, seed: int) -> dict[str, Any]:
    """One split: by rule, what is withheld, how often the rest is right, and what PRA still knows."""
    rng = generator(seed, "verified", share)
    federation = split_at_random(registry.load("drive"), share, rng)
    train, rest = halves(federation.label, rng)
    target, trainer = federation.rows(np.sort(rest[: VERIFIED_ROWS[scale]])), federation.rows(train)
    protocol = DecisionTree()
    tree = protocol.fit(trainer.values, trainer.label, len(trainer.classes), rng)
    view = cut(predict(protocol, tree, target, trainer), LUO2021)
    before = _told(view, seed)
    right = np.argmax(view.received("scores"), axis=1) == target.label
    found: dict[str, Any] = {"accuracy without it": round(float(right.mean()), 4)}
    for sides, words in zip(SIDES, ("side certain", "path known"), strict=True):
        release = Verification(sides=sides).facing([LUO2021], trainer).release(protocol, tree, target)
        released = cut(predict(protocol, tree, target, trainer, release=release), LUO2021)
        gone = np.isnan(released.received("scores")).any(axis=1)
        after = _told(released, seed)
        found[words] = {
            "before": round(float(known_branch(before, sides).mean()), 4),
            "withheld": round(float(gone.mean()), 4),
            "left": int((known_branch(after, sides) & ~gone).sum()),
            "accuracy, withheld counted as wrong": round(float((right & ~gone).mean()), 4),
            "given away by withholding": round(float((_by_withholding(tree, view, sides) & gone).mean()), 4),
        }
    return found


def _told(view: View, seed: int) -> Branches:
    branches = PathRestriction().run(view, generator(seed, "verified attack")).branches
    assert branches is not None
    return branches


def _by_withholding(tree: Forest, view: View, sides: str) -> BoolArray:
    """Rows of which a side is known from own columns and from being withheld: all classes that the rule would withhold."""
    leaves = np.flatnonzero(tree.feature[0] == LEAF)
    paths = path_claims(tree, leaves, view.unknown)[1]
    reached = reachable(tree, view.known, view.own)[leaves]
    possible = np.zeros_like(reached)
    for label in range(tree.classes):
        marks = reached & leaves_of(tree, np.full(len(view.own), label))[leaves]
        certain = agreed(marks, paths).any(axis=1)
        one = (marks.sum(axis=0) == 1) & certain
        possible |= marks & (one if sides == "path" else certain)
    return np.asarray(agreed(possible, paths).any(axis=1))


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P11", "forest boxes", "path restriction is possible on forests", forest_branches),
    Claim("plumbob", "P13", "verification", "verification withholds what is certain of trees", verified_trees),
)
