"""Nobody but the processes of a run can speak to its server or to its recorders."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from plumbob.crypto.certificate import Pair, in_memory, self_signed
from plumbob.targets.xgboost import _processes as processes
from plumbob.targets.xgboost._recorder import Recorder, context
from plumbob.targets.xgboost._wire import PREFACE
from tests.targets.xgboost.test_wire import frame, named, request
from tests.worlds import needs_xgboost

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files without a disk are Linux's")
SETTINGS = 4  # the kind of a frame, HTTP/2's first word in either direction
ALERT = 0x15  # the kind of a TLS record that says no
CALL = PREFACE + frame(SETTINGS, 0, 0, b"") + frame(1, 4, 1, named(b"Broadcast")) + frame(0, 1, 1, request(0, 0, b"ab"))


@pytest.fixture(scope="module")
def pair() -> Pair:
    return self_signed()


@pytest.fixture(scope="module")
def port(pair: Pair) -> Iterator[int]:
    """xgboost's server as `run` starts it."""
    task = {"role": "server", "workers": 2, "timeout": 60, "key": pair.key, "certificate": pair.certificate}
    with processes._Process("the server", task, {}) as server:
        yield server.port(time.monotonic() + 60)


def heard(port: int, by: ssl.SSLContext | None) -> bytes:
    """What the port says first to somebody who makes a call: a frame's header and more, or all until it hangs up."""
    said = b""
    with ExitStack() as stack:
        end = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
        if by is not None:
            end = stack.enter_context(by.wrap_socket(end, server_hostname="127.0.0.1"))
        end.sendall(CALL)
        while len(said) < 9 and (chunk := end.recv(4_096)):
            said += chunk
    return said


def got(port: int, by: ssl.SSLContext | None) -> bytes:
    """The same, nothing where the door is shut; somebody who does not trust the port is a mistake of the test."""
    try:
        return heard(port, by)
    except ssl.SSLCertVerificationError:
        raise
    except (ssl.SSLError, ConnectionError):
        return b""


def nameless(pair: Pair) -> ssl.SSLContext:
    """TLS of somebody who trusts the server's certificate and has none."""
    made = ssl.create_default_context(cadata=pair.certificate)
    made.set_alpn_protocols(["h2"])
    return made


def stranger(pair: Pair) -> ssl.SSLContext:
    """TLS of somebody with a certificate of another run that looks alike."""
    made, other = nameless(pair), self_signed()
    with in_memory(other.certificate, other.key) as paths:
        made.load_cert_chain(*paths)
    return made


def assert_closed_to_others(port: int, pair: Pair) -> None:
    said = got(port, None)
    assert said == b"" or (said[0] == ALERT and len(said) == 7)  # two bytes under a header of five
    assert got(port, nameless(pair)) == b""
    assert got(port, stranger(pair)) == b""


@needs_xgboost
def test_xgboosts_server_hears_who_has_the_key_and_nobody_else(port: int, pair: Pair) -> None:
    assert_closed_to_others(port, pair)
    assert heard(port, context(pair, server=False))[3] == SETTINGS


@needs_xgboost
def test_a_recorder_hears_who_has_the_key_and_nobody_else(port: int, pair: Pair) -> None:
    with Recorder(pair) as recorder:
        recorder.start(port)
        assert_closed_to_others(recorder.port, pair)
        assert recorder._connections == []  # nobody came as far as the server
        assert heard(recorder.port, context(pair, server=False))[3] == SETTINGS
        assert len(recorder._connections) == 1


def test_a_recorder_gives_nothing_to_a_server_without_the_key(pair: Pair) -> None:
    """Somebody else may have taken the port of a server that is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener, Recorder(pair) as recorder:
        recorder.start(listener.getsockname()[1])
        plain = socket.create_connection(("127.0.0.1", recorder.port), 20)
        with context(pair, server=False).wrap_socket(plain, server_hostname="127.0.0.1") as end:
            end.sendall(CALL)
            taken, _ = listener.accept()
            with pytest.raises(ssl.SSLError, match="alert"):
                context(self_signed(), server=True).wrap_socket(taken, server_side=True)
            with suppress(ConnectionError):
                assert end.recv(1) == b""
        assert recorder._connections == []
