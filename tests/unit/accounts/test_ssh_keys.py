"""Public keys are parsed before they are put on servers."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from apps.accounts.errors import MalformedKey
from apps.accounts.ssh_keys import parse


def _line(key, comment="me@laptop"):
    text = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f"{text} {comment}"


@pytest.mark.parametrize(
    "key",
    [
        ed25519.Ed25519PrivateKey.generate(),
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
        rsa.generate_private_key(65537, 3072),
    ],
    ids=["ed25519", "nistp256", "nistp384", "nistp521", "rsa-3072"],
)
def test_a_key_of_an_allowed_kind_is_read(key):
    read = parse(f"  {_line(key)}\n")
    assert read.text == _line(key)
    assert read.comment == "me@laptop"
    assert read.fingerprint.startswith("SHA256:")


def test_the_fingerprint_is_the_one_ssh_keygen_shows():
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github"
    assert parse(line).fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def _short_rsa():
    return _line(rsa.generate_private_key(65537, 2048))


def _private():
    return (
        ed25519.Ed25519PrivateKey.generate()
        .private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        .decode()
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "empty"),
        ("ssh-ed25519", "missing"),
        ("ssh-ed25519 AAAA", "damaged"),
        ("ssh-ed25519 not*base64", "damaged"),
        ("hello world", "begins with “hello”"),
        ("ssh-dss AAAAB3NzaC1kc3MAAACB", "begins with “ssh-dss”"),
        ('command="rm" ssh-ed25519 AAAA', "begins with"),
        (_line(ed25519.Ed25519PrivateKey.generate())[:60], "damaged"),
        (_line(ed25519.Ed25519PrivateKey.generate()) + "\nssh-rsa AAAA", "single line"),
        (_line(ed25519.Ed25519PrivateKey.generate(), "a\x00b"), "single line"),
        (_short_rsa(), "2048 bits are too few"),
        (_private(), "private key"),
        ("ssh-ed25519 " + "A" * 9000, "too long"),
        (_line(ed25519.Ed25519PrivateKey.generate()).replace("ssh-ed25519", "ssh-rsa"), "damaged"),
    ],
    ids=[f"line-{number}" for number in range(14)],
)
def test_a_malformed_key_is_refused_naming_field_reason_and_example(line, why):
    with pytest.raises(MalformedKey) as refusal:
        parse(line)
    assert refusal.value.field == "public_key"
    assert why in refusal.value.detail
    assert "ssh-ed25519 AAAA" in refusal.value.detail
    assert "3072 bits" in refusal.value.detail
