"""Instants as people read them: in the time zone of the side the connection is on."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings

from apps.core.realms import side


def zone() -> tzinfo:
    """The time zone of this side: a tenant's billing zone, the operator's own on the platform."""
    name = getattr(side(), "billing_timezone", "") or settings.NEOCLOUD_TIMEZONE
    return ZoneInfo(name)


def in_zone(value: datetime, *, seconds: bool = False, of: tzinfo | None = None) -> tuple[str, str]:
    """An instant and the name of its zone: this side's, or the one given."""
    try:
        local = value.astimezone(of or zone())
    except OverflowError:  # the first or last hours datetime knows
        return value.isoformat(), ""
    text = local.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    return text, local.tzname() or ""


def in_words(value: datetime, *, seconds: bool = True, of: tzinfo | None = None) -> str:
    """The same as one text, for mails and messages: 2026-12-01 09:30:00 KST."""
    return " ".join(in_zone(value, seconds=seconds, of=of))
