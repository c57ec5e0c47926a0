"""What a server must show before it is sold as ready: seven points, nothing skipped."""

import pytest

from apps.provisioning import evidence_words as words
from apps.provisioning.readiness import compare, hardware_of, item

WANTED = {
    "hostname": "train-1",
    "gpus": 2,
    "gpu_model": "NVIDIA H200",
    "gpu_memory_mib": 143771,
    "disk_gb": 3000,
    "ssh_keys": ["ssh-ed25519 AAAA me"],
    "address": "10.20.0.11/24",
}


def a_report(**said):
    return {
        "hostname": "train-1",
        "gpus": [
            {"index": n, "name": "NVIDIA H200", "uuid": f"GPU-{n}", "memory_mib": 143771}
            for n in range(2)
        ],
        "gpu_health": [
            {"index": n, "ecc_uncorrected": 0, "needs_remapping": False} for n in range(2)
        ],
        "xid_errors": [],
        "driver": "580.95",
        "cuda": "13.0",
        "disks": [{"name": "nvme1n1", "size_bytes": 3_200_000_000_000}],
        "mounts": [{"target": "/"}],
        "authorized_keys": ["ssh-ed25519 AAAA"],
        "addresses": ["10.20.0.11/24"],
        "ssh_host_keys": ["ssh-ed25519 BBBB"],
    } | said


def wrong(**said):
    return {one["item"] for one in compare(wanted=WANTED, report=a_report(**said)) if not one["ok"]}


def test_a_server_as_bought_holds_in_all_seven_points():
    found = words.points(compare(wanted=WANTED, report=a_report()))

    assert [point.label for point in found] == list(words.POINTS)
    assert all(point.verdict for point in found)


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ({"hostname": "other"}, {words.HOSTNAME}),
        ({"addresses": []}, {words.ADDRESS}),
        ({"disks": [{"size_bytes": 100}]}, {words.DISKS}),
        ({"disks": [{"size_bytes": True}, {"size_bytes": "much"}]}, {words.DISKS}),
        ({"mounts": []}, {words.BOOT_DISK}),
        ({"authorized_keys": ["ssh-ed25519 CCCC"]}, {words.SSH_KEYS}),
        ({"ssh_host_keys": []}, {words.HOST_KEY}),
        ({"cuda": None}, {words.CUDA}),
        ({"xid_errors": ["NVRM: Xid 79"]}, {words.XID}),
        ({"xid_errors": None}, {words.XID}),
        ({"gpu_health": None}, {words.GPUS_ANSWER, words.ECC, words.MEMORY_ROWS}),
        ({"gpu_health": [{}, {}]}, {words.GPUS_ANSWER}),
        (
            {"gpu_health": [{"ecc_uncorrected": 3, "needs_remapping": True}] * 2},
            {words.ECC, words.MEMORY_ROWS},
        ),
    ],
)
def test_what_is_wrong_or_not_said_is_not_ready(said, items):
    assert wrong(**said) == items


def test_a_board_without_a_counter_says_so_and_is_ready():
    health = [{"ecc_uncorrected": None, "needs_remapping": None}] * 2
    assert wrong(gpu_health=health) == set()


def test_evidence_that_belongs_to_no_point_comes_last():
    rows = [item("", "cleaned", "success", "success", ok=True)]
    rows += compare(wanted=WANTED, report=a_report())
    assert words.points(rows)[-1].label == ""


def test_a_point_nothing_of_which_can_be_checked_is_neither_right_nor_wrong():
    (point,) = words.points([item(words.REACHABLE, words.PORT_OPEN, "", words.NO_ROUTE, ok=None)])
    assert point.verdict is None


def test_hardware_is_what_was_told_and_no_more():
    told = hardware_of(a_report(hardware={"server": "Lab GPU", "bmc": None, "else": "x"}))
    assert told == {
        "server": "Lab GPU",
        "gpu": "NVIDIA H200",
        "driver": "580.95",
        "cuda": "13.0",
    }
    assert hardware_of({"hardware": "nonsense"}) == {}
