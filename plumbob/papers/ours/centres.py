"""P36: the Chebyshev centre beside ESA, the projection of 1/2 and the posterior mean, on the same scores."""

from __future__ import annotations

import numpy as np

from plumbob.attacks import attack_named
from plumbob.attacks.scores.equation_solving import equations
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.federation import FloatArray, halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.protocols.base import predict
from plumbob.protocols.scores.logistic_regression import LogisticRegression
from plumbob.scoring.truth import truth_of
from plumbob.threats import LUO2021, View, cut

DATA = ("bank", "credit", "drive", "satellite")
HIDDEN = (0.2, 0.3, 0.4, 0.5, 0.6)
ATTACKS = ("equation_solving", "chebyshev_centre", "posterior_mean")
HALF = "projection of 1/2"


def projected_half(view: View) -> FloatArray:
    """The point nearest 1/2 that meets the equations, in the box or not."""
    system = equations(view)
    half = np.full((len(view.own), len(view.unknown)), 0.5)
    return np.asarray(half + (system.right - half @ system.left.T) @ np.linalg.pinv(system.left).T)


def errors(data: str, share: float, trial: int, sample: int, rows: int, seed: int) -> dict[str, float]:
    """The mean squared error of each attack on one split of the columns."""
    rng = generator(seed, "P36", data, share, trial)
    federation = split_at_random(registry.load(data), share, rng)
    federation = federation.rows(np.sort(rng.permutation(len(federation.label))[:sample]))
    train, rest = halves(federation.label, rng)
    trainer, target = federation.rows(train), federation.rows(np.sort(rng.permutation(rest)[:rows]))
    protocol = LogisticRegression()
    model = protocol.fit(trainer.values, trainer.label, len(trainer.classes), rng)
    log = predict(protocol, model, target, trainer)
    view = cut(log, LUO2021)
    truth = truth_of(log, view).values
    guesses = {HALF: projected_half(view)}
    for name in ATTACKS:
        values = attack_named(name).run(view, generator(seed, "P36 attack", data, share, trial)).values
        assert values is not None
        guesses[name] = values
    return {name: float(((values - truth) ** 2).mean()) for name, values in guesses.items()}


def centres(scale: Scale, seed: int) -> CheckResult:
    """Mean squared errors on random splits of the columns, in units of the ranges; judged is each table's mean."""
    smoke = scale == "smoke"
    sample, rows, trials = (1_500, 100, 2) if smoke else (6_000, 1_000, 8)
    shares = (0.4,) if smoke else HIDDEN
    measured: dict[str, object] = {}
    answers: list[bool | None] = []
    for data in ("satellite",) if smoke else DATA:

        def compared(data: str = data) -> Part:
            told: dict[str, object] = {}
            centre, ours, worse = [], [], 0
            for share in shares:
                found = [errors(data, share, trial, sample, rows, seed) for trial in range(trials)]
                means = {name: float(np.mean([f[name] for f in found])) for name in (*ATTACKS, HALF)}
                told[f"{data}, {share:.0%} hidden"] = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
                centre.append(means["chebyshev_centre"])
                ours.append(means["posterior_mean"])
                worse += sum(f["chebyshev_centre"] > f["equation_solving"] + 1e-9 for f in found)
            told[f"{data}, splits on which the centre errs more than ESA"] = f"{worse} of {len(shares) * trials}"
            return Part(told, [float(np.mean(ours)) <= float(np.mean(centre))])

        done = part(data, compared)
        measured |= done.measured
        answers += done.answers
    expected = "on every table, the MSE of the posterior mean over all shares is at most the Chebyshev centre's; the rest is told"
    return CheckResult(every(answers), measured, expected, trials)


CLAIMS: tuple[Claim, ...] = (
    Claim("plumbob", "P36", "Chebyshev centre", "the posterior mean errs less than the Chebyshev centre", centres),
)
