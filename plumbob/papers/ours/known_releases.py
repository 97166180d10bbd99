"""P38: attackers on networks and forests who know a defence of the scores, beside attackers who do not."""

from __future__ import annotations

from typing import Any

from plumbob.attacks import attack_named
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences import defence_named
from plumbob.federation import halves, split_at_random
from plumbob.papers.claims import CheckResult, Claim, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.protocols import protocol_named
from plumbob.protocols.base import predict, predicting
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut

ATTACKED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("neural_network", {"hidden": (100, 50)}, "linearised_posterior"),
    ("random_forest", {"trees": 30}, "forest_boxes"),
)
RELEASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rounding", {"digits": 2}),
    ("rounding", {"digits": 1}),
    ("label_only", {}),
    ("noise", {"sigma": 0.1}),
    ("dp_scores", {}),
)
HIDDEN = 0.3  # share of the columns
LUCK = 0.05  # who knows may be worse by this much of the error, under one release


def error_ratios(data: str, protocol: str, settings: dict[str, Any], attack: str, rows: int, seed: int) -> Part:
    """For every release the error of who knows it over that of who does not, on the same view."""
    measured: dict[str, Any] = {}
    answers: list[bool | None] = []
    for name, chosen in RELEASES:
        rng = generator(seed, "P38", data, protocol)
        federation = split_at_random(registry.load(data), HIDDEN, rng)
        train, rest = halves(federation.label, rng)
        trainer, target = federation.rows(train[:2_000]), federation.rows(rest[:rows])
        defence = defence_named(name, **chosen)
        guarded = predicting(defence.protect(predicting(protocol_named(protocol, **settings))))
        model = guarded.fit(trainer.values, trainer.label, len(trainer.classes), rng)
        release = defence.release(guarded, model, target)
        log = predict(guarded, model, target, trainer, release=release, defence=defence.known())
        view = cut(log, THREATS["active-auxiliary"])
        truth = truth_of(log, view).values
        errors = []
        for adaptive in (True, False):
            drawn = generator(seed, "P38 attack", data, protocol)
            values = attack_named(attack, adaptive=adaptive).run(view, drawn).values
            assert values is not None
            errors.append(float(((values - truth) ** 2).mean()))
        words = " ".join([name, *(str(value) for value in chosen.values())])
        measured[f"{data}, {attack}, {words}"] = f"MSE {errors[0]:.4f} knowing it, {errors[1]:.4f} not"
        answers.append(errors[0] <= (1.0 + LUCK) * errors[1])
    return Part(measured, answers)


def who_knows(scale: Scale, seed: int) -> CheckResult:
    """Both attacks under every release."""
    tables, rows = (("breast",), 40) if scale == "smoke" else (("satellite", "bank"), 300)
    measured: dict[str, Any] = {}
    answers: list[bool | None] = []
    for data in tables:
        for protocol, settings, attack in ATTACKED:

            def work(data: str = data, name: str = protocol, own: dict[str, Any] = settings, by: str = attack) -> Part:
                return error_ratios(data, name, own, by, rows, seed)

            done = part(f"{data}-{protocol}", work)
            measured |= done.measured
            answers += done.answers
    expected = f"the error of who knows the release is at most {1 + LUCK:g} times that of who does not, under each"
    return CheckResult(every(answers), measured, expected, 1)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "plumbob",
        "P38",
        "linearised posterior, forest boxes",
        "on networks and forests, knowing a defence of the scores does not hurt the attacker",
        who_knows,
    ),
)
