"""What scores of trees say of branches: more than luo2021 has it of forests (P11)."""

from __future__ import annotations

from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.open_data import open_source
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.papers.evidence import YesNoOpen, below, every

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
                "attacks": [BOXES, NETWORK],
                "unknown": list(FOREST_UNKNOWN[scale]),
                "trials": FOREST_TRIALS[scale],
                "rows": 200 if scale == "smoke" else 400,
                "seed": seed,
                "ceiling": False,
            }
        ).filled()
        findings = run(plan, open_source(plan.data, seed))
        for share, found in group(findings, lambda f: round(f.unknown, 2)).items():
            told = {a: [f.score.branching for f in fs] for a, fs in group(found, lambda f: f.attack).items()}
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


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P11", "forest boxes", "path restriction is possible on forests", forest_branches),
)
