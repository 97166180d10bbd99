"""Answers that are added up unseen (luo2021, Section III): nothing but the scores is revealed, and that is what leaks (P15)."""

from __future__ import annotations

import numpy as np

from plumbob.auditing.concluding.summarise import group, summarise
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.finding import Finding
from plumbob.auditing.running.open_data import open_source
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Scale
from plumbob.protocols import protocol_named
from plumbob.protocols.base import column_positions, predict, predicting
from plumbob.threats import LUO2021, cut

SUMS = ("clear", "shared", "paillier")
SUM_ATTACKS = {"logistic_regression": "posterior_mean", "split_models": "linearised_posterior"}
SUM_ROWS = {"smoke": 100, "paper": 1_000}


def same_leak(scale: Scale, seed: int) -> CheckResult:
    """Largest difference of a score, verdicts, and what it costs: satellite, 30 % unknown."""
    measured: dict[str, object] = {}
    worst, alike = 0.0, True
    for name, attack in SUM_ATTACKS.items():
        scores = {sums: _scores(name, sums, scale, seed) for sums in SUMS}
        worst = max(worst, *(float(np.abs(scores[sums] - scores["clear"]).max()) for sums in SUMS[1:]))
        findings = _findings(name, attack, scale, seed)
        levels = {
            protocol: [(v.column, v.level) for v in one.verdicts]
            for protocol, one in ((s.setting.protocol, s) for s in summarise(findings))
        }
        alike = alike and len(levels) == len(SUMS) and len({str(found) for found in levels.values()}) == 1
        for protocol, found in group(findings, lambda f: f.protocol).items():
            parts = (
                [f.score.gain for f in found],
                [f.bytes_sent / 1e3 for f in found],
                [f.predict_seconds for f in found],
            )
            gain, sent, seconds = (float(np.mean(part)) for part in parts)
            measured[protocol] = f"gain {gain:.3f}, {sent:,.0f} kB sent, {seconds:.2f} s"
    measured |= {"largest difference of a score": worst, "same verdicts": alike}
    expected = "scores within 1e-6, the same verdict on every column"
    why = "what is learnt is learnt from the scores, which are what everybody wants"
    return CheckResult(worst < 1e-6 and alike, measured, expected, 2, why)


def _scores(name: str, sums: str, scale: Scale, seed: int) -> np.ndarray:
    rng = generator(seed, "sums", name)
    federation = split_at_random(registry.load("satellite"), 0.3, rng)
    train, rest = halves(federation.label, rng)
    trainer, target = federation.rows(train[:1_000]), federation.rows(rest[: SUM_ROWS[scale]])
    protocol = predicting(protocol_named(name, sums=sums))
    blocks = list(column_positions(federation).values())
    model = protocol.fit(trainer.values, trainer.label, len(trainer.classes), rng, blocks)
    return np.asarray(cut(predict(protocol, model, target, trainer), LUO2021).received("scores"))


def _findings(name: str, attack: str, scale: Scale, seed: int) -> list[Finding]:
    plan = make_plan(
        {
            "data": {"name": "satellite", "sample": 2_000},
            "protocols": [{"name": name, "settings": {"sums": sums}} for sums in SUMS],
            "attacks": [attack],
            "unknown": 0.3,
            "trials": 2,
            "rows": SUM_ROWS[scale],
            "seed": seed,
            "ceiling": False,
        }
    ).filled()
    return list(run(plan, open_source(plan.data, seed)))


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P15", "answers added up unseen", "encrypting the answers changes no verdict", same_leak),
)
