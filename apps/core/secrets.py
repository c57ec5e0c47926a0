"""Secrets at rest, tokens, and keeping both out of logs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

HIDDEN = "[hidden]"
TOKEN_BYTES = 32

_VERSION = 1
_NONCE_BYTES = 12
_TAG_BYTES = 16
_KEY_BYTES = 32
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_SECRET_NAME = re.compile(
    r"passw|token|secret|authorization|cookie|api_?key|access_?key|private_?key|config_?drive"
    r"|credential|session_?key|session_?id|neocloud_keys",
    re.IGNORECASE,
)
_SECRET_TEXT = (
    (re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"), HIDDEN),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
)
_MAX_DEPTH = 12


class SecretError(Exception):
    """A stored secret cannot be read; the message never holds any of it."""


class UnknownKey(SecretError):
    """The key a secret was locked with is not in the key ring."""


class WrongOwner(SecretError):
    """The secret belongs to another owner, table or row, or somebody changed it."""


class BrokenEnvelope(SecretError):
    """The stored bytes are no envelope of ours."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys by id; the first one locks, all of them open."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """A key ring from `"k1:<base64 of 32 bytes>,k0:…"`. Raises ImproperlyConfigured."""
        keys: dict[str, bytes] = {}
        for part in filter(None, (item.strip() for item in text.split(","))):
            key_id, _colon, encoded = part.partition(":")
            if not _KEY_ID.fullmatch(key_id) or key_id in keys:
                raise ImproperlyConfigured("NEOCLOUD_KEYS: each key needs an id of its own")
            keys[key_id] = _key_bytes(key_id, encoded)
        if not keys:
            raise ImproperlyConfigured("NEOCLOUD_KEYS is empty; give it as id:base64 of 32 bytes")
        return cls(current=next(iter(keys)), keys=keys)


def _key_bytes(key_id: str, encoded: str) -> bytes:
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ImproperlyConfigured(f"NEOCLOUD_KEYS: key {key_id} is not base64 of 32 bytes")
    return key


_parsed = lru_cache(maxsize=4)(KeyRing.parse)


def key_ring() -> KeyRing:
    """The key ring of the settings."""
    return _parsed(settings.NEOCLOUD_KEYS)


def encrypt(plaintext: bytes, *, owner: str, table: str, row: str) -> bytes:
    """Lock a secret to its place: the tenant's UUID or "platform", the table and the row.

    The envelope names its key, so keys can be changed without a flag day.
    """
    ring = key_ring()
    head = _head(ring.current)
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(ring.keys[ring.current]).encrypt(
        nonce, plaintext, _place(head, owner, table, row)
    )
    return head + nonce + sealed


def decrypt(blob: bytes | memoryview, *, owner: str, table: str, row: str) -> bytes:
    """The secret again. Raises BrokenEnvelope, UnknownKey or WrongOwner."""
    key_id, head, nonce, sealed = _open_envelope(bytes(blob))
    key = key_ring().keys.get(key_id)
    if key is None:
        raise UnknownKey(f"{table} {row}: key {key_id} is not in NEOCLOUD_KEYS; add it back")
    try:
        return AESGCM(key).decrypt(nonce, sealed, _place(head, owner, table, row))
    except InvalidTag:
        raise WrongOwner(
            f"{table} {row}: the secret was not made for this row of {owner}, or it was changed"
        ) from None


def needs_rotation(blob: bytes | memoryview) -> bool:
    """Whether a secret is locked with another key than the current one."""
    return _open_envelope(bytes(blob))[0] != key_ring().current


def rotated(blob: bytes | memoryview, *, owner: str, table: str, row: str) -> bytes:
    """The same secret under the current key."""
    place = {"owner": owner, "table": table, "row": row}
    return encrypt(decrypt(blob, **place), **place)


def new_token(prefix: str) -> str:
    """A token nobody can guess, such as `neo_…`; the prefix tells people what they found."""
    return f"{prefix}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def token_hash(token: str) -> str:
    """What is stored of a token: SHA-256, 64 hex digits. Only for tokens of `new_token`."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_matches(token: str, stored_hash: str) -> bool:
    """Whether a token is the one with that hash, in a time that tells nothing."""
    return hmac.compare_digest(token_hash(token), stored_hash)


def redact(value: object) -> object:
    """A copy fit for logs and audit: values under secret names and secrets in text are hidden."""
    return _redacted(value, 0)


def redact_text(text: str) -> str:
    """The text without passwords in addresses and without bearer or basic credentials."""
    for pattern, replacement in _SECRET_TEXT:
        text = pattern.sub(replacement, text)
    return text


def is_secret_name(name: object) -> bool:
    """Whether a key, a header or a setting of that name holds a secret."""
    return bool(_SECRET_NAME.search(str(name).replace("-", "_")))


def _redacted(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return HIDDEN
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return HIDDEN
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(key) and item else _redacted(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(item, depth + 1) for item in value]
    return value


def _head(key_id: str) -> bytes:
    return bytes([_VERSION, len(key_id)]) + key_id.encode()


def _place(head: bytes, owner: str, table: str, row: str) -> bytes:
    """Associated data; lengths stand before the parts, so no two places look alike."""
    parts = (part.encode() for part in (owner, table, row))
    return head + b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _open_envelope(blob: bytes) -> tuple[str, bytes, bytes, bytes]:
    size = 2 + blob[1] if len(blob) > 1 else 0
    if len(blob) < size + _NONCE_BYTES + _TAG_BYTES or blob[0] != _VERSION:
        raise BrokenEnvelope("these bytes are no secret of ours")
    head, nonce, sealed = blob[:size], blob[size : size + _NONCE_BYTES], blob[size + _NONCE_BYTES :]
    return head[2:].decode("ascii", "replace"), head, nonce, sealed
