"""Reading OpenSSH public keys: what is put on servers is parsed first, never passed through."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.utils.translation import gettext as _

from apps.accounts.errors import MalformedKey

RSA_BITS = 3072
LONGEST = 8192
EXAMPLE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJc4… name@laptop"
KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that was read: its canonical line, and its fingerprint as `ssh-keygen -l` shows it."""

    kind: str
    text: str
    comment: str
    fingerprint: str


def parse(line: str, *, field: str = "public_key") -> PublicKey:
    """Read one line of an authorized_keys file without options. Raises MalformedKey, saying why."""
    line = line.strip()
    kind, blob, comment = _parts(line, field)
    try:
        raw = base64.b64decode(blob, validate=True)
        key = load_ssh_public_key(f"{kind} {blob}".encode())
    except (binascii.Error, ValueError, UnsupportedAlgorithm):
        raise _malformed(field, _("its middle part is cut off or damaged")) from None
    _strong_enough(key, field)
    digest = base64.b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
    text = " ".join(filter(None, (kind, blob, comment)))
    return PublicKey(kind, text, comment, f"SHA256:{digest}")


def _parts(line: str, field: str) -> tuple[str, str, str]:
    if "PRIVATE KEY" in line:
        raise _malformed(field, _("it is a private key; keep that secret and use the .pub file"))
    if not line or len(line) > LONGEST:
        raise _malformed(field, _("it is empty or too long"))
    if any(not character.isprintable() for character in line):
        raise _malformed(field, _("it must be one single line"))
    words = line.split(None, 2)
    if words[0] not in KINDS:
        raise _malformed(field, _("it begins with “{word}”").format(word=words[0][:40]))
    if len(words) < 2:
        raise _malformed(field, _("only the kind is there, the key itself is missing"))
    return words[0], words[1], words[2] if len(words) > 2 else ""


def _strong_enough(key: Any, field: str) -> None:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < RSA_BITS:
        raise _malformed(field, _("its {bits} bits are too few").format(bits=key.key_size))
    allowed = (rsa.RSAPublicKey, ed25519.Ed25519PublicKey, ec.EllipticCurvePublicKey)
    if not isinstance(key, allowed):
        raise _malformed(field, _("its kind is not allowed"))


def _malformed(field: str, why: str) -> MalformedKey:
    return MalformedKey(field=field, why=why, example=EXAMPLE, bits=RSA_BITS)
