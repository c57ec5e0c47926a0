"""Secrets: locked to their place, kept out of logs."""

import base64

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from apps.core import secrets
from apps.core.secrets import decrypt, encrypt, redact

K0 = "k0:" + base64.b64encode(bytes(range(32))).decode()
K1 = "k1:" + base64.b64encode(bytes(range(1, 33))).decode()
PLACE = {"owner": "platform", "table": "inventory_site", "row": "7"}


@pytest.fixture(autouse=True)
def _keys(settings):
    settings.NEOCLOUD_KEYS = K0


def test_a_secret_comes_back_and_is_not_readable_in_between():
    blob = encrypt("비밀 password".encode(), **PLACE)
    assert b"password" not in blob
    assert decrypt(blob, **PLACE) == "비밀 password".encode()
    assert decrypt(memoryview(blob), **PLACE) == "비밀 password".encode()


def test_the_same_secret_never_looks_the_same_twice():
    assert encrypt(b"x", **PLACE) != encrypt(b"x", **PLACE)


@pytest.mark.parametrize("part", ["owner", "table", "row"])
def test_a_secret_copied_to_another_place_cannot_be_read(part):
    blob = encrypt(b"hunter2", **PLACE)
    with pytest.raises(secrets.WrongOwner) as caught:
        decrypt(blob, **(PLACE | {part: "other"}))
    assert "hunter2" not in str(caught.value)


def test_places_that_run_together_are_still_different():
    blob = encrypt(b"x", owner="a", table="bc", row="d")
    with pytest.raises(secrets.WrongOwner):
        decrypt(blob, owner="ab", table="c", row="d")


@given(st.binary(max_size=64), st.integers(0, 10**6), st.integers(0, 7))
def test_a_changed_bit_is_noticed(plaintext, position, bit):
    blob = bytearray(encrypt(plaintext, **PLACE))
    blob[position % len(blob)] ^= 1 << bit
    with pytest.raises(secrets.SecretError):
        decrypt(bytes(blob), **PLACE)


@given(st.binary(max_size=80))
def test_bytes_that_are_no_envelope_are_refused(noise):
    with pytest.raises(secrets.SecretError):
        decrypt(noise, **PLACE)


def test_keys_change_without_a_flag_day(settings):
    old = encrypt(b"x", **PLACE)
    settings.NEOCLOUD_KEYS = f"{K1},{K0}"
    assert decrypt(old, **PLACE) == b"x"
    assert secrets.needs_rotation(old)
    new = secrets.rotated(old, **PLACE)
    assert not secrets.needs_rotation(new)
    settings.NEOCLOUD_KEYS = K1
    assert decrypt(new, **PLACE) == b"x"
    with pytest.raises(secrets.UnknownKey, match="k0"):
        decrypt(old, **PLACE)


@pytest.mark.parametrize("wrong", ["", "k1", "k1:zzz", "k1:" + "A" * 8, f"{K0},{K0}", ":" + K0[3:]])
def test_a_wrong_key_ring_is_refused_without_showing_it(settings, wrong):
    settings.NEOCLOUD_KEYS = wrong
    with pytest.raises(ImproperlyConfigured) as caught:
        encrypt(b"x", **PLACE)
    assert "AAECAw" not in str(caught.value)
    assert "x01" not in repr(secrets.KeyRing.parse(K0))


def test_tokens_are_long_different_and_only_their_hash_is_kept():
    token, other = secrets.new_token("neo"), secrets.new_token("neo")
    assert token.startswith("neo_")
    assert len(token) >= 46
    assert token != other
    stored = secrets.token_hash(token)
    assert len(stored) == 64
    assert token not in stored
    assert secrets.token_matches(token, stored)
    assert not secrets.token_matches(other, stored)


def test_what_is_named_like_a_secret_is_hidden_however_deep():
    shown = redact(
        {
            "order": "ORD-17",
            "Password": "a",
            "headers": {"Authorization": "b", "X-Api-Key": "c", "Cookie": "d", "Accept": "json"},
            "sites": [{"config_drive": "e", "name": "lab"}],
            "count": 2,
            "raw": b"f",
        }
    )
    assert shown == {
        "order": "ORD-17",
        "Password": secrets.HIDDEN,
        "headers": {
            "Authorization": secrets.HIDDEN,
            "X-Api-Key": secrets.HIDDEN,
            "Cookie": secrets.HIDDEN,
            "Accept": "json",
        },
        "sites": [{"config_drive": secrets.HIDDEN, "name": "lab"}],
        "count": 2,
        "raw": secrets.HIDDEN,
    }


def test_credentials_inside_text_are_hidden():
    text = secrets.redact_text(
        "postgresql://neo:s3cret@db/neo and Authorization: Bearer abcdefghijk"
    )
    assert "s3cret" not in text
    assert "abcdefghijk" not in text
    assert "@db/neo" in text
