"""Readiness: every item is held against what was bought, and said in the reader's language."""

import pytest
from django.utils import translation

from apps.provisioning import evidence_words as words
from apps.provisioning.readiness import compare

WANTED = {
    "hostname": "train-1",
    "disk_gb": 30720,
    "gpus": 8,
    "gpu_model": "NVIDIA H200",
    "gpu_memory_mib": 143771,
    "ssh_keys": ["ssh-ed25519 AAAAC3 laptop"],
    "address": "10.20.0.11",
}


def item(name: str, *uuids: str) -> dict[str, object]:
    gpus = [{"name": "NVIDIA H200", "uuid": uuid, "memory_mib": 143771} for uuid in uuids]
    report = {"gpus": gpus, "authorized_keys": ["ssh-ed25519 AAAAC3"]}
    return next(one for one in compare(wanted=WANTED, report=report) if one["item"] == name)


def test_eight_different_gpus_are_what_was_bought():
    seen = item(words.GPU_IDENTITY, *(f"GPU-{n}" for n in range(8)))
    assert seen == {
        "group": words.GPUS, "item": words.GPU_IDENTITY, "wanted": 8, "seen": 8, "ok": True
    }  # fmt: skip


@pytest.mark.parametrize(
    ("uuids", "different"),
    [
        ([f"GPU-{n}" for n in range(7)], 7),  # one is missing
        ([f"GPU-{n % 7}" for n in range(8)], 7),  # one is reported twice
        ([f"GPU-{n % 8}" for n in range(9)], 8),  # one is reported twice, beyond the eight
        ([f"GPU-{n}" for n in range(7)] + [""], 7),  # one has no identity
        ([], 0),
    ],
)
def test_any_other_number_of_different_gpus_is_wrong(uuids, different):
    seen = item(words.GPU_IDENTITY, *uuids)
    assert (seen["seen"], seen["ok"]) == (different, False)


def test_values_with_figures_are_stored_in_english_and_read_in_korean():
    keys = item(words.SSH_KEYS)
    assert (keys["wanted"], keys["seen"]) == ("1 as ordered", "1 of 1")
    with translation.override("ko"):
        assert words.in_words(keys["wanted"]) == "주문한 1개"
        assert words.in_words(keys["seen"]) == "1개 중 1개"
        assert words.in_words("NVIDIA H200") == "NVIDIA H200"
        assert words.in_words(8) == "8"
