"""Sums of answers that nobody sees the parts of: the same scores, and nothing but them."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.auditing.concluding.conclusion import conclude
from plumbob.auditing.concluding.summarise import summarise
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.execution_engines import run
from plumbob.auditing.running.expand import draws, keyed
from plumbob.auditing.running.open_data import open_source
from plumbob.errors import BadInput
from plumbob.federation import split
from plumbob.protocols import predict, protocol_named
from plumbob.protocols.base import column_positions, predicting
from plumbob.report.answer import answers
from plumbob.report.encryption import encryption
from plumbob.threats import LUO2021, cut
from plumbob.transcript import COORDINATOR, Transcript
from tests.worlds import made_table

SETTINGS: dict[str, dict[str, object]] = {"logistic_regression": {}, "split_models": {"epochs": 2}}
OWNERS = {"p0": ["c0", "c1", "c2"], "p1": ["c3", "c4"], "p2": ["c5", "c6", "c7"]}


def exchanged(name: str, sums: str) -> Transcript:
    federation = split(made_table(rows=60), OWNERS, "p0")
    protocol = predicting(protocol_named(name, sums=sums, **SETTINGS[name]))
    blocks = list(column_positions(federation).values())
    model = protocol.fit(federation.values, federation.label, 3, np.random.default_rng(0), blocks)
    return predict(protocol, model, federation, federation, batch=40)


@pytest.mark.parametrize("name", list(SETTINGS))
@pytest.mark.parametrize("sums", ["shared", "paillier"])
def test_sums_unseen_give_the_same_scores(name: str, sums: str) -> None:
    plain, unseen = (cut(exchanged(name, how), LUO2021) for how in ("clear", sums))
    assert np.abs(plain.received("scores") - unseen.received("scores")).max() < 1e-6
    assert not any(message.name == "answer" for message in unseen.messages)


def test_the_collector_sees_uniform_numbers_and_their_sum() -> None:
    log, plain = exchanged("logistic_regression", "shared"), exchanged("logistic_regression", "clear")
    masked = [m.payload for m in log.messages if m.name == "masked answer" and m.receiver == COORDINATOR]
    seen = np.concatenate([part.ravel() for part in masked]) / 2.0**63
    assert len(masked) == 2 * 3
    assert abs(seen.mean()) < 4 / np.sqrt(3 * len(seen))
    answers = [m.payload for m in plain.messages if m.name == "answer"][:3]
    assert sum(masked[:3]) / 2.0**50 == pytest.approx(sum(answers), abs=1e-14)


def test_who_holds_the_key_gets_no_single_answer() -> None:
    log = exchanged("logistic_regression", "paillier")
    crossed = {(m.sender, m.receiver, m.name) for m in log.messages if m.name.startswith("encrypted")}
    assert crossed == {
        ("p1", "p0", "encrypted answer"),
        ("p2", "p0", "encrypted answer"),
        ("p0", COORDINATOR, "encrypted sum"),
    }


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "logistic_regression",
            {"sums": "shard"},
            "expected clear, shared, paillier, got 'shard'; did you mean 'shared'",
        ),
        ("split_models", {"sums": "paillier", "coordinator": False}, "'sums: paillier' needs the coordinator"),
    ],
)
def test_ways_that_do_not_exist_are_refused(name: str, settings: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        protocol_named(name, **settings)


def test_who_adds_up_changes_no_draw_and_has_findings_of_its_own() -> None:
    protocols = [{"name": "split_models", "settings": {"sums": how}} for how in ("clear", "shared", "paillier")]
    plan = make_plan({"data": "breast", "protocols": ["split_models", *protocols[1:]], "trials": 1}).filled()
    source = open_source(plan.data, 0)
    work = keyed(plan, source)
    drawn = [[draws(plan, source.digest, unit, case) for case, _ in todo] for unit, todo in work]
    assert drawn[0] == drawn[1] == drawn[2]
    keys = [key for _, todo in work for _, key in todo]
    assert len(set(keys)) == len(keys) == 3 * len(drawn[0])


def test_verdicts_are_the_same_and_the_report_says_that_it_does_not_help() -> None:
    """What is learnt is learnt from the scores."""
    plan = make_plan(
        {
            "data": {"name": "breast", "sample": 200},
            "protocols": [
                {"name": "logistic_regression", "settings": {"sums": how}} for how in ("clear", "shared", "paillier")
            ],
            "attacks": ["equation_solving"],
            "unknown": 0.04,
            "trials": 1,
            "rows": 50,
            "ceiling": False,
        }
    ).filled()
    findings = run(plan, open_source(plan.data, 0))
    levels = [[(v.column, v.level) for v in one.verdicts] for one in summarise(findings)]
    assert len(levels) == 3
    assert levels[0] == levels[1] == levels[2]
    assert [f.encryption for f in findings] == ["", "as masked sums", "Paillier, 2,048-bit key"]
    conclusion = conclude(findings)
    words = [one.headline for one in encryption(findings, answers(conclusion))]
    assert len(words) == 2
    assert "encryption is on (Paillier, 2,048-bit key). It does not help against the active party" in words[1]
