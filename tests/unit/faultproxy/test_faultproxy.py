"""The fault proxy: what passes passes unchanged, what is spoiled is spoiled as told."""

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.faultproxy import CONTROL, FaultProxy, Rule

ROOT = Path(__file__).resolve().parents[3]
GONE = r"reset|closed|without response"


class Service(BaseHTTPRequestHandler):
    """Counts what reached it and says what it got."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, str, bytes]] = []

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, body))
        if self.path == "/stream":
            self._stream()
            return
        said = json.dumps({"host": self.headers["Host"], "got": body.decode(), "n": 1}).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(said)))
        self.send_header("X-Told", "yes")
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = _any

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (b"one", b"two"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def service() -> Iterator[str]:
    Service.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def proxy(service: str) -> Iterator[FaultProxy]:
    with FaultProxy(service) as made:
        yield made


def ask(proxy, path="/v1/nodes", method="GET", body=None, seconds=5.0):
    """The answer: status, headers, body."""
    link = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=seconds)
    try:
        link.request(method, path, body=body)
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        link.close()


def test_what_no_rule_names_passes_unchanged_with_the_hosts_name(proxy):
    status, headers, body = ask(proxy, "/v1/nodes?limit=1", "PUT", b"hello")

    assert status == 201
    assert headers["X-Told"] == "yes"
    assert json.loads(body) == {
        "host": proxy.url.removeprefix("http://"), "got": "hello", "n": 1,
    }  # fmt: skip
    assert Service.asked == [("PUT", "/v1/nodes?limit=1", b"hello")]
    assert [(one.method, one.status, one.spoiled) for one in proxy.seen()] == [("PUT", 201, "")]


def test_an_answer_in_pieces_passes_in_pieces(proxy):
    assert ask(proxy, "/stream")[2] == b"onetwo"


@pytest.mark.parametrize(("after", "reached"), [(False, 0), (True, 1)])
def test_a_dropped_request_has_its_effect_only_after(proxy, after, reached):
    proxy.add(Rule(do="drop", after=after))

    with pytest.raises(OSError, match=GONE):
        ask(proxy)

    assert len(Service.asked) == reached
    assert ask(proxy)[0] == 201


@pytest.mark.parametrize(("after", "reached"), [(False, 0), (True, 1)])
def test_an_answer_is_replaced_before_or_after_its_effect(proxy, after, reached):
    proxy.add(Rule(do="answer", status=409, body="<html>busy", after=after))

    status, headers, body = ask(proxy)

    assert (status, body) == (409, b"<html>busy")
    assert headers["Content-Type"] == "text/html"
    assert len(Service.asked) == reached


def test_half_an_answer_ends_in_the_middle(proxy):
    proxy.add(Rule(do="half"))

    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(proxy)

    assert len(Service.asked) == 1


def test_a_hanging_request_ends_with_the_clients_patience(proxy):
    proxy.add(Rule(do="hang"))

    with pytest.raises(TimeoutError):
        ask(proxy, seconds=0.2)

    assert Service.asked == []
    assert ask(proxy)[0] == 201


def test_a_late_answer_is_the_real_one(proxy):
    proxy.add(Rule(do="delay", seconds=0.05))

    assert ask(proxy)[0] == 201
    assert proxy.seen()[0].spoiled == "delay"


def test_only_the_nth_and_so_many_of_what_matches_are_spoiled(proxy):
    proxy.add(Rule(do="answer", method="GET", path=r"/nodes/\d+$", nth=2, times=2, status=500))

    answers = [
        ask(proxy, path, method)[0]
        for path, method in [
            ("/v1/nodes/1", "GET"), ("/v1/nodes/1", "PUT"), ("/v1/nodes/2", "GET"),
            ("/v1/other", "GET"), ("/v1/nodes/3", "GET"), ("/v1/nodes/4", "GET"),
        ]
    ]  # fmt: skip

    assert answers == [201, 201, 500, 201, 500, 201]
    assert proxy.rules.unused() == []


def test_a_service_that_is_down_refuses_and_comes_back_at_the_same_address(proxy):
    before = proxy.url
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        ask(proxy)

    proxy.listen()

    assert proxy.url == before
    assert ask(proxy)[0] == 201


def test_a_service_behind_it_that_is_away_looks_away(service):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        with FaultProxy(address) as proxy, pytest.raises(OSError, match=GONE):
            ask(proxy)


@pytest.mark.parametrize("words", [{"do": "explode"}, {"do": "drop", "nth": 0}])
def test_a_rule_that_is_none_is_refused(words):
    with pytest.raises(ValueError, match=r"do is one of|count from 1"):
        Rule(**words)


def test_another_process_is_told_its_rules_over_http(service):
    words = [sys.executable, "-m", "tests.faultproxy", "--target", service]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            url = child.stdout.readline().split()[0]
            rules = [{"do": "answer", "status": 418, "path": "/tea"}]
            assert _control(url, "POST", rules)["unused"]
            link = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
            link.request("GET", "/tea")
            assert link.getresponse().status == 418
            told = _control(url, "GET")
            assert [one["status"] for one in told["seen"]] == [0]
            assert told["unused"] == []
            assert _control(url, "DELETE")["seen"] == []
        finally:
            child.terminate()
        assert child.wait(timeout=10) == 0


def test_nonsense_over_http_is_refused_with_the_reason(proxy):
    status, _headers, body = ask(proxy, CONTROL, "POST", b'{"do": "drop", "colour": "red"}')

    assert status == 422
    assert "colour" in json.loads(body)["error"]


def _control(url, method, rules=None):
    link = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    link.request(method, CONTROL, body=None if rules is None else json.dumps(rules))
    return json.loads(link.getresponse().read())
