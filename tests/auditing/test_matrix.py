"""The matrix: no cell that means something is empty, and what is called not applicable is what the messages say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from plumbob.attacks import ATTACKS
from plumbob.auditing.planning.matrix import Row, Status, lacks, matrix, roles
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import gaps
from plumbob.federation import Federation, halves, split_at_random
from plumbob.protocols import PROTOCOLS, predict, protocol_named
from plumbob.protocols.base import column_positions
from plumbob.threats import THREATS, AuxiliaryRows, KnownPeople
from plumbob.transcript import COORDINATOR, Message, Transcript
from tests.worlds import made_table, small, world

ROWS = 120
FLOOR = "complete_rows"
PREDICTED = [name for name, kind in PROTOCOLS.items() if kind.phase == "prediction"]
TRAINED = [name for name, kind in PROTOCOLS.items() if kind.phase == "training"]


@cache
def rows() -> dict[tuple[str, str], Row]:
    return {(block.protocol, row.threat): row for block in matrix() for row in block.rows}


def test_no_cell_that_means_something_is_empty() -> None:
    assert [where for where, row in rows().items() if row.status is Status.EMPTY] == []


def test_what_is_not_applicable_names_the_messages_that_the_party_lacks() -> None:
    silent = {where: row for where, row in rows().items() if row.status is Status.NOT_APPLICABLE}
    assert silent
    for (protocol, threat), row in silent.items():
        kind = protocol_named(protocol)
        assert not any(kind.told(role) for role in roles(THREATS[threat]))
        assert any(f"'{name}'" in row.lacks for role in kind.roles for name in kind.told(role))


def test_the_floor_counts_only_where_rows_are_granted() -> None:
    for (_, threat), row in rows().items():
        granted = any(THREATS[threat].grant(kind) is not None for kind in (AuxiliaryRows, KnownPeople))
        assert granted or FLOOR not in row.fits
    every = [
        (p, t) for (p, t), row in rows().items() if THREATS[t].grant(AuxiliaryRows) and row.status is Status.ATTACKED
    ]
    assert all(FLOOR in rows()[where].fits for where in every)


def received(log: Transcript, role: str) -> list[Message]:
    """What others sent to a party of that role, keys and settings aside."""
    passive = [name for name in log.parties if name != log.active]
    names = {"active": [log.active], "passive": passive, COORDINATOR: [COORDINATOR]}[role]
    return [message for message in log.messages if message.receiver in names and message.sender not in names]


def moved(federation: Federation) -> Federation:
    """The same people in another order, all of them: every row is told of somebody else."""
    return federation.rows(np.roll(np.arange(len(federation)), 1))


@cache
def predictions(protocol: str) -> tuple[Transcript, Transcript]:
    """One model, asked about the same row numbers, which are other people the second time."""
    rng = np.random.default_rng(1)
    federation = split_at_random(made_table(rows=ROWS), 0.4, rng)
    train, rest = halves(federation.label, rng)
    trainer, target = federation.rows(train), federation.rows(rest)
    kind = small(protocol)
    model = kind.fit(trainer.values, trainer.label, 3, rng, list(column_positions(federation).values()))
    one, two = (predict(kind, model, people, trainer) for people in (target, moved(target)))
    return one, two


@pytest.mark.parametrize("role", ["active", "passive", COORDINATOR])
@pytest.mark.parametrize("protocol", PREDICTED)
def test_a_role_is_told_of_rows_by_what_its_protocol_declares_and_by_nothing_else(protocol: str, role: str) -> None:
    """Messages that differ where the rows are other people: those are the ones that speak of rows."""
    pairs = zip(*(received(log, role) for log in predictions(protocol)), strict=True)
    speaking = {
        a.name for a, b in pairs if a.payload.shape != b.payload.shape or not np.array_equal(a.payload, b.payload)
    }
    assert speaking == set(protocol_named(protocol).told(role))


@pytest.mark.parametrize("protocol", TRAINED)
def test_in_training_every_role_gets_what_is_declared_and_one_that_gets_messages_is_never_not_applicable(
    protocol: str,
) -> None:
    log = world(protocol, made_table(rows=ROWS) if protocol != "xgboost_columns" else None)
    kind = PROTOCOLS[protocol].preset("small")
    for role in ("active", "passive", COORDINATOR):
        names = {message.name.partition("/")[0] for message in received(log, role)}
        assert bool(names) == bool(kind.told(role))
        assert not kind.told(role) or names & set(kind.told(role))


def test_a_party_that_gets_something_is_never_not_applicable() -> None:
    without = protocol_named("split_models", coordinator=False)
    assert lacks(without, THREATS["coordinator"])
    assert not lacks(without, THREATS["active-black-box"])
    assert not lacks(protocol_named("split_models"), THREATS["coordinator"])


def test_an_audit_says_not_applicable_in_the_words_of_the_matrix() -> None:
    plan = make_plan({"data": "breast", "protocols": ["random_forest"], "threats": ["active", "passive-training"]})
    (gap,) = gaps(plan.filled())
    assert (gap.state, gap.why) == ("not applicable", rows()["random_forest", "passive-training"].lacks)


def test_an_attack_is_outdone_by_one_that_works_there_too() -> None:
    for kind in ATTACKS.values():
        for protocol, rival in kind.outdone.items():
            assert protocol in kind.protocols
            assert protocol in ATTACKS[rival].protocols
            assert protocol not in ATTACKS[rival].outdone
