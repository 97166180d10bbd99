"""What the server holds is checked where it is read: views with wrong content end in one sentence, for every attack."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks import Attack, attack_named
from plumbob.attacks.gradients.cafe import Cafe
from plumbob.errors import BadInput
from plumbob.federation import split_at_random
from plumbob.protocols.gradients.split_training import Optimizer, SplitTraining
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import Message
from tests.worlds import made_table

Change = Callable[[Message], Message | None]


@cache
def seen(optimizer: Optimizer) -> View:
    federation = split_at_random(made_table(60), 4, np.random.default_rng(0))
    protocol = SplitTraining(network="mlp", width=16, outputs=4, batch_size=6, rounds=24, optimizer=optimizer)
    rest = federation.rows(np.arange(20, 60))
    return cut(protocol.train(federation.rows(np.arange(20)), rest, np.random.default_rng(0)), THREATS["coordinator"])


def changed(view: View, change: Change) -> View:
    return replace(view, messages=tuple(m for m in map(change, view.messages) if m is not None))


def without(name: str, first: int = 0) -> Change:
    return lambda m: None if m.name.startswith(name) and m.round >= first else m


def with_payload(name: str, payload: Callable[[np.ndarray], np.ndarray], first: int = 0) -> Change:
    return lambda m: replace(m, payload=payload(m.payload)) if m.name == name and m.round >= first else m


def with_network(**values: object) -> Change:
    def change(message: Message) -> Message:
        if message.name != "network":
            return message
        raw = json.loads(message.payload.tobytes())
        text = json.dumps(raw | values if raw["party"] == "active" else raw)
        return replace(message, payload=np.frombuffer(text.encode(), dtype=np.uint8))

    return change


WRONG: list[tuple[str, Change, str]] = [
    ("last rows", without("rows", 20), "the batch indices of every round, but those of round 20 are missing"),
    ("no parameters", without("parameter/"), "needs the networks' parameters|needs the parameters of 'active'"),
    ("first parameters", without("parameter/active/1.bias"), "'1.bias' of 'active'"),
    ("NaN parameters", with_payload("parameter/active/1.bias", lambda a: a * np.nan), "in round 0 contains NaN"),
    ("floats", with_payload("rows", lambda a: a.astype(float)), "round 0: expected a list of whole row numbers"),
    ("two dimensions", with_payload("rows", lambda a: a.reshape(2, -1)), r"row numbers, got int64 of shape \(2, 3\)"),
    ("beyond", with_payload("rows", lambda a: a + 1_000), "round 0: expected row numbers from 0 to 19"),
    ("outputs", with_network(outputs="x"), "outputs: expected a whole number"),
    ("shape", with_network(shape=["a"]), "shape: expected a whole number"),
    ("no shape", with_network(shape=[]), "a shape of 1 to 3 numbers"),
    ("large shape", with_network(shape=[10**9] * 3), "take 1,000,000,000,000,000,000,000,000,004 columns"),
    ("width", with_network(width=-5), "width: expected a whole number"),
    ("double", with_network(double=2), "double: expected true or false"),
    ("party", with_network(party=3), "the names of a party and a network"),
    ("another network", with_network(network="cafe"), "network 'cafe': expected pictures"),
    ("adds up", with_network(network="sum", outputs=3), "does not accept inputs of shape"),
    ("transposed", with_payload("gradient/active/1.weight", lambda a: a.T), r"expected an array of shape \(16, 4\)"),
    ("words", with_payload("gradient/active/1.weight", lambda a: a.astype(bool)), "expected numbers, got bool"),
]


def attacks() -> list[Attack]:
    return [attack_named("gradient_peeling"), Cafe(iterations=3)]


@pytest.mark.parametrize("optimizer", ["static", "adam"])
@pytest.mark.parametrize(("change", "words"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_views_with_wrong_content_are_one_sentence(change: Change, words: str, optimizer: Optimizer) -> None:
    view = changed(seen(optimizer), change)
    for attack in attacks():
        with pytest.raises(BadInput, match=words):
            attack.run(view, np.random.default_rng(0))


def test_parameters_of_a_later_round_that_are_missing_are_named() -> None:
    view = changed(seen("adam"), without("parameter/active/1.bias", 1))
    for attack in attacks():
        with pytest.raises(BadInput, match=r"'1.bias' of 'active' is missing or has another shape in round \d+"):
            attack.run(view, np.random.default_rng(0))


def test_the_view_itself_is_fine() -> None:
    for attack in attacks():
        assert attack.run(seen("static"), np.random.default_rng(0)).values is not None
