"""A proxy between one worker and xgboost's server: it forwards everything and keeps a copy of the plain bytes.

Both sides of it speak TLS with the run's own key and ask the other end for the same key: the server listens on all addresses of
the machine, and a door on loopback is open to every user of it.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from plumbob.crypto.certificate import Pair, in_memory
from plumbob.targets.xgboost._wire import Call, calls

_CHUNK = 65_536  # more than a TLS record has, so that none is read in part and the rest forgotten
_PATIENCE = 10.0  # seconds for somebody who knocks to show the key


def context(pair: Pair, *, server: bool) -> ssl.SSLContext:
    """TLS for who has the run's key, with who has it too, for HTTP/2."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=pair.certificate)
    made.set_alpn_protocols(["h2"])
    with in_memory(pair.certificate, pair.key) as (certificate, key):
        made.load_cert_chain(certificate, key)
    return made


@dataclass
class _Connection:
    """Two sockets with their bytes so far, what the worker wrote and what the server wrote."""

    worker: ssl.SSLSocket
    server: ssl.SSLSocket
    upwards: bytearray = field(default_factory=bytearray)
    downwards: bytearray = field(default_factory=bytearray)

    def close(self) -> None:
        self.worker.close()
        self.server.close()


class Recorder:
    """A door on loopback, on a port of the system's choice, for one worker."""

    def __init__(self, pair: Pair) -> None:
        self._connections: list[_Connection] = []
        self._inwards, self._outwards = context(pair, server=True), context(pair, server=False)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        return self

    def start(self, server_port: int) -> None:
        """Open the door; who knocked before has waited."""
        self._server_port = server_port
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._halt()
        for one in self._connections:
            one.close()
        for end in (self._listener, self._stop, self._stopped):
            end.close()

    def calls(self) -> list[Call]:
        """All calls so far, in order; nothing is recorded after that."""
        self._halt()
        found = [call for one in self._connections for call in calls(bytes(one.upwards), bytes(one.downwards))]
        return sorted(found, key=lambda call: call.sequence)

    def _halt(self) -> None:
        with suppress(OSError):
            self._stop.send(b".")
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _pass_on(self) -> None:
        with selectors.DefaultSelector() as watched:
            watched.register(self._listener, selectors.EVENT_READ)
            watched.register(self._stopped, selectors.EVENT_READ)
            while True:
                for ready, _ in watched.select():
                    if ready.fileobj is self._stopped:
                        return
                    if ready.fileobj is self._listener:
                        self._accept(watched)
                    elif ready.fd in watched.get_map():  # its connection may have ended a moment ago
                        self._copy(watched, ready.data, from_worker=ready.fileobj is ready.data.worker)

    def _accept(self, watched: selectors.BaseSelector) -> None:
        plain, _ = self._listener.accept()
        try:
            worker = _shaken(self._inwards, plain)
        except OSError:  # somebody without the key
            return
        try:
            plain = socket.create_connection(("127.0.0.1", self._server_port), _PATIENCE)
            server = _shaken(self._outwards, plain, "127.0.0.1")
        except OSError:  # the server is gone, which `run` notices
            worker.close()
            return
        one = _Connection(worker, server)
        self._connections.append(one)
        watched.register(worker, selectors.EVENT_READ, one)
        watched.register(server, selectors.EVENT_READ, one)

    def _copy(self, watched: selectors.BaseSelector, one: _Connection, *, from_worker: bool) -> None:
        source, target, kept = one.worker, one.server, one.upwards
        if not from_worker:
            source, target, kept = one.server, one.worker, one.downwards
        try:
            chunk = _arrived(source)
            if chunk is None:
                return
            kept.extend(chunk)
            if chunk:
                target.sendall(chunk)
                return
        except OSError:
            pass
        for end in (source, target):  # a call needs both ways
            watched.unregister(end)
        one.close()


def _shaken(by: ssl.SSLContext, plain: socket.socket, name: str | None = None) -> ssl.SSLSocket:
    """The socket after its handshake; closed where that fails."""
    plain.settimeout(_PATIENCE)
    try:
        made = by.wrap_socket(plain, server_side=name is None, server_hostname=name)
    except OSError:
        plain.close()
        raise
    made.settimeout(None)
    return made


def _arrived(source: ssl.SSLSocket) -> bytes | None:
    """The data of one record; None for a record without, or half of one: the other way must not wait for more."""
    source.settimeout(0)
    try:
        return source.recv(_CHUNK)
    except ssl.SSLWantReadError:
        return None
    finally:
        source.settimeout(None)
