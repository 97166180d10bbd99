"""The server: what it answers, what it refuses, and that it says nothing of other folders."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plumbob.cli import app
from plumbob.errors import BadInput
from plumbob.view.server import Server
from tests.view import audits


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = audits.tree(tmp_path_factory.mktemp("audits") / "root")
    (root.parent / "secret.html").write_text("secret")
    (root / "bare" / "private.csv").write_text("secret")
    with Server(root, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def ask(server: Server, path: str, method: str = "GET", host: str | None = None) -> tuple[int, dict[str, str], str]:
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    link.putrequest(method, path, skip_host=True)
    link.putheader("Host", host or f"127.0.0.1:{server.port}")
    link.endheaders()
    answer = link.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()


def test_the_list_names_every_audit_and_escapes_what_files_say(server: Server) -> None:
    status, headers, text = ask(server, "/")
    assert status == 200
    assert "7 audits" in text
    assert "<script>window" not in text
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in text
    assert "\x1b" not in text
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_report_is_served_in_a_sandbox(server: Server) -> None:
    status, headers, text = ask(server, "/run/hostile/a%20b%20%C3%BC/report.html")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "sandbox allow-scripts" in headers["Content-Security-Policy"]
    assert "=cmd()" in text


@pytest.mark.parametrize(
    "path",
    [
        "/run/../secret.html",
        "/run/bare/../../secret.html",
        "/run/%2e%2e/secret.html",
        "/run/bare/..%2f..%2fsecret.html",
        "/run//etc/passwd",
        "/run/bare/private.csv",
        "/run/bare/%00report.html",
        "/run/notes/plan.yaml",
        "/run/half/report.html",
        "/../secret.html",
        "/compare?run=bare&run=../root",
        "/compare?run=bare&run=nowhere",
    ],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    status, _, text = ask(server, path)
    assert status == 404
    assert "secret" not in text.replace("/run", "")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example:80", ""])
def test_another_host_is_refused(server: Server, host: str) -> None:
    assert ask(server, "/", host=host or " ")[0] == 421


def test_localhost_is_us(server: Server) -> None:
    assert ask(server, "/", host=f"LOCALHOST:{server.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_it_is_read_only(server: Server, method: str) -> None:
    status, headers, _ = ask(server, "/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(server: Server) -> None:
    status, headers, text = ask(server, "/", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000


@pytest.mark.parametrize("query", ["", "?run=bare", "?run=bare&run=bare", "?run=bare&run=half&run=planless"])
def test_two_audits_are_compared_no_more_no_less(server: Server, query: str) -> None:
    status, _, text = ask(server, f"/compare{query}")
    assert status == 400
    assert "Choose two audits" in text


def test_it_listens_on_the_loopback_address_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_one_sentence(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"port {server.port} is in use; name another"):
        Server(tmp_path, server.port)


def test_json_lists_the_audits_for_programs(server: Server) -> None:
    told = CliRunner().invoke(app, ["view", str(server.folder), "--json"])
    found = {run["path"]: run for run in json.loads(told.stdout)}
    assert len(found) == 7
    assert (found["bare"]["leaking"], found["bare"]["finished"], found["bare"]["name"]) == (5, True, "bare")
    assert "no plan.yaml" in found["planless"]["wrong"]


def test_control_c_ends_it_quietly(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "plumbob", "view", str(tmp_path), "--port", "0", "--no-browser"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    port = int(running.stdout.readline().split(":")[3].split("/")[0])
    socket.create_connection(("127.0.0.1", port), timeout=10).close()
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (0, "", "")
