"""Private set intersection over elliptic-curve Diffie-Hellman, by openmined-psi, as bytes that a channel can carry.

The client learns which of its ids the server also has; the server learns how many ids the client has and nothing
else. Each side blinds with a key of its own: the client sends H(x)^a, the server answers H(x)^ab and its own set as
H(y)^b, and the client takes its key off again to compare. The exact set (not a Bloom filter or a compressed one) is
sent, so that no row is ever matched by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from private_set_intersection import python as library

from plumbob.errors import BadInput
from plumbob.federation import ByteArray

Send = Callable[[str, str, str, ByteArray], ByteArray]  # sender, receiver, name, payload -> what the receiver gets

_UNUSED_RATE = 1e-9  # the library asks for a false-positive rate even where its exact structure has none


def to_bytes(data: bytes) -> ByteArray:
    """A payload for the channel, which carries arrays only."""
    return np.frombuffer(data, dtype=np.uint8)


class Client:
    """The side that learns the intersection. Its key exists only in this object.

    >>> client, server = Client(["ann", "bob", "eve"]), PsiServer(["eve", "ann", "joe"])
    >>> setup, response = server.answer(client.request())
    >>> client.intersection(setup, response)
    array([0, 2])
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = _distinct(ids, "client")
        self._engine: Any = library.client.CreateWithNewKey(True)

    def request(self) -> ByteArray:
        """The client's ids, blinded, in the client's order."""
        return to_bytes(self._engine.CreateRequest(self._ids).SerializeToString())

    def intersection(self, setup: ByteArray, response: ByteArray) -> NDArray[np.int64]:
        """Which of the client's ids the server has, as sorted indices."""
        found = self._engine.GetIntersection(
            _parse(library.ServerSetup(), setup, "setup"), _parse(library.Response(), response, "response")
        )
        return np.sort(np.array(found, dtype=np.int64))


class PsiServer:
    """The side that only answers. Its key exists only in this object."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = _distinct(ids, "server")
        self._engine: Any = library.server.CreateWithNewKey(True)

    def answer(self, request: ByteArray) -> tuple[ByteArray, ByteArray]:
        """The server's own blinded ids, and the client's blinded a second time."""
        message: Any = _parse(library.Request(), request, "request")
        count = len(message.encrypted_elements)
        exact = library.DataStructure.RAW
        setup = self._engine.CreateSetupMessage(_UNUSED_RATE, max(count, 1), self._ids, exact)
        response = self._engine.ProcessRequest(message)
        return to_bytes(setup.SerializeToString()), to_bytes(response.SerializeToString())


def intersect(
    send: Send, client: str, client_ids: Sequence[str], server: str, server_ids: Sequence[str]
) -> NDArray[np.int64]:
    """Run the three messages of the protocol through `send`; the client's indices that the server shares, sorted."""
    curious, answering = Client(client_ids), PsiServer(server_ids)
    request = send(client, server, "psi request", curious.request())
    setup, response = answering.answer(request)
    setup = send(server, client, "psi setup", setup)
    response = send(server, client, "psi response", response)
    return curious.intersection(setup, response)


def _distinct(ids: Sequence[str], role: str) -> list[str]:
    """The ids as a list; the library silently merges duplicates, which would shift the returned indices."""
    listed = list(ids)
    doubled = len(listed) - len(set(listed))
    if doubled:
        raise BadInput(f"the {role} of a set intersection gave {doubled} duplicate ids; ids must be unique")
    return listed


def _parse(message: Any, payload: ByteArray, name: str) -> Any:
    """Parse a protobuf message; damaged bytes are reported as such."""
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(np.asarray(payload, dtype=np.uint8).tobytes())
    except DecodeError as error:
        raise BadInput(f"the {name} of a set intersection was damaged in transit") from error
    return message
