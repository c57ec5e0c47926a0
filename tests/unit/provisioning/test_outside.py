"""A server as it is seen from outside."""

import socket
import threading
from contextlib import closing

from apps.provisioning.adapters import outside


def a_port(greeting):
    """A port that greets and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _address = server.accept()
            except OSError:
                return
            with client:
                client.sendall(greeting)

    threading.Thread(target=serve, daemon=True).start()
    return server


def test_a_port_that_greets_as_ssh_is_seen(monkeypatch):
    monkeypatch.setattr(outside.shutil, "which", lambda _name: None)
    with closing(a_port(b"SSH-2.0-OpenSSH_9.6\r\n")) as server:
        seen = outside.look_at("127.0.0.1", port=server.getsockname()[1])

    assert seen.banner == "SSH-2.0-OpenSSH_9.6"
    assert seen.host_keys is None


def test_another_service_on_the_port_is_not_the_server():
    with closing(a_port(b"HTTP/1.1 400 Bad Request\r\n")) as server:
        seen = outside.look_at("127.0.0.1", port=server.getsockname()[1])

    assert (seen.banner, seen.host_keys) == ("", frozenset())


def test_nobody_there_is_seen_as_nothing():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]

    assert outside.look_at("127.0.0.1", port=port).banner == ""


def test_keys_that_cannot_be_read_are_none_seen(monkeypatch):
    monkeypatch.setattr(outside.shutil, "which", lambda _name: "/nowhere/ssh-keyscan")
    with closing(a_port(b"SSH-2.0-x\r\n")) as server:
        seen = outside.look_at("127.0.0.1", port=server.getsockname()[1])

    assert seen.host_keys == frozenset()
