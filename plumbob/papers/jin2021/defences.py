"""jin2021, its defence: fake gradients (C9) and differential privacy beside them (C10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from plumbob.attacks.gradients.cafe import Cafe
from plumbob.attacks.gradients.gradient_peeling import GradientPeeling
from plumbob.auditing.running.run import generator
from plumbob.defences import Defence, NoDefence
from plumbob.defences.gradients.dp_gradients import DpGradients
from plumbob.defences.gradients.fake_gradients import FakeGradients
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Part, Scale, part
from plumbob.papers.evidence import every
from plumbob.papers.jin2021.federations import SEARCHED, JinSize, attacked, pictures, table_9
from plumbob.protocols.gradients.split_training import SplitTraining
from plumbob.transcript import COORDINATOR, Transcript

POINTS_OF_A_CURVE = 40  # points of a curve
SMALLER = (0.01, 0.001, 0.0003)  # sigmas beside the paper's 1.1, down to the size of gradients


def _trained(name: str, size: JinSize, defence: Defence, seed: int, **settings: object) -> Transcript:
    plain = SplitTraining(batch_size=size.batch, width=size.width, **settings)  # type: ignore[arg-type]  # checked there
    protocol = defence.protect(plain)
    assert isinstance(protocol, SplitTraining)
    return protocol.train(*pictures(name, size.rows, 4, seed), generator(seed, "training", name, size))


def _curve(name: str, log: Transcript) -> Curve:
    losses = log.sealed(COORDINATOR)["training loss"]
    parts = np.array_split(losses, min(POINTS_OF_A_CURVE, len(losses)))
    ends = np.cumsum([len(part) for part in parts])
    return Curve(name, ends.astype(float).tolist(), [float(part.mean()) for part in parts])


def _course(curve: Curve) -> str:
    """How the loss goes: its beginning and end, and where it was lowest if that was between them."""
    lowest = int(np.argmin(curve.y))
    between = f"{curve.y[lowest]:.3f} at round {curve.x[lowest]:,.0f} to " if 0 < lowest < len(curve.y) - 1 else ""
    return f"loss {curve.y[0]:.3f} to {between}{curve.y[-1]:.3f}"


def _faked(words: str, defence: Defence, name: str, rounds: int, scale: Scale, seed: int) -> Part:
    """One line of C9: what CAFE and ours recover from still parameters, and how the loss goes under SGD."""
    size = SEARCHED[scale]
    still = _trained(name, size, defence, seed)
    searched = attacked(still, Cafe(**table_9(name, size, scale, earlier=None)), seed)
    ours = attacked(still, GradientPeeling(), seed)
    moving = _trained(name, size, defence, seed, optimizer="sgd", learning_rate=0.1, rounds=rounds, archive_mb=1)
    curve = _curve(words, moving)
    told = (
        f"CAFE {searched.psnr:.2f} dB, ours, which knows the defence, {ours.psnr:.2f} dB (labels {ours.labels or 0:.0%}), "
        f"{_course(curve)}"
    )
    return Part(
        {words: told},
        [searched.psnr < 10, curve.y[-1] < 0.9 * curve.y[0]],
        [curve],
        {words.replace(" ", "-").replace(",", ""): ours.sheet},
    )


def fake_gradients(scale: Scale, seed: int) -> CheckResult:
    """C9: static parameters for the attack, SGD at 0.1 for the loss."""
    name, rounds = ("cifar10", 3_000) if scale == "paper" else ("mnist", 150)
    measured: dict[str, object] = {
        "size": f"{SEARCHED[scale].rows} pictures of {name}, loss over {rounds:,} rounds of SGD at 0.1"
    }
    tried: dict[str, Defence] = {
        "true gradients": NoDefence(),
        "fake gradients": FakeGradients(),
        "fake gradients, line 17 as printed": FakeGradients(literal=True),
    } | {f"fake gradients, sigma {sigma:g}": FakeGradients(sigma=sigma) for sigma in SMALLER}
    parts = {w: part(w, partial(_faked, w, defence, name, rounds, scale, seed)) for w, defence in tried.items()}
    for done in parts.values():
        measured |= done.measured
    both = [words for words in tried if words != "true gradients" and every(parts[words].answers)]
    measured["CAFE is below 10 dB and the loss falls with"] = "; ".join(both) or "none of them"
    expected = "with sigma 1.1 CAFE falls from 28.68 to 7.67 dB, and the training loss under SGD at 0.1 still falls"
    why = (
        "CAFE is stopped; but numbers drawn with sigma 1.1 are far larger than gradients of this network, and the "
        "loss runs away in either reading of Algorithm 5. Nearer to them it falls, until gradients are smaller than the fakes, "
        "which keep their size: the threshold that Section 3.4 asks for must shrink with them. An attacker who knows the defence "
        "reads the labels and falls back on the mean picture, so it is never below that"
    )
    sheets = tuple(sheet for done in parts.values() for sheet in done.sheets.items())
    figures = (_losses(curve for done in parts.values() for curve in done.curves),)
    return CheckResult(every(parts["fake gradients"].answers), measured, expected, 1, why, figures, sheets)


def private_gradients(scale: Scale, seed: int) -> CheckResult:
    """C10: Table 11, the loss under differential privacy and under fake gradients."""
    size = replace(SEARCHED[scale], rows=200 if scale == "paper" else 12)
    name = "mnist"
    rounds = 1_000 if scale == "paper" else 60
    measured: dict[str, object] = {"size": f"{size.rows} pictures of {name}, {rounds:,} rounds of SGD at 0.1"}
    answers: list[bool | None] = []
    curves, fell = [], {}
    chosen: list[tuple[str, Defence]] = [("true gradients", NoDefence()), ("fake gradients", FakeGradients())]
    chosen += [(f"fake gradients, sigma {sigma:g}", FakeGradients(sigma=sigma)) for sigma in SMALLER]
    chosen += [(f"DP, epsilon {e:g}", DpGradients(epsilon=e, clip=3.0, amplified=True)) for e in (10.0, 5.0, 1.0, 0.1)]
    for words, defence in chosen:
        log = _trained(name, size, defence, seed, optimizer="sgd", learning_rate=0.1, rounds=rounds, archive_mb=1)
        curve = _curve(words, log)
        curves.append(curve)
        fell[words] = curve.y[0] - curve.y[-1]
        right = float(log.sealed(COORDINATOR)["test accuracy"][0])
        measured[words] = f"{_course(curve)}, test accuracy {right:.2f}"
    answers += [fell["true gradients"] > 0.1, fell["fake gradients"] > 0.1]
    answers += [change < 0.1 for words, change in fell.items() if words.startswith("DP")]
    expected = "under DP (clip 3) the loss does not fall at any epsilon, with fake gradients it does"
    why = (
        "under DP the loss does not fall at any epsilon, as the paper says; with fake gradients of sigma 1.1 it does not either, "
        "for they are far larger than gradients of this network; it does with smaller ones (C9)"
    )
    return CheckResult(every(answers), measured, expected, 1, why, (_losses(curves),))


def _losses(curves: Iterable[Curve]) -> ClaimFigure:
    """Those that stay on the paper."""
    return ClaimFigure("loss", "round", "training loss", [curve for curve in curves if max(curve.y) < 20])


CLAIMS = (
    Claim("jin2021", "C9", "Section 4.4", "fake gradients stop CAFE and the loss still falls", fake_gradients),
    Claim("jin2021", "C10", "Table 11", "under differential privacy the loss does not fall", private_gradients),
)
