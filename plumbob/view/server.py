"""The server of the pages: on this machine only, read only, with nothing but what is on the list.

    GET /                      the audits
    GET /compare?run=A&run=B   two of them
    GET /run/PATH/NAME         a file of one of them, of few names

A page of another site can make the browser ask this server under a name of its own (DNS rebinding), so requests for
another host are refused. Pages run no inline script; a report is shown in a sandbox, since anyone may have written it.
"""

from __future__ import annotations

import errno
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from plumbob.errors import BadInput
from plumbob.files import read_regular
from plumbob.report.page import POLICY
from plumbob.view import pages
from plumbob.view.runs import ASSESSMENT, ENVIRONMENT, FINDINGS, PLAN, REPORT, Runs

HOST, PORT = "127.0.0.1", 8765
TYPES = {
    REPORT: "text/html",
    ASSESSMENT: "text/html",
    FINDINGS: "text/plain",
    PLAN: "text/plain",
    ENVIRONMENT: "text/plain",
}
OWN = "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:"
STRICT = f"{OWN}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
SANDBOXED = f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _runs_in(query: str) -> list[str]:
    """The audits that a comparison names; none where the query is not one."""
    try:
        return parse_qs(query, max_num_fields=10).get("run", [])
    except ValueError:
        return []


class Server(ThreadingHTTPServer):
    """Serves one folder on the loopback address."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = PORT) -> None:
        self.runs = Runs(folder)
        self.folder = folder
        self.style, self.script = pages.style(), pages.script()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            reason = "in use" if error.errno == errno.EADDRINUSE else "not to be had"
            raise BadInput(f"port {port} is {reason}; name another (--port), or --port 0 for any free one") from error
        names = (HOST, "localhost")
        self.hosts = {f"{name}:{self.port}" for name in names} | (set(names) if self.port == 80 else set())

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    def server_bind(self) -> None:
        """As the base class, without asking a name server what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.port

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    timeout = 30
    server_version, sys_version = "plumbob", ""

    def do_GET(self) -> None:
        if self.headers.get_all("Host") is None or self.headers["Host"].lower() not in self.server.hosts:
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to 127.0.0.1 and localhost only.")
            return
        asked = urlsplit(self.path)
        if asked.path == "/":
            runs = self.server.runs.all()
            self._html(HTTPStatus.OK, pages.list_page(str(self.server.folder), runs))
        elif asked.path == "/compare":
            self._compare(_runs_in(asked.query))
        elif asked.path in ("/style.css", "/script.js"):
            style = asked.path == "/style.css"
            text = self.server.style if style else self.server.script
            self._send(HTTPStatus.OK, text.encode(), "text/css" if style else "text/javascript", STRICT)
        elif asked.path.startswith("/run/"):
            self._file(*unquote(asked.path.removeprefix("/run/")).rpartition("/")[::2])
        else:
            self._missing()

    do_HEAD = do_GET

    def _compare(self, paths: list[str]) -> None:
        if len(paths) != 2 or paths[0] == paths[1]:
            words = f"Choose two audits on the list; {len(set(paths))} chosen here."
            self._html(HTTPStatus.BAD_REQUEST, pages.message_page("Two audits are compared", words))
            return
        one, other = (self.server.runs.find(path) for path in paths)
        if one is None or other is None:
            self._missing()
        else:
            self._html(HTTPStatus.OK, pages.compare_page(one, other))

    def _file(self, path: str, name: str) -> None:
        place = self.server.runs.file(path, name) if name in TYPES else None
        try:
            content = read_regular(place, follow=False) if place is not None else None
        except (OSError, BadInput):
            content = None
        if content is None:
            self._missing()
        else:
            self._send(HTTPStatus.OK, content, TYPES[name], SANDBOXED if TYPES[name] == "text/html" else STRICT)

    def _missing(self) -> None:
        words = "It may have been moved or be unfinished; the list shows what is there."
        self._html(HTTPStatus.NOT_FOUND, pages.message_page("There is no such page", words))

    def _html(self, status: HTTPStatus, text: str) -> None:
        self._send(status, text.encode("utf-8", "replace"), "text/html", STRICT)

    def _say(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, f"{sentence}\n".encode(), "text/plain", STRICT)

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str) -> None:
        self.send_response(status)
        told = HEADERS | {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in (told | {"Content-Security-Policy": policy}).items():
            self.send_header(name, value)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses, in our words; a method that it does not know is one that is not allowed."""
        self.close_connection = True
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, "This server is read only: GET and HEAD.")
        else:
            self._say(HTTPStatus(code), HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
