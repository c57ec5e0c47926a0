"""The proxy itself: one thread for each connection, HTTP/1.1, answers passed on as they come."""

import http.client
import json
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from tests.faultproxy.rules import Rule, Rules, parse

CONTROL = "/__faults__"  # POST a rule, GET what was seen, DELETE the rules
HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade")
UPSTREAM_SECONDS = 60.0
CHUNK = 64 * 1024


@dataclass(frozen=True)
class Seen:
    """A request that came by: what the service answered (0: never asked), what spoiled it."""

    method: str
    path: str
    status: int
    spoiled: str = ""


class FaultProxy:
    """Listens on loopback before one service; `url` takes the place of the service's own."""

    def __init__(self, target: str, *, port: int = 0) -> None:
        parts = urlsplit(target)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"only plain http services, not {target!r}")
        self.target = (parts.hostname, parts.port or 80)
        self.rules = Rules()
        self.ended = Event()
        self._path = parts.path.rstrip("/")
        self._seen: list[Seen] = []
        self._lock = Lock()
        self._server: _Server | None = None
        self._thread: Thread | None = None
        self._port = port
        self.listen()

    # ------------------------------------------------------------------ the test's hands
    @property
    def url(self) -> str:
        """Where clients find the service from now on."""
        return f"http://127.0.0.1:{self._port}{self._path}"

    def add(self, *rules: Rule) -> None:
        """Spoil these requests too."""
        self.rules.add(*rules)

    def clear(self) -> None:
        """Spoil nothing any more, forget what was seen, let hanging clients go."""
        self.rules.clear()
        with self._lock:
            self._seen.clear()
        self.ended.set()
        self.ended = Event()

    def seen(self, method: str = "", path: str = "") -> list[Seen]:
        """The requests that came by, in the order of their ends."""
        asked = Rule(do="drop", method=method, path=path)
        with self._lock:
            return [one for one in self._seen if asked.matches(one.method, one.path)]

    def refuse(self) -> None:
        """Connections are refused, as by a host whose service is down; open ones are reset."""
        if self._server is None:
            return
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.reset_all()
        assert self._thread is not None
        self._thread.join()
        self._server = self._thread = None

    def listen(self) -> None:
        """Take connections (again), at the same address."""
        if self._server is not None:
            return
        self.ended = Event()
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.proxy = self
        self._port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop for good."""
        self.refuse()

    def __enter__(self) -> "FaultProxy":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------------ inside
    def note(self, seen: Seen) -> None:
        """Remember a request."""
        with self._lock:
            self._seen.append(seen)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a hanging client is not waited for
    proxy: FaultProxy

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.links: set[socket.socket] = set()
        super().__init__(address, handler)

    def reset_all(self) -> None:
        for link in list(self.links):
            _reset(link)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


def _reset(link: socket.socket) -> None:
    """End a connection so that the other end gets an error, not an end of file."""
    with suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.shutdown(socket.SHUT_RD)
    with suppress(OSError):
        link.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        self.server.links.add(self.request)
        super().setup()

    def finish(self) -> None:
        self.server.links.discard(self.request)
        with suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """The test asks `seen` instead."""

    def _any(self) -> None:
        body = self._body()
        if self.path.startswith(CONTROL):
            self._control(body)
            return
        rule = self.server.proxy.rules.strike(self.command, self.path)
        if rule is None:
            self._pass_on(body)
            return
        self._spoil(rule, body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    # ------------------------------------------------------------------ spoiling
    def _spoil(self, rule: Rule, body: bytes) -> None:
        proxy = self.server.proxy
        proxy.ended.wait(rule.seconds)
        if rule.do == "delay":
            self._pass_on(body, spoiled="delay")
            return
        status, headers, real = self._ask(body) if rule.has_effect else (0, [], b"")
        proxy.note(Seen(self.command, self.path, status, rule.do))
        if rule.do == "answer":
            self._answer(rule.status, rule.content_type, rule.body.encode())
            return
        if rule.do == "half":
            self._begin(status, headers, length=len(real))
            self.wfile.write(real[: len(real) // 2])
            self.wfile.flush()
        elif rule.do == "hang":
            proxy.ended.wait()
        self.close_connection = True
        _reset(self.request)

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self._begin(status, [("Content-Type", content_type)], length=len(body))
        self.wfile.write(body)

    # ------------------------------------------------------------------ passing on
    def _request(self, body: bytes) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        link = http.client.HTTPConnection(*self.server.proxy.target, timeout=UPSTREAM_SECONDS)
        link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():  # Host too: the service's links point back here
            if name.lower() not in (*HOP_BY_HOP, "content-length"):
                link.putheader(name, value)
        if body or self.command in ("POST", "PUT", "PATCH"):
            link.putheader("Content-Length", str(len(body)))
        link.putheader("Connection", "close")
        link.endheaders(body or None)
        return link, link.getresponse()

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """The whole answer of the service."""
        link, answer = self._request(body)
        try:
            return answer.status, answer.getheaders(), answer.read()
        finally:
            link.close()

    def _pass_on(self, body: bytes, *, spoiled: str = "") -> None:
        proxy = self.server.proxy
        try:
            link, answer = self._request(body)
        except OSError:  # the service itself is away
            proxy.note(Seen(self.command, self.path, 0, spoiled))
            self.close_connection = True
            _reset(self.request)
            return
        proxy.note(Seen(self.command, self.path, answer.status, spoiled))
        try:
            self._stream(answer)
        finally:
            link.close()

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        """Pass the answer on piece by piece: a watch never ends."""
        bare = self.command == "HEAD" or answer.status in (204, 304) or answer.status < 200
        length = answer.length
        self._begin(answer.status, answer.getheaders(), length=length, bare=bare)
        while not bare and (piece := answer.read1(CHUNK)):
            self.wfile.write(piece if length is not None else b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if not bare and length is None:
            self.wfile.write(b"0\r\n\r\n")

    def _begin(
        self,
        status: int,
        headers: list[tuple[str, str]],
        *,
        length: int | None,
        bare: bool = False,
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            keeps_length = bare and name.lower() == "content-length"
            if keeps_length or name.lower() not in (*HOP_BY_HOP, "content-length"):
                self.send_header(name, value)
        if not bare and length is None:
            self.send_header("Transfer-Encoding", "chunked")
        elif not bare:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    # ------------------------------------------------------------------ control
    def _control(self, body: bytes) -> None:
        proxy = self.server.proxy
        if self.command == "DELETE":
            proxy.clear()
        elif self.command == "POST":
            try:
                asked = json.loads(body)
                rules = [parse(one) for one in (asked if isinstance(asked, list) else [asked])]
            except ValueError as error:
                self._answer(422, "application/json", json.dumps({"error": str(error)}).encode())
                return
            proxy.add(*rules)
        told = {
            "seen": [asdict(one) for one in proxy.seen()],
            "unused": [asdict(one) for one in proxy.rules.unused()],
        }
        self._answer(200, "application/json", json.dumps(told).encode())
