"""Set intersection: exact, in the client's indices, over bytes that cross a channel, keys staying at home."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbob.crypto.psi import Client, PsiServer, intersect
from plumbob.errors import BadInput
from plumbob.federation import ByteArray


class Wire:
    """A channel that remembers what crossed and hands over copies."""

    def __init__(self) -> None:
        self.crossed: list[tuple[str, str, str, ByteArray]] = []

    def __call__(self, sender: str, receiver: str, name: str, payload: ByteArray) -> ByteArray:
        self.crossed.append((sender, receiver, name, payload.copy()))
        return payload.copy()


ids = st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=12)


@settings(max_examples=25, deadline=None)
@given(ids, ids)
def test_the_result_is_the_set_intersection_in_the_clients_order(ours: list[str], theirs: list[str]) -> None:
    found = intersect(Wire(), "bank", ours, "shop", theirs)
    assert found.tolist() == [i for i, one in enumerate(ours) if one in set(theirs)]


def test_three_messages_cross_and_all_are_bytes() -> None:
    wire = Wire()
    intersect(wire, "bank", ["a", "b"], "shop", ["b", "c"])
    assert [message[:3] for message in wire.crossed] == [
        ("bank", "shop", "psi request"),
        ("shop", "bank", "psi setup"),
        ("shop", "bank", "psi response"),
    ]
    assert {message[3].dtype for message in wire.crossed} == {np.dtype(np.uint8)}


def test_no_id_crosses_in_the_clear() -> None:
    wire = Wire()
    intersect(wire, "bank", ["customer-0001"], "shop", ["customer-0001", "customer-0002"])
    assert not any(b"customer" in message[3].tobytes() for message in wire.crossed)


def test_no_key_crosses() -> None:
    client, server = Client(["a", "b"]), PsiServer(["b"])
    request = client.request()
    wire = request.tobytes() + b"".join(part.tobytes() for part in server.answer(request))
    for side in (client, server):
        assert side._engine.GetPrivateKeyBytes() not in wire


def test_equal_ids_are_blinded_differently_in_every_run() -> None:
    assert Client(["a"]).request().tobytes() != Client(["a"]).request().tobytes()


def test_matches_are_exact_in_thousands() -> None:
    ours, theirs = [f"{i}" for i in range(2_000)], [f"{i}" for i in range(1_999, 4_000)]
    assert intersect(Wire(), "bank", ours, "shop", theirs).tolist() == [1_999]


@pytest.mark.parametrize(("role", "ours", "theirs"), [("client", ["a", "a"], ["a"]), ("server", ["a"], ["a", "a"])])
def test_repeated_ids_are_refused(role: str, ours: list[str], theirs: list[str]) -> None:
    with pytest.raises(BadInput, match=f"the {role} .* gave 1 duplicate ids"):
        intersect(Wire(), "bank", ours, "shop", theirs)


def test_a_damaged_message_is_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput, match="the request of a set intersection was damaged"):
        PsiServer(["a"]).answer(np.full(7, 255, dtype=np.uint8))
