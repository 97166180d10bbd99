"""A certificate made by hand is one that OpenSSL takes, for this machine's loopback and its own key only."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from plumbob.crypto.certificate import Pair, in_memory, self_signed

needs_memory_files = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files without a disk are Linux's")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return self_signed()


def end(pair: Pair, trusted: Pair, *, server: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=trusted.certificate)
    with in_memory(pair.certificate, pair.key) as paths:
        made.load_cert_chain(*paths)  # refuses a key that is not the certificate's
    return made


def meet(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """What a client gets to read from a server that greets it."""
    one, other = socket.socketpair()

    def greet() -> None:
        try:
            with server.wrap_socket(one, server_side=True) as door:
                door.sendall(b"hello")
        except OSError:
            one.close()

    thread = threading.Thread(target=greet)
    thread.start()
    try:
        with client.wrap_socket(other, server_hostname=name) as seen:
            return seen.recv(100)
    finally:
        other.close()
        thread.join()


@needs_memory_files
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_both_ends_know_each_other_by_the_key(pair: Pair, name: str) -> None:
    assert meet(end(pair, pair, server=True), end(pair, pair, server=False), name) == b"hello"


@needs_memory_files
def test_it_stands_for_no_other_machine(pair: Pair) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        meet(end(pair, pair, server=True), end(pair, pair, server=False), "example.org")


@needs_memory_files
def test_a_pair_of_another_run_is_a_stranger(pair: Pair) -> None:
    other = self_signed()
    with pytest.raises(ssl.SSLCertVerificationError, match=r"self-signed|signature failure"):
        meet(end(other, other, server=True), end(other, pair, server=False), "localhost")
    with pytest.raises(ssl.SSLError, match=r"key values mismatch|KEY_VALUES_MISMATCH"):
        end(Pair(other.key, pair.certificate), pair, server=True)


def test_it_says_what_it_is_for(pair: Pair) -> None:
    store = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    store.load_verify_locations(cadata=pair.certificate)
    (told,) = store.get_ca_certs()  # lists authorities only: basicConstraints CA:TRUE was read
    assert told["version"] == 3
    assert told["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))
    lasts = ssl.cert_time_to_seconds(str(told["notAfter"])) - ssl.cert_time_to_seconds(str(told["notBefore"]))
    assert lasts == (7 * 24 + 1) * 3_600


def test_a_pair_does_not_print_its_key(pair: Pair) -> None:
    assert "PRIVATE" in pair.key
    assert "PRIVATE" not in repr(pair)


@needs_memory_files
def test_a_file_in_memory_has_no_place_on_a_disk_and_ends() -> None:
    with in_memory("one", "two") as paths:
        assert [Path(path).read_text() for path in paths] == ["one", "two"]
        assert all(Path(path).stat().st_nlink == 0 for path in paths)  # no folder lists it
        assert all(stat.S_ISREG(Path(path).stat().st_mode) for path in paths)
    assert not any(Path(path).exists() for path in paths)
