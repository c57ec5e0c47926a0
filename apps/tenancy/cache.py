"""Cache keys carry the schema, so one tenant can never read what another stored."""

from typing import Any

from apps.core.realms import schema


def make_key(key: Any, key_prefix: str, version: int) -> str:
    """The key as stored: schema, prefix, version, key."""
    return f"neo:{schema()}:{key_prefix}:{version}:{key}"
