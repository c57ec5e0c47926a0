"""Guests: which machines boot, how they behave, and that none boots twice."""

import json

import pytest

from lab.guest import Guests, behaviour
from lab.guest_root import DriveUnreadable, links, public_keys, read_drive

SCRIPT = """#!/bin/sh
gpus=$(nvidia-smi --query-gpu=index | wc -l)
echo "$(cat $NEO_ROOT/etc/hostname) $gpus" >> $NEO_ROOT/../ran
"""


def a_node(**changed):
    return {
        "uuid": "6f3b9a52-7c61-5a0e-9d9c-0d6c6f1f8a11",
        "name": "gpu-1",
        "instance_uuid": "i-1",
        "provision_updated_at": "2026-12-01T00:00:00+00:00",
        "extra": {"gpus": {"model": "NVIDIA H200", "count": 8, "memory_mib": 143771}},
        "instance_info": {"configdrive": {"meta_data": {"hostname": "a"}, "user_data": SCRIPT}},
        **changed,
    }


class Lab:
    """Ironic, as far as guests look at it."""

    def __init__(self, *nodes):
        self.nodes = list(nodes)

    def ask(self, method, path):
        return {"nodes": self.nodes}


@pytest.fixture
def guests(tmp_path):
    made = []

    def make(lab, control=None):
        made.append(Guests(lab, tmp_path / "guests", control))
        return made[-1]

    yield make
    for each in made:
        each.end()


def settle(playing):
    """Wait for the scripts that were started."""
    for guest in playing.running.values():
        if guest.process:
            guest.process.wait(timeout=20)
    playing.step()


def runs(tmp_path):
    return [path.read_text() for path in tmp_path.glob("guests/*/*/ran")]


def test_a_deployed_machine_runs_its_user_data(tmp_path, guests):
    playing = guests(Lab(a_node()))

    playing.step()
    settle(playing)

    assert runs(tmp_path) == ["a 8\n"]


def test_a_machine_boots_once_however_often_one_looks(tmp_path, guests):
    playing = guests(Lab(a_node()))

    for _ in range(3):
        playing.step()
    settle(playing)

    assert runs(tmp_path) == ["a 8\n"]


def test_a_machine_that_booted_does_not_boot_again_when_the_lab_is_restarted(tmp_path, guests):
    first = guests(Lab(a_node()))
    first.step()
    settle(first)

    again = guests(Lab(a_node()))
    again.step()

    assert next(iter(again.running.values())).process is None
    assert runs(tmp_path) == ["a 8\n"]


def test_a_redeployed_machine_boots_again(tmp_path, guests):
    lab = Lab(a_node())
    playing = guests(lab)
    playing.step()
    settle(playing)
    (next(tmp_path.glob("guests/*/*/ran"))).unlink()

    lab.nodes = [a_node(provision_updated_at="2026-12-02T00:00:00+00:00")]
    playing.step()
    settle(playing)

    assert runs(tmp_path) == ["a 8\n"]


def test_a_machine_that_is_taken_away_stops(guests):
    node = a_node()
    node["instance_info"]["configdrive"]["user_data"] = "#!/bin/sh\nexec tail -f /dev/null\n"
    lab = Lab(node)
    playing = guests(lab)
    playing.step()
    process = next(iter(playing.running.values())).process

    lab.nodes = []
    playing.step()

    assert playing.running == {}
    assert process.returncode == -9


def test_a_silent_machine_boots_but_runs_nothing(tmp_path, guests):
    playing = guests(Lab(a_node(extra={"lab_guest": "silent"})))

    playing.step()

    assert next(iter(playing.running.values())).process is None
    assert runs(tmp_path) == []


@pytest.mark.parametrize(
    ("orders", "wanted"),
    [
        (None, "gpus=7"),
        ({"*": "silent"}, "silent"),
        ({"*": "silent", "gpu-1": "wrong-key"}, "wrong-key"),
        ({"gpu-2": "silent"}, "gpus=7"),
    ],
)
def test_the_control_file_decides_over_the_node(tmp_path, orders, wanted):
    control = tmp_path / "guests.json"
    if orders is not None:
        control.write_text(json.dumps(orders))

    assert behaviour(a_node(extra={"lab_guest": "gpus=7"}), control) == wanted


def test_a_drive_that_is_an_image_is_refused_in_words():
    with pytest.raises(DriveUnreadable, match="given in parts"):
        read_drive("H4sICAAAAAAC")


@pytest.mark.parametrize(
    "meta_data",
    [
        {"public_keys": {"one": "ssh-ed25519 A"}},
        {"public_keys": ["ssh-ed25519 A"]},
        {"keys": [{"type": "ssh", "name": "one", "data": "ssh-ed25519 A"}]},
    ],
)
def test_keys_are_found_in_each_form_of_the_metadata(meta_data):
    assert public_keys(meta_data) == ["ssh-ed25519 A"]


@pytest.mark.parametrize(
    "network",
    [
        {"ip_address": "10.20.0.11/24"},
        {"ip_address": "10.20.0.11", "netmask": "255.255.255.0"},
    ],
)
def test_addresses_are_read_in_both_forms(network):
    shown = links({"networks": [{"link": "eth0", **network}]})

    assert shown[1]["addr_info"][0]["local"] == "10.20.0.11"
    assert shown[1]["addr_info"][0]["prefixlen"] == 24
