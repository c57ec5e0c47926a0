"""Instances: ports, the state file and the lock."""

import json
import os
import socket

import pytest

from lab import instance as subject
from lab.instance import Instance, Trouble, choose_port, write_private


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "LOCAL", tmp_path)


def test_a_taken_port_is_stepped_over():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]

        assert choose_port(last=None, usual=number, avoid=set()) > number
        assert choose_port(last=number, usual=number, avoid=set()) > number


def test_the_port_of_last_time_comes_first():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]

    assert choose_port(last=number, usual=18000, avoid=set()) == number


def test_two_instances_never_choose_the_same_port():
    first, second = Instance("main"), Instance("test")

    first.choose_ports(("web", "valkey"))
    second.choose_ports(("web", "valkey"))

    assert not set(first.state["ports"].values()) & set(second.state["ports"].values())


def test_passwords_are_kept_and_private():
    first = Instance("main")
    first.save()

    again = Instance("main")

    assert again.secret("postgres") == first.secret("postgres")
    assert (first.folder / "state.json").stat().st_mode & 0o777 == 0o600


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    write_private(path, "old")

    def power_cut(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        write_private(path, "new")

    assert path.read_text() == "old"


def test_only_one_holds_an_instance():
    first, second = Instance("main"), Instance("main")

    assert first.take()
    assert not second.take()


def test_who_holds_an_instance_and_how_far_it_is_can_be_seen():
    held, looking = Instance("main"), Instance("main")
    assert looking.holder() is None

    held.take()
    held.enter("up")

    assert looking.holder() == (os.getpid(), "up")


def test_a_state_file_that_cannot_be_read_names_the_way_out(tmp_path):
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "state.json").write_text("{")

    with pytest.raises(Trouble) as trouble:
        Instance("main")
    assert "reset --instance main" in trouble.value.message


def test_a_name_that_is_no_folder_name_is_refused():
    with pytest.raises(Trouble):
        Instance("../main")


def test_the_state_names_no_port_twice():
    chosen = Instance("main")
    chosen.choose_ports(("web", "product", "lab", "valkey", "ironic"))

    ports = json.loads((chosen.folder / "state.json").read_text())["ports"]
    assert len(set(ports.values())) == 5
