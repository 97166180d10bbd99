"""What every attack must do, on every protocol and threat it says it fits."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from plumbob.attacks import ATTACKS, Attack, Guess
from plumbob.federation import Table
from plumbob.known_defences import KnownDefence, KnownDefences
from plumbob.protocols import PROTOCOLS
from plumbob.registry import settable
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.targets.xgboost.xgboost_columns import installed
from plumbob.threats import THREATS, Threat, View, WhiteBox, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table, with_truth, world

SMALL: dict[str, Attack] = {name: kind.preset("small") for name, kind in ATTACKS.items()}  # whatever the defaults are
ROWS = 240  # half of them are trained on, and half are predicted
FAST = ("logistic_regression", "decision_tree")  # of prediction; on the others one threat that fits has to do


def threats_for(name: str, protocol: str) -> list[str]:
    """Threats that an attack fits, without collusion, which changes who holds what and no attack."""
    fitting = [t for t in THREATS if SMALL[name].why_not(protocol, THREATS[t]) is None and t != "collusion"]
    if protocol == "split_network" and not SMALL[name].deviates():  # the views are those of threats that do not deviate
        fitting = [t for t in fitting if not THREATS[t].deviations]
    slow = PROTOCOLS[protocol].phase == "prediction" and protocol not in FAST
    return fitting[:1] if slow else fitting


FITTING = [
    pytest.param(name, protocol, threat, id=f"{name}-{protocol}-{threat}")
    for name in SMALL
    for protocol in PROTOCOLS
    for threat in threats_for(name, protocol)
]
TRAINING = [name for name, kind in PROTOCOLS.items() if kind.phase == "training"]
PREDICTION = [p for p in FITTING if p.values[2] == "active" and p.values[1] not in TRAINING]
# Attacks on training need no model; the first threat that fits each is enough.
IN_TRAINING = list({p.values[:2]: p for p in reversed(FITTING) if p.values[1] in TRAINING}.values())
PAIRS = PREDICTION + IN_TRAINING


def numbers(guess: Guess) -> bytes:
    """Everything a guess says, as bytes."""
    parts = [] if guess.values is None else [guess.values.tobytes()]
    if guess.branches is not None:
        branches = guess.branches
        parts += [branches.paths.tobytes(), branches.chosen.tobytes(), branches.threshold.tobytes()]
    if guess.orders is not None:
        parts += [guess.orders.bins.tobytes(), guess.orders.counts.tobytes()]
    if guess.vectors is not None:
        parts += [guess.vectors.tobytes(), guess.certificate.encode()]
    parts += [part.tobytes() for part in (guess.people, guess.labels) if part is not None]
    return b"".join(parts)


def guess(name: str, view: View, seed: int = 5) -> Guess:
    return SMALL[name].run(view, np.random.default_rng(seed))


def every_defence() -> KnownDefences:
    """Everything that can be known of defences, all at once."""
    number = {"int": 1, "float": 0.5, "bool": True}
    known = [
        kind(**{one.name: number[str(one.type)] for one in fields(kind) if one.default is MISSING})
        for kind in KnownDefence.__subclasses__()
    ]
    return KnownDefences.of(*known)


@cache
def usual(protocol: str) -> Transcript:
    """One world for all attacks on a protocol; nobody changes it."""
    return world(protocol, made_table(rows=ROWS))


@cache
def first(name: str, protocol: str, threat: str) -> tuple[View, Guess]:
    """The view of the usual world and what the attack says of it; made once, as other tests compare with it."""
    view = cut(usual(protocol), THREATS[threat])
    return view, guess(name, view)


@pytest.mark.parametrize(("name", "protocol", "threat"), FITTING)
def test_the_same_seed_gives_the_same_guess(name: str, protocol: str, threat: str) -> None:
    view, made = first(name, protocol, threat)
    assert numbers(made) == numbers(guess(name, view))


@pytest.mark.parametrize(("name", "protocol", "threat"), FITTING)
def test_garbage_in_place_of_the_truth_changes_no_guess(name: str, protocol: str, threat: str) -> None:
    log = usual(protocol)
    view = first(name, protocol, threat)[0]
    hidden = next(party for party in ("passive", "active") if party not in view.curious)
    true = log.sealed(hidden)["columns"]
    garbage = np.random.default_rng(9).random(true.shape)
    people = view.people
    if people is not None:  # whom the threat knows in full
        garbage[people] = true[people]
    two = guess(name, cut(with_truth(log, hidden, garbage), THREATS[threat]))
    assert numbers(first(name, protocol, threat)[1]) == numbers(two)


def test_saved_views_attacked_in_another_process_give_the_same_bits(tmp_path: Path) -> None:
    """Every attack on every protocol that it fits, all in one other process."""
    cases = [p.values for p in PAIRS if p.values[1] != "xgboost_columns" or installed()]
    assert {protocol for _, protocol, _ in cases} >= set(PROTOCOLS) - {"xgboost_columns"}
    for name, protocol, threat in cases:
        first(name, protocol, threat)[0].save(tmp_path / f"{name}-{protocol}.zip")
    script = (
        "import sys; from pathlib import Path; from plumbob.threats import View\n"
        "from tests.attacks.test_contract import guess, numbers\n"
        "for path in map(Path, sys.argv[1:]): path.with_suffix('.out').write_bytes("
        "numbers(guess(path.stem.split('-')[0], View.load(path))))"
    )
    command = [sys.executable, "-c", script, *(str(tmp_path / f"{name}-{protocol}.zip") for name, protocol, _ in cases)]
    subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    for name, protocol, threat in cases:
        assert (tmp_path / f"{name}-{protocol}.out").read_bytes() == numbers(first(name, protocol, threat)[1])


@pytest.mark.parametrize(("name", "protocol", "threat"), FITTING)
def test_a_guess_speaks_of_every_unknown_cell(name: str, protocol: str, threat: str) -> None:
    view, made = first(name, protocol, threat)
    assert made.names == view.unknown_names
    if made.values is not None:
        assert made.values.shape == (len(view.own), len(view.unknown))
        assert np.isfinite(made.values).all()
    if made.branches is not None:
        assert len(made.branches.chosen) == len(view.own)
        assert (made.branches.candidates >= 1).all()


@cache
def awkward(case: str, protocol: str) -> Transcript:
    """One awkward world for all attacks on a protocol; nobody changes it."""
    table, unknown = made_table(rows=ROWS, classes=2 if case == "two classes" else 3), 3
    if case == "constant columns":
        values = table.values.copy()
        values[:, ::2] = 0.0
        table = Table(table.name, table.columns, values, table.label, table.classes)
    unknown = {"one unknown": 1, "one known": 7}.get(case, unknown)
    return world(protocol, table, unknown)


@pytest.mark.parametrize(("name", "protocol", "threat"), PAIRS)
@pytest.mark.parametrize("case", ["constant columns", "one row", "two classes", "one unknown", "one known"])
def test_awkward_tables_are_survived(name: str, protocol: str, threat: str, case: str) -> None:
    if case == "one row" and protocol in TRAINING:
        pytest.skip("nobody trains on one row")
    log = awkward(case, protocol)
    view = cut(log, THREATS[threat])
    if case == "one row":
        scores = [m for m in view.messages if m.name == "scores"]
        from dataclasses import replace

        view = replace(view, own=view.own[:1], messages=(replace(scores[0], payload=scores[0].payload[:1]),))
        assert len(numbers(guess(name, view))) > 0
        return
    judged = score(guess(name, view), truth_of(log, view), view, np.random.default_rng(0))
    assert np.isfinite(judged.error)
    assert all(np.isfinite(column.gain) for column in judged.columns)


@pytest.mark.parametrize(("name", "protocol", "threat"), PREDICTION)
def test_withheld_scores_are_no_message(name: str, protocol: str, threat: str) -> None:
    """A row whose scores are NaN is guessed without them: what they would have been makes no difference."""
    from dataclasses import replace

    view = cut(usual(protocol), THREATS[threat])

    def withheld(change: float) -> View:
        messages = []
        for message in view.messages:
            payload = message.payload
            if message.name == "scores":
                payload = np.array(payload)
                payload[3] = np.nan
            messages.append(replace(message, payload=payload))
        return replace(view, messages=tuple(messages))

    made = guess(name, withheld(0.0))
    if made.values is not None:
        assert np.isfinite(made.values).all()
    if made.branches is not None:
        assert made.branches.candidates[3] >= guess(name, view).branches.candidates[3]


@pytest.mark.parametrize(("name", "protocol", "threat"), {p.values[0]: p for p in reversed(PAIRS)}.values())
def test_who_does_not_know_the_defence_guesses_as_if_there_were_none(name: str, protocol: str, threat: str) -> None:
    """Whatever stands in the view of defences. What an attack without the setting makes of it, is that it cannot attack."""
    from dataclasses import replace

    kind = ATTACKS[name]
    unaware = kind(**(dict(kind.presets.get("small", {})) | ({"adaptive": False} if kind.knows else {})))
    view, plain = first(name, protocol, threat)
    made = unaware.run(replace(view, defence=every_defence()), np.random.default_rng(5))
    if kind.knows:
        assert made.untried == plain.untried
    assert numbers(made) == numbers(plain) or (made.untried and not kind.knows)


@pytest.mark.parametrize("name", list(SMALL))
def test_an_attack_that_knows_defences_has_the_setting_and_no_other_has(name: str) -> None:
    assert ("adaptive" in settable(ATTACKS[name])) == bool(ATTACKS[name].knows)


@pytest.mark.parametrize("name", list(SMALL))
def test_an_attack_prints_itself_and_says_what_it_is(name: str) -> None:
    attack = SMALL[name]
    assert repr(attack).startswith(f"{type(attack).__name__}(")
    assert attack.summary
    assert attack.paper
    assert all(protocol in PROTOCOLS for protocol in attack.protocols)


@pytest.mark.parametrize("name", list(SMALL))
def test_an_attack_says_why_it_does_not_fit(name: str) -> None:
    attack = SMALL[name]
    assert "only" in (attack.why_not("carrier_pigeon", THREATS["active"]) or "")
    if WhiteBox in attack.requires:
        assert "white box" in (attack.why_not(attack.protocols[0], Threat("t", "")) or "")
    if attack.corrupted:
        granted = THREATS["active-training"]
        assert attack.why_not(attack.protocols[0], granted) == "needs the coordinator"
